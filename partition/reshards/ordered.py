"""Reshards whose steps come in a given order; see ``rules/partition/order.dl``."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import takewhile
from typing import Any

from ...rulebook.shipped import shipped
from ..layouts import Axes, Layout, Pieces, PieceSet, Shape
from .moves import Route, Step
from .planning import Planner
from .prices import Prices


@cache
def orders() -> dict[str, tuple[str, ...]]:
    """The stages of each order, in turn."""
    rows = sorted(shipped("partition/order").evaluate({})["stage"])
    stages: dict[str, tuple[str, ...]] = {}
    for order, _, does, _ in rows:
        stages[order] = (*stages.get(order, ()), does)
    return stages


class InOrder(Planner):
    """A planner whose routes follow an order of steps, by name. If a tensor does not divide evenly, the route
    is the cheapest one."""

    def __init__(self, axes: Axes, order: str, prices: Prices | None = None) -> None:
        super().__init__(axes, prices, order)
        self.stages = orders()[order]
        self._ordered: dict[Any, Route] = {}

    def route(self, shape: Shape, start: Layout, goal: Layout, taken: PieceSet = frozenset()) -> Route:
        """The route in stages."""
        key = shape, start, goal
        if key not in self._ordered:
            self._ordered[key] = self._in_stages(shape, start, goal) or super().route(
                shape, start, goal, taken
            )
        return self._ordered[key]

    def likely(self, shape: Shape, start: Layout, goal: Layout, taken: PieceSet = frozenset()) -> Route:
        """The same route."""
        return self.route(shape, start, goal, taken)

    def _in_stages(self, shape: Shape, start: Layout, goal: Layout) -> Route | None:
        steps, layout = list[Step](), start
        for stage in self.stages:
            for wanted in _STAGES[stage](layout, goal):
                step = self._step(shape, layout, goal, *wanted)
                if step is None:
                    return None
                steps.append(step)
                layout = step.after
        return Route.of(steps) if layout == goal else None

    def _step(
        self, shape: Shape, layout: Layout, goal: Layout, kind: str, pieces: Pieces, dim: int
    ) -> Step | None:
        """The step of a kind along pieces, of a dimension if it has one."""
        for step in self.moves.steps(shape, layout, goal):
            if step.kind == kind and step.dim == dim and step.pieces == pieces:
                return step
        return None


Wanted = list[tuple[str, Pieces, int]]


def _reduce(layout: Layout, goal: Layout) -> Wanted:
    split = {p for dim in goal.dims for p in dim}
    loose = tuple(p for p in layout.partial if p not in goal.partial and p not in split)
    return [("all_reduce", loose, -1)] if loose else []


def _gather(layout: Layout, goal: Layout) -> Wanted:
    steps: Wanted = []
    for d, (held, wanted) in enumerate(zip(layout.dims, goal.dims, strict=True)):
        kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(held, wanted, strict=False)))
        if held[kept:]:
            steps.append(("all_gather", held[kept:], d))
    return steps


def _split(layout: Layout, goal: Layout) -> Wanted:
    steps: Wanted = []
    for d, (held, wanted) in enumerate(zip(layout.dims, goal.dims, strict=True)):
        runs: list[tuple[str, Pieces]] = []
        for piece in wanted[len(held) :]:
            kind = "reduce_scatter" if piece in layout.partial else "slice"
            if runs and runs[-1][0] == kind == "reduce_scatter":
                runs[-1] = kind, (*runs[-1][1], piece)
            else:
                runs.append((kind, (piece,)))
        steps += [(kind, pieces, d) for kind, pieces in runs]
    return steps


_STAGES: dict[str, Callable[[Layout, Layout], Wanted]] = {
    "reduce": _reduce,
    "gather": _gather,
    "split": _split,
}
