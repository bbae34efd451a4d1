#!/usr/bin/env bash
# Expected: jnp.sum of float8_e4m3fn adds up in float32, as it does for bfloat16 and float16, and rounds once;
# 32 ones are 32, and their mean is 1. Sharding changes the last bit at most.
# What happens: it adds up in float8. 32 ones are 16 (17 rounds to 16, and so it stays), their mean is 0.5,
# and in float8_e3m4 the sum is inf. Four ones on each of eight devices, added up by lax.psum, are 32.
# Versions: jax 0.10.2 and jax 0.12.0.1, on CPU devices; bfloat16 beside it, where a thousand ones are a
# thousand.
# Why it matters: a sum over a sharded dimension may be twice the sum of the whole; to compare a partitioned
# program with the one on one device, the tolerance of float8 sums has to grow with the number of addends.
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
psum = jax.jit(
    jax.shard_map(lambda x: jax.lax.psum(jnp.sum(x), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
)
ones = jnp.ones((8, 4), jnp.float8_e4m3fn)
whole, parts, mean = float(jnp.sum(ones)), float(psum(ones)), float(jnp.mean(ones))
print(f"32 ones in float8_e4m3fn: sum {whole}, sum of eight parts {parts}, mean {mean}")
assert (whole, parts, mean) == (16.0, 32.0, 0.5), "float8 is added up otherwise now"
e3m4 = float(jnp.sum(ones.astype(jnp.float8_e3m4)))
print("in float8_e3m4:", e3m4)
assert e3m4 == float("inf")
assert float(jnp.sum(jnp.ones(1000, jnp.bfloat16))) == 1000
PY
