#!/usr/bin/env bash
# Expected: v[:, None] * v[None, :] of a vector that is sharded over devices gathers the vector: each device needs all of v for its rows. It is
# what jnp.einsum("i,j->ij", v, v) does, which is the same product.
# What happens: XLA exchanges the matrix. Each device computes its columns of v[None, :], all n rows of them, and an all-to-all
# makes rows of these: with n = 1024 on 8 devices it sends 458,752 bytes instead of 3,584. So do position masks (p[:, None] >= p[None, :]),
# pairwise differences and vmap over one of the two. Nothing shows it: the result is sharded along its rows in each way.
# A constraint that v[None, :] is replicated, or einsum, gathers the vector.
# Versions: jax 0.10.2, and jax 0.12.0.1 where Python is 3.12 or later, on CPU devices.
# Why it matters: masks of packed sequences are made like this, in each layer. Bytes grow with the square of the length
# where they could grow with the length. A partitioner has to look through a broadcast before it reshards its result.
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
n = 1024
v = np.arange(n, dtype=np.float32)
GATHER, EXCHANGE = ("all-gather", 4 * n * 7 // 8), ("all-to-all", 4 * n * n // 8 * 7 // 8)
ways = {
    'einsum("i,j->ij", v, v)': (lambda v: jnp.einsum("i,j->ij", v, v), GATHER),
    "v[None, :] constrained": (
        lambda v: v[:, None] * jax.lax.with_sharding_constraint(v[None, :], whole),
        GATHER,
    ),
    "v[:, None] * v[None, :]": (lambda v: v[:, None] * v[None, :], EXCHANGE),
    "jnp.outer(v, v)": (lambda v: jnp.outer(v, v), EXCHANGE),
    "vmap": (lambda v: jax.vmap(lambda one: one * v)(v), EXCHANGE),
    "v[:, None] >= v[None, :]": (lambda v: v[:, None] >= v[None, :], EXCHANGE),
    "v[:, None] - v[None, :]": (lambda v: v[:, None] - v[None, :], EXCHANGE),
}


def collectives(text):
    """Each collective of a compiled program, with the bytes that a device sends: both kinds send 7 of 8 parts."""
    for shapes, kind in re.findall(r"= (.*?) (all-\w+(?:-\w+)?|collective-permute|reduce-scatter)\(", text):
        sizes = re.findall(r"[fs]32\[([\d,]+)\]", shapes)
        yield kind, sum(4 * int(np.prod(list(map(int, size.split(","))))) for size in sizes) * 7 // 8


print("jax", jax.__version__)
for name, (function, expected) in ways.items():
    compiled = jax.jit(function, in_shardings=rows).lower(v).compile()
    found = list(collectives(compiled.as_text()))
    print(f"{name}: {found}, result {compiled.output_shardings.spec}")
    assert compiled.output_shardings.is_equivalent_to(rows, 2), "the result is sharded in another way now"
    assert found == [expected], "it sends something else now"
    assert np.array_equal(compiled(jax.device_put(v, rows)), function(jnp.asarray(v)))
PY
done
