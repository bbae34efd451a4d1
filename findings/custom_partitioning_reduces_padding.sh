#!/usr/bin/env bash
# Expected: where a partition function of custom_partitioning asks for an operand sharded along a dimension
# that the mesh axis does not divide, JAX or XLA refuses it, or masks what is padded with the neutral element,
# as XLA does for its own reductions.
# What happens: each device gets padded rows, which hold zeros here, and the function reduces them as if they
# were data. The maximum of twelve rows of -1 on eight devices is 0. Nothing is said. With the rows along an
# axis of 4 devices the result is -1.
# Versions: jax 0.10.2 and jax 0.12.0.1, on CPU devices.
# Why it matters: the rule of such an op (sharding_rule) cannot say that a dimension must divide, so the
# function itself has to look at the shape of the whole operand, and give a sharding without that axis where
# it does not divide.
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
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

print("jax", jax.__version__)


def maximum_on(devices):
    mesh = jax.make_mesh((devices,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:devices])

    @custom_partitioning
    def maximum(x):
        return jnp.max(x, 0)

    def partition(mesh, operands, result):
        def on_each(x):
            return jax.lax.pmax(jnp.max(x, 0), "x")

        return mesh, on_each, NamedSharding(mesh, P()), (NamedSharding(mesh, P("x")),)

    maximum.def_partition(
        partition=partition,
        infer_sharding_from_operands=lambda mesh, operands, result: NamedSharding(mesh, P()),
        sharding_rule="i j -> j",
    )
    rows = NamedSharding(mesh, P("x"))
    return jax.jit(lambda x: maximum(jax.lax.with_sharding_constraint(x * 1, rows)))(-jnp.ones((12, 4)))


even, uneven = maximum_on(4), maximum_on(8)
print("maximum of twelve rows of -1: on 4 devices", even, "on 8 devices", uneven)
assert (even == -1).all()
assert (uneven == 0).all(), "padding is no longer reduced"
PY
