"""Tuples, which HLO has and StableHLO need not have: an op that returns one returns its parts instead."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from ..program.mlir.modules import entries_of, operations_in
from ..program.mlir.types import Operation, Value

_PART, _WHOLE = "stablehlo.get_tuple_element", "stablehlo.tuple"
TUPLES = frozenset((_PART, _WHOLE))  # a module without these ops has none


def flatten_tuples(module: ir.Module) -> None:
    """Changes a module in place. Elements of tuples are replaced by the values that they were made from. An
    op whose tuple is only taken apart gets a result for each element."""
    for op in _makers(module):
        if op.operation.name == _WHOLE:
            _take_apart(op, [*op.operands])
        else:
            _return_parts(op)


def _makers(module: ir.Module) -> list[Any]:
    """The ops that return a tuple."""
    return [
        op.opview
        for op in operations_in(module)
        if op.name != _PART and len(op.results) == 1 and isinstance(op.results[0].type, ir.TupleType)
    ]


def _parts(tuple_type: ir.TupleType) -> list[ir.Type]:
    return [tuple_type.get_type(i) for i in range(tuple_type.num_types)]


def _users(value: Value) -> list[Any]:
    return [use.owner.operation for use in value.uses]


def _take_apart(op: Operation, parts: list[Value]) -> None:
    for user in _users(op.results[0]):
        if user.name == _PART:
            user.results[0].replace_all_uses_with(parts[ir.IntegerAttr(user.attributes["index"]).value])
            user.erase()
    if not _users(op.results[0]):
        op.operation.erase()


def _return_parts(op: Operation) -> None:
    """Gives an op a result for each part of its tuple, where nothing needs the tuple itself."""
    if op.regions or any(user.name != _PART for user in _users(op.results[0])):
        return
    replacement = ir.Operation.create(
        op.operation.name,
        results=_parts(ir.TupleType(op.results[0].type)),
        operands=[*op.operands],
        attributes=entries_of(op.attributes),
        loc=op.location,
        ip=ir.InsertionPoint(op.operation),
    )
    _take_apart(op, [*replacement.results])
