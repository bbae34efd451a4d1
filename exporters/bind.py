"""Binding shardings: constraints instead of shardings on ops, which XLA ignores.

XLA's importer keeps the shardings of arguments, results, constraints and manual computations, and propagates
again. So decisions of other rules or schedules reach an executable only as constraints. Shardings on ops are
omitted: on a carried value that a loop does not change, XLA even refuses them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..notations.frontend_attributes import calls_back
from ..program.mlir.modules import (
    boundary_attributes,
    copy_of,
    main_function,
    ops_in,
    symbols,
    with_attributes,
)
from ..program.mlir.types import Operation
from ..program.shardings import read_mesh
from ..rulebook.traits import OpTraits

Values = Collection[tuple[int, int]]  # the number of an op, in the order of `ops_in`, and of a result


def bind(module: ir.Module, traits: OpTraits, only: Values | None = None) -> ir.Module:
    """A copy of an annotated module in which the shardings of all values bind, or of ``only`` some. A value
    without one is replicated; otherwise XLA would decide."""
    copy, carries = copy_of(module), traits.family("carries_op")
    meshes = symbols(copy, "sdy.mesh")
    mesh = next((n for n, op in meshes.items() if read_mesh(n, op.attributes["mesh"]).axes), None)
    if mesh is None:
        return copy
    with module.context, ir.Location.unknown():
        for number, op in enumerate(ops_in(copy)):
            if op.operation.name == "sdy.reshard":  # XLA takes none
                _constrain_instead(op)
            elif "sharding" not in op.attributes and "out_shardings" not in op.attributes:
                for index, sharding in enumerate(_shardings(op, mesh)):
                    if only is None or (number, index) in only:
                        _bind(op, index, sharding, carries=op.operation.name in carries)
        _bind_boundary(copy, mesh)
    return copy


def _shardings(op: Operation, mesh: str) -> list[Any]:
    """The shardings of the results of an op, which has none of them any more."""
    if "sdy.sharding" not in op.attributes:
        return [_replicated(result.type, mesh) for result in op.results]
    shardings = [*sdy.TensorShardingPerValueAttr(op.attributes["sdy.sharding"]).shardings]
    if calls_back(op):  # on one device, for which its own sharding binds
        return []
    del op.attributes["sdy.sharding"]
    return shardings


def _replicated(type_: ir.Type, mesh: str) -> Any:
    rank = type_.rank if isinstance(type_, ir.RankedTensorType) else 0
    return sdy.TensorShardingAttr.get(mesh, [sdy.DimensionShardingAttr.get([], is_closed=True)] * rank)


def _constrain_instead(reshard: ir.Operation) -> None:
    constraint = sdy.ShardingConstraintOp(
        reshard.operands[0],
        reshard.attributes["sharding"],
        loc=reshard.location,
        ip=ir.InsertionPoint(reshard),
    )
    reshard.results[0].replace_all_uses_with(constraint.operation.results[0])
    reshard.operation.erase()


def _bind_boundary(module: ir.Module, mesh: str) -> None:
    functions = symbols(module, "func.func")
    main = functions[main_function(functions)]
    for label, types in (("arg_attrs", main.type.inputs), ("res_attrs", main.type.results)):
        entries = boundary_attributes(main, label)
        for i, (entry, type_) in enumerate(zip(entries, types, strict=True)):
            if "sdy.sharding" not in entry and isinstance(type_, ir.RankedTensorType):
                entries[i] = with_attributes(entry, {"sdy.sharding": _replicated(type_, mesh)})
        main.attributes[label] = ir.ArrayAttr.get(entries)


def _bind(op: Any, index: int, sharding: ir.Attribute, *, carries: bool) -> None:
    """Puts constraints on a result of an op, on the values that it ``carries`` like a loop, and on a region's
    returned value for it."""
    if not isinstance(op.results[index].type, ir.RankedTensorType) or not op.results[index].type.rank:
        return
    if carries:
        _before(op, index, sharding)
        for region in op.regions:
            block = region.blocks[0]
            _follow(block.arguments[index], sharding, ir.InsertionPoint.at_block_begin(block))
    for region in op.regions:
        last = list(region.blocks[0].operations)[-1]
        if index < len(last.operands) and last.operands[index].type == op.results[index].type:
            _before(last, index, sharding)
    _follow(op.results[index], sharding, ir.InsertionPoint.after(op))


def _before(op: ir.Operation, index: int, sharding: ir.Attribute) -> None:
    """Constrains an operand."""
    constraint = sdy.ShardingConstraintOp(
        op.operands[index], sharding, loc=op.location, ip=ir.InsertionPoint(op)
    )
    op.operands[index] = constraint.operation.results[0]


def _follow(value: Any, sharding: ir.Attribute, point: ir.InsertionPoint) -> None:
    """Constrains a value for all that use it."""
    if not any(True for _ in value.uses):
        return
    constraint = sdy.ShardingConstraintOp(value, sharding, loc=value.location, ip=point)
    value.replace_all_uses_except(constraint.operation.results[0], constraint.operation)
