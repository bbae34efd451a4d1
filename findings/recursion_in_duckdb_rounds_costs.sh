#!/usr/bin/env bash
# Expected: the two halves of a recursive query in DuckDB get a common type for each column, as those of every other UNION do; or the query
# is refused because they differ, as in PostgreSQL. So a cost that starts from 0 and adds 0.4 for each edge is 1.6 after four.
# What happens: the column has the type of the first half alone, and each round is cast to that: from the integer 0 the cost is 0, 0, 0, 0, 0.
# Weights of 0.6 cost 1 each. USING KEY does the same. The same UNION without recursion is a DECIMAL, SQLite
# says 1.6, and so does DuckDB if the query starts from 0.0::double. From 0.0 it rounds to one digit after the point.
# Versions: duckdb 1.4.1 and 2.0.1.
# Why it matters: sums along paths are what relations of a dependence graph are queried for, and they start from 0. Times in seconds and
# costs below one half vanish; the smallest cost is found among paths that all cost nothing, without a warning.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for version in 1.4.1 2.0.1; do
  python3 -m venv "$folder/$version"
  "$folder/$version/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "duckdb==$version"
  "$folder/$version/bin/python" -I - <<'PY'
import sqlite3

import duckdb

PATHS = """
with recursive
  edge(a, b, weight) as (values (1, 2, {weight}), (2, 3, {weight}), (3, 4, {weight}), (4, 5, {weight})),
  path(node, cost) {key} as (
    select 1, {start} union {all}
    select b, cost + weight from path join edge on a = node)
select cost from path order by node
"""
print("duckdb", duckdb.__version__)


def costs(start, weight, key=""):
    query = PATHS.format(start=start, weight=weight, key=key, all="" if key else "all")
    found = [float(cost) for (cost,) in duckdb.sql(query).fetchall()]
    print(f"from {start}, edges of {weight} {key}: {found}, {duckdb.sql(query).types[0]}")
    return found


assert costs("0", "0.4::double") == [0, 0, 0, 0, 0], "costs are not rounded now"
assert costs("0", "0.4::double", "using key (node)") == [0, 0, 0, 0, 0], "costs are not rounded now"
assert costs("0", "0.6::double") == [0, 1, 2, 3, 4], "costs are not rounded now"
assert costs("0.0", "0.25::double") == [0, 0.3, 0.6, 0.9, 1.2], "costs are not rounded now"
assert abs(costs("0.0::double", "0.4::double")[-1] - 1.6) < 1e-9

(union,) = duckdb.sql("select 0 as cost union all select 0.4::double").types
print("the same without recursion:", union)
assert union == "DOUBLE"

query = PATHS.format(start="0", weight="0.4", key="", all="all")
of_sqlite = [cost for (cost,) in sqlite3.connect(":memory:").execute(query)]
print("SQLite:", of_sqlite)
assert abs(of_sqlite[-1] - 1.6) < 1e-9
PY
done
