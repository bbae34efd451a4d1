"""The order of the ops of a block after fusion: values that are not stored are computed in their users."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from .storing import Storing


class Order:
    """The order of the ops of a region's block, by their numbers in the graph of ``storing``.

    ``every`` are all ops in program order, ``operations`` those that run on their own, in order. An op
    without stored results is computed in its users.
    """

    def __init__(self, region: int, storing: Storing) -> None:
        self.region, self.graph = region, storing.graph
        self.every = self.graph.ops_of(region)
        self.arguments = self.graph.arguments[region]
        results = self.graph.results
        self._runs = {
            op: not results[op] or any(storing.at(value).stored for value in results[op]) for op in self.every
        }
        self.operations = [op for op, own in self._runs.items() if own]
        if storing.allocation.breadth_first:
            self.operations = self._by_breadth()

    @cached_property
    def times(self) -> dict[int, int]:
        """When ops run on their own: the n-th at 2 n + 1."""
        return {op: 2 * n + 1 for n, op in enumerate(self.operations)}

    def uses(self, value: int) -> Iterator[tuple[int, int]]:
        """The users of a value of the block, and the operand; -1: in their regions."""
        regions, region = self.graph.regions, self.region
        for user, operand in self.graph.uses[value]:
            if regions[user] == region:
                yield user, operand
            else:
                yield self.graph.around(user, region), -1

    def _by_breadth(self) -> list[int]:
        """First ops without needs, then ops that become ready after each of these in turn, and so on."""
        end, first = self.every[-1], len(self.arguments)
        needs = self.needs
        pending = Counter(op for ops in needs.values() for op in ops)
        ready = deque([*range(-first, 0), *(op for op in self.operations if not pending[op])])
        ordered = list[int]()
        while ready:
            node = ready.popleft()
            ordered.append(node)
            for op in needs[node]:
                pending[op] -= 1
                if not pending[op]:
                    ready.append(op)
        return [op for op in ordered[first:] if op != end] + [end]

    @cached_property
    def needs(self) -> dict[int, list[int]]:
        """The ops that run on their own and need such an op, or an argument of the block (below zero), in
        program order; also through values that are not stored."""
        first, results = len(self.arguments), self.graph.results
        given = {n - first: self.needing([value]) for n, value in enumerate(self.arguments)}
        return given | {op: self.needing(results[op]) for op, own in self._runs.items() if own}

    def before(self, number: int) -> set[int]:
        """The ops that always run before one of the ops that run on their own: its needs, and theirs."""
        earlier, left = set[int](), [number]
        while left:
            new = self._needed[left.pop()] - earlier
            earlier |= new
            left += new
        return earlier

    @cached_property
    def _needed(self) -> dict[int, set[int]]:
        """The needs of each op that runs on its own."""
        by_op = defaultdict[int, set[int]](set)
        for number, users in self.needs.items():
            for user in users if number >= 0 else ():
                by_op[user].add(number)
        return by_op

    def needing(self, values: Iterable[int]) -> list[int]:
        """The ops that run on their own and need one of these values, in program order; also through values
        that are not stored."""
        return self._needing(values, self._through)

    @cached_property
    def _through(self) -> dict[int, list[int]]:
        """The ops that need an op that does not run on its own."""
        by_op: dict[int, list[int]] = {}
        for op in reversed(self.every):
            if not self._runs[op]:
                by_op[op] = self._needing(self.graph.results[op], by_op)
        return by_op

    def _needing(self, values: Iterable[int], through: Mapping[int, list[int]]) -> list[int]:
        users = {user for value in values for user, _ in self.uses(value)}
        return sorted({op for user in users for op in ([user] if self._runs[user] else through[user])})
