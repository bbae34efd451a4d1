#!/usr/bin/env bash
# Expected: x[3], x[:3] and jnp.take(x, rows) copy elements. Where x is sharded, they are sent, as they are, bit by bit.
# What happens: XLA adds them up. Every device gives the rows that it holds and zeros elsewhere, and an all-reduce sums
# these, so that -0.0 becomes 0.0, and 1 / x is inf where it is -inf on one device. x[i] with an index known at run time, x[::-1]
# and jnp.roll keep the sign: there XLA gathers or permutes.
# Versions: jax 0.10.2, and jax 0.12.0.1 where Python is 3.12 or later, on CPU devices; float32, bfloat16, float8_e4m3fn and complex64.
# Why it matters: an embedding table that is sharded along its rows is read like this. A test that compares the bytes of
# parts and whole fails where nothing is computed; and a cost model that sees no sum in the source sees one in the program.
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
from jax.sharding import AxisType, NamedSharding, PartitionSpec

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
sharding = NamedSharding(mesh, PartitionSpec("x"))
rows = np.array([3, 5, 9], np.int32)
ways = {
    "x[3]": (lambda x: x[3], False),
    "x[:3]": (lambda x: x[:3], False),
    "jnp.take(x, rows)": (lambda x: jnp.take(x, rows), False),
    "x[i]": (lambda x, i: x[i], True),
    "x[::-1]": (lambda x: x[::-1], True),
    "jnp.roll(x, 5)": (lambda x: jnp.roll(x, 5), True),
}
print("jax", jax.__version__)
for kind in (jnp.float32, jnp.bfloat16, jnp.float8_e4m3fn, jnp.complex64):
    whole = jax.device_put(-jnp.zeros(16, kind), jax.devices()[0])
    parts = jax.device_put(whole, sharding)
    for name, (take, kept) in ways.items():
        index = (np.int32(3),) if name == "x[i]" else ()
        negative = [bool(np.signbit(np.asarray(jax.jit(take)(x, *index)).astype(np.complex64).real).all()) for x in (whole, parts)]
        text = jax.jit(take).lower(parts, *index).compile().as_text()
        sent = sorted(set(re.findall(r" (all-\w+|collective-permute)\(", text)))
        print(f"{kind.__name__}, {name}: negative on one device {negative[0]}, in parts {negative[1]}; {', '.join(sent)}")
        assert negative == [True, kept], "the sign is kept or lost elsewhere now"
        assert ("all-reduce" in sent) is not kept, "other collectives now"

whole = jax.device_put(jnp.array([-0.0] * 16), jax.devices()[0])
parts = jax.device_put(whole, sharding)
reciprocals = [float(jax.jit(lambda x: 1 / x[3])(x)) for x in (whole, parts)]
print("1 / x[3] on one device and in parts:", reciprocals)
assert reciprocals == [-np.inf, np.inf], "the sign is kept or lost elsewhere now"
PY
done
