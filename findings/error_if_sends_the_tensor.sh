#!/usr/bin/env bash
# Expected: equinox.error_if(y, jnp.any(y > 1e9), "too large") of a y in parts adds a sum over the devices of one bit, the predicate. y itself is not touched
# as long as nothing is wrong, and each device keeps its part.
# What happens: every call also sums y itself over all devices, an all-reduce of the whole tensor. error_if passes y through a branch that calls Python on
# the host. XLA computes such a branch on one device, and the result of the conditional is sent from there to all, although a device reads only its part.
# With the environment variable EQX_ON_ERROR=nan, which puts NaN in place of the error, only the bit is sent.
# Versions: equinox 0.13.8 with jax 0.10.2, and with jax 0.12.0.1 where Python is 3.12 or later, on CPU devices.
# Why it matters: diffrax, lineax and optimistix check their results so by default (throw=True). A check that never fails may send more than the rest
# of a step. The lowered program does not show it.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
versions=(0.10.2)
if python3 -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then versions+=(0.12.0.1); fi
for version in "${versions[@]}"; do
  python3 -m venv "$folder/$version"
  "$folder/$version/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
    "jax==$version" "jaxlib==$version" "equinox==0.13.8" "ml_dtypes==0.6.0" "numpy==2.4.6" "scipy==1.17.1" "opt_einsum==3.4.0"
  for on_error in raise nan; do
    EQX_ON_ERROR=$on_error JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=8 TF_CPP_MIN_LOG_LEVEL=3 \
    "$folder/$version/bin/python" -I - "$on_error" <<'PY'
import re
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
rows = NamedSharding(mesh, P("data"))
y = np.random.default_rng(0).standard_normal((1024, 64)).astype(np.float32)


def checked(y):
    return jnp.tanh(eqx.error_if(y, jnp.any(y > 1e9), "too large"))


def collectives(function):
    """The result and the kind of each collective of the compiled program, which is run, too."""
    compiled = jax.jit(function, in_shardings=rows, out_shardings=rows).lower(y).compile()
    assert np.allclose(compiled(jax.device_put(y, rows)), np.tanh(y), atol=1e-6)
    pattern = r"= (\w+\[[\d,]*\])\S* (all-\w+(?:-\w+)?|collective-permute|reduce-scatter)\("
    return sorted(re.findall(pattern, compiled.as_text()))


print("jax", jax.__version__, "equinox", eqx.__version__, "EQX_ON_ERROR", sys.argv[1])
plain, found = collectives(jnp.tanh), collectives(checked)
print("without a check:", plain, "with error_if:", found)
assert plain == []
expected = [("pred[]", "all-reduce")]
if sys.argv[1] == "raise":
    expected = [("f32[1024,64]", "all-reduce"), *expected]
assert found == expected, "error_if sends something else now"
PY
  done
done
