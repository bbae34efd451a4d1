"""What a call costs of what is compiled: `python -m shardlog.tests.bench.dispatch`.

A function of many arrays that does next to nothing, compiled by `jax.jit` and by `shardlog.jit` with both
partitioners, on eight CPU devices. A call is the time of the thread that makes it, until it returns, the
least of many in turns; what the devices do then is waited for outside of it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

LEAVES = (1, 10, 100, 400)
CALLS = 60


def ratios(leaves: int) -> dict[str, float]:
    """What a call costs by who partitions, "xla" or "shardlog", over a call of `jax.jit`."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import shardlog
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices("cpu")[:8]).reshape(2, 4), ("data", "model"))
    rows = NamedSharding(mesh, PartitionSpec("data"))  # type: ignore[no-untyped-call]
    arrays = [jax.device_put(jnp.ones((8, 8)), rows) for _ in range(leaves)]

    def step(arrays: list[Any]) -> list[Any]:
        return [array + 1 for array in arrays]

    compiled: dict[str, Callable[..., Any]] = {
        "jax.jit": jax.jit(step),
        "xla": shardlog.jit(step),
        "shardlog": shardlog.jit(step, partitioner="shardlog"),
    }
    least = dict.fromkeys(compiled, float("inf"))
    for number in range(CALLS + 2):
        for name, function in compiled.items():
            begin = time.thread_time()
            given = function(arrays)
            if number > 1:
                least[name] = min(least[name], time.thread_time() - begin)
            jax.block_until_ready(given)  # type: ignore[no-untyped-call]
    return {name: seconds / least["jax.jit"] for name, seconds in least.items() if name != "jax.jit"}


def main() -> int:
    """Prints the table."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    print("| arrays | XLA partitions | shardlog partitions |\n|---|---|---|")
    for leaves in LEAVES:
        found = ratios(leaves)
        print(f"| {leaves} | {found['xla']:.2f} | {found['shardlog']:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
