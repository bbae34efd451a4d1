"""The meshes of the annotated module: one op per distinct mesh, inlined ones lifted to ops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy, stablehlo

from ..program.meshes import Mesh
from ..program.mlir.modules import operations_in, symbols
from ..program.mlir.types import Operation
from ..program.shardings import Shardings, inlined_mesh, mesh_attribute


def write_meshes(module: ir.Module, shardings: Shardings, kinds: Iterable[Any]) -> None:
    """Keeps the first op of each mesh, adds ops for inlined meshes, and describes all of them to StableHLO.
    Collectives then name the kept op in place of equal ones. ``kinds`` has an op of each kind."""
    ops = symbols(module, "sdy.mesh")
    meshes, names = shardings.meshes.meshes, shardings.names
    kept = {name for name in ops if meshes[names[name]].name == name}
    last = [op for name, op in ops.items() if name in kept][-1:]
    same = {name: names[name] for name in ops if name not in kept}
    for name in same:
        ops.pop(name).operation.erase()
    if same or any(
        mesh is not None and not isinstance(mesh, str) for mesh in map(_grouped_by, filter(None, kinds))
    ):
        _rename(module, shardings, same)
    point = last[0].operation if last else None
    for mesh in meshes:
        if mesh.name not in ops:
            begin = ir.InsertionPoint.at_block_begin(module.body)
            ops[mesh.name] = mesh_op = sdy.MeshOp(mesh.name, mesh_attribute(mesh), ip=begin)
            if point is not None:
                mesh_op.operation.move_after(point)
            point = mesh_op.operation
        attributes = ops[mesh.name].attributes
        if "stablehlo.mesh" not in attributes:
            attributes["stablehlo.mesh"] = _described(mesh)


def _grouped_by(op: Operation) -> str | Mesh | None:
    """The mesh over whose axes a collective goes, by name or inlined; None where it lists devices."""
    attributes = op.attributes
    if "replica_groups" not in attributes or isinstance(
        attributes["replica_groups"], ir.DenseIntElementsAttr
    ):
        return None
    mesh = stablehlo.ReplicaGroupMeshAxesAttr(attributes["replica_groups"]).mesh
    return mesh.value if isinstance(mesh, ir.FlatSymbolRefAttr) else inlined_mesh(mesh)


def _rename(module: ir.Module, shardings: Shardings, same: Mapping[str, int]) -> None:
    """Makes collectives name the meshes of their axes, and only kept meshes."""
    for op in operations_in(module):
        mesh = _grouped_by(op)
        number = same.get(mesh) if isinstance(mesh, str) else None if mesh is None else shardings.lift(mesh)
        if number is not None:
            axes = stablehlo.ReplicaGroupMeshAxesAttr(op.attributes["replica_groups"]).axes
            name = ir.FlatSymbolRefAttr.get(shardings.meshes.meshes[number].name)
            op.attributes["replica_groups"] = stablehlo.ReplicaGroupMeshAxesAttr.get(name, axes)


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
