#!/usr/bin/env bash
# Expected: jax.lax.map(f, x, batch_size=512) of 4,096 rows on eight devices is computed where the rows are: vmap of f sends nothing, and batches only
# bound the memory. As a part has 512 rows, each device has one batch.
# What happens: the turns of the loop are the dimension that was in parts, so XLA gathers x, and each device computes all rows of all turns: eight times
# the operations, and as many turns. Without batch_size it is the same, one row a turn. The result is then cut to the parts that were asked for, and
# nothing is said. With the rows as (turns, devices x rows), so that each device has rows of each turn, nothing is sent and nothing is computed twice.
# Versions: jax 0.10.2, and jax 0.12.0.1 where Python is 3.12 or later, on CPU devices.
# Why it matters: batches are added where vmap needs too much memory, as in evaluation, per-example gradients and losses in chunks. The step that fits is
# then as slow as on one device, and holds all inputs.
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
  JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=8 TF_CPP_MIN_LOG_LEVEL=3 "$folder/$version/bin/python" -I - <<'PY'
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
rows = NamedSharding(mesh, P("data"))
w = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32)
x = np.random.default_rng(1).standard_normal((4096, 16)).astype(np.float32)


def f(row):
    return jnp.tanh(row @ w)


def in_turns(x):
    turns = x.reshape(8, 8, 64, 16).swapaxes(0, 1)  # 8 turns, in each of which each device has 64 rows
    return jax.lax.map(jax.vmap(jax.vmap(f)), turns).swapaxes(0, 1).reshape(x.shape)


def looked_at(function):
    """The rows that a device computes, over all turns, and its collectives."""
    compiled = jax.jit(function, in_shardings=rows, out_shardings=rows).lower(x).compile()
    assert np.allclose(compiled(jax.device_put(x, rows)), np.tanh(x @ w), atol=1e-5)
    text = compiled.as_text()
    turns = re.findall(r'known_trip_count\\?":\{\\?"n\\?":\\?"(\d+)', text)
    sent = re.findall(r"= (\w+\[[\d,]*\])\S* (all-\w+(?:-\w+)?|collective-permute)\(", text)
    (shape,) = set(re.findall(r"= f32\[([\d,]+)\]\S* tanh\(", text)) or {"0"}
    computed = int(np.prod([int(size) for size in shape.split(",")])) // 16 * int((turns or [1])[0])
    return computed, sent


print("jax", jax.__version__)
for name, function, expected in (
    ("vmap", jax.vmap(f), (512, [])),
    ("map", lambda x: jax.lax.map(f, x), (4096, [("f32[4096,16]", "all-gather")])),
    ("map in batches", lambda x: jax.lax.map(f, x, batch_size=512), (4096, [("f32[8,512,16]", "all-gather")])),
    ("map of turns", in_turns, (512, [])),
):
    found = looked_at(function)
    print(f"{name}: {found[0]} rows computed by a device, collectives {found[1]}")
    assert found == expected, "it is computed in another way now"
PY
done
