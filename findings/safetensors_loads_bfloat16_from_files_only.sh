#!/usr/bin/env bash
# Expected: what safetensors.flax.save writes, safetensors.flax.load reads, and load(bytes) and
# load_file(path) differ in nothing but where the bytes are.
# What happens: bfloat16 arrays are written by save and save_file, read by load_file, and refused by load with
# KeyError "BF16". float8_e4m3fn is written by both and read by neither: load raises KeyError, load_file
# AttributeError, for it looks for the type in NumPy, not in ml_dtypes. float16 and float32 are read by all.
# Versions: safetensors 0.8.0 with jax 0.10.2 and jax 0.12.0.1.
# Why it matters: checkpoints that a process gets as bytes (an object store, a broadcast to other hosts) fail
# only in the type that accelerators use most, and float8 weights are lost when they are saved: they have to
# be viewed as uint8 before, or their bytes cut out by the offsets in the header.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
  "jax==0.10.2" "jaxlib==0.10.2" "ml_dtypes==0.6.0" "numpy==2.4.6" "scipy==1.17.1" "opt_einsum==3.4.0" "safetensors==0.8.0"

JAX_PLATFORMS=cpu "$folder/venv/bin/python" -I - <<'PY'
import pathlib
import tempfile

import jax
import jax.numpy as jnp
import safetensors
import safetensors.flax as st

print("jax", jax.__version__, "safetensors", safetensors.__version__)


def outcome(read):
    try:
        return str(read()["x"].dtype)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


found = {}
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "weights.safetensors"
    for dtype in ("float32", "float16", "bfloat16", "float8_e4m3fn"):
        arrays = {"x": jnp.ones(4, dtype)}
        st.save_file(dict(arrays), path)
        assert st.save(dict(arrays)) == path.read_bytes()
        found[dtype] = outcome(lambda: st.load(path.read_bytes())), outcome(lambda: st.load_file(path))
        print(dtype, "load:", found[dtype][0], "| load_file:", found[dtype][1])
assert found["float32"] == ("float32", "float32") and found["float16"] == ("float16", "float16")
assert found["bfloat16"] == ("KeyError: 'BF16'", "bfloat16"), "bfloat16 is read otherwise now"
assert found["float8_e4m3fn"][0].startswith("KeyError"), "load reads float8 now"
assert found["float8_e4m3fn"][1].startswith("AttributeError"), "load_file reads float8 now"
PY
