#!/usr/bin/env bash
# Expected: lax.igamma, lax.betainc and jax.random.gamma are elementwise, so a sharded operand is computed in
# parts, without any communication, as lax.digamma and lax.lgamma are.
# What happens: JAX lowers them to a while loop that goes on as long as any element has not converged. The
# condition reduces over the whole tensor, so its partitioned form has an all-reduce of one bool in the loop.
# Each turn waits for all devices, and all make as many turns as the slowest element takes. Under shard_map
# each device loops alone.
# Versions: jax 0.10.2 and jax 0.12.0.1 on CPU devices; libtpu 0.0.50.1 does the same for v5e.
# Why it matters: a small collective in a loop whose number of turns depends on the data is a cost that no
# model of bytes shows, and it comes from a function that users take for elementwise; shard_map is the way
# around it.
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
operand = jax.ShapeDtypeStruct((64,), jnp.float32, sharding=NamedSharding(mesh, P("x")))


def all_reduces(function):
    lowered = jax.jit(function).lower(operand)
    text = lowered.compile().as_text()
    assert ("stablehlo.while" in lowered.as_text()) == (" while(" in text)
    assert not re.search(r"all-gather|collective-permute|all-to-all", text)
    return re.findall(r"= (\S+) all-reduce\(", text)


looping = {
    "igamma": lambda x: jax.lax.igamma(x, x),
    "betainc": lambda x: jax.lax.betainc(x, x, x),
    "random.gamma": lambda x: jax.random.gamma(jax.random.key(0), x),
}
for name, function in looping.items():
    found = all_reduces(function)
    print(name, found)
    assert found and all(kind.startswith("pred[]") for kind in found), f"{name} no longer waits"
for name, function in {"digamma": jax.lax.digamma, "lgamma": jax.lax.lgamma}.items():
    print(name, all_reduces(function))
    assert not all_reduces(function)
alone = jax.shard_map(looping["igamma"], mesh=mesh, in_specs=P("x"), out_specs=P("x"))
assert not all_reduces(alone)
print("igamma under shard_map: none")
PY
