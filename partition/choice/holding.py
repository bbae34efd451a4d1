"""An estimate of the memory that a choice of layouts takes, without writing the program. Mostly it is no more
than propagation's layouts take."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod

import numpy as np

from .candidates import Candidates
from .costs import Position
from .least.sums import Floats, Integers


class Holding:
    """The live ranges of values, from the op that makes them to their last user, in the order of the program.
    Values without an op are live throughout. ``positions`` are those of ``Costs``, by row."""

    def __init__(self, candidates: Candidates, positions: Sequence[Position | None]) -> None:
        self._candidates, self._variables, self._positions = candidates, candidates.variables, positions

    def most(self, best: Integers, taken: Sequence[Sequence[int]]) -> float:
        """An estimate of the peak memory of a device in bytes. Variables have the places in ``best``, and the
        rows of each term are computed in the ways ``taken``."""
        begin, end = self._lives
        size, beside = self._sizes(best)[self._variables.of], self._beside(best, taken)
        rows = len(self._variables.numbers)
        if not rows:
            return 0.0
        more = np.bincount(begin, size, rows + 1) - np.bincount(end + 1, size, rows + 1)
        return self._given + float((np.cumsum(more)[:rows] + beside[self._variables.row_of]).max())

    @cached_property
    def _given(self) -> float:
        """The bytes of values without an op that have one user: they keep propagation's layout."""
        variables, axes, total = self._variables, self._candidates.planner.axes, 0.0
        for spot, slots, often in zip(variables.spots, variables.slots, variables.often, strict=True):
            for t, (shape, width) in enumerate(
                zip(spot.knowledge.shapes, spot.knowledge.widths, strict=True)
            ):
                if shape and slots[t] < 0 and t not in spot.free:
                    total += often * prod(axes.local(shape, spot.held[t].dims)) * width
        return total

    @cached_property
    def _lives(self) -> tuple[Integers, Integers]:
        """The first and the last op of the live range of each value."""
        numbers = self._variables.numbers
        rows = np.repeat(np.arange(len(numbers)), [len(each) for each in numbers])
        every = np.asarray([n for each in numbers for n in each], np.int64)
        rows, every = rows[every >= 0], every[every >= 0]
        begin = np.full(len(self._variables.of), len(numbers))
        end = np.zeros(len(self._variables.of), np.int64)
        np.minimum.at(begin, every, rows)
        np.maximum.at(end, every, rows)
        computed = np.asarray([kind.computed for kind in self._variables.kinds], bool)[self._variables.of]
        return np.where(computed, begin, 0), np.where(computed, end, len(numbers) - 1)

    def _sizes(self, best: Integers) -> Floats:
        """The bytes of each variable."""
        domains, of, sizes = self._candidates.domains, self._candidates.domain_of, list[float]()
        for kind, number, place in zip(self._variables.kinds, of, best.tolist(), strict=True):
            sizes.append(domains.held_in(kind.shape, kind.width, domains[number].places[place].home))
        return np.asarray(sizes)

    def _beside(self, best: Integers, taken: Sequence[Sequence[int]]) -> Floats:
        """The bytes of slots that each row needs, or gives, in another layout than the value's."""
        candidates, beside = self._candidates, np.zeros(len(self._positions))
        for row, at in zip(self._variables.rows, self._positions, strict=True):
            if at is None:
                continue
            spot = self._variables.spots[row]
            way = candidates.ways_of(row)[taken[at.terms][at.row]]
            slots = zip(self._variables.slots[row], candidates.layouts_by(row, way), strict=True)
            for t, (variable, layout) in enumerate(slots):
                if variable >= 0 and (shape := spot.knowledge.shapes[t]):
                    domain = candidates.domains[candidates.domain_of[variable]]
                    if layout != domain.places[best[variable]].home:
                        beside[row] += candidates.domains.held_in(shape, spot.knowledge.widths[t], layout)
        return beside
