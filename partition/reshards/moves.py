"""The steps that lead on from a layout: what a collective, or slicing, makes of it, and its price.

The price of a step is what a device sends by the ring model, counted in elements: (n - 1) / n of the result
of an all-gather, twice that of an all-reduce, (n - 1) / n of a part in an all-to-all, a whole part in a
collective-permute. Slicing out of what a device has is free.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import prod
from typing import Any, Literal

from ..layouts import Axes, Dims, Layout, Pieces, Shape

Kind = Literal[
    "slice", "mask", "all_gather", "all_reduce", "reduce_scatter", "all_to_all", "collective_permute"
]


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


class Moves:
    """The steps between layouts on some axes."""

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self._splits: dict[tuple[int, ...], list[Dims]] = {}
        self._of_mesh: dict[int, list[int]] = {}
        self._gathered: dict[tuple[Shape, Layout], tuple[Step, ...]] = {}  # steps that no goal matters to
        self._permuted: dict[tuple[Shape, Layout], tuple[Step, ...]] = {}
        self._steps: dict[tuple[Any, ...], tuple[Step, ...]] = {}

    def steps(self, shape: Shape, layout: Layout, goal: Layout, *, direct: bool = False) -> Iterable[Step]:
        """The steps that can be taken from a layout on the way to a goal; ``direct``: those that bring
        pieces to where the goal has them."""
        # Where nothing is padded, what pieces the goal cuts at once can be cut one by one.
        even = all(size % self.axes.count == 0 for size in shape)
        pieces = self.same_mesh(layout, goal)
        if direct or not even:
            steps = self._all_steps(shape, layout, goal, pieces)
            return [step for step in steps if not direct or _straight(step, layout, goal)]
        key = shape, layout, goal.partial, goal.combine, pieces[0] if pieces else -1
        if key not in self._steps:
            self._steps[key] = tuple(self._all_steps(shape, layout, goal._replace(dims=layout.dims), pieces))
        return self._steps[key]

    def _all_steps(self, shape: Shape, layout: Layout, goal: Layout, pieces: Sequence[int]) -> Iterator[Step]:
        """The steps on the way to a goal, on the mesh of these ``pieces``."""
        yield from self._reductions(shape, layout, goal)
        key = shape, layout
        if key not in self._gathered:
            self._gathered[key] = tuple(self._gathers(shape, layout))
            self._permuted[key] = tuple(self._permutes(shape, layout))
        yield from self._gathered[key]
        yield from self._cuts(shape, layout, goal, pieces)
        yield from self._permuted[key]
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
                        new = held + order
                        if shape[d] >= axes.product(new) and self.fits(shape[d], new, held):
                            after = Layout(with_pieces(dims, d, new), rest, combine)
                            scattered = prod(axes.local(shape, after.dims))
                            yield Step("reduce_scatter", order, after, scattered * (n - 1), d)

    def _gathers(self, shape: Shape, layout: Layout) -> Iterator[Step]:
        """Gathers, and exchanges: what one dimension gathers splits another."""
        axes, dims = self.axes, layout.dims
        size = prod(axes.local(shape, dims))
        for d, held in enumerate(dims):
            for keep in range(len(held)):
                kept, moved = held[:keep], held[keep:]
                if not self.fits(shape[d], held, kept):
                    continue
                n, gathered = axes.product(moved), with_pieces(dims, d, kept)
                price = size * (n - 1)
                yield Step(
                    "all_gather", moved, Layout(gathered, layout.partial, layout.combine), float(price), d
                )
                for other, there in enumerate(dims):
                    new = there + moved
                    if other == d or shape[other] < axes.product(new):
                        continue
                    if not self.fits(shape[other], new, there):
                        continue
                    after = Layout(with_pieces(gathered, other, new), layout.partial, layout.combine)
                    part = prod(axes.local(shape, with_pieces(dims, other, new))) * n
                    yield Step("all_to_all", moved, after, part * (n - 1) / n, d, other)

    def _cuts(self, shape: Shape, layout: Layout, goal: Layout, pieces: Sequence[int]) -> Iterator[Step]:
        used, dims = set(layout.pieces), layout.dims
        for d, (held, wanted) in enumerate(zip(dims, goal.dims, strict=True)):
            # Pieces that do not nest in the parts that are there can be cut all at once only.
            together = (*held, *(q for q in wanted if q not in used))
            for new in [together, *((*held, p) for p in pieces if p not in used)]:
                if len(new) > len(held) and self.fits(shape[d], new, held):
                    after = Layout(with_pieces(dims, d, new), layout.partial, layout.combine)
                    yield Step("slice", new[len(held) :], after, 0.0, d)

    def same_mesh(self, layout: Layout, goal: Layout) -> list[int]:
        """The pieces of the mesh of two layouts."""
        pieces = self.axes.pieces
        mesh = next((pieces[p].mesh for p in (*layout.pieces, *goal.pieces)), self.axes.main)
        if mesh not in self._of_mesh:
            self._of_mesh[mesh] = [p for p, piece in enumerate(pieces) if piece.mesh == mesh]
        return self._of_mesh[mesh]

    def _permutes(self, shape: Shape, layout: Layout) -> Iterator[Step]:
        """Each device gets the part of another: dimensions in as many parts, on other pieces."""
        axes, dims = self.axes, layout.dims
        price = float(prod(axes.local(shape, dims)))
        usable = [p for p in self.same_mesh(layout, layout) if p not in layout.partial]
        for new in self.arranged(tuple(usable), tuple(axes.product(held) for held in dims)):
            if new != dims:
                yield Step("collective_permute", (), Layout(new, layout.partial, layout.combine), price)

    def arranged(self, usable: Pieces, counts: tuple[int, ...]) -> list[Dims]:
        """All ways to split dimensions into so many parts."""
        if not counts:
            return [()]
        key = (*usable, -1, *counts)
        if key not in self._splits:
            found: list[Dims] = []
            for some in self._making(usable, counts[0]):
                rest = tuple(p for p in usable if p not in some)
                found += [(some, *more) for more in self.arranged(rest, counts[1:])]
            self._splits[key] = found
        return self._splits[key]

    def _making(self, usable: Pieces, count: int) -> Iterator[Pieces]:
        """The lists of pieces that make so many parts."""
        if count == 1:
            yield ()
        for p in usable:
            if self.axes.sizes[p] > 1 and count % self.axes.sizes[p] == 0:
                rest = tuple(q for q in usable if q != p)
                yield from ((p, *more) for more in self._making(rest, count // self.axes.sizes[p]))


def _straight(step: Step, layout: Layout, goal: Layout) -> bool:
    """Whether a step brings pieces to where the goal has them."""
    ends = zip(step.after.dims, layout.dims, goal.dims, strict=True)
    return all(new == held or set(new) <= {*held, *wanted} for new, held, wanted in ends)


def with_pieces(dims: Dims, d: int, pieces: Pieces) -> Dims:
    """Dimensions with other pieces for one of them."""
    return (*dims[:d], pieces, *dims[d + 1 :])
