"""Layouts for the boundary of a program, chosen with those of all other values: arguments, results, and the
state that each step passes to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jaxlib.mlir import ir

from ..program.shardings import Sharding, Shardings
from ..rulebook.book import RuleBook
from .choice.homes import never
from .facts.flow import facts_of
from .improving import Aim
from .partitioning import annotated_of
from .preparing.preparing import Preparing
from .problem import Boundary, Free, homes_of


@dataclass(frozen=True)
class Opened:
    """A choice for the boundary: the shardings of free ``arguments`` and ``results``, by number; the total
    cost of the program in the sum that is minimised, in bytes, and a lower bound of it; and an estimate of a
    device's peak memory in bytes."""

    arguments: dict[int, Sharding]
    results: dict[int, Sharding]
    cost: float
    bound: float
    held: float


class Opening:
    """Searches for the boundary of an annotated module with the least cost."""

    def __init__(
        self,
        prepare: Preparing,
        shardings: Shardings,
        book: RuleBook,
        modes: Sequence[str],
        aim: Aim,
        free: Free,
    ) -> None:
        self._module = prepare.module
        with self._module.context, ir.Location.unknown():
            _, annotated = annotated_of(prepare, shardings, book, modes, "sdy-manual", aim, cut=True)
            facts = facts_of(annotated, refuses=False)
            self._axes, self._boundary = annotated.axes, Boundary(annotated, free)
            self._given = self._boundary.given(annotated)
            self._homes = homes_of(annotated, facts, boundary=self._boundary)

    def find(self, memory: float = 0.0, *, bound: bool = False, stop: Callable[[], bool] = never) -> Opened:
        """The best boundary at a price of memory, in bytes sent per byte held. With ``bound`` a lower bound
        is computed."""
        with self._module.context, ir.Location.unknown():
            chosen = self._homes.find(memory=memory, bound=bound, alike=True, stop=stop)
        homes, boundary, (takes, gives) = chosen.plan.homes, self._boundary, self._given
        arguments = {n: homes.get(boundary.arguments[n], takes[n]) for n in sorted(boundary.free.arguments)}
        results = {}
        for n, value in boundary.results.items():
            to = boundary.free.results[n]
            results[n] = homes.get(value, gives[n] if to is None else takes[to])
        of = self._axes.sharding
        return Opened(
            {n: of(layout) for n, layout in arguments.items()},
            {n: of(layout) for n, layout in results.items()},
            chosen.cost,
            chosen.bound,
            chosen.held[0],
        )
