"""Where values live: the layouts of all values between the boundary and constraints, chosen together.

Propagation decides how a value is sharded by its neighbours, one turn at a time. How much a program moves
depends on all values at once: it can be better to lay a value out as none of its neighbours is, if these
follow. Each op has the ways that the rules give it, each way needs its slots in certain layouts, and
resharding a value from its home costs what the planner says, once for all that use it so. The total is made
least by messages between ops and values (``least.py``), which is exact on trees; elsewhere values that hang
together as trees are moved afterwards for as long as that helps. Layers that are alike are laid out alike,
and so decided once (``folding.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..layouts import Layout, Shape
from ..reshards.planning import Planner
from .choosing import SUM, Chooser, Way
from .domains import Domain, Domains, Place
from .folding import classes
from .knowledge import Knowledge
from .least import lower_bound, pass_messages, settle
from .sums import ALL, EQUALLY, FAR, ONWARDS, Floats, Integers, Sum, Terms, sum_of

_MOST_LAYOUTS = 11  # of a value
_OF_A_SMALL_ONE = 24  # of a value of a small program
_SMALL = 450  # ops of one, of which those that are alike count once
_TINY = 40  # ops of a program that is so small that more ways are looked at
_MOST_COPIES = 6
_MOST_WAYS = 96  # of an op
_ROUNDS = 2  # of finding layouts: ops see what their neighbours would like
_SWEEPS = 40
_PROOFS = 12  # times so many sweeps that share equally, for a lower bound
_SHARING = 30  # times so many sweeps that share what is said, at most
_TILE = 4096  # bytes: TPUs lay out a tile of 8 by 128 elements at once, and what has fewer takes as many
_LATE = 1 / 128  # bytes that it costs to leave a sum for later
_CARRIED = 1 / 4  # bytes that it costs to store a byte for all of a loop
_BRIEFLY = 1 / 4  # of the price of a byte that is held: where only an op needs it
_HANDED_ON = 1 - 1e-6  # what is handed on is resharded before that rather than behind: beside others, as one
_ALIKE = 1e-5  # the part of a sum by which another is no better
_NEAR = 0.002  # the part of what was found by which a lower bound may be less, and it is the best
_OPEN = 0.03  # or little better can be found
_SETTLED, _PATIENCE = 2, 16  # turns that find nothing better, after which it ends: if so, and else


class Spot(NamedTuple):
    """An op that is computed: its operands and results, the layout of each slot as propagated, the operands
    that can be made in any layout, whether something is sent for it by these, and how often it runs; for each
    slot how often it is resharded, which is less for what is the same in all turns of a loop."""

    known: Knowledge
    values: tuple[Any, ...]
    held: tuple[Layout, ...]
    free: frozenset[int]
    sends: bool
    weight: float = 1.0
    weights: tuple[float, ...] = ()

    @property
    def resharded(self) -> tuple[float, ...]:
        """How often each slot is; where nothing else is said, as often as the op runs."""
        return self.weights or (self.weight,) * len(self.values)


class Need(NamedTuple):
    """A value that is needed in a layout, at a boundary or where control flows."""

    value: Any
    layout: Layout
    weight: float = 1.0


@dataclass(frozen=True)
class Found:
    """Values that get another home than propagation gave them, and these homes; what everything costs so by
    the sum that is made least, in bytes, and a lower bound of it. ``others`` are, for each of these values,
    the layouts that it does not have, and what everything would cost more if it alone (and what is laid out
    alike) had them. ``ways``: how ops are computed so, by their first results. ``copies``: other layouts that
    values are to be made in first, where they are needed otherwise than at home."""

    homes: Mapping[Any, Layout]
    cost: float
    bound: float
    others: Mapping[Any, tuple[tuple[Layout, float], ...]] = field(default_factory=dict)
    ways: Mapping[Any, Way] = field(default_factory=dict)
    copies: Mapping[Any, Layout] = field(default_factory=dict)


NOTHING = Found({}, 0.0, 0.0)  # as propagation said


def _summed_as_whole(layout: Layout) -> bool:
    """Whether each device has a part of a sum that is as large as the sum. That is best seldom: where there
    is no room for all, a value gets other layouts first."""
    return bool(layout.partial) and not any(layout.dims)


def never() -> bool:
    """False: nothing stops it."""
    return False


Table = tuple[Integers, Floats]  # of a slot: the line of each way, and the costs, line by place


def _add(tables: dict[int, Table], t: int, table: Table) -> None:
    """Adds a table to that of a slot, if there is one."""
    if t in tables:
        pairs = np.stack([tables[t][0], table[0]])
        each, lines = np.unique(pairs, axis=1, return_inverse=True)
        table = lines.reshape(-1), tables[t][1][each[0]] + table[1][each[1]]
    tables[t] = table


class Kind(NamedTuple):
    """What values that are decided as one have in common: the shape, the bytes of an element, the home;
    whether an op makes them, so that they may have another home; whether several ops use them; and whether a
    loop carries them, and is known to have so many turns."""

    shape: Shape
    width: int
    home: Layout
    made: bool
    shared: bool
    carried: bool | None


class Homes:
    """Finds homes for the results of ops, and for what goes into functions and around in loops
    (``carried``, and whether it is known how many turns the loop has)."""

    def __init__(
        self,
        chooser: Chooser,
        planner: Planner,
        spots: Sequence[Spot],
        needs: Sequence[Need],
        pinned: Collection[Any] = (),
        carried: Mapping[Any, bool] = MappingProxyType({}),
    ) -> None:
        self.chooser, self.planner = chooser, planner
        number: dict[Any, int] = {}
        kinds: list[Kind] = []
        used: list[Any] = []  # by ops that need it in certain layouts
        made: set[Any] = set()
        for spot in spots:
            for t, (value, role) in enumerate(zip(spot.values, spot.known.roles, strict=True)):
                if role == "result":
                    made.add(value)
                elif t not in spot.free:
                    used.append(value)
        uses = Counter(used)
        for spot in spots:
            for t, value in enumerate(spot.values):
                shape, several = spot.known.shapes[t], uses[value] > 1
                if shape and value not in number and (value in made or (t not in spot.free and several)):
                    number[value] = len(kinds)
                    width, home, goes_around = spot.known.widths[t], spot.held[t], carried.get(value)
                    kinds.append(Kind(shape, width, home, value in made, several, goes_around))
        wanted: list[dict[tuple[Layout, float], int]] = [{} for _ in kinds]
        for need in needs:
            if (n := number.get(need.value)) is not None:
                key = need.layout, need.weight
                wanted[n][key] = wanted[n].get(key, 0) + 1
        slots = [tuple([number.get(value, -1) for value in spot.values]) for spot in spots]
        alike, self.of = classes(
            [(spot.known, spot.held, spot.free, spot.weight, spot.weights) for spot in spots],
            [
                (*kind, tuple(asked.items()), value in pinned)
                for value, kind, asked in zip(number, kinds, wanted, strict=True)
            ],
            slots,
        )
        self.values = list(number)
        self.pinned = {int(self.of[number[value]]) for value in pinned if value in number}
        self.size = np.bincount(self.of).astype(np.float64)
        first = np.unique(self.of, return_index=True)[1]
        self.kinds, self.wanted = [kinds[n] for n in first], [wanted[n] for n in first]
        self._domains = Domains(planner)
        self._layouts = layouts = self._domains.layouts
        self.domain_of = [self._domains.of_homes([layouts.number(kind.home)]) for kind in self.kinds]
        self.copies: list[dict[int, None]] = [{} for _ in self.kinds]  # that uses of a value would like
        found, self.often = np.unique(alike, return_index=True, return_counts=True)[1:]
        order = np.argsort(found, kind="stable")  # in the order of the program
        self.row_of = np.argsort(order)[alike]
        self.spots, self.often = [spots[n] for n in found[order]], self.often[order]
        self.slots = [tuple(-1 if n < 0 else int(self.of[n]) for n in slots[i]) for i in found[order]]
        kind: dict[Any, int] = {}  # by number: to look up what is nested takes long
        self._kind = [kind.setdefault((s.known, s.held, s.free), len(kind)) for s in self.spots]
        self._computed_as = [
            kind.setdefault((chooser.computed_as(s.known), s.held), len(kind)) for s in self.spots
        ]
        self._fixed = [
            [self._domains.of_homes([layouts.number(layout)]) for layout in s.held] for s in self.spots
        ]
        self._every = slots
        self.weights = [1.0] * len(self.kinds)  # how often the uses of a value run
        for spot, variables in zip(self.spots, self.slots, strict=True):
            for n, weight in zip(variables, spot.resharded, strict=True):
                if n >= 0:
                    self.weights[n] = max(self.weights[n], weight)
        self.results = [
            s.values[s.known.roles.index("result")] if "result" in s.known.roles else None for s in spots
        ]
        self._way_numbers: dict[Way, int] = {}
        self._way: list[Way] = []
        self._lists: dict[int, tuple[Sequence[Way], tuple[int, ...]]] = {}  # of ways, and their numbers
        self._ways: dict[Any, tuple[int, ...]] = {}
        self._ways_held: dict[Any, tuple[int, ...]] = {}
        self._needed: dict[tuple[int, int], tuple[int, ...]] = {}
        self._wanted: dict[Any, tuple[tuple[int, tuple[int, ...]], ...]] = {}
        self._terms: list[Terms] | None = None

    @property
    def domains(self) -> list[Domain]:
        """The places that each value may have, the one that propagation gave it first."""
        return [self._domains[number] for number in self.domain_of]

    def find(self, *, memory: float = 0.0, bound: bool = False, stop: Callable[[], bool] = never) -> Found:
        """The homes by which the least sum is moved, as far as ``stop`` lets it look. ``memory`` is the price
        in bytes sent of a byte that a device holds of a value; one that only an op needs, or gives, costs a
        part of it. With ``bound`` a lower bound is found, and else it is zero."""
        if self._terms is None:
            for number in range(_ROUNDS):
                self._widen(range(len(self.spots)) if number % 2 == 0 else range(len(self.spots))[::-1], stop)
            if not stop():
                self._share()
            self._terms = self._made(stop, 0.0)
        if self._terms is None:
            return NOTHING
        terms = self._made(stop, memory) if memory else self._terms
        if terms is None:
            return NOTHING
        late = self._late()
        alone = self._alone(memory) + late
        total = sum_of(terms, alone, self.size)
        domains = self.domains
        best = np.zeros(len(domains), np.int64)
        least = total.energy(best)
        starts = [pass_messages(total, _SWEEPS, ALL, stop=stop), best, *self._divided_otherwise()]
        better, known = 0, set[bytes]()  # the turn that found the best; where it began
        for turn in range(_SHARING + 1):
            if turn:
                starts = [pass_messages(total, _SWEEPS, ONWARDS, lasting=bound, stop=stop)]
            for start in starts:
                if (begin := start.tobytes()) in known:
                    continue
                known.add(begin)
                found, energy = settle(total, start, stop, least)
                if energy < least * (1 - _ALIKE):
                    better = turn
                if energy < least * (1 - 1e-9):
                    best, least = found, energy
            if not (turn or stop()):  # nothing is proved yet
                continue
            above = least - total.bound()
            wait = 0 if above <= _NEAR * least else _SETTLED if above <= _OPEN * least else _PATIENCE
            if stop() or turn - better >= wait:
                break
        lowest = self._bound(total, terms, alone, least, stop) if bound else 0.0
        earlier = late[np.arange(len(best)), best][:, None] - late
        more = total.gains(best) + earlier * self.size[:, None]  # in bytes, however late
        homes, others, copies, layouts = {}, {}, {}, self._layouts
        changed: dict[int, tuple[tuple[Layout, float], ...]] = {}
        for n, (places, place) in enumerate(zip((d.places for d in domains), best.tolist(), strict=True)):
            home = places[place].home
            if home != places[0].home:
                rest: dict[int, float] = {}
                for (other, _), price in zip(places, more[n].tolist(), strict=False):
                    if other != home:
                        rest[other] = min(rest.get(other, inf), price)
                by_price = sorted(rest.items(), key=lambda pair: pair[1])
                changed[n] = tuple((layouts[other], price) for other, price in by_price)
        for value, n in zip(self.values, self.of.tolist(), strict=True):
            place = domains[n].places[best[n]]
            if n in changed:
                homes[value], others[value] = layouts[place.home], changed[n]
            if place.copy != place.home:
                copies[value] = layouts[place.copy]
        taken = [total.taken(n, best) for n in range(len(terms))]
        return Found(homes, least, lowest, others, self._taken(taken), copies)

    def _divided_otherwise(self) -> list[Integers]:
        """The places where devices along an axis of the mesh, or along all of them, have the same of whatever
        propagation has divided among them; and those where they have as small parts of everything as may be.
        It can be best that they compute the same, or that a loop carries parts, and that is far from all else
        that is tried."""
        pieces: dict[Any, set[int]] = {}
        for number, piece in enumerate(self.planner.axes.pieces):
            pieces.setdefault((piece.mesh, piece.axis), set()).add(number)
        found = list[Integers]()
        for some in dict.fromkeys(map(frozenset, (*pieces.values(), set().union(*pieces.values())))):
            for place_of in (self._place_without, self._place_with):
                place = {number: place_of(number, some) for number in set(self.domain_of)}
                found.append(np.asarray([place[number] for number in self.domain_of], np.int64))
        return found

    def _place_without(self, number: int, pieces: frozenset[int]) -> int:
        """The place in a domain that is the home that propagation gave, less some pieces; or that home."""
        places = self._domains[number].places
        home = self._layouts.number(self._layouts[places[0].home].without(pieces))
        wanted = Place(home, home)
        return places.index(wanted) if wanted in places else 0

    def _place_with(self, number: int, pieces: frozenset[int]) -> int:
        """The place in a domain, without a copy, that is divided along most of some pieces, and of these the
        one along fewest others; or else the home that propagation gave."""

        def along(n: int) -> tuple[int, int]:
            split = [piece for dim in self._layouts[places[n].home].dims for piece in dim]
            some = sum(piece in pieces for piece in split)
            return some, some - len(split)

        places = self._domains[number].places
        homes = [n for n, (home, copy) in enumerate(places) if home == copy]
        return max((n for n in homes if not self._layouts[places[n].home].partial), key=along, default=0)

    def _taken(self, taken: Sequence[Sequence[int]]) -> dict[Any, Way]:
        """The way to compute each op, by its first result; ``taken`` are those of the rows of terms."""
        ways = [
            self._way[self._ways_of(row)[taken[number][place]]] if number >= 0 else None
            for row, (number, place, _) in enumerate(self._places)
        ]
        pairs = zip(self.results, self.row_of.tolist(), strict=True)
        return {result: way for result, row in pairs if result is not None and (way := ways[row]) is not None}

    # ---- Layouts that a value may have ------------------------------------------------------------------

    def _widen(self, numbers: Iterable[int], stop: Callable[[], bool]) -> None:
        """Adds to the layouts of values those in which the ways to compute ops would have them."""
        most = _OF_A_SMALL_ONE if len(self.spots) <= _SMALL else _MOST_LAYOUTS
        layouts = self._layouts
        for number in numbers:
            if stop():
                return
            slots = self.slots[number]
            roles = self.spots[number].known.roles
            for t, wanted in self._wanted_by(number):
                n = slots[t]
                if n < 0:
                    continue
                if roles[t] == "operand" and self.kinds[n].shared:
                    self.copies[n].update(dict.fromkeys(map(layouts.complete, wanted)))
                homes = self._domains[self.domain_of[n]].homes
                room = most - len(homes)
                if room > 0 and n not in self.pinned and self.kinds[n].made:
                    new = [layout for layout in wanted if layout not in homes]
                    if len(new) > room:
                        new.sort(key=lambda layout: _summed_as_whole(layouts[layout]))
                    if new:
                        self.domain_of[n] = self._domains.of_homes((*homes, *new[:room]))

    def _share(self) -> None:
        """Adds to the places of values those with a copy: what is resharded once serves all uses."""
        known: dict[Any, int] = {}
        for n, (shape, *_) in enumerate(self.kinds):
            if self.copies[n]:
                copies = tuple(self.copies[n])[:_MOST_COPIES]
                key = shape, self.domain_of[n], copies
                if key not in known:
                    domain = self._domains[self.domain_of[n]]
                    known[key] = self._domains.number(self._with_copies(shape, domain, copies))
                self.domain_of[n] = known[key]

    def _with_copies(self, shape: Shape, domain: Domain, copies: tuple[int, ...]) -> list[Place]:
        sent = self._domains.sent(shape, domain.homes, copies).tolist()
        others = (
            Place(home, copy)
            for home, sends in zip(domain.homes, sent, strict=True)
            for copy, something in zip(copies, sends, strict=True)
            if something and home != copy
        )
        return [*domain.places, *others]

    def _around(self, number: int) -> tuple[int, ...]:
        """The domains of the slots of an op."""
        fixed = self._fixed[number]
        return tuple([self.domain_of[n] if n >= 0 else fixed[t] for t, n in enumerate(self.slots[number])])

    def _wanted_by(self, number: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """For each slot of an op the layouts in which the ways to compute it would have it."""
        key = self._kind[number], self._around(number)
        if key not in self._wanted:
            layouts, shapes = self._layouts, self.spots[number].known.shapes
            found = list[tuple[int, tuple[int, ...]]]()
            needed = [self._layouts_by(number, way) for way in self._ways_of(number)]
            for t, column in enumerate(zip(*needed, strict=True)):
                if shapes[t]:
                    wanted: dict[int, None] = {}
                    for layout in dict.fromkeys(column):
                        wanted[layouts.complete(layout)] = None
                        if layouts[layout].combine in ("", SUM):
                            wanted[layout] = None
                    found.append((t, tuple(wanted)))
            self._wanted[key] = tuple(found)
        return self._wanted[key]

    def _ways_of(self, number: int) -> tuple[int, ...]:
        """The ways to compute an op with its slots as they are, and with each of them in one of its layouts,
        by number."""
        key = self._kind[number], self._around(number)
        if key not in self._ways:
            spot = self.spots[number]
            every = [self._numbered(self.chooser.ways(spot.known, spot.held))]
            for t, domain in enumerate(key[1]):
                every += [self._ways_with(number, t, home) for home in self._domains[domain].homes]
            if spot.sends:
                every.append(self._numbered(self.chooser.ways(spot.known, spot.held, True)))
            different = {id(ways): ways for ways in every}  # many are the same
            found = dict.fromkeys(chain.from_iterable(different.values()))
            self._ways[key] = tuple(found)[:_MOST_WAYS]
        return self._ways[key]

    def _ways_with(self, number: int, t: int, home: int) -> tuple[int, ...]:
        """The ways to compute an op with a slot in the layout of a number."""
        key = self._computed_as[number], t, home
        if key not in self._ways_held:
            spot, tiny = self.spots[number], len(self.spots) <= _TINY
            held = *spot.held[:t], self._layouts[home], *spot.held[t + 1 :]
            self._ways_held[key] = self._numbered(self.chooser.ways(spot.known, held, tiny))
        return self._ways_held[key]

    def _numbered(self, ways: Sequence[Way]) -> tuple[int, ...]:
        """Numbers of ways."""
        if id(ways) not in self._lists:
            numbers = list[int]()
            for way in ways:
                number = self._way_numbers.setdefault(way, len(self._way))
                if number == len(self._way):
                    self._way.append(way)
                numbers.append(number)
            self._lists[id(ways)] = ways, tuple(numbers)
        return self._lists[id(ways)][1]

    def _layouts_by(self, number: int, way: int) -> tuple[int, ...]:
        """The layouts of an op's slots in a way to compute it."""
        key = self._kind[number], way
        if key not in self._needed:
            spot = self.spots[number]
            layouts = self.chooser.layouts(spot.known, spot.held, spot.free, self._way[way])
            self._needed[key] = tuple(map(self._layouts.number, layouts))
        return self._needed[key]

    # ---- Costs ------------------------------------------------------------------------------------------

    def _made(self, stop: Callable[[], bool], memory: float) -> list[Terms] | None:
        """The terms of the sum, ``memory`` at a price: ops with equal costs together. None if it is to stop
        before all are made."""
        found: dict[Any, tuple[Floats, list[Table]]] = {}
        rows: dict[Any, list[tuple[tuple[int, ...], int]]] = {}
        for number, (spot, variables) in enumerate(zip(self.spots, self.slots, strict=True)):
            domains = self._around(number)
            first = {n: t for t, n in reversed(list(enumerate(variables))) if n >= 0}
            same = tuple([first.get(n, -1) for n in variables])
            key = self._kind[number], domains, spot.weight, spot.weights, same
            if key not in found:
                if stop():
                    return None
                found[key] = self._term(number, domains, same, memory)
            slots = sorted(set(same) - {-1})
            rows.setdefault(key, []).append((tuple([variables[t] for t in slots]), number))
        self._places: list[tuple[int, int, tuple[int, ...]]] = [(-1, 0, ())] * len(self.spots)
        terms: list[Terms] = []
        for key, (base, tables) in found.items():
            if tables:
                index = np.asarray([row for row, _ in rows[key]], dtype=np.int64)
                numbers = [number for _, number in rows[key]]
                used = tuple(sorted(set(key[-1]) - {-1}))
                for place, number in enumerate(numbers):
                    self._places[number] = len(terms), place, used
                lines, costs = (list(each) for each in zip(*tables, strict=True))
                terms.append(Terms(base, lines, costs, index, self.often[numbers].astype(np.float64)))
        return terms

    def _term(
        self, number: int, domains: tuple[int, ...], same: tuple[int, ...], memory: float
    ) -> tuple[Floats, list[Table]]:
        """What each way to compute an op costs, and what it costs for each value that its slots have: those
        that have the ``same`` together."""
        spot, ways = self.spots[number], self._ways_of(number)
        known, once, layouts = spot.known, self.planner.prices.once, self._layouts
        base = self.chooser.weighs(known, spot.held, [self._way[way] for way in ways])
        needed = [self._layouts_by(number, way) for way in ways]
        exchanged = [
            self.chooser.exchanged(known, [layouts[n] for n in each]) for each in needed if known.reads
        ]
        share = [weight / (spot.weight or 1.0) for weight in spot.resharded]
        tables: dict[int, Table] = {}
        for t, (shape, role) in enumerate(zip(known.shapes, known.roles, strict=True)):
            if shape is None or t in spot.free:
                continue
            if same[t] >= 0 and any(read.slot == t for read in known.reads):
                read = np.asarray([self._read(number, way, t, domains[t]) for way in ways])
                _add(tables, same[t], (np.arange(len(ways)), read * share[t]))
                continue
            for w, sent in enumerate(exchanged):
                price, rounds = sent.get(t, (0.0, 0.0))
                base[w] += price + once * rounds
            column = [each[t] for each in needed]
            if role == "result" and known.combined_by_itself:
                for w, layout in enumerate(column):
                    gathered, count, behind = self.chooser.gathering(known, t, layouts[layout])
                    base[w] += gathered + once * count
                    column[w] = layouts.number(behind)
            lines: dict[int, int] = {}
            line = np.asarray([lines.setdefault(layout, len(lines)) for layout in column])
            result, width = role == "result", known.widths[t]
            table = self._domains.table(
                shape, width, tuple(lines), domains[t], result=result, at_home=known.at_home
            )
            if memory and (often := spot.weight * share[t]):
                besides = self._domains.besides(shape, width, tuple(lines), domains[t])
                table = table + besides * (_BRIEFLY * memory / often)
            if same[t] < 0:
                base += table[line, 0] * share[t]
            else:
                _add(tables, same[t], (line, table * share[t]))
        slots = sorted(set(same) - {-1})
        none = np.zeros(len(ways), np.int64)
        for t in slots:
            if t not in tables:  # it is made in any layout
                tables[t] = none, np.zeros((1, len(self._domains[domains[t]].places)))
        weight = spot.weight * (_HANDED_ON if known.touches == "nothing" else 1.0)
        return base * spot.weight, [(tables[t][0], tables[t][1] * weight) for t in slots]

    def _read(self, number: int, way: int, t: int, domain: int) -> Floats:
        """What each place of an operand costs an op that reads stretches of it: of what is whole they are cut
        out, and else exchanged."""
        known, _, held, free, *_ = self.spots[number]
        shape, width = known.shapes[t] or (), known.widths[t]
        dims = {read.dim for read in known.reads if read.slot == t}
        found: dict[frozenset[int], Floats] = {}
        costs = list[float]()
        for n, place in enumerate(self._domains[domain].places):
            home = self._layouts[place.home]
            whole = frozenset(d for d in dims if not home.dims[d])
            if whole not in found:
                with_it = *held[:t], home, *held[t + 1 :]
                needed = self.chooser.layouts(known, with_it, free, self._way[way])
                price, rounds = self.chooser.exchanged(known, needed).get(t, (0.0, 0.0))
                prices = self._domains.table(shape, width, (self._layouts.number(needed[t]),), domain)[0]
                found[whole] = prices + price + self.planner.prices.once * rounds
            costs.append(float(found[whole][n]))
        return np.asarray(costs)

    def _alone(self, memory: float) -> Floats:
        """What each layout of each value costs on its own: where it is needed otherwise, and the memory that
        it takes. What a loop carries is there all the time: a byte more than propagation gave it, and than a
        tile has, costs as much as is sent for a part of one, so that what is gathered part by part is not
        gathered as a whole before, unless that saves much.
        If nobody knows how many turns a loop has, what is sent before it may be sent for one turn only."""
        domains = self._domains
        found = np.full((len(self.kinds), self._most_places), FAR)
        for n, (kind, number) in enumerate(zip(self.kinds, self.domain_of, strict=True)):
            shape, width, *_ = kind
            costs = domains.copying(shape, width, number) * self.weights[n]
            for (layout, weight), count in self.wanted[n].items():
                wanted = (self._layouts.number(layout),)
                costs = costs + domains.table(shape, width, wanted, number)[0] * weight * count
            homes, copies = domains.held(shape, width, number)
            if kind.carried is not None:
                free, price = (max(homes[0], _TILE), _CARRIED) if kind.carried else (homes[0], 1.0)
                costs = costs + price * np.maximum(homes - free, 0)
            found[n, : len(costs)] = costs + memory * (homes + copies)
        return found

    def _late(self) -> Floats:
        """What each layout of each value costs that leaves a sum for later: hardly anything, but where that
        saves nothing the sum is made at once. Sums that do not need each other can be sent as one."""
        found = np.zeros((len(self.kinds), self._most_places))
        late = {
            number: np.asarray(
                [bool(self._layouts[home].partial) for home, _ in self._domains[number].places]
            )
            for number in set(self.domain_of)
        }
        for n, number in enumerate(self.domain_of):
            found[n, : len(late[number])] = late[number] * (_LATE * self.weights[n])
        return found

    @property
    def _most_places(self) -> int:
        """As many places as any value may have."""
        return max((len(domain.places) for domain in self.domains), default=1)

    def _bound(
        self, total: Sum, terms: Sequence[Terms], alone: Floats, least: float, stop: Callable[[], bool]
    ) -> float:
        """A lower bound of the sum over all ops, whether layers are laid out alike or not, which is not above
        the ``least``. What has been said so far is to find that soon, and proves less than what is said for
        it from the beginning."""
        every: dict[int, list[tuple[int, list[int]]]] = {}
        for spot, slots in enumerate(self._every):
            number, row, used = self._places[self.row_of[spot]]
            if number >= 0:
                every.setdefault(number, []).append((row, [slots[t] for t in used]))
        members = {}
        for number, each in every.items():
            rows, variables = zip(*each, strict=True)
            members[number] = np.asarray(rows), np.asarray(variables)
        apart = alone[self.of]
        found = lower_bound(total, apart, members)
        total = sum_of(terms, alone, self.size)
        pass_messages(total, _SWEEPS, ALL, lasting=True, stop=stop)
        for _ in range(_PROOFS):
            if stop() or found >= least * (1 - _NEAR):
                break
            pass_messages(total, _SWEEPS, EQUALLY, lasting=True, stop=stop)
            found = max(found, lower_bound(total, apart, members))
        return min(found, least)
