"""The order in which the ops of a block run, where compilers fuse what is not stored into what uses it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from .storing import Storing


class Order:
    """``operations`` are the ops of a block that run on their own, in the order in which they do, and
    ``every`` are all, in that of the program. An op of which no result is stored is computed where it is
    used."""

    def __init__(self, block: Any, storing: Storing) -> None:
        self.block = block
        self.every = [op.operation for op in block.operations]
        self._places = {op: n for n, op in enumerate(self.every)}
        self._alone = {
            op for op in self.every if not op.results or any(storing.of(v).stored for v in op.results)
        }
        self.operations = [op for op in self.every if op in self._alone]
        if storing.allocation.breadth_first:
            self.operations = self._by_breadth()

    def user(self, use: Any) -> Any:
        """The op of the block that uses a value, itself or in its regions."""
        operation = use.owner.operation
        while operation not in self._places:
            operation = operation.parent.operation
        return operation

    def _by_breadth(self) -> list[Any]:
        """First what needs nothing, then what has become ready by each of these in turn, and so on."""
        *_, end = self.every
        needs = self._needs
        pending = Counter(op for ops in needs.values() for op in ops)
        ready = deque([*self.block.arguments, *(op for op in self.operations if not pending[op])])
        found = list[Any]()
        while ready:
            node = ready.popleft()
            found.append(node)
            for op in needs[node]:
                pending[op] -= 1
                if not pending[op]:
                    ready.append(op)
        first = len(self.block.arguments)
        return [op for op in found[first:] if op != end] + [end]

    @cached_property
    def _needs(self) -> dict[Any, list[Any]]:
        """The ops that run on their own and need an op, or an argument of the block, in the order of the
        program; through what is not stored too."""
        found: dict[Any, list[Any]] = {}

        def needing(values: Iterable[Any]) -> list[Any]:
            users = {self.user(use) for value in values for use in value.uses}
            ops = {op for user in users for op in ([user] if user in self._alone else found[user])}
            return sorted(ops, key=self._places.__getitem__)

        for op in reversed(self.every):
            found[op] = needing(op.results)
        alone = {op: ops for op, ops in found.items() if op in self._alone}
        return alone | {argument: needing([argument]) for argument in self.block.arguments}
