"""Partitioned programs compiled for TPUs, ours beside XLA's: `python -m shardlog.tests.bench.tpu [--all]`.

The same program with the same shardings at its boundary is compiled ahead of time for a slice of eight TPUs,
with libtpu: as XLA partitions it, and as we do, with the shardings that propagation decided, with those by
which least moves, and with those that take the least time on such. Bytes, collectives and XLA's estimate are
counted in the optimised HLO, turns of loops counted: the estimate is the cycles of all ops that are no
collectives. Time is these cycles, and what the collectives that are left take as we say: XLA does not.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any

from ..support.ways import ways
from .beside import moved, over, print_means, print_row

_MACHINE, _SHAPE, _DEVICES = "v5e", "2x4", 8
_CLOCK = 1.5e9  # cycles per second
FIGURES = ("bytes", "memory", "peak", "cycles", "time")
WAYS = ways(_MACHINE)


@dataclass(frozen=True)
class Compiled:
    """A compiled program: bytes that a device sends, bytes of its memory, the most bytes in all its memories,
    cycles, seconds, and collectives."""

    bytes: float
    memory: int
    peak: int
    cycles: int
    time: float
    count: int


def compiled(module: bytes, shape: str = _SHAPE, devices: int = _DEVICES) -> Compiled:
    """A module with shardings or manual computations, compiled for a slice of so many devices."""
    from shardlog.cost.hlo import hlo_cycles
    from shardlog.cost.machine import machine
    from shardlog.cost.targets import compile_for, read_target

    said = compile_for(module, read_target(f"tpu:{_MACHINE}:{shape}"), devices, "sdy-manual")
    memory, cycles = said["memory"], hlo_cycles(said["hlo"])
    total = memory["argument"] + memory["output"] - memory["alias"] + memory["temp"]
    sent = moved(said["hlo"], machine(_MACHINE))
    time = cycles / _CLOCK + sent.seconds
    return Compiled(sent.bytes, total, memory["peak"], cycles, time, sent.collectives)


def row(source: Any) -> tuple[Compiled, list[Compiled]]:
    """A program as XLA partitions it, and as we do in each way."""
    import shardlog
    from shardlog.program.mlir.modules import bytecode_of

    from .bytes_moved import undecided

    result = shardlog.run(source)
    module = undecided(result)
    with module.context:
        xla = compiled(bytecode_of(module))
    ours = [bytecode_of(result.partition(**way).module_for("tpu")) for way in WAYS.values()]
    return xla, list(map(compiled, ours))


def main() -> None:
    """Prints the table, and geometric means over programs of which XLA moves something."""
    from shardlog.errors import ShardlogError

    from .bytes_moved import programs

    warnings.simplefilter("ignore")
    print_row("program", "partitioned by", "collectives", *FIGURES)
    print("|---" * (3 + len(FIGURES)) + "|", flush=True)
    ratios = []
    for name, source in programs("--all" in sys.argv):
        try:
            xla, ours = row(source)
        except ShardlogError as error:  # functions of LAPACK, as programs have them that are lowered for CPUs
            print_row(name, error.message)
            continue
        found = [over(each, xla, FIGURES) for each in ours]
        print_row(name, "XLA", str(xla.count), f"{xla.bytes:,.0f} B", *[""] * (len(FIGURES) - 1))
        for way, each, figures in zip(WAYS, ours, found, strict=True):
            print_row("", way, str(each.count), *(f"{ratio:.2f}" for ratio in figures))
        if xla.bytes:
            ratios.append(found)
    print_means(list(WAYS), ratios, empty=1)


if __name__ == "__main__":
    main()
