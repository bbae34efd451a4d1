"""A process for each device of a mesh, which may share one GPU.

    python -m shardlog.tests.partition.ranks RANK COUNT PORT PLATFORM < MODULES

Each runs its part of the partitioned programs in a JSON list, in each of the ways to choose shardings. The
first prints a JSON list of what it finds wrong beside the program on one device. On CPUs they talk by gloo,
on GPUs by NCCL, which takes two ranks on one GPU for a mistake unless they are said to be on different hosts.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence

from ..support.ways import ways

_FLAGS = "--xla_gpu_autotune_level=0 --xla_gpu_shard_autotuning=false"


def wrong(modules: Sequence[str], count: int, platform: str) -> list[str]:
    """What partitioned programs compute otherwise, with so many processes on "cpu" or "cuda"."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2"}
    ranks = []
    for rank in range(count):
        own = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=1"}
        if platform == "cuda":
            own = {
                "JAX_PLATFORMS": "cuda,cpu",
                "XLA_FLAGS": _FLAGS,
                "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
                "CUDA_VISIBLE_DEVICES": "0",
                "NCCL_HOSTID": f"host{rank}",
                "NCCL_NET": "Socket",
                "NCCL_SOCKET_IFNAME": "lo",
            }
        command = [sys.executable, "-m", __name__, str(rank), str(count), str(port), platform]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        ranks.append(subprocess.Popen(command, env=common | own, text=True, **pipes))  # type: ignore[call-overload]
    given = json.dumps(list(modules))
    try:
        for rank in ranks[1:]:
            rank.stdin.write(given)
            rank.stdin.close()
        out, error = ranks[0].communicate(given)
    finally:
        for rank in ranks[1:]:
            rank.kill()
            rank.wait()
    if ranks[0].returncode:
        raise RuntimeError(error[-2000:])
    document: list[str] = json.loads(out.splitlines()[-1])
    return document


def _main() -> None:
    rank, count, port, platform = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    import jax
    import numpy as np
    from jax.experimental import multihost_utils

    if platform == "cpu":
        jax.config.update("jax_cpu_collectives_implementation", "gloo")  # type: ignore[no-untyped-call]
    jax.distributed.initialize(f"127.0.0.1:{port}", count, rank)
    import shardlog
    from shardlog.executing.comparing import compare
    from shardlog.executing.execution import alone_on
    from shardlog.executing.inputs import random_inputs
    from shardlog.executing.values import boundary

    found, devices = [], jax.devices()
    for number, module in enumerate(json.load(sys.stdin)):
        result = shardlog.run(module)
        inputs = [np.abs(array) for array in random_inputs(boundary(result.result)[0], 0)]
        alone = alone_on(result.result, jax.local_devices()[:1]) if rank == 0 else None
        for name, way in ways("h100").items():
            outputs = jax.tree.leaves(result.partition(**way).compile(devices)(*inputs))
            whole = [np.asarray(multihost_utils.process_allgather(each, tiled=True)) for each in outputs]
            if alone is not None:
                compared = compare(result.result, alone, inputs, whole)
                found += [f"{number}, {name}: {one}" for one in compared if not one.right]
    if rank == 0:
        print(json.dumps(found))


if __name__ == "__main__":
    _main()
