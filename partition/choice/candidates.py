"""The layouts that each value may have, and the ways to compute each op with them.

The candidates of a value are the layouts that ways to compute its neighbours would give it. A copy that its
users share is a candidate, too: one reshard then serves all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, product
from typing import Any, NewType

from ..layouts import Dims, Layout, Shape, replicated
from ..reshards.planning import Planner
from ..reshards.rates import LayoutId
from . import tuning
from .choosing import SUM, Chooser, Way
from .domains import Domain, DomainId, Domains, Placement
from .variables import Row, Variables

WayId = NewType("WayId", int)  # of a way to compute an op in ``Candidates``


def _summed_as_whole(layout: Layout) -> bool:
    """Whether each device holds a partial sum as large as the whole. Such a layout is seldom the best, so it
    is the first to go if there are too many."""
    return bool(layout.partial) and not any(layout.dims)


class Candidates:
    """The candidates of variables and rows: a domain for each variable, by number (``domain_of``), and ways
    by number. They start from propagation's layouts."""

    def __init__(self, variables: Variables, chooser: Chooser, planner: Planner) -> None:
        self.variables, self.chooser, self.planner = variables, chooser, planner
        self.domains = Domains(planner)
        self.layouts = layouts = self.domains.layouts
        of_homes = self.domains.of_homes
        self.domain_of = [of_homes([layouts.number(kind.home)]) for kind in variables.kinds]
        # The copies that users of a value ask for.
        self._copies: list[dict[LayoutId, None]] = [{} for _ in variables.kinds]
        kind: dict[Any, int] = {}  # by number, because hashing nested values is slow
        spots = variables.spots
        self.kind_of = [kind.setdefault((s.knowledge, s.held, s.free), len(kind)) for s in spots]
        self._computed_as = [
            kind.setdefault((chooser.computed_as(s.knowledge), s.held), len(kind)) for s in spots
        ]
        self._fixed = [[of_homes([layouts.number(layout)]) for layout in s.held] for s in spots]
        self._way_numbers: dict[Way, WayId] = {}
        self._way: list[Way] = []
        self._lists: dict[int, tuple[Sequence[Way], tuple[WayId, ...]]] = {}  # of ways, and their numbers
        self._ways: dict[Any, tuple[WayId, ...]] = {}
        self._ways_held: dict[Any, tuple[WayId, ...]] = {}
        self._needed: dict[tuple[int, WayId], tuple[LayoutId, ...]] = {}
        self._needed_by: dict[tuple[Any, WayId], tuple[LayoutId, ...]] = {}
        self._wanted: dict[Any, tuple[tuple[int, tuple[LayoutId, ...]], ...]] = {}
        # Among many layouts, ways for a slot in each of them are too many, and the best ones are left out.
        timed = planner.many and planner.prices.collective is not None
        self._anywhere = timed or any(kind.open for kind in variables.kinds)

    def find(self, stop: Callable[[], bool]) -> None:
        """Finds the candidate layouts of values, and copies, until ``stop`` says so."""
        rows = self.variables.rows
        for n, kind in enumerate(self.variables.kinds):
            if kind.open and n not in self.variables.pinned:
                self.domain_of[n] = self._evenly(kind.shape, self.domain_of[n])
        for number in range(tuning.WIDENINGS):
            self._widen(rows if number % 2 == 0 else rows[::-1], stop)
        if not stop():
            self._share()

    def way(self, number: WayId) -> Way:
        """The way with a number."""
        return self._way[number]

    def places(self) -> list[Domain]:
        """The candidates of each variable, propagation's first."""
        return [self.domains[number] for number in self.domain_of]

    def _evenly(self, shape: Shape, domain: DomainId) -> DomainId:
        """The domain of the homes of one and of all layouts with parts of equal size: along each axis of the
        mesh one dimension is divided, or none."""
        axes, homes = self.planner.axes, dict.fromkeys(self.domains[domain].homes)
        names = axes.mesh.axes if axes.mesh else ()
        whole = [axes.of_axes(axes.main, [name]) for name, _ in names]
        for where in product(range(-1, len(shape)), repeat=len(whole)):
            placed = list(zip(whole, where, strict=True))
            dims = tuple(
                [tuple(p for axis, at in placed if at == d for p in axis) for d in range(len(shape))]
            )
            if self._is_even(shape, dims):
                homes[self.layouts.number(Layout(dims))] = None
        return self.domains.of_homes(tuple(homes)[: tuning.OPEN_LAYOUTS])

    def _is_even(self, shape: Shape, dims: Dims) -> bool:
        return all(size % self.planner.axes.product(d) == 0 for size, d in zip(shape, dims, strict=True))

    def _widen(self, numbers: Iterable[Row], stop: Callable[[], bool]) -> None:
        """Adds to the candidates of values the layouts that ways to compute ops would give them."""
        most = tuning.LAYOUTS_IF_SMALL if len(self.variables.spots) <= tuning.SMALL else tuning.LAYOUTS
        most = tuning.OPEN_LAYOUTS if self._anywhere else most
        layouts, pinned = self.layouts, self.variables.pinned
        for number in numbers:
            if stop():
                return
            slots = self.variables.slots[number]
            roles = self.variables.spots[number].knowledge.roles
            for t, wanted in self._wanted_by(number):
                n = slots[t]
                if n < 0:
                    continue
                if roles[t] == "operand" and self.variables.kinds[n].shared:
                    self._copies[n].update(dict.fromkeys(map(layouts.complete, wanted)))
                homes = self.domains[self.domain_of[n]].homes
                room = most - len(homes)
                kind = self.variables.kinds[n]
                if room > 0 and n not in pinned and kind.computed and not kind.open:
                    new = [layout for layout in wanted if layout not in homes]
                    if len(new) > room:
                        new.sort(key=lambda layout: _summed_as_whole(layouts[layout]))
                    if new:
                        self.domain_of[n] = self.domains.of_homes((*homes, *new[:room]))

    def _share(self) -> None:
        """Adds candidates with a copy to those of values: one reshard then serves all users."""
        shared: dict[Any, DomainId] = {}
        for n, (shape, *_) in enumerate(self.variables.kinds):
            if self._copies[n]:
                copies = tuple(self._copies[n])[: tuning.COPIES]
                if self._anywhere:  # few axes: what is gathered serves most uses
                    by_axes = sorted(self._copies[n], key=lambda copy: len([*self.layouts[copy].pieces]))
                    copies = tuple(by_axes[: tuning.OPEN_COPIES])
                key = shape, self.domain_of[n], copies
                if key not in shared:
                    domain = self.domains[self.domain_of[n]]
                    shared[key] = self.domains.number(self._with_copies(shape, domain, copies))
                self.domain_of[n] = shared[key]

    def _with_copies(self, shape: Shape, domain: Domain, copies: tuple[LayoutId, ...]) -> list[Placement]:
        sent = self.domains.sent(shape, domain.homes, copies).tolist()
        others = (
            Placement(home, copy)
            for home, sends in zip(domain.homes, sent, strict=True)
            for copy, something in zip(copies, sends, strict=True)
            if something and home != copy
        )
        return [*domain.places, *others]

    def around(self, number: Row) -> tuple[DomainId, ...]:
        """The domains of the slots of an op."""
        fixed, slots = self._fixed[number], self.variables.slots[number]
        return tuple([self.domain_of[n] if n >= 0 else fixed[t] for t, n in enumerate(slots)])

    def _wanted_by(self, number: Row) -> tuple[tuple[int, tuple[LayoutId, ...]], ...]:
        """For each slot of an op, the layouts that ways to compute it would give that slot."""
        key = self.kind_of[number], self.around(number)
        if key not in self._wanted:
            layouts, shapes = self.layouts, self.variables.spots[number].knowledge.shapes
            by_slot = list[tuple[int, tuple[LayoutId, ...]]]()
            needed = [self.layouts_by(number, way) for way in self.ways_of(number)]
            for t, column in enumerate(zip(*needed, strict=True)):
                if shapes[t]:
                    wanted: dict[LayoutId, None] = {}
                    for layout in dict.fromkeys(column):
                        wanted[layouts.complete(layout)] = None
                        if layouts[layout].combine in ("", SUM):
                            wanted[layout] = None
                    by_slot.append((t, tuple(wanted)))
            self._wanted[key] = tuple(by_slot)
        return self._wanted[key]

    def ways_of(self, number: Row) -> tuple[WayId, ...]:
        """The ways to compute an op with its slots as they are, and with each of them in one of its layouts,
        by number."""
        key = self.kind_of[number], self.around(number)
        if key not in self._ways:
            spot = self.variables.spots[number]
            every = [self._numbered(self.chooser.ways(spot.knowledge, spot.held))]
            if self._anywhere:
                every += self._ways_anywhere(number, key[1])
            for t, domain in enumerate(() if self._anywhere else key[1]):
                every += [self._ways_with(number, t, home) for home in self.domains[domain].homes]
            if spot.sends:
                every.append(self._numbered(self.chooser.ways(spot.knowledge, spot.held, True)))
            different = {id(ways): ways for ways in every}  # many are the same
            numbers = dict.fromkeys(chain.from_iterable(different.values()))
            self._ways[key] = tuple(numbers)[: tuning.OPEN_WAYS if self._anywhere else tuning.WAYS]
        return self._ways[key]

    def _ways_anywhere(self, number: Row, around: tuple[DomainId, ...]) -> Iterator[tuple[WayId, ...]]:
        """The ways to compute an op wherever axes go that no slot has: with its slots whole, and with each
        that it may pass on as a partial sum so."""
        spot, layouts = self.variables.spots[number], self.layouts
        whole = tuple([replicated(len(has.dims)) for has in spot.held])
        helds = {whole: None}
        for t in sorted(spot.knowledge.passing):
            sums = (layouts[home] for home in self.domains[around[t]].homes if layouts[home].partial)
            for partial in dict.fromkeys(each.partial for each in sums if each.combine == SUM):
                summed = Layout(whole[t].dims, partial, SUM)
                helds[*whole[:t], summed, *whole[t + 1 :]] = None
        for t, maps in enumerate(spot.knowledge.maps if spot.knowledge.picks else ()):
            picked = [bool(spot.knowledge.picks.keys() & set(factors)) for factors in maps]
            if spot.knowledge.roles[t] == "operand" and any(picked):
                for home in self.domains[around[t]].homes:
                    pairs = zip(layouts[home].dims, picked, strict=True)
                    there = Layout(tuple([pieces if is_picked else () for pieces, is_picked in pairs]))
                    helds[*whole[:t], there, *whole[t + 1 :]] = None
        for held in helds:
            key = self._computed_as[number], held
            if key not in self._ways_held:
                ways = self.chooser.ways(spot.knowledge, held, True, anywhere=True)
                self._ways_held[key] = self._numbered(ways)
            yield self._ways_held[key]

    def _ways_with(self, number: Row, t: int, home: LayoutId) -> tuple[WayId, ...]:
        """The ways to compute an op with one slot in the layout of a number."""
        key = self._computed_as[number], t, home
        if key not in self._ways_held:
            spot, tiny = self.variables.spots[number], len(self.variables.spots) <= tuning.TINY
            held = *spot.held[:t], self.layouts[home], *spot.held[t + 1 :]
            self._ways_held[key] = self._numbered(self.chooser.ways(spot.knowledge, held, tiny))
        return self._ways_held[key]

    def _numbered(self, ways: Sequence[Way]) -> tuple[WayId, ...]:
        """Numbers of ways."""
        if id(ways) not in self._lists:
            numbers = list[WayId]()
            for way in ways:
                number = self._way_numbers.setdefault(way, WayId(len(self._way)))
                if number == len(self._way):
                    self._way.append(way)
                numbers.append(number)
            self._lists[id(ways)] = ways, tuple(numbers)
        return self._lists[id(ways)][1]

    def layouts_by(self, number: Row, way: WayId) -> tuple[LayoutId, ...]:
        """The layouts of an op's slots in a way to compute it."""
        key = self.kind_of[number], way
        if key not in self._needed:
            spot = self.variables.spots[number]
            alike = (
                None if spot.knowledge.reads else (spot.knowledge, way)
            )  # then the layouts of slots do not matter
            numbers = None if alike is None else self._needed_by.get(alike)
            if numbers is None:
                layouts = self.chooser.layouts(spot.knowledge, spot.held, spot.free, self._way[way])
                numbers = tuple(map(self.layouts.number, layouts))
                if alike is not None:
                    self._needed_by[alike] = numbers
            self._needed[key] = numbers
        return self._needed[key]
