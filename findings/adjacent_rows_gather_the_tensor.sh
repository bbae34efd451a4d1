#!/usr/bin/env bash
# Expected: a few adjacent rows are the easiest to read from a tensor whose rows are in parts: x[i], or lax.dynamic_slice of four rows. XLA
# sends them at most, as it does for a list of rows, x[i + jnp.arange(4)], which may be anywhere. The same for writing four rows that
# every device has: each writes those in its part, and nothing is sent.
# What happens: x[i] with an i that is known at run time gathers all of x on every device; so do lax.dynamic_slice, x.at[5:9].set(y), and
# lax.dynamic_update_slice of more than one row. The same rows as a list are an all-reduce of what is read, and no
# collective at all where they are written. x[5] with a constant, and an update of one row, are like the list.
# Versions: jax 0.10.2, and jax 0.12.0.1 where Python is 3.12 or later, on CPU devices.
# Why it matters: a layer's parameters are read from a stack like this, and a prompt is written into a cache like this. The slice is the plain
# spelling, and each step of a loop pays for the whole tensor.
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
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
x, y, one = np.arange(1024 * 32, dtype=np.float32).reshape(1024, 32), np.ones((4, 32), np.float32), np.int32(300)
EVERYTHING, NOTHING = [("all-gather", x.size)], []
four = jnp.arange(4)
cases = {
    "x[i]": (lambda x, y, i: x[i], EVERYTHING),
    "x[i[None]]": (lambda x, y, i: x[i[None]], [("all-reduce", 32)]),
    "x[5]": (lambda x, y, i: x[5], [("all-reduce", 32)]),
    "dynamic_slice of 4 rows": (lambda x, y, i: lax.dynamic_slice(x, (i, 0), (4, 32)), EVERYTHING),
    "x[i + arange(4)]": (lambda x, y, i: x[i + four], [("all-reduce", 128)]),
    "x.at[5:9].set(y)": (lambda x, y, i: x.at[5:9].set(y), EVERYTHING),
    "x.at[5:9].add(y)": (lambda x, y, i: x.at[5:9].add(y), EVERYTHING),
    "x.at[5 + arange(4)].set(y)": (lambda x, y, i: x.at[5 + four].set(y), NOTHING),
    "dynamic_update_slice of 4 rows": (lambda x, y, i: lax.dynamic_update_slice(x, y, (i, 0)), EVERYTHING),
    "x.at[i + arange(4)].set(y)": (lambda x, y, i: x.at[i + four].set(y), NOTHING),
    "dynamic_update_slice of 1 row": (lambda x, y, i: lax.dynamic_update_slice(x, y[:1], (i, 0)), NOTHING),
}


def collectives(compiled):
    """The kind of each collective of a compiled program, and the elements of its result."""
    pattern = r"= f32\[([\d,]+)\]\S* (all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter)\("
    return [
        (kind, int(np.prod([int(n) for n in shape.split(",")])))
        for shape, kind in re.findall(pattern, compiled.as_text())
    ]


print("jax", jax.__version__)
for name, (function, expected) in cases.items():
    result = rows if jax.eval_shape(function, x, y, one).shape == x.shape else whole
    jitted = jax.jit(function, in_shardings=(rows, whole, whole), out_shardings=result)
    compiled = jitted.lower(x, y, one).compile()
    moved = collectives(compiled)
    print(f"{name}: {moved} (x has {x.size})")
    assert moved == expected, "it sends something else now"
    given = [jax.device_put(value, place) for value, place in ((x, rows), (y, whole), (one, whole))]
    assert np.array_equal(compiled(*given), function(*map(jnp.asarray, (x, y, one))))
PY
done
