"""The cheapest collectives from one layout to another: a shortest path over steps.

A step's price is the bytes that a device sends by the ring model, in elements of the tensor: of what is
gathered (n - 1) / n, of what is reduced twice that, of what is exchanged (n - 1) / n of a part, of a
permuted part all. Cutting out what a device has already is free.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations
from math import prod
from typing import Literal

from .layouts import Axes, Dims, Layout, Pieces, Shape

Kind = Literal[
    "slice", "mask", "all_gather", "all_reduce", "reduce_scatter", "all_to_all", "collective_permute"
]
_STEP = 1e-6  # of two plans that move as much, the one with fewer collectives
_MOST = 20_000  # layouts looked at; past that, dimensions are gathered whole


@dataclass(frozen=True)
class Step:
    """A step of a plan. ``dim`` is the dimension that is gathered, cut or scattered; an exchange splits
    ``to``.

    ``price`` is in elements that a device sends.
    """

    kind: Kind
    pieces: Pieces
    after: Layout
    price: float
    dim: int = -1
    to: int = -1


@dataclass(frozen=True)
class Plan:
    """Steps from one layout to another, and what they cost together, in elements that a device sends."""

    steps: tuple[Step, ...]
    price: float


class Planner:
    """Finds plans; equal questions are answered once."""

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self._plans: dict[tuple[Shape, Layout, Layout], Plan] = {}

    def plan(self, shape: Shape, start: Layout, goal: Layout) -> Plan:
        """The cheapest plan for a tensor of this shape."""
        key = shape, start, goal
        if key not in self._plans:
            plan = self._same(shape, start, goal) or self._straight(shape, start, goal)
            self._plans[key] = plan or self._search(shape, start, goal)
        return self._plans[key]

    def _same(self, shape: Shape, start: Layout, goal: Layout) -> Plan | None:
        if start == goal or (start.dims == goal.dims and not goal.partial and not start.partial):
            return Plan((), 0.0)
        pieces = self.axes.pieces
        if len({pieces[p].mesh for p in (*start.pieces, *goal.pieces)}) > 1:
            return self._between_meshes(shape, start, goal)
        return None

    def _straight(self, shape: Shape, start: Layout, goal: Layout) -> Plan | None:
        """The plan where all that is to do is to combine partial values, to gather, or to cut out."""
        axes, pairs = self.axes, list(zip(start.dims, goal.dims, strict=True))
        if start.dims == goal.dims and not goal.partial:
            n, size = axes.product(start.partial), prod(axes.local(shape, start.dims))
            step = Step("all_reduce", start.partial, goal, 2 * size * (n - 1) / n)
            return Plan((step,), step.price)
        if start.partial or goal.partial:
            return None
        gathers = all(held[: len(wanted)] == wanted for held, wanted in pairs)
        if not gathers and any(wanted[: len(held)] != held for held, wanted in pairs):
            return None
        steps, layout = list[Step](), start
        for d, (held, wanted) in enumerate(pairs):
            if held == wanted:
                continue
            if not (self.fits(shape[d], held, wanted) if gathers else self.fits(shape[d], wanted, held)):
                return None
            moved = held[len(wanted) :] if gathers else wanted[len(held) :]
            price = prod(axes.local(shape, layout.dims)) * (axes.product(moved) - 1) if gathers else 0
            layout = Layout(_with(layout.dims, d, wanted))
            steps.append(Step("all_gather" if gathers else "slice", moved, layout, float(price), d))
        return Plan(tuple(steps), sum(step.price for step in steps))

    def _between_meshes(self, shape: Shape, start: Layout, goal: Layout) -> Plan:
        """Parts are permuted where there are as many of each dimension in both, and else gathered."""
        counts = [[self.axes.product(p) for p in layout.dims] for layout in (start, goal)]
        if counts[0] == counts[1]:
            first = self.plan(shape, start, start.complete)
            price = float(prod(self.axes.local(shape, goal.dims)))
            steps = (*first.steps, Step("collective_permute", (), goal, price))
            return Plan(steps, first.price + price)
        middle = Layout(((),) * len(shape))
        ends = self.plan(shape, start, middle), self.plan(shape, middle, goal)
        return Plan(ends[0].steps + ends[1].steps, ends[0].price + ends[1].price)

    def _search(self, shape: Shape, start: Layout, goal: Layout) -> Plan:
        best: dict[Layout, float] = {start: 0.0}
        came: dict[Layout, tuple[Layout, Step]] = {}
        queue: list[tuple[float, int, Layout]] = [(0.0, 0, start)]
        count = 0
        while queue:
            price, _, layout = heapq.heappop(queue)
            if layout == goal:
                return self._plan(came, start, goal)
            if price > best[layout] or len(best) > _MOST:
                continue
            for step in self.steps(shape, layout, goal):
                total = price + step.price + (_STEP if step.price else _STEP / 1000)
                if total < best.get(step.after, float("inf")):
                    count += 1
                    best[step.after], came[step.after] = total, (layout, step)
                    heapq.heappush(queue, (total, count, step.after))
        middle = Layout(((),) * len(shape))
        ends = self._whole(shape, start, middle), self._whole(shape, middle, goal)
        return Plan(ends[0] + ends[1], sum(step.price for end in ends for step in end))

    @staticmethod
    def _plan(came: dict[Layout, tuple[Layout, Step]], start: Layout, goal: Layout) -> Plan:
        steps, layout = list[Step](), goal
        while layout != start:
            layout, step = came[layout]
            steps.append(step)
        return Plan(tuple(reversed(steps)), sum(step.price for step in steps))

    def _whole(self, shape: Shape, start: Layout, goal: Layout) -> tuple[Step, ...]:
        """The plain way between a layout and the whole tensor."""
        steps, layout = list[Step](), start
        while layout != goal:
            found = [s for s in self.steps(shape, layout, goal) if s.kind != "all_to_all"]
            nearer = [s for s in found if s.after == goal] or sorted(
                found, key=lambda s: len(list(s.after.pieces)), reverse=not any(start.pieces)
            )
            steps.append(nearer[0])
            layout = nearer[0].after
        return tuple(steps)

    # ---- Steps ------------------------------------------------------------------------------------------

    def steps(self, shape: Shape, layout: Layout, goal: Layout) -> Iterator[Step]:
        """The steps that can be taken from a layout on the way to a goal."""
        yield from self._reductions(shape, layout, goal)
        yield from self._gathers(shape, layout, goal)
        yield from self._cuts(shape, layout, goal)
        yield from self._permutes(shape, layout, goal)
        used = set(layout.pieces)
        masks = tuple(p for p in goal.partial if p not in used)
        if masks and (not layout.partial or layout.combine == goal.combine):
            after = Layout(layout.dims, tuple(sorted((*layout.partial, *masks))), goal.combine)
            yield Step("mask", masks, after, 0.0)

    def fits(self, size: int, pieces: Pieces, fewer: Pieces) -> bool:
        """Whether the parts of a dimension lie in those that fewer pieces make, or the dimension is whole."""
        axes = self.axes
        return not fewer or axes.tile(size, fewer) == axes.tile(size, pieces) * axes.product(
            pieces[len(fewer) :]
        )

    def _reductions(self, shape: Shape, layout: Layout, goal: Layout) -> Iterator[Step]:
        loose = [p for p in layout.partial if p not in goal.partial]
        if not loose:
            return
        axes, dims = self.axes, layout.dims
        size = prod(axes.local(shape, dims))
        for length in range(len(loose), 0, -1):
            for some in combinations(loose, length):
                rest = tuple(p for p in layout.partial if p not in some)
                combine = layout.combine if rest else ""
                n = axes.product(some)
                price = 2 * size * (n - 1) / n
                yield Step("all_reduce", some, Layout(dims, rest, combine), price)
                for d, held in enumerate(dims):
                    for order in permutations(some):
                        if not self._of_use(goal.dims[d], order):
                            continue
                        new = held + order
                        if shape[d] >= axes.product(new) and self.fits(shape[d], new, held):
                            after = Layout(_with(dims, d, new), rest, combine)
                            scattered = prod(axes.local(shape, after.dims))
                            yield Step("reduce_scatter", order, after, scattered * (n - 1), d)

    def _gathers(self, shape: Shape, layout: Layout, goal: Layout) -> Iterator[Step]:
        """Gathers, and exchanges: what one dimension gathers splits another."""
        axes, dims = self.axes, layout.dims
        size = prod(axes.local(shape, dims))
        for d, held in enumerate(dims):
            for keep in range(len(held)):
                kept, moved = held[:keep], held[keep:]
                if not self.fits(shape[d], held, kept):
                    continue
                n, gathered = axes.product(moved), _with(dims, d, kept)
                price = size * (n - 1)
                yield Step(
                    "all_gather", moved, Layout(gathered, layout.partial, layout.combine), float(price), d
                )
                for other, there in enumerate(dims):
                    new = there + moved
                    if other == d or not self._of_use(goal.dims[other], moved):
                        continue
                    if not self.fits(shape[other], new, there) or shape[other] < axes.product(new):
                        continue
                    after = Layout(_with(gathered, other, new), layout.partial, layout.combine)
                    part = prod(axes.local(shape, _with(dims, other, new))) * n
                    yield Step("all_to_all", moved, after, part * (n - 1) / n, d, other)

    @staticmethod
    def _of_use(wanted: Pieces, moved: Pieces) -> bool:
        return all(p in wanted for p in moved)

    def _cuts(self, shape: Shape, layout: Layout, goal: Layout) -> Iterator[Step]:
        used, dims = set(layout.pieces), layout.dims
        for d, (held, wanted) in enumerate(zip(dims, goal.dims, strict=True)):
            for p in wanted:
                if p in used:
                    continue
                # Pieces that do not nest in the parts that are there can be cut all at once only.
                for new in {(*held, p), (*held, *(q for q in wanted if q not in used))}:
                    if self.fits(shape[d], new, held):
                        after = Layout(_with(dims, d, new), layout.partial, layout.combine)
                        yield Step("slice", new[len(held) :], after, 0.0, d)

    def _permutes(self, shape: Shape, layout: Layout, goal: Layout) -> Iterator[Step]:
        """Each device gets the part of another: the pieces of dimensions in another order, or other ones."""
        axes, dims = self.axes, layout.dims
        price = float(prod(axes.local(shape, dims)))
        found: set[Dims] = set()
        for d, (held, wanted) in enumerate(zip(dims, goal.dims, strict=True)):
            kept = tuple(p for p in wanted if p in held)
            found.add(_with(dims, d, kept + tuple(p for p in held if p not in wanted)))
        starts = [
            self._start(wanted, axes.product(held)) for held, wanted in zip(dims, goal.dims, strict=True)
        ]
        if all(start is not None for start in starts):
            found.add(tuple(start for start in starts if start is not None))
        for new in sorted(found - {dims}):
            if not any(p in layout.partial for pieces in new for p in pieces):
                yield Step("collective_permute", (), Layout(new, layout.partial, layout.combine), price)

    def _start(self, wanted: Pieces, count: int) -> Pieces | None:
        """The first of the pieces, which make so many parts."""
        for length in range(len(wanted) + 1):
            if self.axes.product(wanted[:length]) == count:
                return wanted[:length]
        return None


def _with(dims: Dims, d: int, pieces: Pieces) -> Dims:
    return (*dims[:d], pieces, *dims[d + 1 :])
