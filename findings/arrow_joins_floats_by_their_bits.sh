#!/usr/bin/env bash
# Expected: pyarrow's join, group_by, unique and is_in find floats equal where pyarrow.compute.equal does: 0.0 and -0.0 are one key, and NaN
# is none; or all NaN are one key, as in DuckDB, polars and pandas, which agree that 0.0 is -0.0.
# What happens: keys are equal if their bits are. 0.0 does not meet -0.0, and is a group and a dictionary entry of its own. NaN meets NaN if
# both have the same bits: NaN with its sign set, which 0.0 / 0.0 gives on x86, is another key than float("nan"). A filter
# finds -0.0 by == 0.0, and the join with a table of 0.0 does not.
# Versions: pyarrow 21.0.0 and 26.0.1, beside duckdb 2.0.1.
# Why it matters: relations are handed from one engine to another as Arrow tables without a copy; the same join of the same table has other
# rows in the next engine. Rules that compute a negated cost or an empty average make such keys.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for version in 21.0.0 26.0.1; do
  python3 -m venv "$folder/$version"
  "$folder/$version/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "pyarrow==$version" "numpy==2.4.6" "duckdb==2.0.1"
  "$folder/$version/bin/python" -I - <<'PY'
import struct

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

# NaN as float("nan") is, and NaN with the sign set, as x86 computes it.
nan, other_nan = struct.unpack("<2d", struct.pack("<2Q", 0x7FF8000000000000, 0xFFF8000000000000))
a = pa.table({"key": [0.0, nan, nan, 1.0], "x": [0, 1, 2, 3]})
b = pa.table({"key": [-0.0, nan, other_nan, 1.0], "y": [0, 1, 2, 3]})
print("pyarrow", pa.__version__, "duckdb", duckdb.__version__)

joined = a.join(b, "key", join_type="inner")
joined = sorted(zip(joined["x"].to_pylist(), joined["y"].to_pylist()))
in_duckdb = duckdb.sql("select x, y from a join b using (key) order by all").fetchall()
print("pyarrow joins", joined)
print("duckdb joins", in_duckdb)
assert joined == [(1, 1), (2, 1), (3, 3)], "keys are compared otherwise now"
assert in_duckdb == [(0, 0), (1, 1), (1, 2), (2, 1), (2, 2), (3, 3)]

equal = pc.equal(a["key"], b["key"]).to_pylist()
found = pc.is_in(a["key"], b["key"]).to_pylist()
filtered = b.filter(pc.field("key") == 0.0)["y"].to_pylist()
print("equal", equal, "is_in", found, "filtered by == 0.0", filtered)
assert equal == [True, False, False, True]
assert found == [False, True, True, True], "keys are compared otherwise now"
assert filtered == [0]

ab = pa.table({"key": pa.concat_arrays([a["key"].chunk(0), b["key"].chunk(0)])})
groups = ab.group_by("key").aggregate([([], "count_all")]).to_pydict()
unique = pc.unique(ab["key"]).to_pylist()
((in_duckdb,),) = duckdb.sql("select count(distinct key) from ab").fetchall()
print("groups", groups, "unique", unique, "distinct in duckdb", in_duckdb)
assert sorted(groups["count_all"]) == [1, 1, 1, 2, 3], "keys are compared otherwise now"
assert len(unique) == len(ab["key"].combine_chunks().dictionary_encode().dictionary) == 5, "keys are compared otherwise now"
assert in_duckdb == 3
PY
done
