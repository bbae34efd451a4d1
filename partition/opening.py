"""Layouts for the boundary of a program, chosen with those of all other values: arguments, results, and the
state that each step passes to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jaxlib.mlir import ir

from ..program.function import location
from ..program.shardings import Sharding, Shardings
from ..rulebook.book import RuleBook
from .choice.homes import FoundHomes, never
from .choice.least.sums import FAR
from .choice.problem import Boundary, Free, homes_of, variables_of
from .facts.flow import facts_of
from .improving import Aim
from .layouts import Layout
from .partitioning import annotated_of, names_axes
from .preparing.preparing import Preparing

Dims = Sequence[Sequence[str]]  # the axes of each dimension


@dataclass(frozen=True)
class Opened:
    """A choice for the boundary: the shardings of free ``arguments`` and ``results``, by number; the total
    cost of the program in the sum that is minimised, in bytes; and an estimate of a device's peak memory in
    bytes."""

    arguments: dict[int, Sharding]
    results: dict[int, Sharding]
    cost: float
    held: float
    others: dict[int, tuple[OtherLayout, ...]] = field(default_factory=dict)
    alike: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class OtherLayout:
    """Another layout of an argument: the increase of the sum, in bytes, if the argument and those with equal
    layouts had it; and the op whose cost rises most, by name and place, both empty if there is none."""

    sharding: Sharding
    more: float
    op: str
    where: str


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
        like: Opening | None = None,
    ) -> None:
        """``like`` is a search for the same module and boundary over another mesh, if nothing in the module
        ``names_axes``: its variables are used again."""
        self._module = prepare.module
        with self._module.context, ir.Location.unknown():
            _, annotated = annotated_of(prepare, shardings, book, modes, "sdy-manual", aim, cut=True)
            self._axes, self._kinds = annotated.axes, annotated.kinds
            if like is None:
                facts = facts_of(annotated, refuses=False)
                self._boundary = Boundary(annotated, free)
                self._given = self._boundary.given(annotated)
                self._variables = variables_of(annotated, facts, boundary=self._boundary)
                self._ops = [number for number, _ in facts.spots]
            else:
                self._boundary, self._given = like._boundary, like._given
                self._variables, self._ops = like._variables, like._ops
            self._homes = homes_of(annotated, self._variables)
            self.names_axes = names_axes(prepare, shardings)

    def bound(self, memory: float, least: float) -> float:
        """A lower bound of the total cost, in bytes, if equal layers have equal layouts. ``least`` is the
        cost that was found at this price of memory."""
        with self._module.context, ir.Location.unknown():
            return self._homes.bound_alike(memory, least)

    def bound_soon(self, memory: float, limit: float) -> float:
        """A lower bound of the total cost, in bytes, if equal layers have equal layouts. It takes less time
        than ``find``, because it stops as soon as the bound exceeds the ``limit``."""
        with self._module.context, ir.Location.unknown():
            return self._homes.bound_soon(memory, limit)

    def with_boundary(
        self, memory: float, arguments: Mapping[int, Dims], results: Mapping[int, Dims]
    ) -> tuple[float, float]:
        """The least total cost found, in bytes, where the dimensions of free arguments and results are split
        on these axes, and an estimate of a device's peak memory in bytes. ``find`` has run at this price of
        memory."""
        with self._module.context, ir.Location.unknown():
            return self._homes.with_layouts(memory, self._layouts(arguments, results))

    def beside(self, memory: float, arguments: Mapping[int, Dims], results: Mapping[int, Dims]) -> Opened:
        """The choice that ``with_boundary`` finds, with the prices of other layouts."""
        with self._module.context, ir.Location.unknown():
            return self._opened(self._homes.beside(memory, self._layouts(arguments, results)))

    def _layouts(self, arguments: Mapping[int, Dims], results: Mapping[int, Dims]) -> dict[int, Layout]:
        """The layouts of values at the boundary."""
        values, ends = self._boundary, self._layout
        layouts = {values.arguments[n]: ends(dims) for n, dims in arguments.items()}
        return layouts | {values.results[n]: ends(dims) for n, dims in results.items()}

    def _layout(self, dims: Dims) -> Layout:
        of_axes, main = self._axes.of_axes, self._axes.main
        return Layout(tuple(tuple(p for name in names for p in of_axes(main, [name])) for names in dims))

    def find(self, memory: float = 0.0, *, stop: Callable[[], bool] = never) -> Opened:
        """The best boundary at a price of memory, in bytes sent per byte held."""
        with self._module.context, ir.Location.unknown():
            return self._opened(self._homes.find(memory=memory, alike=True, stop=stop))

    def _opened(self, chosen: FoundHomes) -> Opened:
        """A choice for the boundary."""
        homes, boundary, (takes, gives) = chosen.plan.homes, self._boundary, self._given
        arguments = {n: homes.get(boundary.arguments[n], takes[n]) for n in sorted(boundary.free.arguments)}
        results = {}
        for n, value in boundary.results.items():
            to = boundary.free.results[n]
            results[n] = homes.get(value, gives[n] if to is None else takes[to])
        of = self._axes.sharding
        others = {n: tuple(self._others(chosen, boundary.arguments[n])) for n in arguments}
        return Opened(
            {n: of(layout) for n, layout in arguments.items()},
            {n: of(layout) for n, layout in results.items()},
            chosen.cost,
            chosen.held[0],
            others,
            {n: chosen.alike.get(boundary.arguments[n], -1 - n) for n in arguments},
        )

    def _others(self, homes: FoundHomes, value: int) -> Iterator[OtherLayout]:
        """The next best layouts of an argument."""
        dearest = homes.dearest.get(value, ())
        for (layout, more), spot in zip(homes.others.get(value, ()), dearest, strict=False):
            if more >= FAR:
                continue
            number = self._ops[spot] if 0 <= spot < len(self._ops) else self._boundary.terminator
            op = self._kinds.ops[number] if spot >= 0 else None
            with self._module.context:
                named = ("", "") if op is None else (op.name, location(op))
            yield OtherLayout(self._axes.sharding(layout), more, *named)
