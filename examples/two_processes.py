"""Two processes train one model: each has four CPU devices, and the mesh has all eight.

    python examples/two_processes.py

Both run the same program, as on two hosts: every process traces and partitions the step for itself, gets the
same collectives in the same order, and runs its devices' part. They talk by gloo over the loopback device.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import shardlog
from jax.sharding import AxisType, NamedSharding, PartitionSpec

PROCESSES, DEVICES, STEPS = 2, 4, 5
SHAPES = {"up": (16, 64), "down": (64, 16), "x": (32, 16), "y": (32, 16)}
SPECS = {"up": (None, "model"), "down": ("model", None), "x": ("data", None), "y": ("data", None)}


def arrays() -> dict[str, Any]:
    """Weights and a batch, the same in every process."""
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(shape, np.float32) / 2 for name, shape in SHAPES.items()}


def update(params: Any, x: jax.Array, y: jax.Array) -> tuple[jax.Array, Any]:
    """A step of gradient descent."""

    def loss(params: Any) -> jax.Array:
        return jnp.mean((jnp.tanh(x @ params["up"]) @ params["down"] - y) ** 2)

    value, gradients = jax.value_and_grad(loss)(params)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


def train(address: str, process: int) -> None:
    """The work of each process."""
    jax.config.update("jax_platforms", "cpu")  # type: ignore[no-untyped-call]
    jax.config.update("jax_num_cpu_devices", DEVICES)  # type: ignore[no-untyped-call]
    jax.config.update("jax_cpu_collectives_implementation", "gloo")  # type: ignore[no-untyped-call]
    jax.distributed.initialize(address, num_processes=PROCESSES, process_id=process)
    mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))
    placed = {
        name: jax.device_put(array, NamedSharding(mesh, PartitionSpec(*SPECS[name])))  # type: ignore[no-untyped-call]
        for name, array in arrays().items()
    }
    params, step = (
        {name: placed[name] for name in ("up", "down")},
        shardlog.jit(update, partitioner="shardlog"),
    )
    for number in range(STEPS):
        value, params = step(params, placed["x"], placed["y"])
        if process == 0:
            print(f"step {number}: loss {value:.6f}")
    if process == 0:
        for row, devices in enumerate(mesh.devices):
            owners = sorted({device.process_index for device in devices})
            print(f"row {row} of the mesh is in process {', '.join(map(str, owners))}")
        print(f"the weights are sharded {params['up'].sharding.spec} and {params['down'].sharding.spec}")
    jax.distributed.shutdown()  # type: ignore[no-untyped-call]


def main() -> int:
    """Starts the processes; returns the largest of their exit statuses."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    commands = [[sys.executable, __file__, address, str(process)] for process in range(PROCESSES)]
    processes = [subprocess.Popen(command) for command in commands]
    try:
        return max(abs(process.wait()) for process in processes)
    finally:
        for process in processes:
            process.kill()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        train(sys.argv[1], int(sys.argv[2]))
    else:
        sys.exit(main())
