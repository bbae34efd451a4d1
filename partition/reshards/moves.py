"""The steps from a layout: the result and the price of each collective, or slice.

The price of a step is the number of elements that a device sends in the ring model. For a group of n devices
it is (n - 1) / n of the result of an all-gather, and twice that for an all-reduce. It is (n - 1) / n of a
part for an all-to-all, and a whole part for a collective-permute. Slices of the own part are free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, permutations
from math import prod
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..layouts import Axes, Dims, Layout, PieceId, Pieces, Shape

_ORDERED = 3  # pieces whose orders are all tried when several are scattered at once
_CHANGED = 3  # dimensions up to which any that change are tried together
_MANY = 6  # pieces of a sum up to which all subsets are tried first

Places = npt.NDArray[np.int64]
Amount = Places | int  # of each device; one number if all are equal
StepKind = Literal[
    "slice", "mask", "all_gather", "all_reduce", "reduce_scatter", "all_to_all", "collective_permute"
]
Sends = tuple[StepKind, Pieces, float]  # the pieces along which devices send, and the elements that one sends


@dataclass(frozen=True)
class Step:
    """A step of a plan. ``dim`` is the dimension that is gathered, sliced or scattered. An exchange splits
    dimension ``to``.

    ``price`` is in elements that a device sends. A permutation has no pieces: it moves parts ``along`` some.
    """

    kind: StepKind
    pieces: Pieces
    after: Layout
    price: float
    dim: int = -1
    to: int = -1
    along: Pieces = ()

    @property
    def sends_along(self) -> Pieces:
        """The pieces along which devices send."""
        return self.along or self.pieces


@dataclass(eq=False)
class Route:
    """Steps from one layout to another: their total ``price``, in elements that a device sends, and the
    number of collectives among them (``sends``). The steps, and what they send, are made on demand.
    ``at_once``: a route of one collective, if this one sends less in several."""

    price: float
    sends: int
    make: Callable[[], tuple[Step, ...]]
    at_once: Route | None = None
    make_sent: Callable[[], tuple[Sends, ...]] | None = None

    @classmethod
    def of(cls, steps: Iterable[Step]) -> Route:
        """The route of some steps."""
        every = tuple(steps)
        return cls(sum(step.price for step in every), sum(step.price > 0 for step in every), lambda: every)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps, in order."""
        return self.make()

    @cached_property
    def sent(self) -> tuple[Sends, ...]:
        """The data that its steps send, in order."""
        if self.make_sent is not None:
            return self.make_sent()
        return tuple((step.kind, step.sends_along, step.price) for step in self.steps if step.price)


