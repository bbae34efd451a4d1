#!/usr/bin/env bash
# Expected: writing two rows of a cache that is sharded along its rows costs what writing one does. The offset is a scalar that every
# device has, and each writes the rows that it holds.
# What happens: XLA keeps the cache in parts if the update has one row. If it has two or more, XLA gathers the whole cache on each device,
# updates it there, and cuts the parts out again. Constant offsets do not help: x.at[0].set sends nothing, x.at[:2].set gathers. Two updates of a
# row each send nothing, nor does x.at[jnp.array([0, 1])].set, which is a scatter.
# Versions: jax 0.10.2, and jax 0.12.0.1 where Python is 3.12 or later, on CPU devices.
# Why it matters: a cache of keys and values in parts along the sequence takes a token at a time when it decodes, and a chunk of them when it
# reads the prompt or verifies drafts. The second sends the cache, however short the chunk is, and its result is sharded as expected.
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
n, width = 1024, 64
cache = np.zeros((n, width), np.float32)


def collectives(compiled):
    """The kind and the elements of the result of each collective of a compiled program."""
    pattern = r"= (.*?) (all-\w+(?:-\w+)?|collective-permute|reduce-scatter)\("
    return [
        (kind, sum(int(np.prod(list(map(int, size.split(","))))) for size in re.findall(r"\[([\d,]+)\]", shapes)))
        for shapes, kind in re.findall(pattern, compiled.as_text())
    ]


def at_offset(x, rows, i):
    return jax.lax.dynamic_update_slice(x, rows, (i, 0))


def one_by_one(x, rows, i):
    for k in range(len(rows)):
        x = at_offset(x, rows[k : k + 1], i + k)
    return x


ways = {
    "dynamic_update_slice": at_offset,
    "at[:k].set": lambda x, rows, i: x.at[: len(rows)].set(rows),
    "row by row": one_by_one,
    "scatter": lambda x, rows, i: x.at[i + jnp.arange(len(rows))].set(rows),
}
print("jax", jax.__version__)
for name, way in ways.items():
    for count in (1, 2, 8):
        update, i = np.ones((count, width), np.float32), np.int32(0)
        shardings = (rows, whole, whole)
        compiled = jax.jit(way, in_shardings=shardings, out_shardings=rows).lower(cache, update, i).compile()
        found = collectives(compiled)
        print(f"{name}, {count} of {n} rows: {found}")
        gathers = name in ("dynamic_update_slice", "at[:k].set") and count > 1
        assert found == ([("all-gather", cache.size)] if gathers else []), "it sends something else now"
        arguments = jax.device_put((cache, update, i), shardings)
        assert np.array_equal(compiled(*arguments), way(jnp.asarray(cache), update, i))
PY
done
