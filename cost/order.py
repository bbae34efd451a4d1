"""The order of the ops of a block after fusion: values that are not stored are computed in their users."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from ..program.mlir.modules import operations_in
from .storing import Storing


class Order:
    """``operations`` are the ops of a block that run on their own, in order, and ``every`` are all ops in
    program order. An op without stored results is computed in its users."""

    def __init__(self, block: Any, storing: Storing) -> None:
        self.block = block
        self.every = [op.operation for op in block.operations]
        alone = [not op.results or any(storing.of(v).stored for v in op.results) for op in self.every]
        self._runs, self._alone = alone, [n for n, own in enumerate(alone) if own]
        if storing.allocation.breadth_first:
            self._alone = self._by_breadth()
        self.operations = [self.every[n] for n in self._alone]

    @cached_property
    def times(self) -> dict[int, int]:
        """When ops run on their own, by their numbers in ``every``: the n-th at 2 n + 1."""
        return {number: 2 * n + 1 for n, number in enumerate(self._alone)}

    @cached_property
    def uses(self) -> dict[Any, list[tuple[int, int]]]:
        """The users of a value, by their numbers in ``every``, and the operand; -1: in their regions."""
        # The owners of ``value.uses`` would need a look-up, and the hash of an op reads all of its operands.
        by_value = defaultdict[Any, list[tuple[int, int]]](list)
        for n, op in enumerate(self.every):
            for number, value in enumerate(op.operands):
                by_value[value].append((n, number))
            for inner in operations_in(op) if op.regions else ():
                for value in inner.operands:
                    by_value[value].append((n, -1))
        return by_value

    def _by_breadth(self) -> list[int]:
        """First ops without needs, then ops that become ready after each of these in turn, and so on."""
        end, first = len(self.every) - 1, len(self.block.arguments)
        needs = self.needs
        pending = Counter(op for ops in needs.values() for op in ops)
        ready = deque([*range(-first, 0), *(op for op in self._alone if not pending[op])])
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
        first = len(self.block.arguments)
        given = {n - first: self.needing([value]) for n, value in enumerate(self.block.arguments)}
        return given | {n: self.needing(self.every[n].results) for n, own in enumerate(self._runs) if own}

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

    def needing(self, values: Iterable[Any]) -> list[int]:
        """The ops that run on their own and need one of these values, in program order; also through values
        that are not stored."""
        return self._needing(values, self._through)

    @cached_property
    def _through(self) -> dict[int, list[int]]:
        """The ops that need an op that does not run on its own."""
        by_op: dict[int, list[int]] = {}
        for n in reversed(range(len(self.every))):
            if not self._runs[n]:
                by_op[n] = self._needing(self.every[n].results, by_op)
        return by_op

    def _needing(self, values: Iterable[Any], through: Mapping[int, list[int]]) -> list[int]:
        users = {user for value in values for user, _ in self.uses.get(value, ())}
        return sorted({op for user in users for op in ([user] if self._runs[user] else through[user])})
