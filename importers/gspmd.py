"""``mhlo.sharding`` attributes, GSPMD's shardings, turned into sdy's before a module is imported.

As in XLA's importer (stablehlo_round_trip/stablehlo_import.cc): all shardings of the module give one mesh,
a sharding on a single device has a mesh of its own, ``@Sharding`` becomes a constraint. Beyond it, a module
may bring its mesh, ``shard_as`` groups become sharding groups, and shardings whose devices are in another
order are understood.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..errors import ShardlogError
from .diagnostics import explain
from .function import location
from .hlo_sharding import HloSharding, parse
from .meshes import Mesh, Meshes
from .shard_map import FULL_TO_SHARD, SHARD_TO_FULL, Manual, read_shard_maps
from .shardings import Shardings, read_mesh
from .source import symbols
from .tiles import common_mesh, from_sharding, subgroup_axes, to_sharding

NAME = "mhlo.sharding"
_UNSPECIFIED = re.compile(r"unspecified_dims=\[([\d,\s]*)\]")


@dataclass(frozen=True)
class _Place:
    """Where an attribute stands: ``label`` is "arg_attrs" or "res_attrs" with the number of the argument or
    result of a function, or empty for an op."""

    op: Any
    where: str
    shardings: tuple[HloSharding, ...]
    tuple: bool
    label: str = ""
    index: int = 0


def read_gspmd(module: ir.Module) -> None:
    """Turns the ``mhlo.sharding`` attributes of a module into sdy ones, in place.

    Raises ShardlogError for strings that are no shardings and for what sdy cannot say.
    """
    places = list(_places(module))
    if places:
        _Reader(module, places).run()
        try:
            module.operation.verify()
        except ir.MLIRError as error:
            message, hint = explain(error, "")
            raise ShardlogError(
                f"in sdy, the shardings of the module are not valid: {message}", hint=hint
            ) from None


def _places(module: ir.Module) -> Iterator[_Place]:
    found: list[Any] = []

    def visit(op: Any) -> ir.WalkResult:
        if NAME in op.attributes or op.name == "func.func":
            found.append(op.opview)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    for op in found:
        where = location(op)
        if NAME in op.attributes:
            shardings = _parse(op.attributes[NAME], where)
            yield _Place(op, where, *shardings)
        if op.operation.name != "func.func":
            continue
        for label, what in (("arg_attrs", "argument"), ("res_attrs", "result")):
            for index, entry in enumerate(op.attributes.get(label, ())):
                if NAME in entry:
                    place = f"{where}: {what} {index} of @{op.attributes['sym_name'].value}"
                    yield _Place(op, place, *_parse(entry[NAME], place), label, index)


@cache
def _parse(attribute: ir.Attribute, where: str) -> tuple[tuple[HloSharding, ...], bool]:
    if not isinstance(attribute, ir.StringAttr):
        raise ShardlogError(f"not a sharding: {attribute}", where=where, hint="expected a string")
    data = attribute.value_bytes
    if not data.lstrip().startswith(b"{"):  # JAX writes long lists of devices as protocol buffers
        from jaxlib import xla_client

        proto = xla_client.OpSharding()
        try:
            proto.ParseFromString(data)
            data = str(xla_client.HloSharding.from_proto(proto)).encode()
        except Exception:
            pass  # then it is no sharding, as the parser will say
    found = parse(data.decode(errors="replace"), where)
    return (found, True) if isinstance(found, tuple) else ((found,), False)


class _Reader:
    def __init__(self, module: ir.Module, places: list[_Place]) -> None:
        self.module, self.places = module, places
        self.meshes = symbols(module, "sdy.mesh")
        known = [read_mesh(name, op.attributes["mesh"]) for name, op in self.meshes.items()]
        self.shardings = Shardings(Meshes(known), {mesh.name: i for i, mesh in enumerate(known)})
        self.mesh = self.find_mesh()
        self.manual: Manual = {}
        self.texts: dict[Any, ir.Attribute] = {}

    def find_mesh(self) -> int:
        """The number of the mesh that shardings on several devices mean: the one that the module has, or one
        that is made for them."""
        own = [mesh for mesh in self.shardings.meshes.meshes if mesh.axes]
        if len(own) > 1:
            hint = "keep one, or write the shardings as sdy.sharding"
            message = f"the module has {len(own)} meshes; which one does {NAME} mean?"
            raise ShardlogError(message, where=self.places[0].where, hint=hint)
        if own:
            return self.shardings.names[own[0].name]
        everything = ((s, place.where) for place in self.places for s in place.shardings)
        return self.add_mesh(common_mesh(everything, "mesh"))

    def add_mesh(self, mesh: Mesh) -> int:
        """Declares a mesh after the others, under a name that is free."""
        ops: Any = self.module.body.operations
        taken = {op.attributes["sym_name"].value for op in ops if "sym_name" in op.attributes}
        name, suffix = mesh.name, 0
        while name in taken:
            name, suffix = f"{mesh.name}_{suffix}", suffix + 1
        axes = ", ".join(f'"{axis}"={size}' for axis, size in mesh.axes)
        devices = f", device_ids={list(mesh.device_ids)}" if mesh.device_ids else ""
        attribute = ir.Attribute.parse(f"#sdy.mesh<[{axes}]{devices}>")
        made = sdy.MeshOp(name, attribute, ip=ir.InsertionPoint.at_block_begin(self.module.body))
        if self.meshes:
            made.operation.move_after([*self.meshes.values()][-1].operation)
        self.meshes[name] = made
        self.shardings.names[name] = number = self.shardings.meshes.add(
            Mesh(name, mesh.axes, mesh.device_ids)
        )
        return number

    def run(self) -> None:
        devices = {s.devices[0] for p in self.places for s in p.shardings if s.kind == "maximal"}  # type: ignore[index]
        meshes = self.shardings.meshes.meshes
        single = {mesh.device_ids[0]: i for i, mesh in enumerate(meshes) if mesh.maximal}
        self.single = single | {
            device: self.add_mesh(Mesh(f"maximal_mesh_{device}", (), (device,)))
            for device in sorted(devices - set(single))
        }
        for place in self.places:
            if place.label:
                self.set_value(place)
            else:
                self.set_op(place)
        read_shard_maps(self.module, self.manual, list(meshes[self.mesh].sizes))

    # ---- One attribute -------------------------------------------------------------------------------------

    def attribute(
        self, sharding: HloSharding, rank: int, where: str, opened: Collection[int] = ()
    ) -> ir.Attribute:
        key = (sharding, rank, tuple(opened))
        if key not in self.texts:
            mesh = self.single[sharding.devices[0]] if sharding.kind == "maximal" else self.mesh  # type: ignore[index]
            if sharding.kind == "maximal":
                rank = 0
            shown = self.shardings.meshes.meshes[mesh]
            said = to_sharding(sharding, mesh, shown, rank, opened=opened, where=where)
            self.texts[key] = self.shardings.attribute(said, closed=False)
        return self.texts[key]

    def set_value(self, place: _Place) -> None:
        """The sharding of an argument or result of a function."""
        op, label = place.op, place.label
        entries: list[Any] = list(op.attributes[label])
        entry = {e.name: e.attr for e in entries[place.index]}
        del entry[NAME]
        if place.tuple:
            raise ShardlogError("a tuple of shardings for one value", where=place.where)
        function_type = op.attributes["function_type"].value
        inputs = label == "arg_attrs"
        rank = _rank((function_type.inputs if inputs else function_type.results)[place.index])
        sharding = place.shardings[0]
        entry["sdy.sharding"] = self.checked(entry.get("sdy.sharding"), sharding, rank, place.where)
        entries[place.index] = ir.DictAttr.get(entry)
        op.attributes[label] = ir.ArrayAttr.get(entries)
        if sharding.group is not None:
            body = op.regions[0].blocks
            if not inputs or not len(body):
                hint = "put it on the value that is returned"
                raise ShardlogError(
                    "a result of a function cannot be in a group", where=place.where, hint=hint
                )
            point = ir.InsertionPoint.at_block_begin(body[0])
            self.group(body[0].arguments[place.index], sharding, point, place.where)

    def checked(self, old: Any, sharding: HloSharding, rank: int, where: str) -> ir.Attribute:
        """The new attribute, or the old one where both notations are used and say the same."""
        new = self.attribute(sharding, rank, where)
        if old is None:
            return new
        mesh_of = self.shardings.meshes.meshes
        said, meant = (self.shardings.read(attribute, where) for attribute in (old, new))
        if from_sharding(said, mesh_of[said.mesh]) != from_sharding(meant, mesh_of[meant.mesh]):
            message = f"sdy.sharding and {NAME} contradict each other: {old} and {sharding}"
            raise ShardlogError(message, where=where, hint="leave one of them out")
        return ir.Attribute(old)

    def set_op(self, place: _Place) -> None:
        op, where = place.op, place.where
        attributes, results = op.attributes, list(op.results)
        target = _target(op)
        if target == "Sharding" and len(results) == 1 and isinstance(results[0].type, ir.RankedTensorType):
            self.set_constraint(place)
            return
        if target in (FULL_TO_SHARD, SHARD_TO_FULL):
            self.set_boundary(place)
            return
        del attributes[NAME]
        shardings = place.shardings if place.tuple else place.shardings * max(1, len(results))
        if not results:
            if shardings and shardings[0].kind == "maximal":
                attributes["sdy.sharding"] = _per_value([self.attribute(shardings[0], 0, where)])
            return
        if len(shardings) != len(results):
            message = f"a tuple of {len(shardings)} shardings for {len(results)} results"
            raise ShardlogError(
                message, where=where, hint="expected one for each; tuples have to be flattened"
            )
        old: list[Any] = [None] * len(results)
        if "sdy.sharding" in attributes:
            old = list(sdy.TensorShardingPerValueAttr(attributes["sdy.sharding"]).shardings)
        attributes["sdy.sharding"] = _per_value(
            [
                self.checked(before, sharding, _rank(result.type), where)
                for before, sharding, result in zip(old, shardings, results, strict=True)
            ]
        )
        for result, sharding in zip(results, shardings, strict=True):
            if sharding.group is not None:
                self.group(result, sharding, _after(op), where)

    def set_constraint(self, place: _Place) -> None:
        """``@Sharding`` is a constraint, and one that only names a group is no more than that."""
        op, where = place.op, place.where
        if place.tuple:
            raise ShardlogError("a tuple of shardings for one value", where=where)
        (sharding,), value = place.shardings, op.operands[0]
        point = ir.InsertionPoint(op)
        opened = _unspecified(op)
        if sharding.kind != "unknown" or sharding.group is None:
            said = self.attribute(sharding, _rank(value.type), where, opened)
            made = sdy.ShardingConstraintOp(value, said, loc=op.location, ip=point)
            value = made.results[0]
            self.manual[value] = self.manual_axes(sharding, where)
        if sharding.group is not None:
            self.group(value, sharding, point, where)
        op.results[0].replace_all_uses_with(value)
        op.operation.erase()

    def set_boundary(self, place: _Place) -> None:
        """What enters or leaves a manual computation keeps its sharding for ``read_shard_maps``."""
        op, where = place.op, place.where
        if place.tuple or len(op.results) != 1:
            raise ShardlogError("a tuple of shardings for one value", where=where)
        result, sharding = op.results[0], place.shardings[0]
        self.manual[result] = self.manual_axes(sharding, where)
        said = self.attribute(sharding, _rank(result.type), where, _unspecified(op))
        op.attributes["sdy.sharding"] = _per_value([said])
        del op.attributes[NAME]

    def manual_axes(self, sharding: HloSharding, where: str) -> tuple[str, ...]:
        mesh = self.shardings.meshes.meshes[self.mesh]
        axes = subgroup_axes(sharding, "manual", mesh, where)
        for axis in axes:
            if axis.size != mesh.sizes[axis.name]:
                message = f"{sharding} has a part of the axis {axis.name} manual, and sdy only whole axes"
                raise ShardlogError(
                    message, where=where, hint="leave the mesh out to have one found that fits"
                )
        return tuple(axis.name for axis in axes)

    def group(self, value: Any, sharding: HloSharding, point: ir.InsertionPoint, where: str) -> None:
        assert sharding.group is not None
        kind, number = sharding.group
        if kind != "shard_as":
            message = f"{kind} {number}: sdy has no groups of shardings that are only compatible"
            raise ShardlogError(message, where=where, hint="shard_as gives a group the same sharding")
        sdy.ShardingGroupOp(value, number, ip=point)


def _target(op: Any) -> str:
    """What a custom call calls; nothing for other ops."""
    if op.operation.name != "stablehlo.custom_call":
        return ""
    target: str = op.attributes["call_target_name"].value
    return target


def _unspecified(op: Any) -> tuple[int, ...]:
    """The dimensions that a custom call leaves open."""
    config = op.attributes.get("backend_config")
    match = _UNSPECIFIED.search(config.value) if isinstance(config, ir.StringAttr) else None
    return tuple(int(d) for d in match[1].split(",") if d.strip()) if match else ()


def _per_value(shardings: list[ir.Attribute]) -> ir.Attribute:
    attribute: ir.Attribute = sdy.TensorShardingPerValueAttr.get(shardings)
    return attribute


def _rank(kind: ir.Type) -> int:
    return kind.rank if isinstance(kind, ir.RankedTensorType) else 0


def _after(op: Any) -> ir.InsertionPoint:
    operations = list(op.operation.block.operations)
    return ir.InsertionPoint(operations[operations.index(op.operation.opview) + 1])
