"""Reductions that XLA has no collective for: devices gather or exchange what they reduce, and combine it.

XLA has sums, products, maxima and minima, and of booleans ``and`` and ``or``. It does not compile collectives
that reduce numbers bit by bit.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from ...program.mlir.modules import children, ops_in
from ...program.mlir.types import Operation
from ..writing.building import element_of, shape_of
from .collectives import TO_EACH, WriterBefore, count, dimension, integer

_BITWISE = ("stablehlo.and", "stablehlo.or")
_XOR = "stablehlo.xor"


def combine_bits(module: ir.Module) -> None:
    """Writes bitwise reductions of a module as gathers and exchanges, followed by local reductions."""
    with module.context, ir.Location.unknown():
        for op in [each.operation for each in ops_in(module)]:
            if op.name == "stablehlo.all_reduce" and _is_bitwise(op):
                gather_and_combine(op)
            elif op.name == "stablehlo.reduce_scatter" and _is_bitwise(op):
                exchange_and_combine(op)


def _is_bitwise(op: Operation) -> bool:
    """Whether XLA lacks the reduction of a collective."""
    combine = children(op)[0].name
    of_numbers = str(element_of(op.operands[0])) != "i1"
    return combine == _XOR or (combine in _BITWISE and of_numbers)


def gather_and_combine(op: Operation) -> None:
    """Writes an all-reduce of one or several tensors as all-gathers, followed by the combination of what a
    device gets."""
    write, n, combine = WriterBefore(op, op.location), count(op), children(op)[0].name
    labels = ("channel_handle", "replica_groups", "use_global_device_ids")
    kept = {label: op.attributes[label] for label in labels if label in op.attributes}
    for value, result in zip([*op.operands], op.results, strict=True):
        row = write.reshaped(value, [1, *shape_of(value)])
        type_, along = write.type([n, *shape_of(value)], value), {"all_gather_dim": integer(0)}
        rows = write.one("stablehlo.all_gather", [row], type_, along | kept)
        result.replace_all_uses_with(_combined(write, combine, rows, 0, result.type))
    op.erase()


def exchange_and_combine(op: Operation) -> None:
    """Writes a reduce-scatter as an all-to-all, followed by the combination of the parts that a device
    gets."""
    write, value, combine = WriterBefore(op, op.location), op.operands[0], children(op)[0].name
    d, n, shape = dimension(op, TO_EACH[op.name]), count(op), shape_of(value)
    along = {"split_dimension": integer(d), "concat_dimension": integer(d), "split_count": integer(n)}
    kept = {a: op.attributes[a] for a in ("channel_handle", "replica_groups") if a in op.attributes}
    parts = write.one("stablehlo.all_to_all", [value], value.type, along | kept)
    parts = write.reshaped(parts, [*shape[:d], n, shape[d] // n, *shape[d + 1 :]])
    result = op.results[0]
    result.replace_all_uses_with(_combined(write, combine, parts, d, result.type))
    op.erase()


def _combined(write: WriterBefore, combine: str, value: Any, dim: int, type_: Any) -> Any:
    """A tensor whose dimension is reduced by an op."""
    element = element_of(value)
    start = write.neutral(combine, element)
    held: dict[str, ir.Attribute] = {"dimensions": ir.DenseI64ArrayAttr.get([dim])}
    place = ir.InsertionPoint(write.before)
    reduce = ir.Operation.create(
        "stablehlo.reduce", [type_], [value, start], held, None, 1, loc=write.loc, ip=place
    )
    scalar = ir.RankedTensorType.get([], element)
    block = reduce.regions[0].blocks.append(scalar, scalar, arg_locs=[write.loc] * 2)
    inside = ir.InsertionPoint(block)
    both = ir.Operation.create(combine, [scalar], [*block.arguments], loc=write.loc, ip=inside)
    ir.Operation.create("stablehlo.return", operands=[*both.results], loc=write.loc, ip=inside)
    return reduce.results[0]
