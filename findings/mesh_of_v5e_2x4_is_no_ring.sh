#!/usr/bin/env bash
# Expected: topologies.make_mesh(topology, (8,), ("x",)) puts the eight chips of v5e:2x4 into a ring, in which
# neighbours along the axis are neighbours in the grid of chips, as it does for the sixteen of v5e:4x4.
# What happens: by the coordinates that libtpu gives the devices, every second step is two links long; device
# 2 at (0, 1) follows device 1 at (1, 0). JAX sorts the devices along the first coordinate first, and takes
# them in the order 0, 1, 2, 3, 7, 6, 5, 4, which is a ring where rows have four chips; here they have two.
# v6e:2x4 gets the same order. The order 0, 1, 3, 5, 7, 6, 4, 2 has single links.
# Versions: jax 0.10.2 with libtpu 0.0.42.1, and jax 0.12.0.1 with libtpu 0.0.50.1, from the description of
# the topology; no TPU is needed.
# Why it matters: in programs that pass data to neighbours (ring attention, matrix products with ppermute)
# every second transfer crosses two links, and a cost model that takes neighbours along an axis for neighbours
# in the grid does not see it.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
  "jax==0.10.2" "jaxlib==0.10.2" "ml_dtypes==0.6.0" "numpy==2.4.6" "scipy==1.17.1" "opt_einsum==3.4.0" "libtpu==0.0.42.1"

JAX_PLATFORMS=cpu TPU_SKIP_MDS_QUERY=1 TPU_WORKER_HOSTNAMES=localhost TPU_ACCELERATOR_TYPE=v5litepod-8 \
"$folder/venv/bin/python" -I - <<'PY'
import jax
from jax.experimental import topologies

print("jax", jax.__version__)


def steps(name, count):
    topology = topologies.get_topology_desc(platform="tpu", topology_name=name)
    ring = list(topologies.make_mesh(topology, (count,), ("x",)).devices.ravel())
    hops = [
        sum(abs(p - q) for p, q in zip(one.coords, other.coords))
        for one, other in zip(ring, ring[1:] + ring[:1])
    ]
    print(name, [device.id for device in ring], "links of each step:", hops)
    return hops


assert steps("v5e:4x4", 16) == [1] * 16
for name in ("v5e:2x4", "v6e:2x4"):
    assert steps(name, 8) == [1, 2] * 4, f"{name} has another order now"

topology = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x4")
where = {device.id: device.coords for device in topology.devices}
better = [0, 1, 3, 5, 7, 6, 4, 2]
pairs = zip(better, better[1:] + better[:1])
assert all(sum(abs(p - q) for p, q in zip(where[a], where[b])) == 1 for a, b in pairs)
PY
