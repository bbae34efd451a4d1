"""The memory that a program needs: tensors live from where they are made to where they are used last."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from ..program.elements import size_of
from ..program.modules import main_function, symbols
from ..rulebook.book import lowerings


def peak_memory(module: ir.Module) -> int:
    """The most bytes that are live at once on a device. Nothing is fused and nothing written in place, so
    XLA needs less; arguments live throughout."""
    functions = symbols(module, "func.func")
    known: dict[str, int] = {}

    def of_function(name: str) -> int:
        if name not in known:
            known[name] = 0  # of a function that calls itself, which no module has
            block = functions[name].regions[0].blocks[0]
            body = block.operations[0]
            if body.operation.name == "sdy.manual_computation":  # the parts of the arguments are in its block
                block = body.regions[0].blocks[0]
            known[name] = sum(map(_size, block.arguments)) + of_block(block)
        return known[name]

    forms = lowerings()

    def inside(op: Any) -> int:
        form = forms.get(op.operation.name)
        if form == "call":
            return of_function(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)
        if form not in ("loop", "branches", "body"):
            return 0
        return max((of_block(block) for region in op.regions for block in region), default=0)

    def of_block(block: Any) -> int:
        operations = list(block.operations)
        last = {op.operation: n for n, op in enumerate(operations)}
        ends: dict[int, int] = {}
        live = most = 0
        for n, op in enumerate(operations):
            made = sum(map(_size, op.results))
            live += made
            most = max(most, live + inside(op))
            for value in op.results:
                end = max((_in(block, use.owner, last) for use in value.uses), default=n)
                ends[end] = ends.get(end, 0) + _size(value)
            live -= ends.pop(n, 0)
        return most

    return of_function(main_function(functions))


def _size(value: Any) -> int:
    return size_of(str(value.type))


def _in(block: Any, op: Any, last: dict[Any, int]) -> int:
    """The number of the op of a block that an op is, or stands in."""
    operation = op.operation
    while operation not in last:
        operation = operation.parent.operation
    return last[operation]
