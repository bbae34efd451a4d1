#!/usr/bin/env bash
# Expected: the state that optax makes for sharded parameters is sharded like them, and init under jit makes
# the same state as init.
# What happens: adam's moments have the sharding of the parameters when init is called as it is, and lie on
# one device when it is jitted. They are zeros that depend on the shape of the parameters alone, so the
# compiled program does not read them and propagation has nothing to start from. adafactor's factored moments
# lie on one device in both cases.
# Versions: optax 0.2.8 with jax 0.10.2 and jax 0.12.0.1.
# Why it matters: two copies of the model on the first device, where one expects two eighths; jitting init,
# done to save time, is what breaks it. out_shardings, or a constraint on the state, is needed.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
  "jax==0.10.2" "jaxlib==0.10.2" "ml_dtypes==0.6.0" "numpy==2.4.6" "scipy==1.17.1" "opt_einsum==3.4.0" "optax==0.2.8"

JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=8 \
"$folder/venv/bin/python" -I - <<'PY'
import jax
import jax.numpy as jnp
import optax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

print("jax", jax.__version__, "optax", optax.__version__)
mesh = jax.make_mesh((2, 4), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
params = {"w": jax.device_put(jnp.ones((256, 512)), NamedSharding(mesh, P("a", "b")))}


def devices(state):
    return {(leaf.shape, len(leaf.sharding.device_set)) for leaf in jax.tree.leaves(state) if leaf.ndim}


found = {}
for name, optimizer in (("adam", optax.adam(1e-3)), ("adafactor", optax.adafactor(1e-3))):
    found[name] = devices(optimizer.init(params)), devices(jax.jit(optimizer.init)(params))
    print(name, "init:", *found[name][0], "jit of init:", *found[name][1])
assert found["adam"] == ({((256, 512), 8)}, {((256, 512), 1)}), "adam's moments are placed otherwise now"
for state in found["adafactor"]:
    assert ((256,), 1) in state and ((512,), 1) in state, "adafactor's moments are placed otherwise now"
PY
