#!/usr/bin/env bash
# Expected: jnp.linalg.inv and LU of a batch of small matrices, with the batch sharded, are local on TPUs as
# on CPUs: JAX gives them rules that let the batch stay in parts, and XLA for CPUs has no collective there.
# What happens: XLA for TPUs gathers the whole batch before the decomposition, and the result is replicated,
# so that all that follows runs eight times as well. eigh gathers, too. cholesky and qr of the same batch stay
# in parts.
# Versions: libtpu 0.0.42.1 with jax 0.10.2, and libtpu 0.0.50.1 with jax 0.12.0.1, compiled ahead of time for
# v5e:2x4; no TPU is needed.
# Why it matters: a program that was checked on CPU devices sends nothing there and all of its matrices on
# TPUs; shard_map keeps them local.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
  "jax==0.10.2" "jaxlib==0.10.2" "ml_dtypes==0.6.0" "numpy==2.4.6" "scipy==1.17.1" "opt_einsum==3.4.0" "libtpu==0.0.42.1"

JAX_PLATFORMS=cpu TPU_SKIP_MDS_QUERY=1 TPU_WORKER_HOSTNAMES=localhost TPU_ACCELERATOR_TYPE=v5litepod-8 \
"$folder/venv/bin/python" -I - <<'PY'
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

print("jax", jax.__version__)
topology = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x4")
mesh = Mesh(np.array(topology.devices), ("x",))
batch = jax.ShapeDtypeStruct((64, 8, 8), jnp.float32, sharding=NamedSharding(mesh, P("x")))


def outcome(function):
    compiled = jax.jit(function).lower(batch).compile()
    gathers = re.findall(r"= \S* all-gather(?:-start)?\(", compiled.as_text())
    return len(gathers), compiled.output_shardings.spec


found = {
    "cholesky": outcome(jnp.linalg.cholesky),
    "qr": outcome(lambda x: jnp.linalg.qr(x)[1]),
    "inv": outcome(jnp.linalg.inv),
    "lu": outcome(lambda x: jax.scipy.linalg.lu_factor(x)[0]),
    "eigvalsh": outcome(jnp.linalg.eigvalsh),
    "inv under shard_map": outcome(
        jax.shard_map(jnp.linalg.inv, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    ),
}
for name, (gathers, spec) in found.items():
    print(name, gathers, "all-gathers", spec)
for name in ("cholesky", "qr", "inv under shard_map"):
    assert found[name] == (0, P("x")), name
for name in ("inv", "lu"):
    assert found[name][0] >= 1 and found[name][1] == P(), f"{name} stays in parts now"
assert found["eigvalsh"][0] >= 1
PY
