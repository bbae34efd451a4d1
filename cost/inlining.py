"""A program without calls, as compilers see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager

from ..program.mlir.modules import copy_of, main_function, ops_in, put_in_place_of, symbols

NUMBER = "shardlog.number"  # the attribute of a collective: which one of the program it is


def inlined(module: ir.Module, collectives: Sequence[Any] = ()) -> ir.Module:
    """A copy of a module in which the main function calls no other, and no op computes what one before it
    does; ``collectives`` say there by an attribute which ones they are."""
    made = copy_of(module)
    numbers = {op: n for n, op in enumerate(collectives)}
    with made.context:
        integers = ir.IntegerType.get_signless(64)
        for op, copy in zip(ops_in(module), ops_in(made), strict=True):
            if (number := numbers.get(op.operation)) is not None:
                copy.operation.attributes[NUMBER] = ir.IntegerAttr.get(integers, number)
        functions = symbols(made, "func.func")
        main = functions[main_function(functions)]
        while calls := [op for op in ops_in(main) if op.operation.name == "func.call"]:
            for call in calls:
                callee = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
                put_in_place_of(call.operation, functions[callee])
        PassManager.parse("builtin.module(cse)").run(made.operation)
    return made
