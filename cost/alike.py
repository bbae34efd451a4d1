"""The values of a program that are stored alike, in columns: a large program has few kinds of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..program.columns import first_alike, numbered, told_apart, unique
from .graph import OpGraph

Integers = npt.NDArray[np.int64]


class Asked(NamedTuple):
    """A question to the rules about equal values: the first of them, its op, the op of an operand that only
    this op uses (-1: there is none), the names of its users in order, and whether it has several."""

    value: int
    maker: int
    made_from: int
    names: tuple[str, ...]
    several: bool


class Uses:
    """The values of a graph whose users are all beside their ops (``plain``), and what is asked about them.

    Without the values that ops use whose names are ``apart``, and the results of ``loop``s. ``look`` is equal
    for ops of which the rules are told the same, and for all of a kind.
    """

    def __init__(
        self,
        graph: OpGraph,
        apart: Callable[[str], bool],
        loop: Callable[[str], bool],
        look: Callable[[int], Hashable],
    ) -> None:
        count, regions, definers = len(graph.ops), np.asarray(graph.regions), np.asarray(graph.definers)
        slots, taken = flat(graph.operands)
        user = np.repeat(np.arange(count), slots)
        makers = np.where(taken >= 0, definers[taken], -1)
        # The first operand of each op that only this op uses.
        often = np.bincount(taken[taken >= 0], minlength=len(definers))
        alone = np.flatnonzero((taken >= 0) & (often[taken] == 1))
        self._made_from = np.full(count, -1)
        self._made_from[user[alone[::-1]]] = makers[alone[::-1]]  # the last one written stays
        used = unique(taken[makers >= 0] * count + user[makers >= 0])
        values, users = np.divmod(used, count)
        beside = regions[users] == regions[definers[values]]
        named, which = numbered(graph.plain)
        leaves = np.asarray([apart(name) for name in named], bool)[which][users]
        out = np.bincount(values[~beside | leaves], minlength=len(definers)) > 0
        loops = np.asarray([loop(name) for name in named], bool)[which]
        loops &= np.asarray(graph.ends) > np.arange(count) + 1
        unknown = np.bincount(user[taken < 0], minlength=count) > 0
        fits = (definers >= 0) & ~out & ~(loops | unknown)[definers]
        self.plain: Integers = np.flatnonzero(fits)
        place = np.full(len(definers), -1)
        place[self.plain] = np.arange(len(self.plain))
        self._user, self._of = users[fits[values]], place[values[fits[values]]]
        self._several = np.bincount(self._of, minlength=len(self.plain)) > 1
        self._makers, first_results = definers[self.plain], np.asarray([each.start for each in graph.results])
        firsts, kinds = told_apart(np.asarray(graph.kinds))
        _, looks = numbered(look(n) for n in firsts.tolist())
        made_from = self._made_from[self._makers]
        self._alike = first_alike(
            [
                looks[kinds][self._makers],
                self.plain - first_results[self._makers],
                np.where(made_from < 0, -1, which[made_from]),
                self._several.astype(np.int8),
            ]
        )

    def alike(self, names: Sequence[str]) -> tuple[Integers, list[Asked]]:
        """The questions about plain values if ops have these ``names``, and for each value which is its."""
        texts, which = numbered(names)
        ordered = sorted(texts)
        rank = np.asarray([ordered.index(text) for text in texts], np.int64)[which]
        of, name = np.divmod(unique(self._of * len(texts) + rank[self._user]), len(texts))
        nth, code = np.arange(len(of)) - np.searchsorted(of, of), self._alike
        for n in range(int(nth.max(initial=-1)) + 1):
            column = np.full(len(code), -1)
            column[of[nth == n]] = name[nth == n]
            code = first_alike([code, column])
        firsts, which_of = told_apart(code)
        begins, ends = np.searchsorted(of, firsts), np.searchsorted(of, firsts, "right")
        makers = self._makers[firsts]
        columns = self.plain[firsts], makers, self._made_from[makers], begins, ends, self._several[firsts]
        rows = zip(*(column.tolist() for column in columns), strict=True)
        asked = [
            Asked(value, maker, made_from, tuple([ordered[n] for n in name[a:b].tolist()]), several)
            for value, maker, made_from, a, b, several in rows
        ]
        return which_of, asked


def flat(rows: Sequence[Sequence[int]]) -> tuple[Integers, Integers]:
    """The lengths of rows, and what is in them, one after the other."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    return lengths, np.fromiter(chain.from_iterable(rows), np.int64, int(lengths.sum()))
