#!/usr/bin/env bash
# Expected: a slice of a tensorstore either counts from 0, as in NumPy, or keeps its origin, as a[2:6] does,
# whose first index is 2. So a[2:8:2] begins at 0 or at 2.
# What happens: with a step the origin is the start divided by the step, rounded towards zero: a[2:8:2] begins
# at 1 and a[7:0:-2] at -3. a[2:6][0] is out of range, and so is a[-4:] of a dimension that begins at 0.
# a.translate_to[0] puts the origin back.
# Versions: tensorstore 0.1.83 and 0.1.86.
# Why it matters: code that reads the shard of a device as store[shard.index] and counts on from 0 fails. An
# interleaved shard, store[start::devices], begins at 0 as long as start is below the number of devices, so
# that the same code works there.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
  "tensorstore==0.1.83" "numpy==2.4.6" "ml_dtypes==0.6.0"

"$folder/venv/bin/python" -I - <<'PY'
import numpy as np
import tensorstore as ts

store = ts.open(
    {"driver": "zarr3", "kvstore": "memory://"}, dtype=ts.float32, shape=[8], create=True
).result()
store.write(np.arange(8, dtype=np.float32)).result()
origins = {
    "2:6": store[2:6].domain.origin,
    "2:8:2": store[2:8:2].domain.origin,
    "1::4": store[1::4].domain.origin,
    "5::4": store[5::4].domain.origin,
    "7:0:-2": store[7:0:-2].domain.origin,
}
print(origins)
assert list(origins.values()) == [(2,), (1,), (0,), (1,), (-3,)], "origins are counted otherwise now"
assert store[2:8:2][1].read().result() == 2 and store[7:0:-2][-3].read().result() == 7
for name, read in {"[2:6][0]": lambda: store[2:6][0], "[-4:]": lambda: store[-4:]}.items():
    try:
        read()
    except IndexError as error:
        print(name, "->", str(error)[:60])
    else:
        raise AssertionError(f"{name} is in range now")
assert store[2:6].translate_to[0][0].read().result() == 2
PY
