"""The least sum of terms over variables with a few values each, and a lower bound of it.

A term is the cost of an op: the cheapest of its ways, each of which costs something of its own and something
for what each of the op's variables is. Terms with equal tables are computed together, as rows of arrays. Rows
may stand for many ops, and variables for many values, of layers that are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FAR = 1e18  # more than anything costs
_MOVES = 40
_REPEATS = 32  # at most, of what is said in a sweep
_SETTLED = 4  # sweeps after which the same values are best


@dataclass
class Terms:
    """Terms with equal tables: the cost of each way (``base``), for each slot the cost of each value of its
    variable (``tables``, way by value), the variables of each row (``index``), and how many terms a row
    stands for (``count``). ``alike`` is, by row and slot, how many terms share the variable: they tell it
    something at once, and so each changes what it says by as much less, and where one row stands for many of
    these says it again (``repeats``)."""

    base: Floats
    tables: list[Floats]
    index: Integers
    count: Floats
    messages: Floats = field(default_factory=lambda: np.zeros(0))
    alike: Floats = field(default_factory=lambda: np.ones(0))
    repeats: int = 1

    def costs(self, chosen: Integers) -> Floats:
        """The cost of each way of each row for a choice of values."""
        total = np.repeat(self.base[None], len(self.index), axis=0)
        for s, table in enumerate(self.tables):
            total = total + table[:, chosen[self.index[:, s]]].T
        return total

    def taken(self, chosen: Integers) -> list[int]:
        """The cheapest way of each row for a choice of values."""
        found: list[int] = self.costs(chosen).argmin(axis=1).tolist()
        return found


class Sum:
    """The sum of terms, and of what each variable costs on its own (``alone``, variable by value; FAR for
    what is no value of it). ``size`` is how many variables each stands for."""

    def __init__(self, terms: Sequence[Terms], alone: Floats, size: Floats) -> None:
        self.terms, self.alone, self.size = terms, alone, size
        for term in terms:
            widest = max(table.shape[1] for table in term.tables)
            term.messages = np.zeros((*term.index.shape, widest))
            often = np.repeat(term.count, term.index.shape[1])
            sharing = np.bincount(term.index.ravel(), often, len(size)) / size
            term.alike = np.maximum(sharing[term.index], 1.0)
            term.repeats = min(int((term.count[:, None] / size[term.index]).max()), _REPEATS)

    def energy(self, chosen: Integers) -> float:
        """The sum for a choice of values."""
        own = self.alone[np.arange(len(chosen)), chosen] * self.size
        return float(own.sum() + sum(t.costs(chosen).min(axis=1) @ t.count for t in self.terms))

    # ---- Messages ---------------------------------------------------------------------------------------

    def beliefs(self) -> Floats:
        """What each value of each variable costs, as all terms together see it."""
        found = self.alone.copy()
        for term in self.terms:
            for s, table in enumerate(term.tables):
                self._add(found, term, s, term.messages[:, s, : table.shape[1]])
        return found

    def _best(self, beliefs: Floats) -> Integers:
        """The value of each variable that is best as all terms together see it."""
        found: Integers = np.where(self.alone < FAR, beliefs, inf).argmin(axis=1)
        return found

    def _add(self, beliefs: Floats, term: Terms, slot: int, messages: Floats) -> None:
        index = term.index[:, slot]
        often = term.count / self.size[index]
        np.add.at(beliefs, (index[:, None], np.arange(messages.shape[1])[None]), messages * often[:, None])

    def pass_messages(
        self, sweeps: int, *, shared: bool, lasting: bool = False, stop: Callable[[], bool]
    ) -> Integers:
        """The best choice of values that was seen in so many sweeps of messages from terms to variables, or
        fewer if ``stop`` says so.

        A term says what the best of its ways costs for each value of a variable, given what the other terms
        say. Min-sum says all of it: that is exact on trees, and good elsewhere. ``shared``, it is divided
        among the variables (MPLP): the bound rises.
        """
        beliefs, settled = self.beliefs(), 0
        before = best = self._best(beliefs)
        least = self.energy(best)
        for sweep in range(sweeps):
            if stop() or settled == _SETTLED:
                break
            for term in self.terms if sweep % 2 == 0 else reversed(self.terms):
                for _ in range(term.repeats if lasting else 1):
                    self._tell(term, beliefs, shared)
            now = self._best(beliefs)
            if not np.array_equal(now, before):
                settled, before, energy = 0, now, self.energy(now)
                if energy < least:
                    best, least = now, energy
            elif not lasting:
                settled += 1
        return best

    def _tell(self, term: Terms, beliefs: Floats, shared: bool) -> None:
        index, count, alike = term.index, len(term.tables), term.alike
        widths = [table.shape[1] for table in term.tables]
        heard = [beliefs[index[:, s], :n] - term.messages[:, s, :n] for s, n in enumerate(widths)]
        best = [(t[None] + h[:, None, :]).min(axis=2) for t, h in zip(term.tables, heard, strict=True)]
        total = term.base[None] + sum(best)
        for s, (table, width) in enumerate(zip(term.tables, widths, strict=True)):
            said = ((total - best[s])[:, :, None] + table[None]).min(axis=1)
            if shared:
                said = (said + heard[s]) / count - heard[s]
            else:
                said = np.minimum(said - said.min(axis=1, keepdims=True), FAR / 1e3)
            more = 0.5 / alike[:, s, None] * (said - term.messages[:, s, :width])
            self._add(beliefs, term, s, more)
            term.messages[:, s, :width] += more

    def bound(self, beliefs: Floats, size: Floats) -> float:
        """A lower bound of the sum: what is least for each variable and each term on its own, with costs
        moved between them as the messages say. ``beliefs`` are those of variables that stand for ``size``
        each."""
        found = float(beliefs.min(axis=1) @ size)
        for term in self.terms:
            total = term.base[None]
            for s, table in enumerate(term.tables):
                said = term.messages[:, s, None, : table.shape[1]]
                total = total + (table[None] - said).min(axis=2)
            found += float(total.min(axis=1) @ term.count)
        return found

    # ---- Local search -----------------------------------------------------------------------------------

    def improve(self, chosen: Integers, stop: Callable[[], bool]) -> tuple[Integers, float]:
        """A choice that is no worse, and its energy: single variables move for as long as that helps, those
        without a common term at once."""
        energy, numbers = self.energy(chosen), np.arange(len(chosen))
        for _ in range(_MOVES):
            gains = self.gains(chosen)
            better, to = gains.min(axis=1), gains.argmin(axis=1)
            wants = better < -1e-6
            if not wants.any() or stop():
                break
            moved = chosen.copy()
            order = numbers[wants][np.argsort(better[wants], kind="stable")]
            moving: set[int] = set()
            near = self._neighbours(set(order.tolist()))
            for n in order.tolist():
                if n not in moving:
                    moved[n] = to[n]
                    moving |= near.get(n, set()) | {n}
            less = self.energy(moved)
            if less >= energy - 1e-6:
                break
            chosen, energy = moved, less
        return chosen, energy

    def gains(self, chosen: Integers) -> Floats:
        """The change of the sum if one variable alone had each of its values."""
        now = self.alone[np.arange(len(chosen)), chosen]
        found = np.where(self.alone < FAR, (self.alone - now[:, None]) * self.size[:, None], inf)
        for term in self.terms:
            total = term.costs(chosen)
            least = total.min(axis=1)
            for s, table in enumerate(term.tables):
                held = table[:, chosen[term.index[:, s]]].T
                then = ((total - held)[:, :, None] + table[None]).min(axis=1) - least[:, None]
                where = (term.index[:, s][:, None], np.arange(table.shape[1])[None])
                np.add.at(found, where, then * term.count[:, None])
        return found

    def _neighbours(self, among: set[int]) -> dict[int, set[int]]:
        """Of each of some variables, those of them that it shares a term with."""
        near: dict[int, set[int]] = {}
        for term in self.terms:
            for row in term.index.tolist():
                some = among.intersection(row)
                for n in some:
                    near.setdefault(n, set()).update(some)
        return near
