#!/usr/bin/env bash
# Expected: lax.pmean of int8, int32 or float16 is the mean that jnp.mean gives of the same numbers. It
# returns float32 for integers, so it seems to convert first.
# What happens: it adds up in the type of the operand and divides after that. Eight devices that all hold the
# int8 100 have the mean 4.0 (800 wraps to 32), eight int32 of 2**30 have the mean 0.0, eight float16 of 60000
# have inf. jnp.mean gives 100, 2**30 and 60000. Nothing is raised, and the float32 result hides that the sum
# was an int8.
# Versions: jax 0.10.2 and jax 0.12.0.1, on CPU devices.
# Why it matters: whoever turns jnp.mean of a sharded value into a local mean and a pmean, by hand or by a
# tool, changes the result.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
  "jax==0.10.2" "jaxlib==0.10.2" "ml_dtypes==0.6.0" "numpy==2.4.6" "scipy==1.17.1" "opt_einsum==3.4.0"

JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=8 \
"$folder/venv/bin/python" -I - <<'PY'
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec as P

print("jax", jax.__version__)
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
pmean = jax.jit(jax.shard_map(lambda x: jax.lax.pmean(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P()))
for dtype, number, wrong in (("int8", 100, 4.0), ("int32", 2**30, 0.0), ("float16", 60000, float("inf"))):
    values = jnp.full(8, number, dtype)
    found, mean = pmean(values), jnp.mean(values)
    print(f"eight {dtype} of {number}: pmean {found[0]} ({found.dtype}), jnp.mean {mean} ({mean.dtype})")
    assert float(found[0]) == wrong and float(mean) == number, "pmean has changed"
    assert found.dtype == mean.dtype
PY
