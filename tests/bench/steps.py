"""How long steps take, ours beside XLA's: `python -m shardlog.tests.bench.steps [--all]`.

The same program with the same shardings at its boundary is compiled for eight CPU devices: as XLA partitions
it, and as we do, with the shardings that propagation decided, with those by which least moves, and with those
that take the least time on CPU devices. The compiled programs run in turn. The time of a step is that for
which processors are busy, the least of several: devices share all cores, and other work does not count.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from statistics import geometric_mean
from time import process_time
from typing import Any

from ..support.ways import ways
from .bytes_moved import by_xla, programs

_ROUNDS = 6
_AT_LEAST = 0.2  # seconds of steps that are measured at once
WAYS = ways("cpu")


def steps(result: Any, loaded: Sequence[Any]) -> list[float]:
    """The seconds of a step of each of the compiled programs of a run."""
    import jax
    from shardlog.executing.inputs import random_inputs
    from shardlog.executing.values import boundary
    from shardlog.runs.jax import device_shardings

    shardings = device_shardings(result.result, jax.devices())[0]
    arrays = random_inputs(boundary(result.result)[0], 0)
    placed = [jax.device_put(a, to) for a, to in zip(arrays, shardings, strict=True)]

    def seconds(program: Any, count: int) -> float:
        start = process_time()
        for _ in range(count):
            parts = program.execute_sharded(placed).disassemble_into_single_device_arrays()
            jax.block_until_ready(parts)  # type: ignore[no-untyped-call]
        return (process_time() - start) / count

    first = [min(seconds(program, 1) for _ in range(2)) for program in loaded]
    count = max(1, round(_AT_LEAST / max(first)))
    times = [[seconds(program, count) for program in loaded] for _ in range(_ROUNDS)]
    return [min(column) for column in zip(*times, strict=True)]


def main() -> None:
    """Prints the table, and geometric means."""
    import jax
    import shardlog

    warnings.simplefilter("ignore")
    ratios = []
    print(f"| program | XLA's, ms | {' | '.join(WAYS)} |\n|{'---|' * (len(WAYS) + 2)}")
    for name, source in programs("--all" in sys.argv):
        result = shardlog.run(source)
        ours = [result.partition(**way).compile()._loaded for way in WAYS.values()]
        xla, *found = steps(result, [by_xla(result, jax.devices()), *ours])
        ratios.append([each / xla for each in found])
        cells = " | ".join(f"{ratio:.2f}" for ratio in ratios[-1])
        print(f"| {name} | {xla * 1000:.3g} | {cells} |", flush=True)
    means = map(geometric_mean, zip(*ratios, strict=True))
    print(f"| geometric mean | | {' | '.join(f'{mean:.2f}' for mean in means)} |")


if __name__ == "__main__":
    main()
