#!/usr/bin/env bash
# Expected: with the rules embed -> model and mlp -> model, a kernel with the names ("embed", "mlp") cannot be sharded: JAX refuses a mesh axis for two
# dimensions. Or its first dimension gets the axis, as dimensions are read in order. In Flax both of its libraries do the same.
# What happens: flax.linen gives the axis to the name whose rule stands first in the list, and silently none to the other. Swapping two rules
# shards the other dimension of each kernel; the order of dimensions is nothing. A name without a rule, as one with a typo, is replicated without a word.
# flax.nnx reads the same rules for each dimension alone: it makes P("model", "model"), which JAX refuses when an array gets it.
# Versions: flax 0.12.8 with jax 0.10.2.
# Why it matters: rule lists of models are merged and sorted by name. A tool that reads specs from them has to know the order, and from which of the
# two libraries they come; the memory of a device is the same in both, so nothing but collectives differs.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
  "flax==0.12.8" "jax==0.10.2" "jaxlib==0.10.2" "ml_dtypes==0.6.0" "numpy==2.4.6" "scipy==1.17.1" "opt_einsum==3.4.0"
JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=8 \
"$folder/venv/bin/python" -I - <<'PY'
import flax.linen as nn
import jax
from flax.core.spmd import from_sharding_rules
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec as P

import flax

rules = [("embed", "model"), ("mlp", "model"), ("batch", "data")]
swapped = [rules[1], rules[0], rules[2]]
print("flax", flax.__version__, "jax", jax.__version__)
for name, given, expected in (
    ("embed first", rules, [P("model", None), P(None, "model")]),
    ("mlp first", swapped, [P(None, "model"), P("model", None)]),
):
    found = [nn.logical_to_mesh_axes(names, given) for names in (("embed", "mlp"), ("mlp", "embed"))]
    print(f"linen, {name}: (embed, mlp) is {found[0]}, (mlp, embed) is {found[1]}")
    assert found == expected, "rules are read in another way now"
typo = nn.logical_to_mesh_axes(("embbed", "mlp"), rules)
print("linen, (embbed, mlp) is", typo)
assert typo == P(None, "model"), "unknown names are treated in another way now"
spec = P(*from_sharding_rules(("embed", "mlp"), rules))
print("nnx, (embed, mlp) is", spec)
assert spec == P("model", "model"), "nnx reads rules in another way now"
try:
    NamedSharding(AbstractMesh((2,), ("model",)), spec)
    raise SystemExit("JAX takes an axis twice now")
except Exception as error:
    print("JAX:", type(error).__name__, str(error).partition("\n")[0][:90])
PY
