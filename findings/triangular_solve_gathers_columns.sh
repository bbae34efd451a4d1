#!/usr/bin/env bash
# Expected: solve_triangular(a, b) with a whole on each device, and the columns of b sharded over devices, sends nothing: each column is a system of
# its own. So it is for a @ b, for inv(a) @ b, and for the same columns as a batch of 8 solves.
# What happens: XLA gathers b. Each device solves the systems of all devices, and keeps its columns: with 256 x 1024 floats on 8
# devices it sends 917,504 bytes, and works eight times as much. So do jnp.linalg.solve, cho_solve, and vmap over the columns,
# which is turned into more columns. Nothing shows it: the result is sharded as b is.
# Columns as a batch (the last way below), or inv(a) @ b where its rounding is no matter, stay on their device.
# Versions: jax 0.10.2, and jax 0.12.0.1 where Python is 3.12 or later, on CPU devices.
# Why it matters: Gaussian processes, Kalman filters and second-order optimizers solve one factor for many right-hand sides, and shard
# these. A rule for an op has to say which dimensions of an operand are independent, or its partitioner assumes none is.
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
from jax.scipy.linalg import cho_solve, solve_triangular
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
columns, whole = NamedSharding(mesh, P(None, "x")), NamedSharding(mesh, P())
n, m = 256, 1024
a = np.tril(np.full((n, n), 0.01, np.float32)) + 2 * np.eye(n, dtype=np.float32)
b = np.random.default_rng(0).random((n, m), np.float32)


def as_batch(a, b):
    parts = b.reshape(n, 8, m // 8).swapaxes(0, 1)
    return solve_triangular(jnp.broadcast_to(a, (8, n, n)), parts, lower=True).swapaxes(0, 1).reshape(n, m)


NOTHING, GATHER = [], [("f32[256,1024]", "all-gather")]
ways = {
    "a @ b": (lambda a, b: a @ b, NOTHING),
    "inv(a) @ b": (lambda a, b: jnp.linalg.inv(a) @ b, NOTHING),
    "solve_triangular(a, b)": (lambda a, b: solve_triangular(a, b, lower=True), GATHER),
    "cho_solve(a, b)": (lambda a, b: cho_solve((a, True), b), GATHER),
    "solve(a, b)": (lambda a, b: jnp.linalg.solve(a, b), GATHER),
    "vmap over columns": (lambda a, b: jax.vmap(lambda c: solve_triangular(a, c, lower=True), 1, 1)(b), GATHER),
    "columns as a batch": (as_batch, NOTHING),
}

print("jax", jax.__version__)
for name, (function, expected) in ways.items():
    step = jax.jit(function, in_shardings=(whole, columns), out_shardings=columns).lower(a, b).compile()
    found = re.findall(r"= (\w+\[[\d,]*\])\S* (all-\w+(?:-\w+)?|collective-permute|reduce-scatter)\(", step.as_text())
    print(f"{name}: {found or 'nothing'}")
    assert found == expected, "it sends something else now"
    result = step(jax.device_put(a, whole), jax.device_put(b, columns))
    assert np.allclose(result, function(jnp.asarray(a), jnp.asarray(b)), rtol=1e-3)
PY
done
