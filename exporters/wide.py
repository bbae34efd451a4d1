"""A program in 64 bits: the exact meaning of a program with narrower types."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from ..program.mlir.modules import copy_of, ops_in, symbols
from ..rulebook.traits import OpTraits

_PRECISIONS = ("algorithm", "precision_config")  # of products, which say types of elements


def wide(module: ir.Module, traits: OpTraits) -> ir.Module:
    """A copy of a module that computes floating-point and complex numbers in 64 bits. Ops that depend on
    their types, such as casts of bits and custom calls, keep these, and convert operands and results."""
    copy, own = copy_of(module), traits.family("keeps_types_op")
    with copy.context, ir.Location.unknown():
        ops = [op.operation for op in ops_in(copy)]
        kept = [(op, [v.type for v in op.operands]) for op in ops if op.name in own]
        for op in ops:
            for label in _PRECISIONS:
                if label in op.attributes:
                    del op.attributes[label]
            for value in () if op.name in own else op.results:
                value.set_type(_widened(value.type))
            for region in op.regions:
                for block in region.blocks:
                    for argument in block.arguments:
                        argument.set_type(_widened(argument.type))
        for op, types in kept:
            _convert_around(op, types)
        for function in symbols(copy, "func.func").values():
            inputs, results = map(list, (function.type.inputs, function.type.results))
            kind = ir.FunctionType.get(list(map(_widened, inputs)), list(map(_widened, results)))
            function.attributes["function_type"] = ir.TypeAttr.get(kind)
    return copy


def _convert_around(op: ir.Operation, types: list[ir.Type]) -> None:
    before, after = ir.InsertionPoint(op), ir.InsertionPoint.after(op)
    for i, (value, kind) in enumerate(zip(list(op.operands), types, strict=True)):
        if value.type != kind:
            op.operands[i] = stablehlo.ConvertOp(kind, value, ip=before).result
    for value in op.results:
        if (kind := _widened(value.type)) != value.type:
            conversion = stablehlo.ConvertOp(kind, value, ip=after)
            value.replace_all_uses_except(conversion.result, conversion.operation)


def _widened(kind: ir.Type) -> Any:
    if not isinstance(kind, ir.RankedTensorType):
        return kind
    element = kind.element_type
    if isinstance(element, ir.ComplexType):
        return ir.RankedTensorType.get(kind.shape, ir.ComplexType.get(ir.F64Type.get()), kind.encoding)
    if isinstance(element, ir.FloatType):
        return ir.RankedTensorType.get(kind.shape, ir.F64Type.get(), kind.encoding)
    return kind
