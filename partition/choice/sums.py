"""Sums of terms over variables with a few values each, and what terms tell variables.

A term is the cost of an op: the cheapest of its ways, each of which costs something of its own and something
for what each of the op's variables is. Ways that want the same of a variable share a line of its table. Terms
with equal tables are computed together, as rows of arrays. Rows may stand for many ops, and variables for
many values, of layers that are alike. The compiled core computes this (``engine/core/src/least.rs``); where
it is not built, ``Reference`` does, and takes much longer.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from math import inf
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from .forests import Forest

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FAR = 1e18  # more than anything costs
_REPEATS = 32  # at most, of what is said in a sweep
_STEP = 0.5  # the part of a change that min-sum says at once: it may not settle otherwise


class Terms(NamedTuple):
    """Terms with equal tables: the cost of each way (``base``), for each slot the line of each way
    (``lines``) and the cost of each value of its variable (``tables``, line by value), the variables of each
    row (``variables``), and how many terms a row stands for (``counts``). Each line is that of some way."""

    base: Floats
    lines: list[Integers]
    tables: list[Floats]
    variables: Integers
    counts: Floats


class Sum(Protocol):
    """The sum of terms, and of what each variable costs on its own; and messages, by which terms tell
    variables what their values cost."""

    def energy(self, chosen: Integers) -> float:
        """The sum for a choice of values."""

    def taken(self, number: int, chosen: Integers) -> list[int]:
        """The cheapest way of each row of some terms for a choice of values, the first of those."""

    def gains(self, chosen: Integers) -> Floats:
        """The change of the sum if one variable alone had each of its values; infinity for what is none."""

    def moved(self, chosen: Integers, turn: int, held: int | None) -> Integers:
        """A choice that is no worse: all variables that hang together as trees, which the ``turn`` selects,
        have the values that are best while the others keep theirs, as one that is ``held`` does in any
        case."""

    def best(self) -> Integers:
        """The value of each variable that is best as all terms together see it, the first of those."""

    def sweep(self, backwards: bool, shared: bool, lasting: bool) -> None:
        """All terms, from the first or ``backwards``, say what the best of their ways costs for each value of
        a variable, given what the other terms say.

        Min-sum says all of it: that is exact on trees, and good elsewhere. ``shared``, it is divided among
        the variables (MPLP): the bound rises. ``lasting``, what a row says for many is said again.
        """

    def messages(self, number: int, slot: int) -> Floats:
        """What some terms say about a slot, row by value; FAR of values that cost no less than another one,
        whatever the rest is: nothing is said of these."""

    def bound(self) -> float:
        """A lower bound of the sum: what is least for each term and each variable on its own, with costs
        moved between them as the messages say."""

    def left(self) -> float:
        """The sum of what is least for each term on its own, less what it has said."""


def sum_of(terms: Sequence[Terms], alone: Floats, size: Floats) -> Sum:
    """The sum of terms, and of what each variable costs on its own (``alone``, variable by value; FAR for
    what is no value of it). ``size`` is how many variables each stands for."""
    try:
        core: Any = importlib.import_module("...engine._core", __package__)
        made = core.Sum
    except (ImportError, AttributeError):  # it is not built, or an older one
        return Reference(terms, alone, size)
    return cast(Sum, made(terms, alone, size, FAR))


class Reference:
    """The sum by NumPy."""

    def __init__(self, terms: Sequence[Terms], alone: Floats, size: Floats) -> None:
        self.alone, self.size = alone, size
        by_way = ([t[n] for n, t in zip(term.lines, term.tables, strict=True)] for term in terms)
        self.terms = [term._replace(tables=each) for term, each in zip(terms, by_way, strict=True)]
        self._instead = np.asarray(list(self._kept()))
        self._open = (self._instead == np.arange(alone.shape[1])) & (alone < FAR)  # values that are kept
        self._said = [[np.zeros((len(t.variables), table.shape[1])) for table in t.tables] for t in terms]

    def _kept(self) -> Iterator[list[int]]:
        """For each variable and each of its values one that costs no more, whatever the rest is."""
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
        found: list[int] = self._costs(self.terms[number], chosen).argmin(axis=1).tolist()
        return found

    def gains(self, chosen: Integers) -> Floats:
        now = self.alone[np.arange(len(chosen)), chosen]
        found = np.where(self.alone < FAR, (self.alone - now[:, None]) * self.size[:, None], inf)
        for term in self.terms:
            total = self._costs(term, chosen)
            least = total.min(axis=1)
            for s, table in enumerate(term.tables):
                rest = total - table[:, chosen[term.variables[:, s]]].T
                then = (rest[:, :, None] + table[None]).min(axis=1) - least[:, None]
                add_rows(found, term.variables[:, s], then * term.counts[:, None])
        return found

    def moved(self, chosen: Integers, turn: int, held: int | None) -> Integers:
        start = self._instead[np.arange(len(chosen)), chosen]
        if held is not None:
            start[held] = chosen[held]
        return Forest(self.terms, np.where(self._open, self.alone, inf), self.size, start).moved(turn, held)

    def best(self) -> Integers:
        found: Integers = np.where(self._open, self._beliefs(), inf).argmin(axis=1)
        return found

    def _beliefs(self) -> Floats:
        """What each value of each variable costs, as all terms together see it."""
        found = self.alone.copy()
        for term, said in zip(self.terms, self._said, strict=True):
            for index, messages in zip(term.variables.T, said, strict=True):
                add_rows(found, index, messages * (term.counts / self.size[index])[:, None])
        return found

    def sweep(self, backwards: bool, shared: bool, lasting: bool) -> None:
        beliefs = self._beliefs()
        numbers = range(len(self.terms))
        for number in reversed(numbers) if backwards else numbers:
            term = self.terms[number]
            often = term.counts[:, None] / self.size[term.variables]
            for _ in range(min(max(int(often.max()), 1), _REPEATS) if lasting else 1):
                self._tell(term, self._said[number], often, beliefs, shared)

    def _tell(self, term: Terms, said: list[Floats], often: Floats, beliefs: Floats, shared: bool) -> None:
        # Terms that share a variable tell it something at once, so each changes what it says by as much less.
        sharing = np.zeros(len(self.size))
        np.add.at(sharing, term.variables, term.counts[:, None])
        part = (1.0 if shared else _STEP) / np.maximum((sharing / self.size)[term.variables], 1.0)
        heard = [beliefs[i, : m.shape[1]] - m for i, m in zip(term.variables.T, said, strict=True)]
        kept = [self._open[i, : m.shape[1]] for i, m in zip(term.variables.T, said, strict=True)]
        best = [
            (t[None] + np.where(k, h, inf)[:, None]).min(axis=2)
            for t, h, k in zip(term.tables, heard, kept, strict=True)
        ]
        total = term.base[None] + sum(best)
        for s, table in enumerate(term.tables):
            new = ((total - best[s])[:, :, None] + table[None]).min(axis=1)
            if shared:
                new = (new + heard[s]) / len(term.tables) - heard[s]
            else:
                low = np.where(kept[s], new, inf).min(axis=1, keepdims=True)
                new = np.minimum(new - low, FAR / 1e3)
            more = np.where(kept[s], part[:, s, None] * (new - said[s]), 0.0)
            add_rows(beliefs, term.variables[:, s], more * often[:, s, None])
            said[s] += more

    def messages(self, number: int, slot: int) -> Floats:
        said = self._said[number][slot]
        return np.where(self._open[self.terms[number].variables[:, slot], : said.shape[1]], said, FAR)

    def bound(self) -> float:
        return float(np.where(self._open, self._beliefs(), inf).min(axis=1) @ self.size) + self.left()

    def left(self) -> float:
        found = 0.0
        for term, said in zip(self.terms, self._said, strict=True):
            total = term.base[None]
            for table, messages, index in zip(term.tables, said, term.variables.T, strict=True):
                rest = np.where(self._open[index, : table.shape[1]], -messages, inf)
                total = total + (table[None] + rest[:, None]).min(axis=2)
            found += float(total.min(axis=1) @ term.counts)
        return found


def add_rows(numbers: Floats, rows: Integers, more: Floats) -> None:
    """Adds to rows of numbers, to one that occurs several times each time."""
    np.add.at(numbers, (rows[:, None], np.arange(more.shape[1])[None]), more)
