#!/usr/bin/env bash
# Expected: a sum over devices whose result is in parts over the same devices is a reduce-scatter. The gradient of a weight in parts (fsdp, ZeRO)
# sends (n - 1) / n of its bytes from each of n devices.
# What happens: XLA's partitioner writes an all-reduce and a slice, twice the bytes. A later pass makes a reduce-scatter of the two, and it runs for GPUs and
# TPUs, not for CPUs. So HLO compiled for CPU devices has none, but for lax.psum_scatter under shard_map, which stays one.
# Versions: jax 0.10.2, and jax 0.12.0.1 where Python is 3.12 or later, on CPU devices.
# Why it matters: tests and cost models compile for virtual CPU devices and count collectives. They see an all-reduce of a whole gradient
# in every fsdp step, twice what the accelerator sends, and find that the parts bring nothing.
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

rows, columns = NamedSharding(mesh, P("x")), NamedSharding(mesh, P(None, "x"))
a = np.random.default_rng(0).random((64, 256), np.float32)
b = np.random.default_rng(1).random((256, 64), np.float32)


def gradient(w, x):
    """Of a weight in parts, for a batch in parts."""
    return jax.grad(lambda w: jnp.sum((x @ w) ** 2))(w)


def scattered(a, b):
    return jax.lax.psum_scatter(a @ b, "x", tiled=True)


mapped = jax.shard_map(scattered, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P("x"))
ways = {
    "a product": (lambda a, b: a @ b, (columns, rows), (a, b), {"all-reduce"}),
    "the gradient of a weight": (gradient, (rows, rows), (b, a), {"all-gather", "all-reduce"}),
    "psum_scatter": (mapped, (columns, rows), (a, b), {"reduce-scatter"}),
}
print("jax", jax.__version__)
for name, (function, shardings, arguments, expected) in ways.items():
    compiled = jax.jit(function, in_shardings=shardings, out_shardings=rows).lower(*arguments).compile()
    found = re.findall(r" (all-reduce|reduce-scatter|all-gather)\(", compiled.as_text())
    print(f"{name}, the result in parts: {found}")
    assert set(found) == expected, "it is another collective now"
    whole = jax.jit(function)(*jax.device_put(arguments, shardings)) if name == "psum_scatter" else function(*arguments)
    assert np.allclose(compiled(*jax.device_put(arguments, shardings)), whole, rtol=1e-4)
PY
done
