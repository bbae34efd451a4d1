"""Nested modules: how other tools treat them, and where they end."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from ...errors import ShardlogError
from ...program.function import location
from ...program.signature import text_of


def open_module(module: ir.Module) -> bool:
    """Puts the ops of a module that is all that another one holds in that one, in place; whether there was
    such. Raises ShardlogError for a module beside other ops: calls do not lead out of it or into it."""
    opened = False
    while inner := [op.operation for op in module.body.operations if op.operation.name == "builtin.module"]:
        first: Any = inner[0]
        if len(module.body.operations) > 1:
            name = f" @{text_of(first.attributes['sym_name'])}" if "sym_name" in first.attributes else ""
            hint = "give one module at a time, or move all functions into one"
            raise ShardlogError(f"a module{name} in the module", where=location(first), hint=hint)
        for op in list(first.regions[0].blocks[0].operations):
            op.operation.move_before(first)
        for label in first.attributes:
            module.operation.attributes[label] = first.attributes[label]
        first.erase()
        opened = True
    return opened
