#!/usr/bin/env bash
# Expected: x[:8] of a sharded array has the same sharding within jit and outside, where JAX compiles each operation for itself;
# and the same as the half that jnp.split gives.
# What happens: within jit it is sharded like x. Outside of it JAX takes the bounds as operands, by which XLA gathers, and the
# result is replicated: every device gets all rows. x[2:10], x[::2] and lax.slice are the same; x[:, :2], x[::-1], lax.slice_in_dim
# and jnp.split are sharded in both. With explicit axes x[:8] outside of jit is refused, and accepted within.
# Versions: jax 0.10.2, and jax 0.12.0.1 where Python is 3.12 or later, on CPU devices.
# Why it matters: a loop over batches of a sharded data set takes data[i : i + n] outside of jit; each device then holds the whole batch,
# and the step that is compiled for it is replicated, too: all devices do the work of all. What was seen of a
# sharding in a notebook is not what the compiled program has.
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
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

values = np.arange(64, dtype=np.float32).reshape(16, 4)
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
x = jax.device_put(values, NamedSharding(mesh, P("x")))
ways = {
    "x[:8]": (lambda x: x[:8], P()),
    "x[2:10]": (lambda x: x[2:10], P()),
    "x[::2]": (lambda x: x[::2], P()),
    "x[:, :2]": (lambda x: x[:, :2], P("x")),
    "x[::-1]": (lambda x: x[::-1], P("x")),
    "lax.slice": (lambda x: jax.lax.slice(x, (0, 0), (8, 4)), P()),
    "lax.slice_in_dim": (lambda x: jax.lax.slice_in_dim(x, 0, 8), P("x")),
    "jnp.split": (lambda x: jnp.split(x, 2)[0], P("x")),
}
print("jax", jax.__version__)
for name, (take, expected) in ways.items():
    outside, within = take(x), jax.jit(take)(x)
    assert np.array_equal(outside, take(values) if name[0] == "x" else values[:8]) and np.array_equal(outside, within)
    shapes = [y.addressable_shards[0].data.shape for y in (outside, within)]
    print(f"{name}: outside of jit {outside.sharding.spec}, {shapes[0]} a device; within {within.sharding.spec}, {shapes[1]} a device")
    assert within.sharding.is_equivalent_to(NamedSharding(mesh, P("x")), 2), "other within jit now"
    assert outside.sharding.is_equivalent_to(NamedSharding(mesh, expected), 2), "other outside of jit now"

explicit = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,))
with jax.set_mesh(explicit):
    x = jax.device_put(values, NamedSharding(explicit, P("x")))
    within = jax.jit(lambda x: x[:8])(x)
    try:
        outside = x[:8].sharding.spec
    except Exception as error:
        outside = type(error).__name__
print("with explicit axes: outside of jit", outside, "within", within.sharding.spec)
assert outside == "ShardingTypeError", "it is accepted now"
assert within.sharding.is_equivalent_to(NamedSharding(explicit, P("x")), 2)
PY
done
