"""Where the partial sums of a partitioned program begin: ops hand them on, through loops and calls too."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

from ...program.mlir.modules import symbols

if TYPE_CHECKING:
    from ...partition.layouts import Pieces
    from ...runs.partitioned import PartitionedRun


class Sums:
    """The partial sums of a partitioned program."""

    def __init__(self, program: PartitionedRun) -> None:
        self._program, self._lowering = program, program.traits.lowering

    def begin(self, purpose: object, primes: set[int]) -> list[Any]:
        """The ops that make the partial sums over some axes that a collective combines, where others hand
        them on to the op that it serves."""
        ops, seen = dict[Any, None](), set[Any]()
        waiting = self._taken(purpose, primes)
        for value in waiting:  # which grows
            if value in seen:
                continue
            seen.add(value)
            waiting += (before := list(self._before(value, primes)))
            if not before and not isinstance(value.owner, ir.Block):
                ops[value.owner.operation] = None
        return list(ops)

    def _taken(self, purpose: Any, primes: set[int]) -> list[Any]:
        """The values by which partial sums come to an op."""
        if purpose.held:
            operands = zip(purpose.op.operands, purpose.held, strict=False)
            return [value for value, layout in operands if self._among(layout.partial, primes)]
        start, value = purpose.start, purpose.value
        return (
            [value] if start is not None and value is not None and self._among(start.partial, primes) else []
        )

    def _before(self, value: Any, primes: set[int]) -> Iterator[Any]:
        """The values that hand their partial sums on to one; none where it is made of other ones."""
        owner = value.owner
        if isinstance(owner, ir.Block):
            loop = owner.owner.operation
            if self._lowering(loop.name) == "loop":
                number = ir.BlockArgument(value).arg_number
                yield from (loop.operands[number], *self._returned(loop, number))
            return
        op, number = owner.operation, value.result_number
        if len(op.regions) and self._lowering(op.name) in ("loop", "branches"):
            yield from self._returned(op, number)
        elif self._lowering(op.name) == "call":
            name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
            yield from self._returned(self._functions[name].operation, number)
        else:
            yield from (v for v in op.operands if self._is_partial(v, primes))

    @staticmethod
    def _returned(op: Any, number: int) -> Iterator[Any]:
        for region in op.regions:
            last = region.blocks[0].operations[-1]
            if number < len(last.operands):
                yield last.operands[number]

    def _is_partial(self, value: object, primes: set[int]) -> bool:
        return any(self._among(home.partial, primes) for home in self._program.homes.get(value, ()))

    def _among(self, pieces: Pieces, primes: set[int]) -> bool:
        return not primes.isdisjoint(self._program.axes.finely(pieces))

    @cached_property
    def _functions(self) -> dict[str, Any]:
        return symbols(self._program.result.module, "func.func")
