#!/usr/bin/env bash
# Expected: jnp.max of a vector with a NaN is NaN, as in NumPy, wherever its elements lie; lax.pmax under shard_map is, too.
# Sharding changes rounding at most, and a maximum does not round.
# What happens: if the vector is sharded over CPU devices, one element each, jnp.max and lax.pmax are the maximum of the other
# elements, whichever device holds the NaN, and jnp.min likewise. On one device it is NaN. jnp.argmax of the sharded vector still
# finds the NaN, and jnp.sum is NaN.
# Versions: jax 0.10.2, and jax 0.12.0.1 where Python is 3.12 or later, on the CPU devices of one process.
# Why it matters: jnp.max(jnp.abs(g)) is how training looks for gradients that are not finite, and how scales of float8 and int8
# are found. Tests on CPU devices then pass where the program on one device stops; a tool that compares a
# partitioned program with the whole sees a difference that is no fault of the partitioning.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
versions=(0.10.2)
if python3 -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then versions+=(0.12.0.1); fi
for version in "${versions[@]}"; do
  python3 -m venv "$folder/$version"
  "$folder/$version/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
    "jax==$version" "jaxlib==$version" "ml_dtypes==0.6.0" "numpy==2.4.6" "scipy==1.17.1" "opt_einsum==3.4.0"
  JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=8 \
  "$folder/$version/bin/python" -I - <<'PY'
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
sharding = NamedSharding(mesh, PartitionSpec("x"))
pmax = jax.jit(
    jax.shard_map(lambda part: jax.lax.pmax(part, "x"), mesh=mesh, in_specs=PartitionSpec("x"), out_specs=PartitionSpec())
)

print("jax", jax.__version__)
for kind in (jnp.float32, jnp.bfloat16):
    for place in range(8):
        values = np.arange(8, dtype=np.float32)
        values[place] = np.nan
        whole = jax.device_put(jnp.asarray(values, kind), jax.devices()[0])
        parts = jax.device_put(whole, sharding)
        found = [float(x) for x in (jnp.max(parts), jnp.min(parts), pmax(parts)[0])]
        print(f"{kind.__name__}, NaN on device {place}: max, min and pmax of the parts are {found}; max of the whole {jnp.max(whole)}")
        assert np.isnan(jnp.max(whole)) and np.isnan(jnp.min(whole))
        assert found == [np.nanmax(values), np.nanmin(values), np.nanmax(values)], "NaN is kept now"
        assert jnp.argmax(parts) == place and np.isnan(jnp.sum(parts))
PY
done
