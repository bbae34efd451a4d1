"""Moves loop-invariant ops before their loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jaxlib.mlir import ir

from ...program.mlir.modules import operations_in
from ...program.mlir.types import Operation
from ...rulebook.traits import OpTraits
from ..executions import Executions, with_inner
from ..writing.building import Sent


def sent_before_loops(module: ir.Module, sent: Sequence[Sent], traits: OpTraits) -> tuple[list[Sent], bool]:
    """The collectives of a module in order, with loop-invariant ones before their loop, and whether any
    moved. XLA for CPUs moves them itself; XLA for TPUs would send again in each iteration."""
    ops = {each.op for each in sent}
    if not put_before_loops(module, traits, ops.__contains__):
        return list(sent), False
    place = {op: number for number, op in enumerate(operations_in(module))}
    return sorted(sent, key=lambda each: place[each.op]), True


def put_before_loops(module: ir.Module, traits: OpTraits, which: Callable[[Operation], bool]) -> bool:
    """Moves those of some ops that are loop-invariant before loops, with their operands. Returns whether any
    moved."""
    counts, moved = Executions(module, traits), False
    for op in operations_in(module, ir.WalkOrder.POST_ORDER):
        if traits.lowering(op.name) == "loop":
            moved |= _put_before(op, [each for each in counts.same(op) if which(each)])
    return moved


def _put_before(loop: Operation, ops: Iterable[Operation]) -> bool:
    """Moves those of some ops that are in a loop's body before the loop, with their operands. They are
    loop-invariant. Returns whether any moved."""
    block = loop.regions[1].blocks[0]
    inside = {op.operation for op in block.operations}
    moved = dict[Any, None]()

    def move(op: Operation) -> None:
        for each in with_inner(op):
            for value in each.operands:
                if value.owner in inside and value.owner not in moved:
                    move(value.owner)
        moved[op] = None

    for op in ops:
        if op in inside and op not in moved:
            move(op)
    for op in moved:
        op.move_before(loop)
        for each in with_inner(op):
            for number, value in enumerate(each.operands):
                if value.owner == block:
                    each.operands[number] = loop.operands[value.arg_number]
    return bool(moved)
