"""What the constants that steer the choice change: `python -m shardlog.tests.bench.tuning [NAME ...]`.

For each constant of `partition/choice/tuning.py`, or those that are named, the models of the tests and a
train step are partitioned with half of its value, and with twice its value. Printed are geometric means over
the programs, relative to the value as it is: the bytes that a device sends, the estimated peak of its memory,
and the processor's time. "same" says that all programs are equal to the byte. Defaults of parameters, and
what only runs within a bound on memory uses, are not seen.
"""

from __future__ import annotations

import sys
import warnings
from statistics import geometric_mean
from time import process_time
from typing import Any, NamedTuple

from shardlog.partition.choice import tuning


class Outcome(NamedTuple):
    """A partitioned program, its text, and the seconds to partition it."""

    program: Any
    text: str
    seconds: float

    @property
    def sent(self) -> float:
        """The bytes that a device sends, and one, for programs that send nothing."""
        return float(1 + sum(collective.total for collective in self.program.collectives))

    @property
    def held(self) -> float:
        """The bytes of the peak of a device's memory."""
        return float(self.program.cost().peak)


def constants() -> dict[str, float]:
    """The constants by name."""
    return {name: value for name, value in vars(tuning).items() if name.isupper()}


def programs() -> dict[str, Any]:
    """The programs that are partitioned, after propagation."""
    import shardlog

    from ..support import models
    from .bytes_moved import example

    sources = {"train step": example(2), **{name: models.text(name) for name in models.MODELS}}
    return {name: shardlog.run(source) for name, source in sources.items()}


def outcomes(runs: dict[str, Any]) -> list[Outcome]:
    """Each program with least bytes, by the constants as they are."""
    from shardlog.runs.choice import ProgramChoice

    outcomes = []
    for run in runs.values():
        start = process_time()
        program = run.programs.made(ProgramChoice())
        outcomes.append(Outcome(program, program.text(), process_time() - start))
    return outcomes


def relative(those: list[Outcome], to: list[Outcome]) -> str:
    """One line: the outcomes of another value relative to those of the value."""
    changed, words = [pair for pair in zip(those, to, strict=True) if pair[0].text != pair[1].text], "same"
    if changed:
        same = [1.0] * (len(to) - len(changed))
        sent = geometric_mean([*same, *(a.sent / b.sent for a, b in changed)])
        held = geometric_mean([*same, *(a.held / b.held for a, b in changed)])
        words = f"{len(changed)} changed, sent {sent:.3f}, held {held:.3f}"
    times = sum(each.seconds for each in those) / sum(each.seconds for each in to)
    return f"{words}, time {times:.2f}"


def main() -> None:
    """Prints a line for each constant."""
    warnings.simplefilter("ignore")
    known = constants()
    names = sys.argv[1:] or list(known)
    if unknown := [name for name in names if name not in known]:
        sys.exit(
            f"no constant of partition/choice/tuning.py: {', '.join(unknown)}; there are {', '.join(known)}"
        )
    runs = programs()
    outcomes(runs)  # what is loaded or compiled only once
    usual = outcomes(runs)
    for name in names:
        value = known[name]
        lines = []
        for factor in (0.5, 2):
            other = type(value)(value * factor)
            setattr(tuning, name, other)
            lines.append(f"{other:g}: {relative(outcomes(runs), usual)}")
        setattr(tuning, name, value)
        print(f"{name} = {value:g}; {'; '.join(lines)}", flush=True)


if __name__ == "__main__":
    main()
