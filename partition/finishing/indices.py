"""Index tensors, which ops of StableHLO do not take: they compute 64-bit integers, between conversions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jaxlib.mlir import ir

from ...program.mlir.modules import is_used, operations_in
from ...program.mlir.types import Operation

_CAST, _CONSTANT, _DIALECT = "arith.index_cast", "stablehlo.constant", "stablehlo."


def has_indices(ops: Iterable[Operation]) -> bool:
    """Whether an operand or a result of some ops is an index tensor."""
    return any(_is_index(value) for op in ops for value in (*op.operands, *op.results))


def compute_integers(module: ir.Module) -> None:
    """Makes the index tensors of ops of StableHLO, in a module, 64-bit integers."""
    with module.context:
        ops = [op for op in operations_in(module) if op.name.startswith(_DIALECT)]
        casts = list[Any]()
        for op in ops:
            if op.name == _CONSTANT and _is_index(op.results[0]):
                value = str(op.attributes["value"]).removesuffix("index>")
                op.attributes["value"] = ir.Attribute.parse(f"{value}i64>")
            if len(op.results):
                casts += _made_integers(op.results, ir.InsertionPoint.after(op))
            for block in (block for region in op.regions for block in region.blocks):
                casts += _made_integers(block.arguments, ir.InsertionPoint.at_block_begin(block))
        for op in ops:
            for i, operand in enumerate(op.operands):
                if _is_index(operand):
                    op.operands[i] = _as_integers(operand, op)
        for cast in casts:
            if not is_used(cast):
                cast.erase()


def _made_integers(values: Iterable[Any], place: ir.InsertionPoint) -> list[Any]:
    """Changes the type of index tensors among values. Returns the conversions back, which their users get."""
    casts = list[Any]()
    for value in values:
        if _is_index(value):
            index = value.type
            value.set_type(_in_integers(index))
            casts.append(ir.Operation.create(_CAST, [index], [value], loc=value.location, ip=place))
            value.replace_all_uses_except(casts[-1].result, casts[-1])
    return casts


def _as_integers(value: Any, user: Any) -> Any:
    """An index tensor as integers: what it was converted from, or a conversion in front of its user."""
    owner, type_ = value.owner, _in_integers(value.type)
    if not isinstance(owner, ir.Block) and owner.operation.name == _CAST:
        source = owner.operation.operands[0]
        if source.type == type_:
            return source
    place = ir.InsertionPoint(user)
    return ir.Operation.create(_CAST, [type_], [value], loc=user.location, ip=place).result


def _is_index(value: Any) -> bool:
    """Whether a value is an index tensor."""
    type_ = value.type
    return isinstance(type_, ir.RankedTensorType) and isinstance(type_.element_type, ir.IndexType)


def _in_integers(type_: Any) -> ir.Type:
    """The type of an index tensor as 64-bit integers."""
    return ir.RankedTensorType.get(type_.shape, ir.IntegerType.get_signless(64), loc=ir.Location.unknown())
