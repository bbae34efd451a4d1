#!/usr/bin/env bash
# Expected: concatenate([-x[..., h:], x[..., :h]], -1), the rotation of rotary embeddings in many models, exchanges the halves: if x is in parts along that
# dimension, each device sends its part once to the device that holds the other half, as with jnp.roll(x, h, -1).
# What happens: XLA spreads each half over all devices first, and puts the result together from them: 4 collective-permutes and 3 all-to-alls,
# 4.5 times the elements. Two halves that are not changed are seen as a rotation, one permute; the minus between the slice and the concatenation hides it.
# jnp.roll(x, h, -1) times a vector of signs gives the same numbers with one permute.
# Versions: jax 0.10.2, and jax 0.12.0.1 where Python is 3.12 or later, on CPU devices.
# Why it matters: heads that are split along their width, as with fewer heads than devices, rotate queries and keys like this in each layer.
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
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
last = NamedSharding(mesh, P(None, None, None, "x"))
x = np.random.default_rng(0).standard_normal((8, 16, 4, 128)).astype(np.float32)
h, part = 64, x.size // 8
signs = np.concatenate([-np.ones(h, np.float32), np.ones(h, np.float32)])


def collectives(compiled):
    """The kind and the elements of the result of each collective of a compiled program."""
    pattern = r"= (.*?) (all-\w+(?:-\w+)?|collective-permute|reduce-scatter)\("
    return [
        (kind, sum(int(np.prod(list(map(int, size.split(","))))) for size in re.findall(r"\[([\d,]+)\]", shapes)))
        for shapes, kind in re.findall(pattern, compiled.as_text())
    ]


ways = {
    "concatenate, one half negated": (lambda x: jnp.concatenate([-x[..., h:], x[..., :h]], -1), 7, True),
    "concatenate": (lambda x: jnp.concatenate([x[..., h:], x[..., :h]], -1), 1, False),
    "roll": (lambda x: jnp.roll(x, h, -1), 1, False),
    "roll times signs": (lambda x: jnp.roll(x, h, -1) * signs, 1, True),
    "halves reversed": (lambda x: x.reshape(8, 16, 4, 2, h)[..., ::-1, :].reshape(x.shape) * signs, 1, True),
}
print("jax", jax.__version__)
for name, (function, count, negated) in ways.items():
    compiled = jax.jit(function, in_shardings=last, out_shardings=last).lower(x).compile()
    found = collectives(compiled)
    elements = sum(size for _, size in found)
    print(f"{name}: {len(found)} collectives, results of {elements / part:.1f} parts")
    assert len(found) == count, "it takes another number of collectives now"
    assert elements == (4.5 if count == 7 else 1) * part, "it sends something else now"
    expected = np.roll(x, h, -1) * (signs if negated else 1)
    assert np.array_equal(compiled(jax.device_put(x, last)), expected)
PY
done
