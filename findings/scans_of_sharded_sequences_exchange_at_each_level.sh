#!/usr/bin/env bash
# Expected: lax.associative_scan along a dimension in parts is a scan of each part, and an exchange of the parts' last elements: log2(8) = 3
# steps on 8 devices, or one small gather, whatever the length. It is why states of linear recurrences are computed by it.
# What happens: XLA partitions each slice, padding and interleaving of its recursion on its own. There are about log2(n) levels, and each sends several
# times: 46 collectives for one sum along 1,024 rows, 54 along 4,096, and more for pairs, as of a linear recurrence. jnp.cumsum gathers the whole tensor.
# With the sequence folded into [8, n / 8] and scanned along the second dimension, the sums of the parts are all that is sent.
# Versions: jax 0.10.2, and jax 0.12.0.1 where Python is 3.12 or later, on CPU devices.
# Why it matters: sequence parallelism of state space models looks free of communication by its mathematics. Latency of tens of collectives
# per layer is not, and a count by bytes alone does not show it.
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
rows = NamedSharding(mesh, P("x"))
width = 64


def collectives(compiled):
    """The kind and the elements of the result of each collective of a compiled program."""
    pattern = r"= (.*?) (all-\w+(?:-\w+)?|collective-permute|reduce-scatter)\("
    return [
        (kind, sum(int(np.prod(list(map(int, size.split(","))))) for size in re.findall(r"\[([\d,]+)\]", shapes)))
        for shapes, kind in re.findall(pattern, compiled.as_text())
    ]


def by_parts(x):
    parts = x.reshape(8, -1, width)
    inside = jax.lax.associative_scan(jnp.add, parts, axis=1)
    totals = jax.lax.with_sharding_constraint(inside[:, -1], NamedSharding(mesh, P()))
    before = jnp.cumsum(totals, 0) - totals
    return (inside + before[:, None]).reshape(x.shape)


ways = {
    "associative_scan": (lambda x: jax.lax.associative_scan(jnp.add, x), {256: 38, 1024: 46, 4096: 54}),
    "jnp.cumsum": (lambda x: jnp.cumsum(x, 0), {1024: 1}),
    "by parts": (by_parts, {256: 1, 1024: 1, 4096: 1}),
}
print("jax", jax.__version__)
for name, (scan, counts) in ways.items():
    for n, count in counts.items():
        x = np.random.default_rng(0).random((n, width), np.float32) / n
        compiled = jax.jit(scan, in_shardings=rows, out_shardings=rows).lower(x).compile()
        found = collectives(compiled)
        elements = sum(size for _, size in found)
        print(f"{name}, {n} rows: {len(found)} collectives, results of {elements:,} of {x.size:,} elements")
        assert len(found) == count, "it exchanges another number of times now"
        assert name != "jnp.cumsum" or elements == x.size, "it does not gather the tensor any more"
        assert name != "by parts" or elements == 8 * width, "it sends more than the sums of the parts now"
        assert np.allclose(compiled(jax.device_put(x, rows)), scan(jnp.asarray(x)), rtol=1e-4)
PY
done
