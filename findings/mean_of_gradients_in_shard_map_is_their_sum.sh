#!/usr/bin/env bash
# Expected: in jax.shard_map, lax.pmean(jax.grad(loss)(weights, batch), "x") is the gradient of the mean loss: each device differentiates the
# loss of its part of the batch, and pmean averages. So it was with pmap, and so it is with check_vma=False.
# What happens: with check_vma=True, the default, jax.grad has summed the gradient over the devices already. The weights are the same on all of them, so
# they are cast to varying ones where they meet the batch, and the transpose of that cast is a psum. pmean of a value that is the same
# everywhere changes nothing, so the result is n times too large on n devices. Nothing warns: shapes, types and shardings are right.
# The mean of the loss inside of the function that is differentiated is right in both.
# Versions: jax 0.10.2, and jax 0.12.0.1 where Python is 3.12 or later.
# Why it matters: a data-parallel step by the book trains with a learning rate that grows with the number of devices; Adam hides it. A tool that turns
# check_vma off, to run code that it refuses, changes gradients by that factor.
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
import numpy as np
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
weights = np.ones((4, 2), np.float32)
batch = np.arange(64, dtype=np.float32).reshape(16, 4) / 64


def loss(w, x):
    return jnp.mean((x @ w) ** 2)


def mean_of_gradients(w, x):
    return lax.pmean(jax.grad(loss)(w, x), "x")


def gradient_of_mean(w, x):
    return jax.grad(lambda w: lax.pmean(loss(w, x), "x"))(w)


print("jax", jax.__version__)
expected = jax.grad(loss)(weights, batch)
for step, check, times in (
    (mean_of_gradients, True, 8),
    (mean_of_gradients, False, 1),
    (gradient_of_mean, True, 1),
):
    mapped = jax.shard_map(step, mesh=mesh, in_specs=(P(), P("x")), out_specs=P(), check_vma=check)
    found = jax.jit(mapped)(weights, batch)
    ratio = np.asarray(found / expected)
    print(f"{step.__name__}, check_vma={check}: {ratio.mean():.3f} times the gradient on one device")
    assert np.allclose(ratio, times, rtol=1e-5), "it is another factor now"
PY
done
