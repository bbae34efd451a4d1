#!/usr/bin/env bash
# Expected: jnp.tile(x, (16, 1)) repeats the rows of x. If they are in parts, XLA gathers x once and repeats it on each device.
# What happens: XLA repeats first and gathers then, so each device receives all sixteen copies: 16 times the bytes of x. JAX writes tile as a
# broadcast to [16, rows, ...] and a reshape. The reshape cannot keep rows in parts that are minor in its dimension, so XLA gathers its
# operand, which is the broadcast.
# If the result is asked for in parts, XLA gathers x once. So it does if x is constrained to be whole. jnp.repeat sends nothing.
# Versions: jax 0.10.2, and jax 0.12.0.1 where Python is 3.12 or later, on CPU devices.
# Why it matters: tables of positions, masks and anchors are tiled. A gather looks unavoidable there, but its bytes grow with the copies.
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
rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
x = np.arange(1024 * 32, dtype=np.float32).reshape(1024, 32)


def gathered(compiled):
    """The elements of the results of all collectives of a compiled program."""
    pattern = r"= f32\[([\d,]+)\]\S* (all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter)\("
    return [
        (kind, int(np.prod([int(n) for n in shape.split(",")])))
        for shape, kind in re.findall(pattern, compiled.as_text())
    ]


print("jax", jax.__version__)
for copies in (2, 8, 16):
    cases = {
        "tile": (lambda x: jnp.tile(x, (copies, 1)), None, [("all-gather", copies * x.size)]),
        "tile of x constrained to be whole": (
            lambda x: jnp.tile(jax.lax.with_sharding_constraint(x, whole), (copies, 1)),
            None,
            [("all-gather", x.size)],
        ),
        "repeat": (lambda x: jnp.repeat(x, copies, 0), None, []),
    }
    if copies > 2:  # where a part of the result is not longer than x
        cases["tile, result in parts"] = (cases["tile"][0], rows, [("all-gather", x.size)])
    for name, (function, result, expected) in cases.items():
        options = {} if result is None else {"out_shardings": result}
        compiled = jax.jit(function, in_shardings=rows, **options).lower(x).compile()
        moved = gathered(compiled)
        print(f"{copies} copies, {name}: {moved} (x has {x.size})")
        assert moved == expected, "it sends something else now"
        assert np.array_equal(compiled(jax.device_put(x, rows)), function(jnp.asarray(x)))
PY
done
