"""Fits the numbers of a GPU's kernels, or of another machine's ops, to measured programs.

The method is coordinate descent: each number of ``[kernels]``, or of ``[ops]``, is made larger and smaller in
turn, by less and less, and the value with the least mean error is kept. Numbers of the data sheet are not
changed, nor are the numbers to keep. Each fifth program is kept out. Cross-validation fits five times, and
keeps out another fifth each time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from statistics import median
from typing import Any

from ..api import run
from ..cost.cost import kernels
from ..cost.facts import solver_of
from ..cost.gpu import Timing
from ..cost.machine import KERNELS, OPS, machine
from ..errors import ShardlogError, closest
from ..rulebook.book import RuleBook
from .data import Measurement, read_rows
from .judging import judged, judgement

_STEPS = (1.5, 1.2, 1.08, 1.03)  # by which numbers change
_EACH = 5  # of so many programs one is kept out: the fourth
_MANY = 100  # kernels
_AWAY = 1.33  # the factor by which a validated fit begins away from the machine's numbers
_FIXED = ("multiprocessors", "sending", "host", "call")


@dataclass(frozen=True)
class FittedProgram:
    """A measured program, and its kernels: the facts of each, and how often it runs."""

    row: Measurement
    kernels: tuple[tuple[Mapping[str, Any], int], ...]


def programs(rows: Sequence[Measurement], topology: str) -> list[FittedProgram]:
    """The kernels of measured programs."""
    target = machine(topology)
    return [FittedProgram(row, tuple(kernels(run(row.text).partition(), target))) for row in rows]


def held_out(number: int, fifth: int = _EACH - 2) -> bool:
    """Whether a program, by its place, is kept out of the fit."""
    return number % _EACH == fifth


class Fit:
    """The numbers of a machine, and the error of predictions with them."""

    def __init__(self, every: Sequence[FittedProgram], topology: str) -> None:
        self.machine = machine(topology)
        self.every = every
        self._traits = RuleBook().traits
        self.table, self.limits = ("kernels", KERNELS) if self.machine.kernels else ("ops", OPS)
        self.numbers = dict(self.machine.kernels or self.machine.ops)

    def times(self, numbers: Mapping[str, float], every: Sequence[FittedProgram]) -> list[float]:
        """The microseconds of programs."""
        times = self._times(numbers)
        seconds: dict[int, float] = {}
        for program in every:
            for facts, _ in program.kernels:
                if id(facts) not in seconds:
                    seconds[id(facts)] = times(facts)
        return [1e6 * sum(seconds[id(facts)] * often for facts, often in p.kernels) for p in every]

    def _times(self, numbers: Mapping[str, float]) -> Callable[[Mapping[str, Any]], float]:
        """The function that gives the seconds of a kernel, or an op."""
        if self.machine.kernels:
            timing = Timing(replace(self.machine, kernels=numbers), self._traits)
            return lambda facts: timing.of(facts).seconds
        solver = solver_of(replace(self.machine, ops=numbers), self._traits)
        return lambda facts: float(solver.solve(facts, ["seconds"])["seconds"][0][0])

    def error(self, numbers: Mapping[str, float], every: Sequence[FittedProgram]) -> float:
        """The mean error. Large errors count less."""
        times = self.times(numbers, every)
        errors = (abs(log(max(s, 1e-3) / p.row.busy)) for p, s in zip(every, times, strict=True))
        return sum(min(error, 1.0) for error in errors) / len(every)

    def fit(self, names: Sequence[str], fifth: int = _EACH - 2) -> None:
        """Finds numbers with which the error is least, without the programs of a fifth."""
        chosen = [program for n, program in enumerate(self.every) if not held_out(n, fifth)]
        best = self.error(self.numbers, chosen)
        for step in _STEPS:
            better = True
            while better:
                better = False
                for name in names:
                    for factor in (step, 1 / step):
                        least, most = self.limits[name]
                        value = min(max(self.numbers[name] * factor, least), most)
                        tried = {**self.numbers, name: value}
                        error = self.error(tried, chosen)
                        if error < best - 1e-5:
                            best, self.numbers, better = error, tried, True
                            break


def host(rows: Sequence[Measurement], otherwise: Mapping[str, float]) -> dict[str, float]:
    """The host's seconds to launch a kernel, and to begin a program ("call"), for calls that do not wait for
    each other. They are medians: over programs of many kernels, and over programs of one short kernel."""
    many = [1e-6 * row.ahead / row.kernels for row in rows if row.ahead and row.kernels >= _MANY]
    each = median(many) if many else otherwise["host"]
    one = [1e-6 * row.ahead - each for row in rows if row.kernels == 1 and row.ahead > 2 * row.busy]
    return {"host": each, "call": median(one) if one else otherwise["call"]}


def validated(fit: Fit, names: Sequence[str]) -> list[tuple[Measurement, float]]:
    """Programs, and their predicted microseconds by a fit that did not see them. Each fit begins a third away
    from the machine's numbers, which all programs were fitted to."""
    pairs, begin = list[tuple[int, float]](), dict(fit.numbers)
    for fifth in range(_EACH):
        fit.numbers = dict(begin)
        for place, name in enumerate(names):
            least, most = fit.limits[name]
            fit.numbers[name] = min(max(begin[name] * (_AWAY if place % 2 else 1 / _AWAY), least), most)
        fit.fit(names, fifth)
        places = [n for n in range(len(fit.every)) if held_out(n, fifth)]
        pairs += zip(places, fit.times(fit.numbers, [fit.every[n] for n in places]), strict=True)
    fit.numbers = begin
    return [(fit.every[n].row, time) for n, time in sorted(pairs)]


def fitted(data: Sequence[str], topology: str, keep: Sequence[str], validate: bool = False) -> None:
    """Prints the table of the machine's file, and the error of predictions for programs that were fitted and
    for those kept out; or, to ``validate``, only the error of cross-validation.

    Raises ShardlogError for a machine without a table, and for a number that it does not have.
    """
    target = machine(topology)
    numbers = target.kernels or target.ops
    if not numbers:
        hint = "begin with the table of another machine, such as h100 or v5e"
        message = f"{target.name} has no table [kernels] or [ops]"
        raise ShardlogError(message, where="--topology", hint=hint)
    for name in keep:
        if name not in numbers:
            raise ShardlogError(f"there is no number {name}", where="--keep", hint=closest(name, [*numbers]))
    warnings.simplefilter("ignore")
    rows = read_rows(data)
    every = programs(rows, topology)
    fit = Fit(every, topology)
    if target.kernels:
        fit.numbers |= {name: n for name, n in host(rows, fit.numbers).items() if name not in keep}
    names = [name for name in fit.numbers if name not in (*_FIXED, *keep)]
    if validate:
        for kind, judged_kind in judged(validated(fit, names)):
            print(f"{kind}: all {judgement(judged_kind.all)}; long {judgement(judged_kind.long)}")
        return
    fit.fit(names)
    print(f"[{fit.table}]")
    for name, value in fit.numbers.items():
        print(f"{name} = {value:.3g}")
    times = fit.times(fit.numbers, every)
    for label, out in (("fitted", False), ("kept out", True)):
        pairs = [(p.row, s) for n, (p, s) in enumerate(zip(every, times, strict=True)) if held_out(n) == out]
        _, errors = judged(pairs)[-1]
        print(f"# {label}: all {judgement(errors.all)}; long {judgement(errors.long)}")
