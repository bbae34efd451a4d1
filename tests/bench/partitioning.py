"""How long partitioning takes beside the run whose decisions it carries out, on train steps of transformers,
and then `cost`: `python -m shardlog.tests.bench.partitioning`.

Every time is the median of several repetitions in turn, in a process that has done both before: time of the
processor. The run is from text to text.
"""

from __future__ import annotations

from statistics import median

import shardlog
from shardlog.runs.choice import ProgramChoice

from ..support import models
from .bench import DEEP, SHALLOW, Pair, ops, paired, timed


def partitioning(text: str, repetitions: int = 7) -> Pair:
    """Seconds to partition a module, and for the run of it."""
    result, meant = shardlog.run(text), ProgramChoice()
    result.programs.made(ProgramChoice(keep_shardings=True))
    return paired(
        lambda: timed(lambda: result.programs.made(meant)),
        lambda: timed(lambda: shardlog.run(text).text()),
        repetitions,
    )


def writing(text: str, repetitions: int = 3) -> float:
    """Seconds to combine the collectives of a partitioned program and to print it."""
    result = shardlog.run(text)
    return median(
        timed(result.programs.made(ProgramChoice(keep_shardings=True)).text) for _ in range(repetitions)
    )


def costing(text: str, topology: str, repetitions: int = 3) -> Pair:
    """Seconds to say what a partitioned program costs on a machine, and for the run of it."""
    program = shardlog.run(text).programs.made(ProgramChoice(keep_shardings=True))
    program.cost(topology)
    return paired(
        lambda: timed(lambda: program.cost(topology)), lambda: timed(lambda: shardlog.run(text)), repetitions
    )


def main() -> None:
    """Prints two tables of Markdown."""
    print(
        "| train step | ops | run, text to text | partitioned | ratio | its text |\n|---|---|---|---|---|---|"
    )
    for scan in (False, True):
        for depth in (SHALLOW, DEEP):
            text = models.text("transformer", depth=depth, scan=scan, train=True)
            pair, printed = partitioning(text), writing(text)
            title = f"{depth} layers{', scanned' if scan else ''}"
            times = f"{pair.theirs * 1e3:,.0f} ms | {pair.ours * 1e3:,.0f} ms | {pair.ratio:.2f}"
            print(f"| {title} | {ops(text):,} | {times} | {printed * 1e3:,.0f} ms |", flush=True)
    print("\n| `cost` | v5e | h100 | cpu |\n|---|---|---|---|")
    for depth in (SHALLOW, DEEP):
        text = models.text("transformer", depth=depth, train=True)
        ratios = [f"{costing(text, machine).ratio:.1f}" for machine in ("v5e", "h100", "cpu")]
        print(f"| {depth} layers | {' | '.join(ratios)} |", flush=True)


if __name__ == "__main__":
    main()
