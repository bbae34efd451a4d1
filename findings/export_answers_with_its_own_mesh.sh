#!/usr/bin/env bash
# Expected: a program that was exported for a mesh of axes a and b, read back and called with an operand on a
# mesh with one axis x of the same devices, gives a result on the caller's mesh, for only the number of
# devices has to match.
# What happens: the call works, and the result has the mesh of the exporter: axes a and b, which the calling
# program never made. With explicit axes, "x" in the type of the result is the exporter's, so that adding the
# operand to the result, one line later, is refused because the meshes differ.
# Versions: jax 0.10.2 and jax 0.12.0.1, on CPU devices.
# Why it matters: what reads the axis names of a result, a checkpoint for instance, finds names that the
# calling program does not have. out_shardings or a constraint of the caller's puts the result back on its
# mesh; nothing says that one is needed.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
  "jax==0.10.2" "jaxlib==0.10.2" "ml_dtypes==0.6.0" "numpy==2.4.6" "scipy==1.17.1" "opt_einsum==3.4.0" "flatbuffers==25.12.19"

JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=8 \
"$folder/venv/bin/python" -I - <<'PY'
import jax
import jax.numpy as jnp
from jax import export
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

print("jax", jax.__version__)
theirs = jax.make_mesh((2, 4), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
exported = export.export(
    jax.jit(
        lambda x: 2 * x,
        in_shardings=NamedSharding(theirs, P("a", "b")),
        out_shardings=NamedSharding(theirs, P("b")),
    )
)(jax.ShapeDtypeStruct((8, 8), jnp.float32))
read = export.deserialize(exported.serialize())
ours = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
result = jax.jit(read.call)(jax.device_put(jnp.ones((8, 8)), NamedSharding(ours, P("x"))))
print("called on", ours.axis_names, "answers on", result.sharding.mesh.axis_names, result.sharding.spec)
assert result.sharding.mesh.axis_names == ("a", "b"), "the result has the caller's mesh now"
assert result.sharding.spec == P("b")
kept = jax.jit(read.call, out_shardings=NamedSharding(ours, P("x")))(jnp.ones((8, 8)))
assert kept.sharding.mesh.axis_names == ("x",)

theirs = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,))
with jax.set_mesh(theirs):
    operand = jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=NamedSharding(theirs, P("x")))
    exported = export.export(jax.jit(lambda x: 2 * x))(operand)
ours = jax.make_mesh((8,), ("z",), axis_types=(AxisType.Explicit,))
with jax.set_mesh(ours):
    operand = jax.device_put(jnp.ones((8, 8)), NamedSharding(ours, P("z")))
    try:
        jax.jit(lambda x: exported.call(x) + x)(operand)
    except ValueError as error:
        print("explicit axes:", str(error).splitlines()[0][:160])
    else:
        raise AssertionError("explicit axes of the caller are accepted now")
PY
