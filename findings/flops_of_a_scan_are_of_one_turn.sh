#!/usr/bin/env bash
# Expected: compiled.cost_analysis()["flops"] of a model whose layers are scanned is that of the same layers unrolled. XLA knows how often the
# loop runs: the optimised HLO has it as known_trip_count.
# What happens: a loop counts once. 100 layers that are scanned have the flops of one, before and after XLA has compiled them, and bytes accessed likewise.
# Of a branch the more expensive side counts. In JAX this also concerns lax.map, fori_loop and gradients of scans.
# Versions: jax 0.10.2, and jax 0.12.0.1 where Python is 3.12 or later, on CPU devices.
# Why it matters: utilisation (MFU) is computed from this number. Large models scan their layers, so it is too small by their depth, and
# it is right for the small unrolled model that the dashboard was tried with.
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
from jax import lax

n = 64
x = jax.ShapeDtypeStruct((n, n), jnp.float32)


def scanned(layers):
    return lambda x: lax.scan(lambda x, _: (x @ x, None), x, None, length=layers)[0]


def unrolled(layers):
    def run(x):
        for _ in range(layers):
            x = x @ x
        return x

    return run


def products(function):
    """The flops of a function in products of matrices, before it is compiled and after, and its trip counts."""
    lowered = jax.jit(function).lower(x)
    compiled = lowered.compile()
    return [round(each.cost_analysis()["flops"] / (2 * n**3)) for each in (lowered, compiled)], compiled.as_text()


print("jax", jax.__version__)
for layers in (2, 10, 100):
    loop, text = products(scanned(layers))
    line, _ = products(unrolled(layers))
    print(f"{layers} layers: scanned {loop}, unrolled {line} products")
    assert f'"n":"{layers}"' in text.replace("\\", ""), "the trip count is not in the program any more"
    assert loop == [1, 1] and line == [layers, layers], "loops are counted in another way now"
branches, _ = products(lambda x: lax.cond(x[0, 0] > 0, lambda x: x @ x @ x @ x, lambda x: x @ x, x))
print("a branch of 3 products, or 1:", branches)
assert branches[1] == 3, "branches are counted in another way now"
PY
done
