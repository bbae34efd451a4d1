"""Sums of terms over variables with a few values each, and messages from terms to variables.

A term is the cost of an op: the cheapest of its ways. Each way has a cost of its own, and a cost for the
value of each of the op's variables. Ways that need the same of a variable share a line of its table. Terms
with equal tables are computed together, as rows of arrays. A row may stand for many ops, and a variable for
many values, of equal layers. The compiled core computes this (the crate in ``core/``). Without it,
``Reference`` does, much more slowly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from .forests import Forest

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FAR = 1e18  # above all costs
_REPEATS = 32  # at most, of repeated messages in a sweep


class Terms(NamedTuple):
    """Terms with equal tables.

    ``base`` is the cost of each way. ``lines`` has, for each slot, the line of each way, and ``tables`` the
    cost of each value of the slot's variable, line by value. Every line belongs to some way. ``variables``
    are the variables of each row, and ``counts`` the number of terms that a row stands for.
    """

    base: Floats
    lines: list[Integers]
    tables: list[Floats]
    variables: Integers
    counts: Floats


class Saying(NamedTuple):
    """How rows send messages about the cost of their best ways: the part of a change that is sent at once;
    and whether each variable gets the full message, or variables share it. A variable without later rows gets
    ``left`` for each part of the others."""

    step: float
    left: float | None = None


# Min-sum: exact on trees, and good elsewhere. It may not settle if it says more at once.
ALL = Saying(0.8)
# Those that rows to come have carry nearly all on: soon the bound is near the least (sequential reweighted
# message passing; Kolmogorov, 2015).
ONWARDS = Saying(1.0, 0.1)
# Equal shares (MPLP; Globerson and Jaakkola, 2007), a little at a time. Equal variables get equal messages,
# and the bound is hardly lower if their members may differ.
EQUALLY = Saying(0.3, 1.0)


class Sum(Protocol):
    """The sum of terms, and of the cost of each variable on its own; with the messages from terms to
    variables."""

    def energy(self, chosen: Integers) -> float:
        """The sum for a choice of values."""

    def taken(self, number: int, chosen: Integers) -> list[int]:
        """The cheapest way of each row of some terms for a choice of values; of equal ones the first."""

    def gains(self, chosen: Integers) -> Floats:
        """The change of the sum if one variable alone had each of its values; infinity for values that it
        does not have."""

    def moved(self, chosen: Integers, turn: int) -> Integers:
        """A choice that is no worse. The ``turn`` selects trees of variables, and these get the best values
        while all others keep theirs."""

    def best(self) -> Integers:
        """The value of each variable that is best by all messages; of equal ones the first."""

    def sweep(self, backwards: bool, saying: Saying, lasting: bool) -> None:
        """All rows send messages, from the first or ``backwards``, in the order of their variables: the cost
        of their best way for each value of a variable, given the other messages. ``lasting``: a row that
        stands for many repeats its message."""

    def messages(self, number: int, slot: int) -> Floats:
        """The messages of some terms to a slot, row by value. FAR for values that are never better than
        another one; they get no messages."""

    def bound(self) -> float:
        """A lower bound of the sum: the least of each term and each variable on its own, with costs moved
        between them by the messages."""

    def left(self) -> float:
        """The sum of the least of each term on its own, minus its messages."""


def sum_of(terms: Sequence[Terms], alone: Floats, size: Floats) -> Sum:
    """The sum of terms, and of the cost of each variable on its own (``alone``, variable by value; FAR for
    values that it does not have). ``size`` is the number of variables that each stands for."""
    try:
        from ._core import Sum as CoreSum
    except ImportError:  # it is not built
        return Reference(terms, alone, size)
    return CoreSum(terms, alone, size, FAR)


class Reference:
    """The sum in NumPy."""

    def __init__(self, terms: Sequence[Terms], alone: Floats, size: Floats) -> None:
        self.alone, self.size = alone, size
        by_way = ([t[n] for n, t in zip(term.lines, term.tables, strict=True)] for term in terms)
        self.terms = [term._replace(tables=each) for term, each in zip(terms, by_way, strict=True)]
        self._instead = np.asarray(list(self._kept()))
        self._open = (self._instead == np.arange(alone.shape[1])) & (alone < FAR)  # values that are kept
        self._said = [[np.zeros((len(t.variables), table.shape[1])) for table in t.tables] for t in terms]
        rows = [(number, row) for number, term in enumerate(terms) for row in range(len(term.variables))]
        self._order = sorted(rows, key=lambda each: self._ends_of(*each))
        self._places = np.tile(
            [len(rows), 0], (len(size), 1)
        )  # of the first and the last row with a variable
        for place, (number, row) in enumerate(self._order):
            for variable in self.terms[number].variables[row]:
                self._places[variable] = min(self._places[variable, 0], place), place

    def _kept(self) -> Iterator[list[int]]:
        """For each variable and each value, one that costs no more, whatever the others are."""
        worse = [np.subtract.outer(costs, costs) * n for costs, n in zip(self.alone, self.size, strict=True)]
        for term in self.terms:
            for table, variables in zip(term.tables, term.variables.T.tolist(), strict=True):
                apart, k = (table[:, :, None] - table[:, None]).max(axis=0), table.shape[1]
                for variable, count in zip(variables, term.counts, strict=True):
                    worse[variable][:k, :k] += apart * count
        for most, costs in zip(worse, self.alone, strict=True):
            instead, left = list(range(len(costs))), np.flatnonzero(costs < FAR).tolist()
            for value in list(left):
                better = (n for n in left if n != value and (most[n, value], n) < (0.0, value))
                if (other := next(better, None)) is not None:
                    instead[value] = other
                    left.remove(value)
            for value in range(len(instead)):
                while instead[instead[value]] != instead[value]:
                    instead[value] = instead[instead[value]]
            yield instead

    def _ends_of(self, number: int, row: int) -> tuple[int, int]:
        """The last variable of a row, and the first."""
        variables = self.terms[number].variables[row]
        return int(variables.max()), int(variables.min())

    def _costs(self, term: Terms, chosen: Integers) -> Floats:
        """The cost of each way of each row."""
        total = np.repeat(term.base[None], len(term.variables), axis=0)
        for s, table in enumerate(term.tables):
            total = total + table[:, chosen[term.variables[:, s]]].T
        return total

    def energy(self, chosen: Integers) -> float:
        own = self.alone[np.arange(len(chosen)), chosen] * self.size
        return float(own.sum() + sum(self._costs(t, chosen).min(axis=1) @ t.counts for t in self.terms))

    def taken(self, number: int, chosen: Integers) -> list[int]:
        ways: list[int] = self._costs(self.terms[number], chosen).argmin(axis=1).tolist()
        return ways

    def gains(self, chosen: Integers) -> Floats:
        now = self.alone[np.arange(len(chosen)), chosen]
        gains = np.where(self.alone < FAR, (self.alone - now[:, None]) * self.size[:, None], inf)
        for term in self.terms:
            total = self._costs(term, chosen)
            least = total.min(axis=1)
            for s, table in enumerate(term.tables):
                rest = total - table[:, chosen[term.variables[:, s]]].T
                then = (rest[:, :, None] + table[None]).min(axis=1) - least[:, None]
                add_rows(gains, term.variables[:, s], then * term.counts[:, None])
        return gains

    def moved(self, chosen: Integers, turn: int) -> Integers:
        start = self._instead[np.arange(len(chosen)), chosen]
        return Forest(self.terms, np.where(self._open, self.alone, inf), self.size, start).moved(turn)

    def best(self) -> Integers:
        values: Integers = np.where(self._open, self._beliefs(), inf).argmin(axis=1)
        return values

    def _beliefs(self) -> Floats:
        """The cost of each value of each variable by all messages."""
        beliefs = self.alone.copy()
        for term, sent in zip(self.terms, self._said, strict=True):
            for index, messages in zip(term.variables.T, sent, strict=True):
                add_rows(beliefs, index, messages * (term.counts / self.size[index])[:, None])
        return beliefs

    def sweep(self, backwards: bool, saying: Saying, lasting: bool) -> None:
        beliefs, order = self._beliefs(), self._order
        places = range(len(order))
        for place in reversed(places) if backwards else places:
            number, row = order[place]
            term = self.terms[number]
            variables = term.variables[row]
            ends = self._places[variables]
            to_come = ends[:, 0] < place if backwards else ends[:, 1] > place
            shares = np.where(to_come, 1.0, 1.0 if saying.left is None else saying.left)
            often = term.counts[row] / self.size[variables]
            for _ in range(min(max(int(often.max()), 1), _REPEATS) if lasting else 1):
                self._tell(number, row, often, beliefs, saying, shares / shares.sum())

    def _tell(
        self, number: int, row: int, often: Floats, beliefs: Floats, saying: Saying, shares: Floats
    ) -> None:
        term, sent = self.terms[number], [messages[row] for messages in self._said[number]]
        variables = term.variables[row].tolist()
        heard = [beliefs[v, : len(m)] - m for v, m in zip(variables, sent, strict=True)]
        kept = [self._open[v, : len(m)] for v, m in zip(variables, sent, strict=True)]
        best = [
            (t + np.where(k, h, inf)).min(axis=1) for t, h, k in zip(term.tables, heard, kept, strict=True)
        ]
        total = term.base + sum(best)
        for s, (variable, table) in enumerate(zip(variables, term.tables, strict=True)):
            new = ((total - best[s])[:, None] + table).min(axis=0)
            if saying.left is not None:
                new = (new + heard[s]) * shares[s] - heard[s]
            else:
                new = np.minimum(new - np.where(kept[s], new, inf).min(), FAR / 1e3)
            # A row that stands for several terms with a common variable sends them all at once, so each
            # message changes by less.
            part = saying.step / max(variables.count(variable) * often[s], 1.0)
            more = np.where(kept[s], part * (new - sent[s]), 0.0)
            beliefs[variable, : len(more)] += more * often[s]
            sent[s] += more

    def messages(self, number: int, slot: int) -> Floats:
        sent = self._said[number][slot]
        return np.where(self._open[self.terms[number].variables[:, slot], : sent.shape[1]], sent, FAR)

    def bound(self) -> float:
        return float(np.where(self._open, self._beliefs(), inf).min(axis=1) @ self.size) + self.left()

    def left(self) -> float:
        rest_of_all = 0.0
        for term, sent in zip(self.terms, self._said, strict=True):
            total = term.base[None]
            for table, messages, index in zip(term.tables, sent, term.variables.T, strict=True):
                rest = np.where(self._open[index, : table.shape[1]], -messages, inf)
                total = total + (table[None] + rest[:, None]).min(axis=2)
            rest_of_all += float(total.min(axis=1) @ term.counts)
        return rest_of_all


def add_rows(numbers: Floats, rows: Integers, more: Floats) -> None:
    """Adds to rows of numbers; rows that occur several times get all additions."""
    np.add.at(numbers, (rows[:, None], np.arange(more.shape[1])[None]), more)
