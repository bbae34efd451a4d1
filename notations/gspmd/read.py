"""``mhlo.sharding`` attributes, GSPMD's shardings, turned into sdy's before a module is imported.

As in XLA's importer (stablehlo_round_trip/stablehlo_import.cc): all shardings of the module give one mesh,
a sharding on a single device has a mesh of its own, ``@Sharding`` becomes a constraint. Beyond it, a module
may bring its mesh, ``shard_as`` groups become sharding groups, and shardings whose devices are in another
order are understood.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ...errors import ShardlogError
from ...program.function import location
from ...program.meshes import Mesh
from ...program.mlir.diagnostics import explain
from ...program.mlir.modules import entries_of, ops_in, symbols
from ...program.mlir.types import Operation
from ...program.shardings import Sharding, declared, mesh_attribute
from ...program.signature import text_of
from .hlo_sharding import HloSharding, parse
from .regions import FULL_TO_SHARD, SHARD_TO_FULL, check_one
from .shard_map import Manual, read_shard_maps
from .tiles import common_mesh, from_sharding, subgroup_axes, to_sharding

NAME = "mhlo.sharding"
_UNSPECIFIED = re.compile(r"unspecified_dims=\[([\d,\s]*)\]")


@dataclass(frozen=True)
class _Owner:
    """The owner of an attribute: ``label`` is "arg_attrs" or "res_attrs" with the number of the argument
    or result of a function, or empty for an op."""

    op: Any
    attribute: ir.Attribute
    label: str = ""
    index: int = 0

    @property
    def where(self) -> str:
        if not self.label:
            return location(self.op)
        end = "argument" if self.label == "arg_attrs" else "result"
        return f"{location(self.op)}: {end} {self.index} of @{text_of(self.op.attributes['sym_name'])}"

    @property
    def shardings(self) -> tuple[HloSharding, ...]:
        """Those of a tuple, or the only one."""
        if not isinstance(self.attribute, ir.StringAttr):
            raise ShardlogError(f"not a sharding: {self.attribute}", hint="expected a string")
        return _parse(self.attribute.value_bytes)

    @property
    def sharding(self) -> HloSharding:
        if len(self.shardings) != 1:
            raise ShardlogError(f"a tuple of {len(self.shardings)} shardings for one value")
        return self.shardings[0]


@contextmanager
def _at(place: _Owner) -> Iterator[None]:
    """Adds its place to an error."""
    try:
        yield
    except ShardlogError as error:
        raise ShardlogError(error.message, where=error.where or place.where, hint=error.hint) from None


@lru_cache(maxsize=1 << 10)
def _parse(data: bytes) -> tuple[HloSharding, ...]:
    if not data.lstrip().startswith(b"{"):  # JAX writes long lists of devices as protocol buffers
        from jaxlib import xla_client

        proto = xla_client.OpSharding()
        with suppress(Exception):  # then it is no sharding, as the parser will say
            proto.ParseFromString(data)
            if proto.SerializeToString() == data:  # the string is cut where it stops being a buffer
                data = _proto_text(proto).encode()
    shardings: Any = parse(data.decode(errors="replace"))  # modules with named axes are read otherwise
    return shardings if isinstance(shardings, tuple) else (shardings,)


def _proto_text(proto: Any) -> str:
    """A protocol buffer as XLA prints it. XLA itself would print a stack trace for invalid ones."""
    kind = proto.type.name.lower()
    devices = ",".join(map(str, proto.tile_assignment_devices))
    if kind == "tuple":
        return "{" + ", ".join(map(_proto_text, proto.tuple_shardings)) + "}"
    if kind == "maximal":
        kind = f"maximal device={devices}"
    elif kind == "other":
        if proto.iota_reshape_dims:
            devices = f"<=[{','.join(map(str, proto.iota_reshape_dims))}]"
            if len(proto.iota_reshape_dims) > 1:
                devices += f"T({','.join(map(str, proto.iota_transpose_perm))})"
        kind = f"devices=[{','.join(map(str, proto.tile_assignment_dimensions))}]{devices}"
        if proto.replicate_on_last_tile_dim:
            kind += " last_tile_dim_replicate"
        elif proto.last_tile_dims:
            names = [type(proto.type)(number).name.lower() for number in proto.last_tile_dims]
            kind += f" last_tile_dims={{{', '.join(names)}}}"
    if proto.is_shard_group:
        kind += f" shard_{proto.shard_group_type.name.lower()} {proto.shard_group_id}"
    return f"{{{kind}}}"


def read_gspmd(module: ir.Module) -> None:
    """Turns the ``mhlo.sharding`` attributes of a module into sdy ones, in place.

    Raises ShardlogError for strings that are no shardings, and for shardings that sdy cannot express.
    """
    places = list(_places(module))
    if places:
        _ShardingReader(module, places).run()
        try:
            module.operation.verify()
        except ir.MLIRError as error:
            message, hint = explain(error, "")
            raise ShardlogError(f"the shardings are not valid in sdy: {message}", hint=hint) from None


def _places(module: ir.Module) -> Iterator[_Owner]:
    for op in (op for op in ops_in(module) if NAME in op.attributes or op.operation.name == "func.func"):
        if NAME in op.attributes:
            yield _Owner(op, op.attributes[NAME])
        for label in ("arg_attrs", "res_attrs") if op.operation.name == "func.func" else ():
            for index, entry in enumerate(op.attributes.get(label, ())):
                if NAME in entry:
                    yield _Owner(op, entry[NAME], label, index)


class _ShardingReader:
    def __init__(self, module: ir.Module, places: list[_Owner]) -> None:
        self.module, self.places = module, places
        self.meshes = symbols(module, "sdy.mesh")
        self.shardings = declared(self.meshes)
        self.all: list[tuple[HloSharding, _Owner]] = []
        for place in places:
            with _at(place):
                self.all += [(sharding, place) for sharding in place.shardings]
        self.mesh = self.find_mesh()
        self.manual: Manual = {}
        self.attributes: dict[Any, ir.Attribute] = {}

    def find_mesh(self) -> int:
        """The number of the mesh of shardings on several devices: the module's mesh, or a new one."""
        own = [mesh for mesh in self.shardings.meshes.meshes if mesh.axes]
        if len(own) > 1:
            hint = "keep one, or write the shardings as sdy.sharding"
            message = f"the module has {len(own)} meshes; which one does {NAME} mean?"
            raise ShardlogError(message, where=self.places[0].where, hint=hint)
        if own:
            return self.shardings.names[own[0].name]
        first = dict(reversed(self.all))
        return self.add_mesh(common_mesh({s: first[s].where for s in reversed(first)}))

    def add_mesh(self, mesh: Mesh) -> int:
        """Declares a mesh after the others, under a name that is free."""
        ops: Any = self.module.body.operations
        taken = {text_of(op.attributes["sym_name"]) for op in ops if "sym_name" in op.attributes}
        name, suffix = mesh.name, 0
        while name in taken:
            name, suffix = f"{mesh.name}_{suffix}", suffix + 1
        begin = ir.InsertionPoint.at_block_begin(self.module.body)
        mesh_op = sdy.MeshOp(name, mesh_attribute(mesh), ip=begin)
        if self.meshes:
            mesh_op.operation.move_after([*self.meshes.values()][-1].operation)
        self.meshes[name] = mesh_op
        number = self.shardings.meshes.add(Mesh(name, mesh.axes, mesh.device_ids))
        self.shardings.names[name] = number
        return number

    def run(self) -> None:
        meshes = self.shardings.meshes.meshes
        devices = {_device(sharding) for sharding, _ in self.all if sharding.kind == "maximal"}
        self.single = {mesh.device_ids[0]: i for i, mesh in enumerate(meshes) if mesh.maximal}
        for device in sorted(devices - set(self.single)):
            self.single[device] = self.add_mesh(Mesh(f"maximal_mesh_{device}", (), (device,)))
        for places in [[*group] for _, group in groupby(self.places, key=lambda p: (p.op, p.label))]:
            if label := places[0].label:
                self.set_values(label, places)
            else:
                self.set_op(*places)
        read_shard_maps(self.module, meshes[self.mesh], self.manual)

    # ---- One attribute -------------------------------------------------------------------------------------

    def attribute(self, sharding: HloSharding, rank: int, opened: Collection[int] = ()) -> ir.Attribute:
        key = (sharding, rank, tuple(opened))
        if key not in self.attributes:
            if sharding.kind == "maximal":
                sdy_sharding = Sharding(self.single[_device(sharding)], ())
            else:
                mesh = self.shardings.meshes.meshes[self.mesh]
                sdy_sharding = to_sharding(sharding, self.mesh, mesh, rank, opened)
            self.attributes[key] = self.shardings.attribute(sdy_sharding, closed=False)
        return self.attributes[key]

    def set_values(self, label: str, places: list[_Owner]) -> None:
        """The shardings of the arguments or results of a function."""
        op = places[0].op
        entries: list[Any] = list(op.attributes[label])
        kind, blocks = op.attributes["function_type"].value, op.regions[0].blocks
        types = kind.inputs if label == "arg_attrs" else kind.results
        for place in places:
            with _at(place):
                index, sharding = place.index, place.sharding
                entry = entries_of(entries[index], NAME)
                entry["sdy.sharding"] = self.checked(entry.get("sdy.sharding"), sharding, types[index])
                entries[index] = ir.DictAttr.get(entry)
                if sharding.group is None:
                    continue
                if label == "res_attrs" or not len(blocks):
                    hint = "put it on the value that is returned"
                    raise ShardlogError("a result of a function cannot be in a group", hint=hint)
                point = ir.InsertionPoint.at_block_begin(blocks[0])
                self.group(blocks[0].arguments[index], sharding, point)
        op.attributes[label] = ir.ArrayAttr.get(entries)

    def checked(self, old: ir.Attribute | None, sharding: HloSharding, kind: ir.Type) -> ir.Attribute:
        """The new attribute; the old one where both notations are used and agree."""
        new = self.attribute(sharding, _rank(kind))
        if old is None:
            return new
        mesh_of = self.shardings.meshes.meshes
        sdy_sharding, gspmd_sharding = (self.shardings.read(attribute) for attribute in (old, new))
        if from_sharding(sdy_sharding, mesh_of[sdy_sharding.mesh]) != from_sharding(
            gspmd_sharding, mesh_of[gspmd_sharding.mesh]
        ):
            message = f"sdy.sharding and {NAME} contradict each other: {old} and {sharding}"
            raise ShardlogError(message, hint="leave one of them out")
        return ir.Attribute(old)

    def set_op(self, place: _Owner) -> None:
        target = _target(place.op)
        with _at(place):
            if target in ("Sharding", FULL_TO_SHARD, SHARD_TO_FULL):
                check_one(place.op)
            if target in (FULL_TO_SHARD, SHARD_TO_FULL):
                self.set_boundary(place)
            elif target == "Sharding" and isinstance(place.op.results[0].type, ir.RankedTensorType):
                self.set_constraint(place)
            else:
                self.set_results(place)

    def set_results(self, place: _Owner) -> None:
        op, attributes, results = place.op, place.op.attributes, list(place.op.results)
        del attributes[NAME]
        shardings = place.shardings
        if not results:
            if shardings and shardings[0].kind == "maximal":
                attributes["sdy.sharding"] = _per_value([self.attribute(shardings[0], 0)])
            return
        if len(shardings) == 1:
            shardings *= len(results)
        if len(shardings) != len(results):
            message = f"a tuple of {len(shardings)} shardings for {len(results)} results"
            raise ShardlogError(
                message, hint="expected one for each; results that are tuples have to be flattened"
            )
        old: list[Any] = [None] * len(results)
        if "sdy.sharding" in attributes:
            old = list(sdy.TensorShardingPerValueAttr(attributes["sdy.sharding"]).shardings)
        given = zip(old, shardings, results, strict=True)
        attributes["sdy.sharding"] = _per_value([self.checked(o, s, result.type) for o, s, result in given])
        for result, sharding in zip(results, shardings, strict=True):
            if sharding.group is not None:
                self.group(result, sharding, ir.InsertionPoint.after(op))

    def set_constraint(self, place: _Owner) -> None:
        """``@Sharding`` is a constraint, and one that only names a group is no more than that."""
        op, sharding = place.op, place.sharding
        value, point = op.operands[0], ir.InsertionPoint(op)
        if sharding.kind != "unknown" or sharding.group is None:
            attribute = self.attribute(sharding, _rank(value.type), _unspecified(op))
            value = sdy.ShardingConstraintOp(value, attribute, loc=op.location, ip=point).results[0]
            self.manual[value] = self.manual_axes(sharding)
        if sharding.group is not None:
            self.group(value, sharding, point)
        op.results[0].replace_all_uses_with(value)
        op.operation.erase()

    def set_boundary(self, place: _Owner) -> None:
        """Keeps the sharding of a value that enters or leaves a manual computation for
        ``read_shard_maps``."""
        op, sharding, result = place.op, place.sharding, place.op.results[0]
        self.manual[result] = self.manual_axes(sharding)
        op.attributes["sdy.sharding"] = _per_value(
            [self.attribute(sharding, _rank(result.type), _unspecified(op))]
        )
        del op.attributes[NAME]

    def manual_axes(self, sharding: HloSharding) -> tuple[str, ...]:
        mesh = self.shardings.meshes.meshes[self.mesh]
        axes = subgroup_axes(sharding, "manual", mesh)
        for axis in axes:
            if axis.size != mesh.sizes[axis.name]:
                message = f"{sharding} has a part of the axis {axis.name} manual, and sdy only whole axes"
                raise ShardlogError(message, hint="leave out the mesh, and shardlog finds one that fits")
        return tuple(axis.name for axis in axes)

    def group(self, value: Any, sharding: HloSharding, point: ir.InsertionPoint) -> None:
        assert sharding.group is not None
        kind, number = sharding.group
        if kind != "shard_as":
            message = f"{kind} {number}: sdy has no groups of shardings that are only compatible"
            raise ShardlogError(message, hint="shard_as gives a group the same sharding")
        sdy.ShardingGroupOp(value, number, ip=point)


def _device(sharding: HloSharding) -> int:
    """The device of a maximal sharding."""
    assert isinstance(sharding.devices, tuple)
    return sharding.devices[0]


def _target(op: Operation) -> str:
    """The target of a custom call; empty for other ops."""
    if op.operation.name != "stablehlo.custom_call":
        return ""
    return text_of(op.attributes["call_target_name"])


def _unspecified(op: Operation) -> tuple[int, ...]:
    """The dimensions that a custom call leaves open."""
    config = op.attributes.get("backend_config")
    match = _UNSPECIFIED.search(text_of(config)) if isinstance(config, ir.StringAttr) else None
    return tuple(int(d) for d in match[1].split(",") if d.strip()) if match else ()


def _per_value(shardings: list[ir.Attribute]) -> ir.Attribute:
    attribute: ir.Attribute = sdy.TensorShardingPerValueAttr.get(shardings)
    return attribute


def _rank(kind: ir.Type) -> int:
    return kind.rank if isinstance(kind, ir.RankedTensorType) else 0
