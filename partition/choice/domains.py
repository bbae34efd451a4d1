"""The places that values may have, numbered by domain, and the prices of reshards between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple, NewType

import numpy as np

from ..layouts import Shape
from ..reshards.planning import Planner
from ..reshards.rates import LayoutId, Rates
from .least.sums import FAR, Floats, Integers

DomainId = NewType("DomainId", int)  # of a domain in ``Domains``


class Placement(NamedTuple):
    """The place of a value: its home, and the layout of a copy that its users share, or the home again."""

    home: LayoutId
    copy: LayoutId


@dataclass(frozen=True)
class Domain:
    """The places that a value may have."""

    places: tuple[Placement, ...]

    @cached_property
    def homes(self) -> tuple[LayoutId, ...]:
        """The distinct homes."""
        return tuple(dict.fromkeys(place.home for place in self.places))

    @cached_property
    def layouts(self) -> tuple[LayoutId, ...]:
        """All layouts, the homes first."""
        return tuple(dict.fromkeys((*self.homes, *(place.copy for place in self.places))))

    @cached_property
    def among(self) -> tuple[Integers, Integers]:
        """For each place the index of its home and of its copy in the layouts."""
        number = {layout: n for n, layout in enumerate(self.layouts)}
        homes = np.asarray([number[place.home] for place in self.places], np.int64)
        return homes, np.asarray([number[place.copy] for place in self.places], np.int64)


class Domains:
    """Numbered lists of places; equal lists have one number."""

    def __init__(self, planner: Planner) -> None:
        self._rates = rates = Rates.of(planner)
        self.layouts = rates.layouts
        self._planner = planner
        self._numbers: dict[tuple[Placement, ...], DomainId] = {}
        self._listed: list[Domain] = []
        self._tables: dict[tuple[Shape, int, tuple[LayoutId, ...], DomainId, bool, bool], Floats] = {}
        self._bytes: dict[tuple[Shape, int, LayoutId], float] = {}
        self._copying: dict[tuple[Shape, int, DomainId], Floats] = {}
        self._held: dict[tuple[Shape, int, DomainId], tuple[Floats, Floats]] = {}

    def __getitem__(self, number: DomainId) -> Domain:
        """The domain with a number."""
        return self._listed[number]

    def number(self, places: Sequence[Placement]) -> DomainId:
        """The number of the domain with these places."""
        key = tuple(places)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = DomainId(len(self._listed))
            self._listed.append(Domain(key))
        return number

    def of_homes(self, homes: Sequence[LayoutId]) -> DomainId:
        """The number of the domain with these homes, without copies."""
        return self.number([Placement(home, home) for home in homes])

    def table(
        self,
        shape: Shape,
        width: int,
        layouts: tuple[LayoutId, ...],
        number: DomainId,
        *,
        result: bool = False,
        at_home: bool = False,
    ) -> Floats:
        """The cost of each place of a domain for an op, layout by place. The op needs a value in each of some
        layouts, or gives it as a ``result``; ``width`` are the bytes of its elements. Taken ``at_home`` it
        has no copy."""
        key = shape, width, layouts, number, result, at_home
        if key not in self._tables:
            domain = self._listed[number]
            homes, copies = domain.among
            alone, between = result or at_home, self._between
            others = domain.homes if alone else domain.layouts
            if result:
                each = between(shape, width, layouts, others)
            else:
                each = between(shape, width, others, layouts).T
            each = np.minimum(each, FAR)
            table = each[:, homes]
            self._tables[key] = table if alone else np.minimum(table, each[:, copies])
        return self._tables[key]

    def _between(
        self, shape: Shape, width: int, starts: tuple[LayoutId, ...], goals: tuple[LayoutId, ...]
    ) -> Floats:
        return self._rates.between(shape, width, starts, goals, self._planner.prices.once)

    def sent(self, shape: Shape, homes: tuple[LayoutId, ...], copies: tuple[LayoutId, ...]) -> Floats:
        """The number of collectives that make each copy from each home, by the reshard that sends least."""
        return self._rates.sends(shape, homes, copies)

    def besides(self, shape: Shape, width: int, layouts: tuple[LayoutId, ...], number: DomainId) -> Floats:
        """The extra memory of a device in bytes for an op that needs or gives a value, layout by place: in
        each of some layouts, if the value has each place of a domain."""
        places = np.asarray(self._listed[number].places)
        there = (np.asarray(layouts)[:, None, None] == places).any(axis=2)
        held = np.asarray([self.held_in(shape, width, layout) for layout in layouts])
        return np.where(there, 0.0, held[:, None])

    def held_in(self, shape: Shape, width: int, layout: LayoutId) -> float:
        """The bytes that a device holds of a value in the layout with a number."""
        key = shape, width, layout
        if key not in self._bytes:
            self._bytes[key] = float(prod(self._planner.axes.local(shape, self.layouts[layout].dims)) * width)
        return self._bytes[key]

    def copying(self, shape: Shape, width: int, number: DomainId) -> Floats:
        """The cost of making the copy of each place from its home; zero without a copy."""
        key = shape, width, number
        if key not in self._copying:
            domain = self._listed[number]
            each = self._between(shape, width, domain.homes, domain.layouts)
            self._copying[key] = each[domain.among]
        return self._copying[key]

    def held(self, shape: Shape, width: int, number: DomainId) -> tuple[Floats, Floats]:
        """The bytes that a device holds of a value in each place of a domain: of its home and its copy."""
        key = shape, width, number
        if key not in self._held:
            domain = self._listed[number]
            homes, copies = domain.among
            each = np.asarray([self.held_in(shape, width, n) for n in domain.layouts])
            self._held[key] = each[homes], np.where(copies != homes, each[copies], 0.0)
        return self._held[key]
