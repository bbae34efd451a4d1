"""Refuses collectives that some devices of their group may not reach, by ``rules/dialects/alike.dl``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from ...errors import ShardlogError
from ...program.function import location
from ...program.meshes import symbol
from ...program.mlir.modules import operations_in
from ...program.mlir.origins import location_text, origin
from ...program.mlir.types import FunctionOp, Operation
from ...rulebook.shipped import shipped
from .grids import axis_lists, integers

_HINT = (
    "reduce what it depends on first: shard.all_reduce along that axis, with reduction = max if one device "
    "is enough, or min if all must agree"
)


@cache
def _exchanges() -> frozenset[str]:
    """The names of the ops at which devices wait for each other."""
    return frozenset(name for (name,) in shipped("dialects/alike").evaluate({})["exchanges"])


def exchanges_inside(function: FunctionOp) -> bool:
    """Whether the program of a device has a collective in a branch or a loop."""
    names, ops = _exchanges(), operations_in(function.operation)
    return any(op.name in names and op.operation.parent != function.operation for op in ops)


def check_reached(function: FunctionOp, sizes: Sequence[int], alike: Sequence[Collection[int]]) -> None:
    """Checks the program of each device of a grid with axes of these sizes. Devices along the axes ``alike``
    are given the same, by argument.

    Raises ShardlogError for a collective in a branch or loop that depends on a value which may differ
    between devices that wait for each other there.
    """
    if exchanges_inside(function):
        _Check(function, operations_in(function.operation), sizes, alike).run()


class _Check:
    def __init__(
        self,
        function: FunctionOp,
        ops: Sequence[Any],
        sizes: Sequence[int],
        alike: Sequence[Collection[int]],
    ) -> None:
        self.function, self.ops, self.alike = function, ops, alike
        self.numbers = {op: number for number, op in enumerate(ops)}
        self.values = list[Any]()  # by number
        self.number = dict[Any, int]()
        self.facts = defaultdict[str, list[tuple[Any, ...]]](list)
        self.facts["axis"] = [(axis,) for axis, size in enumerate(sizes) if size > 1]

    def run(self) -> None:
        arguments = self.function.regions[0].blocks[0].arguments
        for value, axes in zip(arguments, self.alike, strict=True):
            self.facts["given"] += [
                (self.of(value), axis) for (axis,) in self.facts["axis"] if axis not in axes
            ]
        for number, op in enumerate(self.ops):
            self.read(number, op)
        found = shipped("dialects/alike").evaluate(self.facts)
        if found["blocked"]:
            outer, axis, op = min(found["blocked"])
            source = min(value for other, along, value in found["because"] if (other, along) == (outer, axis))
            self.refuse(outer, op, axis, source)

    def of(self, value: Any) -> int:
        """The number of a value."""
        if value not in self.number:
            self.number[value] = len(self.values)
            self.values.append(value)
        return self.number[value]

    def read(self, number: int, op: Operation) -> None:
        """Notes the facts about an op."""
        facts = self.facts
        facts["op"].append((number, op.name))
        facts["operand"] += [(number, i, self.of(value)) for i, value in enumerate(op.operands)]
        facts["result"] += [(number, i, self.of(value)) for i, value in enumerate(op.results)]
        if (outer := self.numbers.get(op.operation.parent)) is not None:
            facts["inside"].append((number, outer))
        listed = _listed(op)
        facts["listed"] += [(number, position, axis) for position, axis in enumerate(listed)]
        facts["lists_axes"] += [(number,)] * bool(listed)
        for r, region in enumerate(op.regions):
            facts["region"].append((number, r))
            for block in region.blocks:
                handed = [value for end in list(block.operations)[-1:] for value in end.operation.operands]
                facts["taken"] += [(number, r, i, self.of(value)) for i, value in enumerate(block.arguments)]
                facts["handed"] += [(number, r, i, self.of(value)) for i, value in enumerate(handed)]

    def refuse(self, outer: int, op: int, axis: int, source: int) -> None:
        """Raises ShardlogError for a collective in a branch or loop that depends on a value."""
        waiting = f"{self.ops[op].name}{_line(self.ops[op])} waits for them"
        message = f"devices along axis {axis} may decide differently, and {waiting}: it depends on "
        raise ShardlogError(message + self.name(source), where=location(self.ops[outer]), hint=_HINT)

    def name(self, number: int) -> str:
        """What a value is, for a message."""
        value = self.values[number]
        arguments = list(self.function.regions[0].blocks[0].arguments)
        if value in arguments:
            return f"argument {arguments.index(value)} of {symbol(self.function.name.value)}"
        op = value.owner.operation  # values begin to differ nowhere else
        return f"{op.name}{_line(op)}"


def _listed(op: Operation) -> list[int]:
    """The axes that an op on a grid names, outermost first."""
    if "grid" not in op.attributes:
        return []
    if op.name in _exchanges() and "split_axes" in op.attributes:  # neighbours exchange halos
        return [axis for axes in axis_lists(op.attributes["split_axes"]) for axis in axes]
    return [axis for label in ("grid_axes", "axes") for axis in integers(op.attributes.get(label))]


def _line(op: Operation) -> str:
    """The line of an op in the program, if known."""
    frames = origin(location_text(op)).frames
    return f" in line {frames[0].line}" if frames else ""
