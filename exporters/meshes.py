"""The meshes of the annotated module: one op per distinct mesh, inlined ones lifted to ops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy, stablehlo

from ..program.meshes import Mesh
from ..program.mlir.modules import operations_in, symbols
from ..program.shardings import Shardings, mesh_attribute


def write_meshes(module: ir.Module, shardings: Shardings) -> None:
    """Keeps the first op of each mesh, which collectives name in the place of those that are like it, adds
    ops for inlined meshes, and describes all of them to StableHLO."""
    ops = symbols(module, "sdy.mesh")
    kept = {mesh.name for mesh in shardings.meshes.meshes}
    last = [op for name, op in ops.items() if name in kept][-1:]
    same = {name: shardings.meshes.meshes[shardings.names[name]].name for name in ops if name not in kept}
    for name in same:
        ops[name].operation.erase()
    if same:
        _rename(module, same)
    point = last[0].operation if last else None
    for mesh in shardings.meshes.meshes:
        if mesh.name not in ops:
            begin = ir.InsertionPoint.at_block_begin(module.body)
            ops[mesh.name] = made = sdy.MeshOp(mesh.name, mesh_attribute(mesh), ip=begin)
            if point is not None:
                made.operation.move_after(point)
            point = made.operation
        attributes = ops[mesh.name].attributes
        if "stablehlo.mesh" not in attributes:
            attributes["stablehlo.mesh"] = _described(mesh)


def _rename(module: ir.Module, names: Mapping[str, str]) -> None:
    """Has collectives over axes of meshes name these otherwise."""
    for op in operations_in(module):
        attributes = op.attributes
        if "replica_groups" not in attributes:
            continue
        groups = attributes["replica_groups"]
        if isinstance(groups, ir.DenseIntElementsAttr):  # they list devices
            continue
        along: Any = stablehlo.ReplicaGroupMeshAxesAttr(groups)
        if isinstance(along.mesh, ir.FlatSymbolRefAttr) and along.mesh.value in names:
            mesh = ir.FlatSymbolRefAttr.get(names[along.mesh.value])
            attributes["replica_groups"] = stablehlo.ReplicaGroupMeshAxesAttr.get(mesh, along.axes)


def _described(mesh: Mesh) -> Any:
    i64 = ir.IntegerType.get_signless(64)
    axes = [
        ir.DictAttr.get({"name": ir.StringAttr.get(name), "size": ir.IntegerAttr.get(i64, size)})
        for name, size in mesh.axes
    ]
    entries: dict[str, Any] = {"axes": ir.ArrayAttr.get(axes)}
    if mesh.device_ids:
        ids = ", ".join(map(str, mesh.device_ids))
        entries["device_ids"] = ir.Attribute.parse(f"dense<[{ids}]> : tensor<{len(mesh.device_ids)}xi64>")
    return ir.DictAttr.get(entries)
