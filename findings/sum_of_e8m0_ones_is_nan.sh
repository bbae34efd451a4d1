#!/usr/bin/env bash
# Expected: the sum of eight ones in float8_e8m0fnu, the type of the scales of microscaling formats, is 8,
# which the type holds exactly; and their maximum is 1.
# What happens: jnp.sum and jnp.max are NaN, whatever the numbers. The type has neither zero nor sign, so the
# start of each reduction (0, or minus infinity) is NaN. lax.psum of the same eight ones on eight devices is
# 8, for it has no start. jnp.zeros and jnp.pad give NaN too, where np.zeros gives 2**-127 (all bits zero).
# Versions: jax 0.10.2 and jax 0.12.0.1, ml_dtypes 0.6.0, on CPU devices.
# Why it matters: a partitioner that splits a reduction, or pads a dimension that devices do not divide, needs
# a neutral element; this type has none for addition. A sum over parts and the sum as a whole differ even
# where all is exact.
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
import ml_dtypes
import numpy as np
from jax.sharding import AxisType, PartitionSpec as P

print("jax", jax.__version__, "ml_dtypes", ml_dtypes.__version__)
ones = jnp.ones(8, jnp.float8_e8m0fnu)
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
psum = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P()))
found = {
    "jnp.sum": jnp.sum(ones),
    "jnp.max": jnp.max(ones),
    "jnp.zeros": jnp.zeros((), jnp.float8_e8m0fnu),
    "jnp.pad": jnp.pad(ones, (1, 0))[0],
    "lax.psum": psum(ones)[0],
    "np.zeros": np.zeros((), ml_dtypes.float8_e8m0fnu),
}
found = {name: float(np.asarray(value).astype(np.float32)) for name, value in found.items()}
print(found)
assert all(np.isnan(found[name]) for name in ("jnp.sum", "jnp.max", "jnp.zeros", "jnp.pad")), "no NaN any more"
assert found["lax.psum"] == 8 and found["np.zeros"] == np.float32(2.0**-127)
PY
