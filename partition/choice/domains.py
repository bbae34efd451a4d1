"""The places that values may have, numbered by domain, and the prices of reshards from and into them."""

from __future__ import annotations

from itertools import chain
from math import prod
from typing import Any

import numpy as np

from ..layouts import Layout, Shape
from ..reshards.planning import Planner
from .sums import FAR, Floats, Integers

Place = tuple[Layout, ...]  # of a value: its home, and the layout of a copy that its uses share
Domain = tuple[Place, ...]


class Domains:
    """Lists of places: equal ones have one number."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._numbers: dict[Domain, int] = {}
        self._listed: list[Domain] = []
        self._parts: list[tuple[list[int], Integers, Integers]] = []
        self._layouts: dict[Layout, int] = {}  # numbered as they come: to look up what is nested takes long
        self._layout: list[Layout] = []
        self._reshards: dict[Any, dict[int, tuple[float, float]]] = {}
        self._prices: dict[Any, Floats] = {}
        self._copying: dict[Any, Floats] = {}
        self._held: dict[Any, tuple[Floats, Floats]] = {}

    def __getitem__(self, number: int) -> Domain:
        """The domain of a number."""
        return self._listed[number]

    def number(self, domain: Domain) -> int:
        """The number of a domain."""
        number = self._numbers.setdefault(domain, len(self._listed))
        if number == len(self._listed):
            self._listed.append(domain)
            self._parts.append(self._parts_of(domain))
        return number

    def layout(self, number: int) -> Layout:
        """The layout of a number."""
        return self._layout[number]

    def homes(self, number: int) -> list[int]:
        """The homes of a domain by number, each once."""
        layouts, homes, _ = self._parts[number]
        return layouts[: homes.max() + 1]

    def prices(
        self, shape: Shape, width: int, layout: Layout, number: int, result: bool, *, at_home: bool = False
    ) -> Floats:
        """What each place of a domain costs an op that needs a value of this shape, with elements of so many
        bytes, in a layout, or gives it as a ``result``; taken ``at_home`` it has no copy."""
        key = shape, width, layout, number, result, at_home
        if key not in self._prices:
            layouts, homes, copies = self._parts[number]
            if result:
                self._prices[key] = self._resharded(shape, width, layout, result, self.homes(number))[homes]
            else:
                each = self._resharded(shape, width, layout, result, layouts)
                self._prices[key] = each[homes] if at_home else np.minimum(each[homes], each[copies])
        return self._prices[key]

    def _resharded(self, shape: Shape, width: int, layout: Layout, result: bool, to: list[int]) -> Floats:
        """The prices of reshards from a ``result`` in a layout to others, or into the layout from these."""
        least, times = self._planner.like(shape)
        known = self._reshards.setdefault((least, layout, result), {})
        for n in to:
            if n not in known:
                ends = (layout, self._layout[n]) if result else (self._layout[n], layout)
                known[n] = self._rates(least, *ends)
        once, byte = np.asarray([known[n] for n in to]).T
        found: Floats = once + byte * (width * times)
        return found

    def _rates(self, shape: Shape, start: Layout, goal: Layout) -> tuple[float, float]:
        """The price of a reshard: to begin, and for each byte of an element; FAR where there is none."""
        if goal.partial and start.partial and start.combine != goal.combine:
            return FAR, 0.0
        return self._planner.rates(shape, start, goal)

    def copying(self, shape: Shape, width: int, number: int) -> Floats:
        """What it costs to make the copy of each place of a domain of its home; nothing where there is
        none."""
        key = shape, width, number
        if key not in self._copying:
            layouts, *places = self._parts[number]
            found = [
                self._resharded(shape, width, self._layout[layouts[copy]], False, [layouts[home]])[0]
                if home != copy
                else 0.0
                for home, copy in zip(*places, strict=True)
            ]
            self._copying[key] = np.asarray(found)
        return self._copying[key]

    def held(self, shape: Shape, width: int, number: int) -> tuple[Floats, Floats]:
        """The bytes that a device holds of a value with each place of a domain: of its home, and of its
        copy."""
        key = shape, width, number
        if key not in self._held:
            layouts, homes, copies = self._parts[number]
            local = [prod(self._planner.axes.local(shape, self._layout[n].dims)) for n in layouts]
            each = np.asarray(local, dtype=np.float64) * width
            self._held[key] = each[homes], np.where(copies != homes, each[copies], 0.0)
        return self._held[key]

    def _parts_of(self, domain: Domain) -> tuple[list[int], Integers, Integers]:
        """The layouts of a domain by number, homes first; and for each of its places which of them is the
        home, and which the copy, or the home again."""
        places: dict[Layout, int] = {}
        for layout in chain((place[0] for place in domain), (place[-1] for place in domain)):
            places.setdefault(layout, len(places))
        homes, copies = (np.asarray([places[place[n]] for place in domain], dtype=np.int64) for n in (0, -1))
        return [self._numbered(layout) for layout in places], homes, copies

    def _numbered(self, layout: Layout) -> int:
        number = self._layouts.setdefault(layout, len(self._layout))
        if number == len(self._layout):
            self._layout.append(layout)
        return number
