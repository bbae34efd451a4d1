"""What is the same in all turns of a loop stands before it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jaxlib.mlir import ir

from ...program.mlir.modules import operations_in
from ..building import Sent
from ..executions import Executions, in_turns, with_inner


def sent_before_loops(module: ir.Module, sent: Sequence[Sent]) -> list[Sent]:
    """The collectives of a module, in its order, those that send the same in all turns of a loop before it:
    XLA for CPUs puts them there, that for TPUs would send again in each turn."""
    counts, moved = Executions(module), False
    for loop in _loops_around(each.op for each in sent):
        same = counts.same(loop)
        moved |= put_before(loop, [each.op for each in sent if each.op in same])
    if not moved:
        return list(sent)
    place = {op: number for number, op in enumerate(operations_in(module))}
    return sorted(sent, key=lambda each: place[each.op])


def _loops_around(ops: Iterable[Any]) -> list[Any]:
    """The loops around ops, those inside of others before these."""
    depths: dict[Any, int] = {}
    for op in ops:
        around = list[Any]()
        block = op.block
        while (outer := block.owner.operation).name != "func.func":
            if in_turns(block):
                around.append(outer)
            block = outer.block
        depths.update((loop, depth) for depth, loop in enumerate(reversed(around)))
    return sorted(depths, key=lambda loop: -depths[loop])


def put_before(loop: Any, ops: Iterable[Any]) -> bool:
    """Puts those of some ops that are in a loop's body before the loop, and what they take; they do the same
    in all turns. Whether there are such."""
    block = loop.regions[1].blocks[0]
    inside = {op.operation for op in block.operations}
    moved = dict[Any, None]()

    def move(op: Any) -> None:
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
