"""The prices of reshards between numbered layouts, as tables, for a choice among many layouts.

Equivalent reshards cost the same: with dimensions in another order, or along other pieces of the same kind.
So they are priced in a normal form (``_Frame``), and the planner is asked for only a few.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import NamedTuple, NewType

import numpy as np
import numpy.typing as npt

from ..layouts import Layout, Pieces, Shape
from .planning import Planner, Rate

Floats = npt.NDArray[np.float64]
LayoutId = NewType("LayoutId", int)  # of a layout in ``Layouts``


class Layouts:
    """Numbered layouts, because hashing nested values is slow."""

    def __init__(self) -> None:
        self._numbers: dict[Layout, LayoutId] = {}
        self._listed: list[Layout] = []
        self._complete: list[LayoutId] = []

    def __getitem__(self, number: LayoutId) -> Layout:
        """The layout with a number."""
        return self._listed[number]

    def number(self, layout: Layout) -> LayoutId:
        """The number of a layout."""
        number = self._numbers.get(layout)
        if number is None:
            number = self._numbers[layout] = LayoutId(len(self._listed))
            self._listed.append(layout)
            self._complete.append(number)
            if layout.partial:
                self._complete[number] = self.number(layout.complete)
        return number

    def complete(self, number: LayoutId) -> LayoutId:
        """The layout after partial values are combined."""
        return self._complete[number]


class _Frame(NamedTuple):
    """Another view of tensors: the order of their dimensions, and the names of pieces."""

    order: tuple[int, ...]
    names: Pieces


class _RateTable:
    """The prices of reshards of tensors of one shape, start by goal: the fixed part, the part for each byte
    of an element, and the number of collectives; of the route that sends least, and of the one with the
    fewest collectives. NaN if not asked yet."""

    def __init__(self) -> None:
        self._places: dict[LayoutId, int] = {}
        self.rates = np.full((6, 0, 0), nan)

    def places(self, layouts: Sequence[LayoutId]) -> list[int]:
        """Where the prices of layouts are."""
        place_of = self._places
        places = [place_of.setdefault(layout, len(place_of)) for layout in layouts]
        had = self.rates.shape[1]
        if len(place_of) > had:
            room = max(len(place_of), 2 * had)
            rates = np.full((6, room, room), nan)
            rates[:, :had, :had] = self.rates
            self.rates = rates
        return places


class Rates:
    """Prices reshards, and remembers the prices."""

    def __init__(self, planner: Planner) -> None:
        self.layouts = Layouts()
        self._planner = planner
        self._like: dict[Shape, tuple[Shape, float]] = {}
        self._tables: dict[Shape, _RateTable] = {}
        self._known: dict[tuple[Shape, LayoutId, LayoutId], Rate] = {}
        self._frames: dict[tuple[Shape, LayoutId], tuple[Shape, _Frame]] = {}
        self._seen: dict[_Frame, dict[LayoutId, LayoutId]] = {}  # layouts in frames

    @classmethod
    def of(cls, planner: Planner) -> Rates:
        """The prices that are kept with a planner's other decisions."""
        rates: Rates | None = planner.kept.rates.get(planner.combined)
        if rates is None:
            rates = planner.kept.rates[planner.combined] = cls(planner)
        return rates

    def between(
        self, shape: Shape, width: int, starts: Sequence[LayoutId], goals: Sequence[LayoutId], each: float
    ) -> Floats:
        """The prices of reshards of a tensor with elements of this many bytes, start by goal, with a fixed
        cost of ``each`` collective. Infinity if there is none."""
        rates, times = self._between(shape, starts, goals)
        sending, quick = (
            once + byte * (width * times) + each * sends for once, byte, sends in (rates[:3], rates[3:])
        )
        least: Floats = np.minimum(sending, quick)
        return least

    def sends(self, shape: Shape, starts: Sequence[LayoutId], goals: Sequence[LayoutId]) -> Floats:
        """The number of collectives of a reshard, start by goal, by the route that sends least."""
        rates, _ = self._between(shape, starts, goals)
        return np.where(rates[0] < inf, rates[2], inf)

    def _between(
        self, shape: Shape, starts: Sequence[LayoutId], goals: Sequence[LayoutId]
    ) -> tuple[Floats, float]:
        """The rates of reshards of a tensor, start by goal, and the factor for each of its bytes."""
        if shape not in self._like:
            self._like[shape] = self._planner.like(shape)
        least, times = self._like[shape]
        table = self._tables.setdefault(least, _RateTable())
        first, second = table.places(starts), table.places(goals)
        ends = slice(None), np.asarray(first)[:, None], np.asarray(second)[None]
        rates = table.rates[ends]
        unknown = np.isnan(rates[0])
        if unknown.any():
            rows, columns = np.nonzero(unknown)
            pairs = zip(rows.tolist(), columns.tolist(), strict=True)
            rates[:, rows, columns] = np.transpose([self._rate(least, starts[r], goals[c]) for r, c in pairs])
            table.rates[ends] = rates
        return rates, times

    def _rate(self, shape: Shape, start: LayoutId, goal: LayoutId) -> Rate:
        """The price of a reshard, as ``Planner.rates`` gives it."""
        held, wanted = self.layouts[start], self.layouts[goal]
        if wanted.partial:
            if held.partial and held.combine != wanted.combine:
                return inf, 0.0, 0, inf, 0.0, 0
            # Turning equal data into a partial sum sends nothing, and comes last.
            rest = tuple(p for p in wanted.partial if p in held.partial)
            goal = self.layouts.number(Layout(wanted.dims, rest, wanted.combine if rest else ""))
        shape, frame = self._frame(shape, goal if held.whole else start)
        key = shape, self._in(frame, start), self._in(frame, goal)
        if (rate := self._known.get(key)) is None:
            ends = self.layouts[key[1]], self.layouts[key[2]]
            rate = self._known[key] = self._planner.rates(shape, *ends)
        return rate

    def _frame(self, shape: Shape, number: LayoutId) -> tuple[Shape, _Frame]:
        """The frame of a tensor in a layout: larger dimensions first, and those in more parts, with pieces
        named in order. And the shape in that frame."""
        key = shape, number
        if key not in self._frames:
            dims, sizes = self.layouts[number].dims, self._planner.axes.sizes
            parts = [[sizes[p] for p in held] for held in dims]
            order = sorted(range(len(shape)), key=lambda d: (shape[d], parts[d]), reverse=True)
            used = [p for d in order for p in dims[d]]
            frame = _Frame(tuple(order), self._planner.named([*used, *self.layouts[number].partial]))
            self._frames[key] = tuple([shape[d] for d in order]), frame
        return self._frames[key]

    def _in(self, frame: _Frame, number: LayoutId) -> LayoutId:
        """A layout in a frame."""
        seen = self._seen.setdefault(frame, {})
        if (framed := seen.get(number)) is None:
            layout, (order, names) = self.layouts[number], frame
            dims = tuple([tuple([names[p] for p in layout.dims[d]]) for d in order])
            partial = tuple(sorted([names[p] for p in layout.partial]))
            framed = seen[number] = self.layouts.number(Layout(dims, partial, layout.combine))
        return framed
