"""Where values live: the layouts of all values between the boundary and constraints, chosen together.

Propagation decides how a value is sharded by its neighbours, one turn at a time. How much a program moves
depends on all values at once: it can be better to lay a value out as none of its neighbours is, if these
follow. Each op has the ways that the rules give it, each way needs its slots in certain layouts
(``candidates.py``), and resharding a value from its home costs what the planner says, once for all that use
it so (``costs.py``). The total is made least by messages between ops and values (``least/``), which is
exact on trees; elsewhere values that hang together as trees are moved afterwards for as long as that helps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from math import inf
from typing import Any

import numpy as np

from ..layouts import Layout
from ..plan import AS_DECIDED, Plan
from ..reshards.rates import LayoutId
from .candidates import Candidates
from .choosing import Way
from .costs import Costs
from .holding import Holding
from .least.least import LESS, lower_bound, pass_messages, settle, sweeps
from .least.starts import divided_otherwise
from .least.sums import ALL, EQUALLY, ONWARDS, Floats, Integers, Sum, Terms, sum_of

_SWEEPS = 40
_PROOFS = 12  # times so many sweeps that share equally, for a lower bound
_SHARING = 30  # times so many sweeps that share what is said, at most
_ALIKE = 1e-5  # the part of a sum by which another is no better
_NEAR = 0.002  # the part of what was found by which a lower bound may be less, and it is the best
_OPEN = 0.03  # or little better can be found
_SETTLED, _PATIENCE = 2, 16  # turns that find nothing better, after which it ends: if so, and else


@dataclass(frozen=True)
class FoundHomes:
    """What a choice of homes found: the plan, what everything costs so by the sum that is made least, in
    bytes, and a lower bound of it. ``others`` are, for each value that lives elsewhere than propagation said,
    the layouts that it does not have, and what everything would cost more if it alone (and what is laid out
    alike) had them. ``held`` is about how much a device holds at most so, and as propagation had it, in
    bytes."""

    plan: Plan
    cost: float
    bound: float
    others: Mapping[Any, tuple[tuple[Layout, float], ...]] = field(default_factory=dict)
    held: tuple[float, float] = (0.0, 0.0)


NOTHING = FoundHomes(AS_DECIDED, 0.0, 0.0)


def never() -> bool:
    """False: nothing stops it."""
    return False


class Homes:
    """Finds homes for the results of ops, and for what goes into functions and around in loops."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates, self._variables = candidates, candidates.variables
        self._costs = Costs(candidates)
        self._holding = Holding(candidates, self._costs.positions)
        self._terms: list[Terms] | None = None

    def find(
        self, *, memory: float = 0.0, bound: bool = False, stop: Callable[[], bool] = never
    ) -> FoundHomes:
        """The homes by which the least sum is moved, as far as ``stop`` lets it look. ``memory`` is the price
        in bytes sent of a byte that a device holds of a value; one that only an op needs, or gives, costs a
        part of it. With ``bound`` a lower bound is found, and else it is zero."""
        if self._terms is None:
            self._candidates.find(stop)
            self._terms = self._costs.terms(stop)
        terms = self._costs.terms(stop, memory) if memory and self._terms is not None else self._terms
        if terms is None:
            return NOTHING
        late = self._costs.late()
        alone = self._costs.alone(memory) + late
        size = self._variables.size
        total = sum_of(terms, alone, size)
        best, least = self._search(total, bound, stop)
        lowest = self._bound(total, sum_of(terms, alone, size), alone, least, stop) if bound else 0.0
        earlier = late[np.arange(len(best)), best][:, None] - late
        more = total.gains(best) + earlier * size[:, None]  # in bytes, however late
        taken = [total.taken(n, best) for n in range(len(terms))]
        found = self._found(best, more, self._ways(taken), least, lowest)
        decided = np.zeros_like(best)
        before = self._holding.most(decided, [total.taken(n, decided) for n in range(len(terms))])
        return replace(found, held=(self._holding.most(best, taken), before))

    def _search(self, total: Sum, lasting: bool, stop: Callable[[], bool]) -> tuple[Integers, float]:
        """The best choice that is found, and its sum: from several starts, and then from what messages say
        that carry on what they know, until a bound says that hardly anything is left, or no turn finds
        anything better. ``lasting``: they go on where they say the same again."""
        best = np.zeros(len(self._variables.kinds), np.int64)
        least = total.energy(best)
        starts = [pass_messages(total, _SWEEPS, ALL, stop=stop), best, *divided_otherwise(self._candidates)]
        better, known = 0, set[bytes]()  # the turn that found the best; where it began
        for turn in range(_SHARING + 1):
            if turn:
                starts = [pass_messages(total, _SWEEPS, ONWARDS, lasting=lasting, stop=stop)]
            for start in starts:
                if (begin := start.tobytes()) in known:
                    continue
                known.add(begin)
                found, energy = settle(total, start, stop, least)
                if energy < least * (1 - _ALIKE):
                    better = turn
                if energy < least * (1 - LESS):
                    best, least = found, energy
            if not (turn or stop()):  # nothing is proved yet
                continue
            above = least - total.bound()
            wait = 0 if above <= _NEAR * least else _SETTLED if above <= _OPEN * least else _PATIENCE
            if stop() or turn - better >= wait:
                break
        return best, least

    def _found(
        self, best: Integers, more: Floats, ways: Mapping[int, Way], least: float, lowest: float
    ) -> FoundHomes:
        """What a choice says of values; ``more`` is what each variable would cost more in each place."""
        homes, others, copies, layouts = {}, {}, {}, self._candidates.layouts
        domains = self._candidates.places()
        changed: dict[int, tuple[tuple[Layout, float], ...]] = {}
        for n, (places, place) in enumerate(zip((d.places for d in domains), best.tolist(), strict=True)):
            home = places[place].home
            if home != places[0].home:
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

    def _ways(self, taken: Sequence[Sequence[int]]) -> dict[int, Way]:
        """The way to compute each op, by its first result; ``taken`` are those of the rows of terms."""
        candidates, variables = self._candidates, self._variables
        ways = [
            None if at is None else candidates.way(candidates.ways_of(row)[taken[at.terms][at.row]])
            for row, at in zip(variables.rows, self._costs.positions, strict=True)
        ]
        pairs = zip(variables.results, variables.row_of.tolist(), strict=True)
        return {result: way for result, row in pairs if result is not None and (way := ways[row]) is not None}

    def _bound(self, total: Sum, anew: Sum, alone: Floats, least: float, stop: Callable[[], bool]) -> float:
        """A lower bound of the sum over all ops, whether layers are laid out alike or not, which is not above
        the ``least``. What has been said so far, in ``total``, is to find that soon, and proves less than
        what is said for it from the beginning, in ``anew``."""
        every: dict[int, list[tuple[int, list[int]]]] = {}
        for row, numbers in zip(self._variables.row_of.tolist(), self._variables.numbers, strict=True):
            if (at := self._costs.positions[row]) is not None:
                every.setdefault(at.terms, []).append((at.row, [numbers[t] for t in at.slots]))
        members = {}
        for number, each in every.items():
            rows, values = zip(*each, strict=True)
            members[number] = np.asarray(rows), np.asarray(values)
        apart = alone[self._variables.of]
        found = lower_bound(total, apart, members)
        for saying in (ALL, *repeat(EQUALLY, _PROOFS)):
            if stop() or found >= least * (1 - _NEAR):
                break
            for _ in sweeps(anew, _SWEEPS, saying, lasting=True, stop=stop):
                pass
            found = max(found, lower_bound(anew, apart, members))
        return min(found, least)
