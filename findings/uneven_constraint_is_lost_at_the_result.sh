#!/usr/bin/env bash
# Expected: with_sharding_constraint on the value that jit returns decides the sharding of the result; a
# dimension that does not divide is refused, as device_put and out_shardings do, or padded, as inside of a
# program.
# What happens: seven rows constrained to eight devices are accepted, and the result comes back replicated. As
# an intermediate value, which is added up before it leaves, the same rows are in parts. Shardy's last passes
# take from the arguments and results of a function whatever axes do not divide, and leave the op before the
# return as it was.
# Versions: jax 0.10.2 and jax 0.12.0.1, on CPU devices.
# Why it matters: every device then holds all rows, at the cost of an all-gather, with no message; what
# propagation said about the op that makes the value and what its boundary says are two things, and only the
# second holds in memory.
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
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
rows = NamedSharding(mesh, P("x"))


def constrained(x):
    return jax.lax.with_sharding_constraint(jnp.sin(x), rows)


compiled = {n: jax.jit(constrained).lower(jnp.zeros((n, 8))).compile() for n in (8, 7)}
for n, program in compiled.items():
    gathers = len(re.findall(r" all-gather\(", program.as_text()))
    print(n, "rows:", program.output_shardings.spec, gathers, "all-gathers")
assert compiled[8].output_shardings.spec == P("x")
assert compiled[7].output_shardings.is_fully_replicated, "an uneven result is kept now"
inside = jax.jit(lambda x: jnp.sum(constrained(x))).lower(jnp.zeros((7, 8))).compile().as_text()
print("7 rows, added up at once:", len(re.findall(r" all-reduce\(", inside)), "all-reduces, no all-gather")
assert " all-reduce(" in inside and " all-gather(" not in inside
assert " all-gather(" in compiled[7].as_text() and " all-gather(" not in compiled[8].as_text()
try:
    jax.device_put(jnp.zeros((7, 8)), rows)
except ValueError as error:
    print("device_put:", str(error)[:90])
else:
    raise AssertionError("device_put takes uneven rows now")
PY
