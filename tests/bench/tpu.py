"""Partitioned programs compiled for TPUs, ours beside XLA's: `python -m shardlog.tests.bench.tpu [--all]`.

The same program with the same shardings at its boundary is compiled ahead of time for a slice of eight TPUs,
with libtpu: as XLA partitions it, and as we do, with the shardings that propagation decided and with those by
which least moves. Bytes, collectives and XLA's estimate are counted in the optimised HLO, turns of loops
counted: the estimate is the cycles of all ops that are no collectives.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from math import exp, log
from typing import Any

_TARGET, _DEVICES = "tpu:v5e:2x4", 8


@dataclass(frozen=True)
class Compiled:
    """A compiled program: bytes that a device sends, collectives, bytes of memory, and cycles."""

    bytes: float
    count: int
    memory: int
    cycles: int


def compiled(module: bytes) -> Compiled:
    """A module with shardings or manual computations, compiled."""
    from shardlog.cost.hlo import hlo_collectives, hlo_cycles
    from shardlog.cost.targets import compile_for, read_target

    said = compile_for(module, read_target(_TARGET), _DEVICES, "sdy-manual")
    sent, memory = hlo_collectives(said["hlo"]).values(), said["memory"]
    total = memory["argument"] + memory["output"] - memory["alias"] + memory["temp"]
    return Compiled(sum(s for _, s in sent), sum(n for n, _ in sent), total, hlo_cycles(said["hlo"]))


def row(source: Any) -> tuple[Compiled, list[list[float]]]:
    """A program as XLA partitions it; and as decided and least, over that: bytes, memory, cycles, and the
    numbers of collectives."""
    import shardlog
    from shardlog.program.mlir.modules import bytecode_of

    from .bytes_moved import undecided

    result = shardlog.run(source)
    module = undecided(result)
    with module.context:
        xla = compiled(bytecode_of(module))
    found = []
    for keep in (True, False):
        ours = compiled(bytecode_of(result.partition(keep_shardings=keep).module_for("tpu")))
        pairs = (ours.bytes, xla.bytes), (ours.memory, xla.memory), (ours.cycles, xla.cycles)
        found.append([max(a, 1) / max(b, 1) for a, b in pairs] + [ours.count])
    return xla, found


def main() -> None:
    """Prints the table, and geometric means over programs of which XLA moves something."""
    from .bytes_moved import programs

    warnings.simplefilter("ignore")
    print("| program | XLA's bytes | as decided | least | XLA's collectives | as decided | least ", end="")
    print("| memory as decided | least | cycles as decided | least |\n|" + "---|" * 11)
    ratios = []
    for name, source in programs("--all" in sys.argv):
        xla, (kept, least) = row(source)
        cells = [f"{xla.bytes:,.0f}", f"{kept[0]:.2f}", f"{least[0]:.2f}", xla.count, kept[3], least[3]]
        cells += [f"{ratio:.2f}" for pair in zip(kept[1:3], least[1:3], strict=True) for ratio in pair]
        print(f"| {name} | {' | '.join(map(str, cells))} |", flush=True)
        if xla.bytes:
            ratios.append([*kept[:3], *least[:3]])
    means = [exp(sum(map(log, column)) / len(column)) for column in zip(*ratios, strict=True)]
    for what, ratio in zip(("bytes", "memory", "cycles") * 2, means, strict=True):
        print(f"geometric mean of {what}: {ratio:.2f}")


if __name__ == "__main__":
    main()
