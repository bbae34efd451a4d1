"""Moves of many variables of a sum at once, in NumPy: see ``core/src/trees.rs``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .folding import mixed


class Slot(NamedTuple):
    """A slot of a row of some terms."""

    term: int
    row: int
    slot: int


class Node(NamedTuple):
    """A variable that moves, and the row above it."""

    variable: int
    above: Slot | None


class Forest:
    """Variables that move while all others keep their values. They form trees: no two paths connect the same
    variables. ``terms`` cost something by way, and ``alone`` is infinity for values that a variable does not
    have."""

    def __init__(
        self,
        terms: Sequence[Any],
        alone: npt.NDArray[np.float64],
        size: npt.NDArray[np.float64],
        chosen: npt.NDArray[np.int64],
    ) -> None:
        self.terms, self.alone, self.size = terms, alone, size
        self.chosen, count = chosen.copy(), len(size)
        self.free = [False] * count
        self.below = alone * size[:, None]
        self.slots: list[list[Slot]] = [[] for _ in range(count)]
        for number, term in enumerate(terms):
            for row, variables in enumerate(term.variables.tolist()):
                for slot, variable in enumerate(variables):
                    self.slots[variable].append(Slot(number, row, slot))

    def moved(self, turn: int) -> npt.NDArray[np.int64]:
        """The values after one move."""
        self._grow(turn)
        nodes = list(self._nodes())
        for node in reversed(nodes):
            for slot in self._rows_below(node):
                self.below[node.variable] += self._said(slot)
        for variable, above in nodes:
            costs = self.below[variable] + (self._said(above) if above else 0.0)
            if costs.min() < costs[self.chosen[variable]]:
                self.chosen[variable] = costs.argmin()
            self.free[variable] = False  # for its children and siblings
        return self.chosen

    def _grow(self, turn: int) -> None:
        """Frees variables in the order of a turn, except those that would close a cycle."""
        tree = list(range(len(self.free)))
        held: dict[tuple[int, int], int] = {}  # a free variable, by row
        order = np.argsort(mixed(np.uint64(turn << 32) ^ np.arange(len(tree), dtype=np.uint64)))
        for variable in order.tolist():
            rows = [(slot.term, slot.row) for slot in self.slots[variable]]
            others = [_root(tree, held[row]) for row in rows if row in held]
            if len(set(others)) == len(others):
                self.free[variable] = True
                for other in others:
                    tree[other] = variable
                held.update(dict.fromkeys(rows, variable))

    def _nodes(self) -> Iterator[Node]:
        """The free variables, parents first."""
        seen = [not free for free in self.free]
        for first in range(len(seen)):
            waiting = [] if seen[first] else [Node(first, None)]
            seen[first] = True
            while waiting:
                node = waiting.pop()
                for slot in self._rows_below(node):
                    variables = self.terms[slot.term].variables[slot.row].tolist()
                    for place, other in enumerate(variables):
                        if not seen[other]:
                            seen[other] = True
                            waiting.append(Node(other, slot._replace(slot=place)))
                yield node

    def _rows_below(self, node: Node) -> Iterator[Slot]:
        """The slots of a variable in rows that are not above it."""
        return (slot for slot in self.slots[node.variable] if not node.above or slot[:2] != node.above[:2])

    def _said(self, at: Slot) -> npt.NDArray[np.float64]:
        """The cost of a row by each value in one of its slots, with the best values of its other free
        variables."""
        term = self.terms[at.term]
        count, total = term.counts[at.row], term.base
        for slot, (table, variable) in enumerate(zip(term.tables, term.variables[at.row], strict=True)):
            if slot != at.slot and self.free[variable]:
                below = self.below[variable, : table.shape[1]] / count
                total = total + (table + below).min(axis=1)
            elif slot != at.slot:
                total = total + table[:, self.chosen[variable]]
        costs = np.zeros(self.alone.shape[1])
        table = term.tables[at.slot]
        costs[: table.shape[1]] = (total[:, None] + table).min(axis=0) * count
        return costs


def _root(tree: list[int], variable: int) -> int:
    """The variable that represents a variable's tree."""
    while tree[variable] != variable:
        variable = tree[variable]
    return variable
