"""Loops as XLA's importer leaves them: a value that a loop carries unchanged is used from outside instead.

In HLO a loop carries all that its body needs. XLA's importer removes values that the body returns
unchanged. Then it opens the shardings of the values that the loop uses from outside
(open_while_free_vars_sharding.cc), because a sharding that suits the whole program may not suit the loop.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..program.mlir.modules import operations_in, ops_in
from ..program.mlir.types import Operation

LOOP = "stablehlo.while"


def simplify_loops(module: ir.Module) -> None:
    """Changes the ``stablehlo.while``s of a module in place, inner ones first."""
    loops = _loops(module, ir.WalkOrder.POST_ORDER)
    for loop in loops:
        _take_out(loop)
    for loop in _loops(module, ir.WalkOrder.PRE_ORDER) if loops else ():
        _open(loop)


def _loops(module: ir.Module, order: ir.WalkOrder) -> list[Any]:
    return [op.opview for op in operations_in(module, order) if op.name == LOOP]


def _take_out(loop: Operation) -> None:
    """Replaces a loop by one that does not carry values that it never changes."""
    blocks = [region.blocks[0] for region in loop.regions]
    last = list(blocks[1].operations)[-1]
    same = [i for i, value in enumerate(last.operands) if value == blocks[1].arguments[i]]
    if not same:
        return
    from jaxlib.mlir.dialects import stablehlo  # whose classes of ops take long to load

    kept = [i for i in range(len(loop.operands)) if i not in same]
    for i in same:
        for block in blocks:
            block.arguments[i].replace_all_uses_with(loop.operands[i])
        loop.results[i].replace_all_uses_with(loop.operands[i])
    replacement = stablehlo.WhileOp(
        [loop.results[i].type for i in kept],
        [loop.operands[i] for i in kept],
        loc=loop.location,
        ip=ir.InsertionPoint(loop.operation),
    )
    for name in loop.attributes:
        replacement.attributes[name] = loop.attributes[name]
    stablehlo.ReturnOp([last.operands[i] for i in kept], loc=last.location, ip=ir.InsertionPoint(last))
    last.operation.erase()
    for block, region in zip(blocks, replacement.regions, strict=True):
        for i in reversed(same):
            block.erase_argument(i)
        block.append_to(region)
    for i, result in zip(kept, replacement.results, strict=True):
        loop.results[i].replace_all_uses_with(result)
    loop.operation.erase()


def _open(loop: Operation) -> None:
    """Puts an open constraint before a loop for everything with a sharding that it uses from outside."""
    free: dict[Any, list[tuple[Any, int]]] = {}
    ops = ops_in(loop)
    inner = {op.operation for op in ops}
    own = {block for op in (loop, *inner) for region in op.regions for block in region.blocks}
    for op in ops:
        for index, value in enumerate(op.operands):
            home = value.owner
            if home not in own and (isinstance(home, ir.Block) or home not in inner):
                free.setdefault(value, []).append((op, index))
    for value, uses in free.items():
        sharding = _sharding(value)
        if sharding is None or not isinstance(value.type, ir.RankedTensorType):
            continue
        opened = sdy.TensorShardingAttr.get(
            sharding.mesh_or_ref,
            [sdy.DimensionShardingAttr.get([], is_closed=False) for _ in sharding.dimension_shardings],
        )
        constraint = sdy.ShardingConstraintOp(
            value, opened, loc=loop.location, ip=ir.InsertionPoint(loop.operation)
        )
        for op, index in uses:
            op.operands[index] = constraint.operation.results[0]


def _sharding(value: Any) -> Any:
    """The sharding that a value has in the module; None: it has none."""
    home = value.owner
    if isinstance(home, ir.Block):
        if home.owner.operation.name != "func.func" or "arg_attrs" not in home.owner.attributes:
            return None
        entry: Any = home.owner.attributes["arg_attrs"][ir.BlockArgument(value).arg_number]  # type: ignore[index]
        return sdy.TensorShardingAttr(entry["sdy.sharding"]) if "sdy.sharding" in entry else None
    attributes, number = home.attributes, ir.OpResult(value).result_number
    if home.operation.name == "sdy.sharding_constraint":
        return sdy.TensorShardingAttr(attributes["sharding"])
    for name in ("out_shardings", "sdy.sharding"):
        if name in attributes:
            every = sdy.TensorShardingPerValueAttr(attributes[name]).shardings
            return sdy.TensorShardingAttr(every[number])
    return None
