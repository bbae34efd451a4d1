#!/usr/bin/env bash
# Expected: Lowered.cost_analysis() gives the work of the whole program for jit and for shard_map alike, and 0
# FLOPs for the identity.
# What happens: the identity under shard_map has -2 FLOPs and -2 bytes accessed. XLA counts each custom call
# as -1, for "unknown", and adds these up with the rest; a shard_map becomes two in HLO, one where it begins
# and one where it ends. The body is counted with the shapes of one device: a product that is 524288 FLOPs
# under jit is 65534 under shard_map, though both are the same program on the same 8 devices.
# Compiled.cost_analysis() gives 65536 for both.
# Versions: jax 0.10.2 and jax 0.12.0.1, on CPU devices.
# Why it matters: figures of Lowered.cost_analysis() cannot be compared between programs of which one has a
# manual region or any custom call, and dividing by them (FLOPs per byte) may give a negative number.
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
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

print("jax", jax.__version__)
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
matrix = jax.ShapeDtypeStruct((64, 64), jnp.float32)
identity = jax.jit(jax.shard_map(lambda x: x, mesh=mesh, in_specs=P("x"), out_specs=P("x"))).lower(matrix)
cost = identity.cost_analysis()
print("identity:", cost["flops"], "FLOPs,", cost["bytes accessed"], "bytes")
assert cost["flops"] == -2 and cost["bytes accessed"] == -2, "custom calls are counted otherwise now"

specs = (P("x"), P())
manual = jax.jit(jax.shard_map(jnp.matmul, mesh=mesh, in_specs=specs, out_specs=P("x"))).lower(matrix, matrix)
shardings = tuple(NamedSharding(mesh, spec) for spec in specs)
automatic = jax.jit(jnp.matmul, in_shardings=shardings).lower(matrix, matrix)
for name, lowered in (("jit", automatic), ("shard_map", manual)):
    print(name, "lowered", lowered.cost_analysis()["flops"], "compiled", lowered.compile().cost_analysis()["flops"])
assert automatic.cost_analysis()["flops"] == 524288 and manual.cost_analysis()["flops"] == 65534
assert automatic.compile().cost_analysis()["flops"] == manual.compile().cost_analysis()["flops"] == 65536
PY