class Moves:
    """The steps between layouts made of some pieces of the axes."""

    def __init__(self, axes: Axes, pieces: Sequence[PieceId]) -> None:
        self.axes = axes
        self._splits: dict[tuple[int, ...], list[Dims]] = {}
        meshes = {piece.mesh for piece in axes.pieces}
        self._of_mesh = {mesh: tuple(p for p in pieces if axes.every[p].mesh == mesh) for mesh in meshes}
        self.several = len(self._of_mesh) > 1  # meshes that differ
        self.most = max(map(len, self._of_mesh.values()), default=0)  # pieces of one
        self._gathered: dict[tuple[Shape, Layout], tuple[Step, ...]] = {}  # steps for any goal
        self._overlaps: dict[tuple[int, Pieces, Pieces], tuple[Amount, Amount]] = {}

    def steps(self, shape: Shape, layout: Layout, goal: Layout) -> Iterator[Step]:
        """The steps from a layout towards a goal. They are the same for all goals with the same partial
        pieces on one mesh."""
        yield from self._reductions(shape, layout, goal)
        key = shape, layout
        if key not in self._gathered:
            self._gathered[key] = tuple(self._gathers(shape, layout))
        yield from self._gathered[key]
        pieces, used = self.pieces_of(self.mesh_of(layout, goal)), set(layout.pieces)
        for d, held in enumerate(layout.dims):
            yield from self._cuts(shape, layout, d, ((*held, p) for p in pieces if p not in used))

    def cuts_at_once(self, shape: Shape, layout: Layout, goal: Layout) -> Iterator[Step]:
        """Slices by several pieces of a goal, if these are not nested. Without padding they can be sliced one
        by one."""
        for d, (held, wanted) in enumerate(zip(layout.dims, goal.dims, strict=True)):
            if len(wanted) > 1 and shape[d] % self.axes.product(wanted):
                used = set(layout.pieces)
                new = *held, *(q for q in wanted if q not in used)
                if len(new) > len(held) + 1:
                    yield from self._cuts(shape, layout, d, [new])

    def fits(self, size: int, pieces: Pieces, fewer: Pieces) -> bool:
        """Whether the parts of a dimension lie within those that fewer pieces make, or the dimension is
        whole."""
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
        lengths = range(len(loose), 0, -1) if len(loose) <= _MANY else (len(loose), 1)
        for length in lengths:
            for some in combinations(loose, length):
                rest = tuple(p for p in layout.partial if p not in some)
                combine = layout.combine if rest else ""
                n = axes.product(some)
                price = 2 * size * (n - 1) / n
                yield Step("all_reduce", some, Layout(dims, rest, combine), price)
                for d, held in enumerate(dims):
                    for order in permutations(some) if length <= _ORDERED else (some,):
                        new = held + order
                        if shape[d] >= axes.product(new) and self.fits(shape[d], new, held):
                            after = Layout(with_pieces(dims, d, new), rest, combine)
                            scattered = prod(axes.local(shape, after.dims))
                            yield Step("reduce_scatter", order, after, scattered * (n - 1), d)

    def _gathers(self, shape: Shape, layout: Layout) -> Iterator[Step]:
        """All-gathers, and all-to-alls: the pieces that one dimension loses split another."""
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

    def _cuts(self, shape: Shape, layout: Layout, d: int, ways: Iterable[Pieces]) -> Iterator[Step]:
        """The slices of a dimension that lead to one of these splits."""
        held = layout.dims[d]
        for new in ways:
            if self.fits(shape[d], new, held):
                after = Layout(with_pieces(layout.dims, d, new), layout.partial, layout.combine)
                yield Step("slice", new[len(held) :], after, 0.0, d)

    def overlap(self, size: int, held: Pieces, new: Pieces) -> tuple[Amount, Amount]:
        """The part of a dimension that each device needs, and how much of it the device has."""
        key = size, held, new
        if key not in self._overlaps:
            (low, high), (first, last) = self._range(size, held), self._range(size, new)
            shared = np.maximum(np.minimum(high, last) - np.maximum(low, first), 0)
            self._overlaps[key] = _one_if_same(last - first), _one_if_same(shared)
        return self._overlaps[key]

    def _range(self, size: int, pieces: Pieces) -> tuple[Places, Places]:
        """The begin and end of each device's part of a dimension."""
        tile = self.axes.tile(size, pieces)
        low = np.minimum(self.axes.index(pieces) * tile, size)
        return low, np.minimum(low + tile, size)

    def mesh_of(self, *layouts: Layout) -> int:
        """The mesh of layouts; if all are whole, the mesh with the most devices."""
        if self.several:
            pieces = (p for layout in layouts for p in layout.pieces)
            return next((self.axes.every[p].mesh for p in pieces), self.axes.main)
        return self.axes.main

    @property
    def meshes(self) -> Iterable[Pieces]:
        """The pieces of each mesh."""
        return self._of_mesh.values()

    def pieces_of(self, mesh: int) -> Pieces:
        """The pieces of a mesh."""
        return self._of_mesh.get(mesh, ())

    def permutes(self, shape: Shape, layout: Layout, goal: Layout | None = None) -> Iterator[Step]:
        """Each device gets the part of another one: dimensions in the same number of parts, on any pieces, or
        on those of the goal."""
        axes, dims = self.axes, layout.dims
        price = float(prod(axes.local(shape, dims)))
        usable = tuple(p for p in self.pieces_of(self.mesh_of(layout)) if p not in layout.partial)
        if goal is None:
            arrangements: Iterable[Dims] = self.arranged(usable, tuple(map(axes.product, dims)))
        else:
            arrangements = self._towards(usable, dims, goal.dims)
        for new in arrangements:
            after = Layout(new, layout.partial, layout.combine)
            yield Step("collective_permute", (), after, price, along=changed(dims, new))

    def _towards(self, usable: Pieces, dims: Dims, wanted: Dims) -> Iterable[Dims]:
        """Dimensions in the same number of parts, some beginning with the goal's pieces, the others with
        their own."""
        changed = [d for d, held in enumerate(dims) if held and held != wanted[d]]
        lengths = range(1, len(changed) + 1) if len(changed) <= _CHANGED else (1, len(changed))
        some = chain.from_iterable(combinations(changed, length) for length in lengths)
        arrangements = dict.fromkeys(self._begun(usable, dims, wanted, each) for each in some)
        return [new for new in arrangements if new and new != dims]

    def _begun(self, usable: Pieces, dims: Dims, wanted: Dims, some: Sequence[int]) -> Dims:
        """Dimensions in the same number of parts. ``some`` begin with the goal's pieces, the others with
        their own, followed by the first pieces that fit. None if they cannot be filled up."""
        counts = tuple(map(self.axes.product, dims))
        begins, used = dict[int, Pieces](), set[PieceId]()
        for d in sorted(range(len(dims)), key=lambda d: d not in some):
            first: Pieces = ()
            for p in wanted[d] if d in some else dims[d]:
                if p in used or p not in usable or counts[d] % self.axes.product((*first, p)):
                    break
                first = (*first, p)
            begins[d] = first
            used.update(first)
        for d, first in begins.items():
            left = tuple(p for p in usable if p not in used)
            more = next(self._making(left, counts[d] // self.axes.product(first)), None)
            if more is None:
                return ()
            begins[d] = (*first, *more)
            used.update(more)
        return tuple([begins[d] for d in range(len(dims))])

    def arranged(self, usable: Pieces, counts: tuple[int, ...]) -> list[Dims]:
        """All ways to split dimensions into these numbers of parts."""
        if not counts:
            return [()]
        key = (*usable, -1, *counts)
        if key not in self._splits:
            splits: list[Dims] = []
            for some in self._making(usable, counts[0]):
                rest = tuple(p for p in usable if p not in some)
                splits += [(some, *more) for more in self.arranged(rest, counts[1:])]
            self._splits[key] = splits
        return self._splits[key]

    def _making(self, usable: Pieces, count: int) -> Iterator[Pieces]:
        """The lists of pieces that make this number of parts."""
        if count == 1:
            yield ()
        for p in usable:
            if self.axes.sizes[p] > 1 and count % self.axes.sizes[p] == 0:
                rest = tuple(q for q in usable if q != p)
                yield from ((p, *more) for more in self._making(rest, count // self.axes.sizes[p]))


def _one_if_same(places: Places) -> Amount:
    return int(places[0]) if (places == places[0]).all() else places


def straight(after: Dims, dims: Dims, wanted: Dims) -> bool:
    """Whether a step to other dimensions brings pieces to their goal."""
    for new, held, there in zip(after, dims, wanted, strict=True):
        if new != held and not {*held, *there}.issuperset(new):
            return False
    return True


def changed(dims: Dims, after: Dims) -> Pieces:
    """The pieces of the dimensions that differ."""
    pairs = zip(dims, after, strict=True)
    return tuple(sorted({p for held, new in pairs if held != new for p in (*held, *new)}))


def with_pieces(dims: Dims, d: int, pieces: Pieces) -> Dims:
    """Dimensions with other pieces for one of them."""
    return (*dims[:d], pieces, *dims[d + 1 :])
