"""The layouts of all values between the boundary and constraints, chosen together.

Propagation decides how a value is sharded by its neighbours, one turn at a time. But the communication of a
program depends on all values at once. It can be better to give a value a layout that none of its neighbours
has, if these follow. Each op has the ways that the rules give it, and each way needs its slots in certain
layouts (``candidates.py``). A reshard of a value from its home costs what the planner says, once for all
users (``costs.py``). The total is minimised by message passing between ops and values (``least/``), which is
exact on trees. Elsewhere trees of values are moved afterwards as long as that helps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ..layouts import Layout
from ..plan import AS_DECIDED, Plan
from ..reshards.rates import LayoutId
from . import tuning
from .candidates import Candidates
from .choosing import Way
from .costs import Costs
from .holding import Holding
from .least.least import LESS, lower_bound, pass_messages, settle, sweeps
from .least.starts import divided_otherwise
from .least.sums import ALL, EQUALLY, FAR, ONWARDS, Floats, Integers, Sum, Terms, sum_of


@dataclass(frozen=True)
class FoundHomes:
    """The result of the choice of layouts: the plan, its total cost in the sum that is minimised, in bytes,
    and a lower bound of that sum. ``others`` has, for each value whose layout differs from propagation's, the
    layouts that lost, and the extra total cost if this value alone (and its equals) had them. Values at an
    open boundary have them, too; for these ``dearest`` has, for the first few, the op whose cost rises most,
    by its place in the problem (-1: none), and ``alike`` a number that equals share. ``held`` are
    estimates of a device's peak memory in bytes, for this plan and for propagation's."""

    plan: Plan
    cost: float
    bound: float
    others: Mapping[Any, tuple[tuple[Layout, float], ...]] = field(default_factory=dict)
    dearest: Mapping[Any, tuple[int, ...]] = field(default_factory=dict)
    alike: Mapping[Any, int] = field(default_factory=dict)
    held: tuple[float, float] = (0.0, 0.0)


NOTHING = FoundHomes(AS_DECIDED, 0.0, 0.0)


class _Opened(NamedTuple):
    """A search with an open boundary: the sum with the messages that it ended with, its terms, the cost of
    each place of each variable on its own, and the best choice."""

    total: Sum
    terms: list[Terms]
    alone: Floats
    best: Integers


def never() -> bool:
    """Returns false: nothing stops the search."""
    return False


class Homes:
    """Finds homes for results of ops, and for values that enter functions or that loops carry."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates, self._variables = candidates, candidates.variables
        self._costs = Costs(candidates)
        self._holding = Holding(candidates, self._costs.positions)
        self._terms: dict[float, list[Terms]] = {}  # without a price of memory, and at the last one
        self._looked = False
        self._opened: dict[float, _Opened] = {}  # by the price of memory
        self._best: Integers | None = None  # of the last search

    def find(
        self,
        *,
        memory: float = 0.0,
        bound: bool = False,
        alike: bool = False,
        near: bool = False,
        stop: Callable[[], bool] = never,
    ) -> FoundHomes:
        """The homes with the least total cost that is found before ``stop`` returns true. ``memory`` is the
        price, in bytes sent, of a byte that a device holds; bytes that only one op needs or gives cost a part
        of it. With ``bound`` a lower bound is computed; otherwise it is zero. With ``alike`` the result has
        the prices of other layouts at an open boundary. Then, and if it is ``near``, a search begins where
        the one before, at another price of memory, ended."""
        terms = self._priced(memory, stop)
        if terms is None:
            return NOTHING
        alone, size = self._costs.alone(memory) + self._costs.late(), self._variables.size
        total = sum_of(terms, alone, size)
        start = (
            next((each.best for each in self._opened.values()), None)
            if alike
            else self._best
            if near
            else None
        )
        nearly = tuning.OPEN_NEARLY if alike else tuning.NEARLY
        best, least = self._search(total, bound, stop, start, nearly)
        self._best = best
        if alike:
            self._opened[memory] = _Opened(total, terms, alone, best)
        lowest = 0.0
        if bound:
            lowest = self._bound(total, sum_of(terms, alone, size), alone, least, stop)
        return self._result(total, terms, best, (least, lowest), alike)

    def beside(self, memory: float, layouts: Mapping[int, Layout]) -> FoundHomes:
        """The choice that ``with_layouts`` finds, with the prices of all other layouts."""
        opened, (best, least, _) = self._opened[memory], self._settled(memory, layouts)
        return self._result(opened.total, opened.terms, best, (least, 0.0), alike=True)

    def _result(
        self, total: Sum, terms: list[Terms], best: Integers, sums: tuple[float, float], alike: bool
    ) -> FoundHomes:
        """A choice of places as the result; ``sums`` are its total cost and a lower bound."""
        late = self._costs.late()
        earlier = late[np.arange(len(best)), best][:, None] - late
        more = total.gains(best) + earlier * self._variables.size[:, None]  # in bytes, at any time
        taken = [total.taken(n, best) for n in range(len(terms))]
        homes = self._found(best, more, self._ways(taken), *sums)
        if alike:
            homes = self._at_boundary(homes, best, terms)
        decided = np.zeros_like(best)
        before = self._holding.most(decided, [total.taken(n, decided) for n in range(len(terms))])
        return replace(homes, held=(self._holding.most(best, taken), before))

    def bound_soon(self, memory: float, limit: float) -> float:
        """A lower bound of the sum at a price of memory. Messages are passed while another round may raise
        the bound above the ``limit``. All values of a variable have the same layout."""
        terms = self._priced(memory, never)
        assert terms is not None
        total = sum_of(terms, self._costs.alone(memory) + self._costs.late(), self._variables.size)
        before = bound = -inf
        while bound <= limit and (before == -inf or bound + (bound - before) > limit):
            for _ in sweeps(total, tuning.SWEEPS, ONWARDS, lasting=True, stop=never):
                pass
            before, bound = bound, total.bound()
        return bound

    def bound_alike(self, memory: float, least: float, stop: Callable[[], bool] = never) -> float:
        """A lower bound of the sum, if all values of a variable have the same layout. Messages continue from
        those of ``find`` at this price of ``memory``, until the bound hardly rises. It is at most ``least``,
        the sum that ``find`` found."""
        if memory not in self._opened:
            return 0.0
        total = self._opened[memory].total
        bound = total.bound()
        for _ in range(tuning.OPEN_PROOFS):
            if stop() or bound >= least * (1 - tuning.NEAR):
                break
            for _ in sweeps(total, tuning.SWEEPS, ONWARDS, lasting=True, stop=stop):
                pass
            before, bound = bound, max(bound, total.bound())
            if before > 0 and bound < before * (1 + tuning.STALLED):
                break
        return min(bound, least)

    def with_layouts(self, memory: float, layouts: Mapping[int, Layout]) -> tuple[float, float]:
        """The least sum found if some values have these layouts, and an estimate of a device's peak memory
        in bytes. The search begins at the result of ``find`` at this price of ``memory``. If a variable has
        several values, each gets one of their given layouts. A layout that is not a candidate is ignored."""
        best, least, total = self._settled(memory, layouts)
        taken = [total.taken(n, best) for n in range(len(self._opened[memory].terms))]
        return least, self._holding.most(best, taken)

    def _settled(self, memory: float, layouts: Mapping[int, Layout]) -> tuple[Integers, float, Sum]:
        """The best choice with these layouts, its sum, and the sum in which only these are allowed."""
        opened, variables = self._opened[memory], self._variables
        number = dict(zip(variables.values, variables.of.tolist(), strict=True))
        allowed: dict[int, set[LayoutId]] = {}
        for value, layout in layouts.items():
            if (n := number.get(value)) is not None:
                allowed.setdefault(n, set()).add(self._candidates.layouts.number(layout))
        alone, start, domains = opened.alone.copy(), opened.best.copy(), self._candidates.places()
        for n, homes in allowed.items():
            fits = np.array([home in homes for home, _ in domains[n].places], dtype=np.bool_)
            if fits.any():
                alone[n, : len(fits)][~fits] = FAR
                start[n] = start[n] if fits[start[n]] else fits.argmax()
        total = sum_of(opened.terms, alone, variables.size)
        best, least = settle(total, start, never)
        return best, least, total

    def _priced(self, memory: float, stop: Callable[[], bool]) -> list[Terms] | None:
        """The terms of the sum at a price of memory; None if stopped."""
        if not self._looked:
            self._candidates.find(stop)
            self._looked = not stop()
        if memory not in self._terms:
            terms = self._costs.terms(stop, memory)
            if terms is None:
                return None
            self._terms = {price: kept for price, kept in self._terms.items() if not price}
            self._terms[memory] = terms
        return self._terms[memory]

    def _search(
        self, total: Sum, lasting: bool, stop: Callable[[], bool], near: Integers | None, nearly: float
    ) -> tuple[Integers, float]:
        """The best choice, and its sum. Messages are passed from several starts, or from a choice that is
        ``near`` the best. More rounds start from the messages so far, until a bound proves that hardly
        anything can be gained, or no round is better: soon, if the relative gap is below ``nearly``.
        ``lasting``: rounds go on even if messages repeat."""
        best = np.zeros(len(self._variables.kinds), np.int64) if near is None else near
        least = total.energy(best)
        starts = [pass_messages(total, tuning.SWEEPS, ALL, stop=stop), best]
        if near is None:
            starts += divided_otherwise(self._candidates)
        better, tried = 0, set[bytes]()  # the round that found the best; its start
        for turn in range(tuning.ROUNDS + 1):
            if turn:
                seen = pass_messages(total, tuning.SWEEPS, ONWARDS, lasting=lasting, stop=stop)
                starts = [seen, total.best()]  # the last choice leads elsewhere, even if its sum is higher
            for start in starts:
                if (begin := start.tobytes()) in tried:
                    continue
                tried.add(begin)
                choice, energy = settle(total, start, stop, least)
                if energy < least * (1 - tuning.ALIKE):
                    better = turn
                if energy < least * (1 - LESS):
                    best, least = choice, energy
            if not (turn or stop()):  # no proof yet
                continue
            patience = _patience(least - total.bound(), least, nearly)
            if stop() or turn - better >= (patience if near is None else min(patience, tuning.SETTLED)):
                break
        return best, least

    def _found(
        self, best: Integers, more: Floats, ways: Mapping[int, Way], least: float, lowest: float
    ) -> FoundHomes:
        """The result for values; ``more`` is the extra cost of each variable in each place."""
        homes, others, copies, layouts = {}, {}, {}, self._candidates.layouts
        domains = self._candidates.places()
        changed: dict[int, tuple[tuple[Layout, float], ...]] = {}
        for n, (places, place) in enumerate(zip((d.places for d in domains), best.tolist(), strict=True)):
            home = places[place].home
            if home != places[0].home or self._variables.kinds[n].open:
                rest: dict[LayoutId, float] = {}
                for (other, _), price in zip(places, more[n].tolist(), strict=False):
                    if other != home:
                        rest[other] = min(rest.get(other, inf), price)
                by_price = sorted(rest.items(), key=lambda pair: pair[1])
                changed[n] = tuple((layouts[other], price) for other, price in by_price)
        for value, n in zip(self._variables.values, self._variables.of.tolist(), strict=True):
            place = domains[n].places[best[n]]
            if n in changed:
                homes[value], others[value] = layouts[place.home], changed[n]
            if place.copy != place.home:
                copies[value] = layouts[place.copy]
        return FoundHomes(Plan(homes, ways, copies), least, lowest, others)

    def _at_boundary(self, homes: FoundHomes, best: Integers, terms: Sequence[Terms]) -> FoundHomes:
        """The result with what decides between the layouts of values at an open boundary."""
        variables, layouts = self._variables, self._candidates.layouts
        rows: dict[int, list[tuple[int, int, int]]] = {}
        for number, term in enumerate(terms):
            for row, of in enumerate(term.variables.tolist()):
                for slot, n in enumerate(of):
                    if variables.kinds[n].open:
                        rows.setdefault(n, []).append((number, row, slot))
        op_at = {(at.terms, at.row): row for row, at in enumerate(self._costs.positions) if at is not None}
        dearest, alike = {}, {}
        variables_near: dict[int, tuple[int, ...]] = {}
        for value, n in zip(variables.values, variables.of.tolist(), strict=True):
            if not variables.kinds[n].open or value not in homes.others:
                continue
            if n not in variables_near:
                places = self._candidates.places()[n].places
                each = []
                for layout, _ in homes.others[value][: tuning.OPEN_NAMED]:
                    home = layouts.number(layout)
                    place = next(p for p, (at, copy) in enumerate(places) if at == home == copy)
                    rise = [
                        (_rise(terms[number], row, slot, best, place), number, row)
                        for number, row, slot in rows.get(n, ())
                    ]
                    most = max(rise, default=None)
                    op = -1 if most is None or most[0] <= 0 else variables.firsts[op_at[most[1], most[2]]]
                    each.append(op)
                variables_near[n] = tuple(each)
            dearest[value], alike[value] = variables_near[n], n
        return replace(homes, dearest=dearest, alike=alike)

    def _ways(self, taken: Sequence[Sequence[int]]) -> dict[int, Way]:
        """The way to compute each op, by its first result; ``taken`` are the ways of the rows of terms."""
        candidates, variables = self._candidates, self._variables
        ways = [
            None if at is None else candidates.way(candidates.ways_of(row)[taken[at.terms][at.row]])
            for row, at in zip(variables.rows, self._costs.positions, strict=True)
        ]
        pairs = zip(variables.results, variables.row_of.tolist(), strict=True)
        return {result: way for result, row in pairs if result is not None and (way := ways[row]) is not None}

    def _bound(self, total: Sum, anew: Sum, alone: Floats, least: float, stop: Callable[[], bool]) -> float:
        """A lower bound of the sum over all ops, whether equal layers have equal layouts or not; it is not
        above the ``least``. The messages in ``total`` were meant to find a good choice soon, and prove less
        than those that start afresh, in ``anew``."""
        every: dict[int, list[tuple[int, list[int]]]] = {}
        for row, numbers in zip(self._variables.row_of.tolist(), self._variables.numbers, strict=True):
            if (at := self._costs.positions[row]) is not None:
                every.setdefault(at.terms, []).append((at.row, [numbers[t] for t in at.slots]))
        members = {}
        for number, each in every.items():
            rows, values = zip(*each, strict=True)
            members[number] = np.asarray(rows), np.asarray(values)
        apart = alone[self._variables.of]
        bound = lower_bound(total, apart, members)
        for saying in (ALL, *repeat(EQUALLY, tuning.PROOFS)):
            if stop() or bound >= least * (1 - tuning.NEAR):
                break
            for _ in sweeps(anew, tuning.SWEEPS, saying, lasting=True, stop=stop):
                pass
            bound = max(bound, lower_bound(anew, apart, members))
        return min(bound, least)


def _rise(term: Terms, row: int, slot: int, chosen: Integers, place: int) -> float:
    """The rise in cost of a row of some terms if the variable of a slot has another place."""
    variables = term.variables[row].tolist()
    each = [table[lines] for table, lines in zip(term.tables, term.lines, strict=True)]
    total = term.base + sum(table[:, chosen[n]] for table, n in zip(each, variables, strict=True))
    then = total - each[slot][:, chosen[variables[slot]]] + each[slot][:, place]
    return float((then.min() - total.min()) * term.counts[row])


def _patience(above: float, least: float, nearly: float) -> int:
    """The rounds without a gain after which the search ends. The least sum found is this much ``above`` the
    lower bound; up to ``nearly`` relatively, hardly anything better is expected."""
    if above <= tuning.NEAR * least:
        return 0
    return tuning.SETTLED if above <= nearly * least else tuning.PATIENCE
