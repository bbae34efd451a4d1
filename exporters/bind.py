"""Shardings that bind: constraints in place of the shardings on ops, of which XLA takes no notice.

XLA's importer keeps the shardings of arguments, results, constraints and manual computations, and propagates
anew. So what rules or schedules of one's own decided reaches an executable only as constraints. Shardings on
ops are left out: XLA even refuses those of a loop that carries what it never changes.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..program.modules import boundary_attributes, copy_of, main_function, ops_in, symbols, with_attributes
from ..program.shardings import read_mesh
from ..rulebook.book import family


def bind(module: ir.Module) -> ir.Module:
    """A copy of an annotated module in which the shardings of all values bind."""
    copy = copy_of(module)
    with module.context, ir.Location.unknown():
        for op in ops_in(copy):
            if "sdy.sharding" not in op.attributes:
                continue
            shardings = sdy.TensorShardingPerValueAttr(op.attributes["sdy.sharding"]).shardings
            del op.attributes["sdy.sharding"]
            for index, sharding in enumerate(shardings):
                _bind(op, index, sharding)
        _bind_boundary(copy)
    return copy


def _bind_boundary(module: ir.Module) -> None:
    """What enters or leaves without a sharding is replicated; XLA would decide otherwise."""
    functions, meshes = symbols(module, "func.func"), symbols(module, "sdy.mesh")
    mesh = next((n for n, op in meshes.items() if read_mesh(n, op.attributes["mesh"]).axes), None)
    if mesh is None:
        return
    main = functions[main_function(functions)]
    for label, types in (("arg_attrs", main.type.inputs), ("res_attrs", main.type.results)):
        entries = boundary_attributes(main, label)
        for i, (entry, type_) in enumerate(zip(entries, types, strict=True)):
            if "sdy.sharding" not in entry and isinstance(type_, ir.RankedTensorType):
                closed = [sdy.DimensionShardingAttr.get([], is_closed=True)] * type_.rank
                sharding = sdy.TensorShardingAttr.get(mesh, closed)
                entries[i] = with_attributes(entry, {"sdy.sharding": sharding})
        main.attributes[label] = ir.ArrayAttr.get(entries)


def _bind(op: Any, index: int, sharding: Any) -> None:
    """Puts constraints on a result of an op, and on what a loop carries for it."""
    if not isinstance(op.results[index].type, ir.RankedTensorType) or not op.results[index].type.rank:
        return
    if op.operation.name in family("carries_op"):
        _before(op, index, sharding)
        for region in op.regions:
            block = region.blocks[0]
            _follow(block.arguments[index], sharding, ir.InsertionPoint.at_block_begin(block))
        if op.regions:
            _before(list(op.regions[-1].blocks[0].operations)[-1], index, sharding)
    _follow(op.results[index], sharding, ir.InsertionPoint.after(op))


def _before(op: Any, index: int, sharding: Any) -> None:
    """Constrains an operand."""
    made = sdy.ShardingConstraintOp(op.operands[index], sharding, loc=op.location, ip=ir.InsertionPoint(op))
    op.operands[index] = made.operation.results[0]


def _follow(value: Any, sharding: Any, point: ir.InsertionPoint) -> None:
    """Constrains a value for all that use it."""
    if not any(True for _ in value.uses):
        return
    made = sdy.ShardingConstraintOp(value, sharding, loc=value.location, ip=point)
    value.replace_all_uses_except(made.operation.results[0], made.operation)
