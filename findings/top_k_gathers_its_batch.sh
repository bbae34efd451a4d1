#!/usr/bin/env bash
# Expected: lax.top_k along the last dimension of a tensor whose batch is sharded needs no communication, as
# jnp.sort along the same dimension.
# What happens: XLA for CPUs gathers the whole operand, each device computes the whole batch, and the result
# is cut into parts again, so that it looks sharded as expected. jnp.sort, jnp.argmax and lax.approx_max_k of
# the same tensor stay in parts. Under shard_map top_k is local.
# Versions: jax 0.10.2 and jax 0.12.0.1 on CPU devices. XLA for TPUs does not gather (libtpu 0.0.50.1, v5e).
# Why it matters: the output sharding does not tell; sampling and mixture-of-experts routing tried on CPU
# devices send all logits.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
  "jax==0.10.2" "jaxlib==0.10.2" "ml_dtypes==0.6.0" "numpy==2.4.6" "scipy==1.17.1" "opt_einsum==3.4.0"

JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=8 \
"$folder/venv/bin/python" -I - <<'PY'
import re

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

print("jax", jax.__version__)
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
rows = NamedSharding(mesh, P("x"))
operand = jax.ShapeDtypeStruct((64, 4096), jnp.float32, sharding=rows)


def gathered(function):
    compiled = jax.jit(function).lower(operand).compile()
    assert jax.tree.leaves(compiled.output_shardings)[0].spec[0] == "x"
    return re.findall(r"= (f32\[[\d,]*\])\S* all-gather\(", compiled.as_text())


ops = {
    "top_k": lambda x: jax.lax.top_k(x, 2),
    "sort": lambda x: jnp.sort(x, -1),
    "argmax": lambda x: jnp.argmax(x, -1),
    "approx_max_k": lambda x: jax.lax.approx_max_k(x, 2),
    "top_k under shard_map": jax.shard_map(
        lambda x: jax.lax.top_k(x, 2), mesh=mesh, in_specs=P("x"), out_specs=P("x")
    ),
}
found = {name: gathered(function) for name, function in ops.items()}
print(found)
assert found.pop("top_k") == ["f32[64,4096]"], "top_k no longer gathers its batch"
assert not any(found.values())
PY
