#!/usr/bin/env bash
# Expected: logits[jnp.arange(n), labels], one element of each row, is local if the rows of both are sharded alike, as it is with
# np.arange, jnp.take_along_axis or vmap: all of them say the same, and XLA's partitioner looks for indices that count.
# What happens: with jnp.arange XLA gathers the indices of all rows to every device, and all-reduces the result. The gradient
# of a cross entropy gathers them, too. With np.arange, take_along_axis and vmap nothing is sent. JAX hands over np.arange as a constant, and
# jnp.arange as an iota; a promise that all indices are in bounds and not negative does not help.
# Versions: jax 0.10.2, and jax 0.12.0.1 where Python is 3.12 or later, on CPU devices.
# Why it matters: this is how a cross entropy picks the logits of its labels. Data parallel code then waits for all
# devices in the loss, and neither the source nor the shardings of what goes in and out show it.
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

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
rows = NamedSharding(mesh, PartitionSpec("data"))
logits = jax.device_put(np.arange(64 * 128, dtype=np.float32).reshape(64, 128), rows)
labels = jax.device_put(np.arange(64, dtype=np.int32) * 2, rows)
wanted = np.asarray(logits)[np.arange(64), np.asarray(labels)]


def collectives(f):
    text = jax.jit(f).lower(logits, labels).compile().as_text()
    return [" ".join(found) for found in re.findall(r"= (\w+\[[\d,]*\])\S* (all-\w+|reduce-scatter|collective-permute)\(", text)]


ways = {
    "jnp.arange": lambda x, i: x[jnp.arange(64), i],
    "jnp.arange, promised": lambda x, i: x.at[jnp.arange(64), i].get(mode="promise_in_bounds", wrap_negative_indices=False),
    "np.arange": lambda x, i: x[np.arange(64), i],
    "take_along_axis": lambda x, i: jnp.take_along_axis(x, i[:, None], axis=1)[:, 0],
    "vmap": jax.vmap(lambda row, i: row[i]),
}
print("jax", jax.__version__)
for name, pick in ways.items():
    assert np.array_equal(jax.jit(pick)(logits, labels), wanted)
    forward = collectives(pick)
    backward = collectives(jax.grad(lambda x, i: -pick(jax.nn.log_softmax(x), i).sum()))
    print(f"{name}: {forward}, gradient of a cross entropy: {backward}")
    if name.startswith("jnp.arange"):
        assert forward == ["s32[64,2] all-gather", "f32[64] all-reduce"], "it sends something else now"
        assert backward == ["s32[64,2] all-gather"], "it sends something else now"
    else:
        assert forward == backward == [], "it is no longer local"
PY
done
