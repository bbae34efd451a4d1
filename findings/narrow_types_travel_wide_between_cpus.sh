#!/usr/bin/env bash
# Expected: a tensor of bfloat16, float8 or int4 in parts is gathered as it is: bytes are half or an eighth of those of float32. Compiled for
# virtual CPU devices, a program shows what it sends.
# What happens: XLA for CPUs converts before the collective: bfloat16 is gathered and permuted as float32, float8 as float16, int4 as int8.
# Each sends twice its bytes, and a program of bfloat16 as many as one of float32. int8 and float16 are sent as they are.
# A cast to integers of the same width (bitcast_convert_type) before the gather and back behind it changes nothing: XLA gathers behind both casts.
# Only where the result itself is integers are they sent as they are.
# Versions: jax 0.10.2, and jax 0.12.0.1 where Python is 3.12 or later, on CPU devices.
# Why it matters: collectives are counted in HLO compiled for CPU devices, by tests and cost models, as no accelerator is at hand. There
# mixed precision saves nothing, and quantised weights half of what they should. Count elements, and take the width from the source.
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
n = 8192
UNSIGNED = {"bfloat16": jnp.uint16, "float8_e4m3fn": jnp.uint8, "float8_e5m2": jnp.uint8}


def gathered(function, kind):
    operand = jax.ShapeDtypeStruct((n,), kind)
    compiled = jax.jit(function, in_shardings=rows, out_shardings=whole).lower(operand).compile()
    return re.findall(r"= (\w+)\[\d+\]\S* all-gather\(", compiled.as_text())


print("jax", jax.__version__)
sent = {
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "f32",
    "float8_e4m3fn": "f16",
    "float8_e5m2": "f16",
    "int8": "s8",
    "int4": "s8",
}
for kind, expected in sent.items():
    found = gathered(lambda x: x, getattr(jnp, kind))
    print(f"{kind} is gathered as {found}")
    assert found == [expected], "it travels as another type now"
for kind, unsigned in UNSIGNED.items():

    def as_bits(x, kind=kind, unsigned=unsigned):
        bits = jax.lax.with_sharding_constraint(jax.lax.bitcast_convert_type(x, unsigned), whole)
        return jax.lax.bitcast_convert_type(bits, getattr(jnp, kind))

    found = gathered(as_bits, getattr(jnp, kind))
    print(f"bits of {kind} are gathered as {found}")
    assert found == [sent[kind]], "bits travel as another type now"
    bits = gathered(lambda x, to=unsigned: jax.lax.bitcast_convert_type(x, to), getattr(jnp, kind))
    print(f"bits of {kind} as a result are gathered as {bits}")
    assert bits == [f"u{8 * np.dtype(unsigned).itemsize}"], "integers travel as another type now"

permuted = jax.jit(lambda x: jnp.roll(x, n // 8), in_shardings=rows, out_shardings=rows)
text = permuted.lower(jax.ShapeDtypeStruct((n,), jnp.bfloat16)).compile().as_text()
found = re.findall(r"= (\w+)\[\d+\]\S* collective-permute\(", text)
print("bfloat16 is permuted as", found)
assert found == ["f32"], "it travels as another type now"
PY
done
