"""A program without calls, as compilers see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager

from ..partition.finishing.combining import NUMBER, sent_once
from ..partition.finishing.loops import put_before_loops
from ..program.mlir.modules import copy_of, main_function, operations_in, ops_in, put_in_place_of, symbols
from ..rulebook.traits import OpTraits
from .storing import stores


def inlined(module: ir.Module, traits: OpTraits) -> ir.Module:
    """A copy of a module in which the main function calls no other, nothing is sent or computed that is
    before, or picked where all are the same, and what is the same in all turns of a loop stands before it."""
    made, rules = without_calls(module), stores(traits)
    with made.context:
        functions = symbols(made, "func.func")
        main = functions[main_function(functions)]
        sent_once(made, traits)  # what several calls send; compilers put it before loops only then
        put_before_loops(made, traits, lambda op: rules.say("worth_moving", op.name))
        for op in operations_in(main):
            if rules.say("picks", op.name) and len(set(op.operands[1:])) == 1:
                op.results[0].replace_all_uses_with(op.operands[1])
                op.erase()
        PassManager.parse("builtin.module(cse)").run(made.operation)
    return made


def without_calls(module: ir.Module) -> ir.Module:
    """A copy of a module in which the main function calls no other."""
    made = copy_of(module)
    with made.context:
        functions = symbols(made, "func.func")
        main = functions[main_function(functions)]
        while calls := [op for op in ops_in(main) if op.operation.name == "func.call"]:
            for call in calls:
                callee = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
                put_in_place_of(call.operation, functions[callee])
    return made


def numbered(module: ir.Module, collectives: Sequence[Any]) -> ir.Module:
    """A copy of a module whose ``collectives`` say by an attribute which ones they are."""
    made = copy_of(module)
    numbers = {op: n for n, op in enumerate(collectives)}
    with made.context:
        integers = ir.IntegerType.get_signless(64)
        for op, copy in zip(ops_in(module), ops_in(made), strict=True):
            if (number := numbers.get(op.operation)) is not None:
                copy.operation.attributes[NUMBER] = ir.IntegerAttr.get(integers, number)
    return made
