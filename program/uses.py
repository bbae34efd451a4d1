"""The uses of every value of a function, in the order in which they were created.

The order decides which item takes its turn first when a value changes (the agenda is a stack). So it is the
order of MLIR: an op is added after the ops in its regions, and a moved use becomes the newest.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .columns import Ints, Whole, column, numbers, spread, starts
from .function import Function


class Uses:
    """Uses as parallel arrays: ``value`` is used by ``node`` as operand ``index``; ``age`` grows with
    time."""

    def __init__(self, function: Function) -> None:
        self.function = function
        order, operands = numbers(function.order), function.operands
        position = np.full(len(function.ops), -1.0)
        position[order] = np.arange(len(order))
        self.position = array("d", position.tobytes())
        offsets = numbers(operands.offsets)
        entries, rows = spread(offsets, order)
        self.value: Ints = numbers(operands.values)[entries]
        self.node: Ints = order[rows]
        self.index: Ints = entries - offsets[self.node]
        self.age: npt.NDArray[np.float64] = position[self.node] + self.index * 1e-6
        self._newest = 2.0 * len(order) + 1
        first = np.zeros(len(position), np.int32)
        first[order] = starts((offsets[1:] - offsets[:-1])[order])[:-1]
        self._first = column(first)  # node -> where its uses start
        self._known: dict[int, list[int]] = {}  # value -> where its uses are, once it was asked for

    def end(self, node: int) -> float:
        """The position of the last node inside ``node``, or its own."""
        return self.position[self.last(node)]

    def last(self, node: int) -> int:
        """The last node inside ``node``, or itself."""
        last = node
        while regions := self.function.regions.get(last):
            inner = [r.nodes[-1] for r in regions if r.nodes]
            if not inner:
                break
            last = inner[-1]
        return last

    def after(self, value: int, *, edge: bool) -> float:
        """The position right after the definition of ``value``: after its op, or at the front of its block.
        There it is behind the value's own ``edge``, if it has one."""
        function = self.function
        node = function.definer[value]
        if node >= 0:
            return self.end(node) + 0.9 + (value - function.results[node].start) * 1e-4
        for parent, regions in function.regions.items():
            for region in regions:
                if value in region.arguments:
                    behind = region.arguments.index(value) * 1e-4 if edge else 0.0
                    if not region.nodes:
                        return self.position[parent] + 0.1 + behind
                    return self.position[region.nodes[0]] - 0.1 + behind
        return -0.5 + function.arguments.index(value) * 1e-4

    def home(self, value: int) -> tuple[int, int]:
        """The region that defines ``value``, and the node around it."""
        function = self.function
        node = function.definer[value]
        if node >= 0:
            return function.region[node], function.parent[node]
        for parent, regions in function.regions.items():
            for region in regions:
                if value in region.arguments and region.nodes:
                    return function.region[region.nodes[-1]], parent
        return function.region[function.terminator], -1

    def of(self, value: int) -> list[tuple[int, int]]:
        """(node, operand index) of the uses of ``value``, oldest first."""
        known = self._of(value)
        if len(known) <= 1:  # of most values; NumPy takes as long as for hundreds
            return [(int(self.node[i]), int(self.index[i])) for i in known]
        at = np.asarray(known, np.int64)
        at = at[np.argsort(self.age[at], kind="stable")]
        return list(zip(self.node[at].tolist(), self.index[at].tolist(), strict=True))

    def _of(self, value: int) -> list[int]:
        """Where the uses of ``value`` are."""
        if value not in self._known:
            order, bounds = self._by_value
            there = value + 1 < len(bounds)  # it is no newer than that
            self._known[value] = order[bounds[value] : bounds[value + 1]].tolist() if there else []
        return self._known[value]

    @cached_property
    def _by_value(self) -> tuple[Whole, Whole]:
        """The uses, value by value, and where the uses of each value start."""
        counts = np.bincount(self.value, minlength=len(self.function.types))
        return np.argsort(self.value, kind="stable"), starts(counts)

    def add(self, node: int, value: int) -> None:
        """The use of ``value`` by a new ``node``, its only operand; it is the newest one."""
        self._of(value).append(len(self.value))
        self._first.append(len(self.value))
        self.value, self.node = np.append(self.value, value), np.append(self.node, node)
        self.index, self.age = np.append(self.index, 0), np.append(self.age, self._newest)
        self._newest += 1
        self.position.append(-1.0)

    def move(self, node: int, index: int, value: int) -> None:
        """Operand ``index`` of ``node`` becomes ``value``; the use is the newest one of ``value``."""
        at = self._first[node] + index
        self._of(int(self.value[at])).remove(at)
        self._of(value).append(at)
        self.value[at] = value
        self.age[at] = self._newest
        self._newest += 1
        operands = list(self.function.operands[node])
        operands[index] = value
        self.function.operands[node] = tuple(operands)

    def renew(self, nodes: list[int]) -> None:
        """Makes the uses by ``nodes``, which are in program order, the newest ones."""
        if not nodes:
            return
        chosen = np.zeros(len(self.position), bool)
        chosen[nodes] = True
        marked = chosen[self.node].nonzero()[0]
        order = np.argsort(np.array(self.position)[self.node[marked]], kind="stable")
        self.age[marked[order]] = self._newest + np.arange(len(marked))
        self._newest += len(marked) + 1

    def reverse(self, values: Collection[int]) -> None:
        """Reverses the ages of the uses of some values (an edge was put between them and their uses)."""
        if values:
            reversed_ = np.zeros(len(self.function.types), bool)
            reversed_[list(values)] = True
            np.negative(self.age, out=self.age, where=reversed_[self.value])
