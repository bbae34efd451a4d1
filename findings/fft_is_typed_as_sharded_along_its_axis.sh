#!/usr/bin/env bash
# Expected: with explicit axes, jnp.fft.fft along the sharded dimension is refused, as jnp.sort, jnp.cumsum
# and lax.top_k along it are, or the type of its result is unsharded there; an axis that an op mixes cannot be
# passed through.
# What happens: the type of the result is sharded along that dimension, as if the FFT were elementwise. The
# compiled program gathers the whole operand, computes it all on each device and cuts out its part.
# Versions: jax 0.10.2 and jax 0.12.0.1, on CPU devices.
# Why it matters: sharding in types is meant to show where data moves; here an all-gather hides behind a type
# that says there is none.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
  "jax==0.10.2" "jaxlib==0.10.2" "ml_dtypes==0.6.0" "numpy==2.4.6" "scipy==1.17.1" "opt_einsum==3.4.0"

JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=8 \
"$folder/venv/bin/python" -I - <<'PY'
import re

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

print("jax", jax.__version__)
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,))
with jax.set_mesh(mesh):
    operand = jax.device_put(jnp.ones((16, 8)), NamedSharding(mesh, P("x")))
    transform = jax.jit(lambda x: jnp.fft.fft(x, axis=0))
    kind = str(jax.typeof(transform(operand)))
    gathers = re.findall(r"= (c64\[[\d,]*\])\S* all-gather\(", transform.lower(operand).compile().as_text())
    print("type of the FFT:", kind, "gathered:", gathers)
    assert kind == "complex64[16@x,8]", "the type has changed"
    assert gathers and sorted(map(int, re.findall(r"\d+", gathers[0][3:]))) == [8, 16]
    for name, function in {"sort": lambda x: jnp.sort(x, 0), "cumsum": lambda x: jnp.cumsum(x, 0)}.items():
        try:
            jax.jit(function)(operand)
        except Exception as error:
            print(name, "is refused:", type(error).__name__)
            assert type(error).__name__ == "ShardingTypeError"
        else:
            raise AssertionError(f"{name} is accepted")
PY
