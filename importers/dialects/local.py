"""A local program with collectives of the dialect shard, as a program for all devices.

Each tensor at its boundary has an additional first dimension: the devices of the grid, row by row. Along axes
that the attribute ``shard.alike_along`` of an argument lists, all devices have the same row of it. The work
of each device becomes a manual computation, with collectives of StableHLO.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from math import prod
from typing import Any, NoReturn

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ...errors import ShardlogError
from ...program.carried import ALIKE, DEVICE_OF, DYNAMIC, LOCAL, UNKNOWN, grids_of_collectives, misfit
from ...program.devices import Devices, Table
from ...program.function import location
from ...program.meshes import symbol
from ...program.mlir.modules import (
    boundary_attributes,
    is_used,
    main_function,
    operations_in,
    public,
    put_in_place_of,
    symbols,
)
from ...program.mlir.types import FunctionOp, Operation, Value
from ...program.shardings import read_mesh
from ...rulebook.shipped import shipped
from .grids import axis_lists, counted, integers, kind_of
from .places import IndexValues
from .reaching import check_reached

_OF_SHARDINGS = ("shard.sharding", "shard.get_sharding", "shard.shard_shape")  # which whole tensors have


def _dense(table: Any) -> Any:
    """A table of numbers as an attribute."""
    array: Any = np.array(table, order="C")  # Only some jaxlibs type the buffers that the bindings take.
    return ir.DenseElementsAttr.get(array)


@cache
def _reductions() -> dict[str, str]:
    """The op of StableHLO that combines two elements, by kind of reduction."""
    return {kind: op for op, kind in shipped("dialects/statements").evaluate({})["combined_as"]}


def is_of_device(module: ir.Module) -> bool:
    """Whether a module is the program of one device: it says so, or has ops of the dialect shard that are
    computed on devices."""
    return DEVICE_OF in module.operation.attributes or any(
        op.name.startswith("shard.") and op.name not in _OF_SHARDINGS for op in operations_in(module)
    )


def _grid_of_device(attribute: Any, grids: Collection[str]) -> str:
    """The grid that a module says it is the program of one device of. Raises ShardlogError for another
    attribute, or if there is no such grid."""
    if isinstance(attribute, ir.FlatSymbolRefAttr) and attribute.value in grids:
        return str(attribute.value)
    hint = "name a grid of the module, as in @g, or leave it out"
    raise ShardlogError(f"no grid {attribute}, and {DEVICE_OF} names it", hint=hint)


def _is_annotated(function: FunctionOp) -> bool:
    """Whether a function or an op in it has an annotation."""
    given = boundary_attributes(function, "arg_attrs") + boundary_attributes(function, "res_attrs")
    return any("sdy.sharding" in entry for entry in given) or any(
        op.name == "sdy.sharding_constraint" or "sdy.sharding" in op.attributes
        for op in operations_in(function)
    )


def to_global(module: ir.Module) -> None:
    """Turns a local program, in place, into one for all devices.

    Raises ShardlogError for an op that has no meaning for all devices alike.
    """
    with module.context, ir.Location.unknown():
        Global(module).write()


class Global:
    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.i32, self.i64 = (ir.IntegerType.get_signless(bits) for bits in (32, 64))
        self.meshes = {
            name: read_mesh(name, op.attributes["mesh"]) for name, op in symbols(module, "sdy.mesh").items()
        }
        self.place: Any = None
        self.loc: Any = None
        self.channel = 0

    def put_calls_in_place(self) -> None:
        """Inlines all calls. Raises ShardlogError for recursion."""
        functions = symbols(self.module, "func.func")
        called = set[str]()
        depth = 0
        while calls := [op for op in operations_in(self.module) if op.name == "func.call"]:
            depth += 1
            if depth > len(functions):
                self.refuse(calls[0], "the function that it calls calls itself")
            for call in calls:
                called.add(callee := ir.FlatSymbolRefAttr(call.attributes["callee"]).value)
                put_in_place_of(call, functions[callee])
        for name in called:
            if not public(functions[name]):
                functions[name].erase()

    def write(self) -> None:
        self.put_calls_in_place()
        ops = [op for op in operations_in(self.module) if op.name.startswith("shard.")]
        attributes, where = self.module.operation.attributes, location(ops[0]) if ops else ""
        used = grids_of_collectives(self.module)
        if DEVICE_OF in attributes:
            used.add(_grid_of_device(attributes[DEVICE_OF], self.meshes))
            del attributes[DEVICE_OF]
        if len(used) != 1:
            names = ", ".join(symbol(name) for name in sorted(used)) or "none"
            hint = "a program of each device is on one grid"
            raise ShardlogError(f"the collectives are on several grids: {names}", where=where, hint=hint)
        (self.name,) = used
        mesh = self.meshes[self.name]
        if UNKNOWN in symbols(self.module, "sdy.mesh")[self.name].attributes:
            hint = f"give it sizes: --mesh {self.name}=2x3"
            raise ShardlogError(
                f"the sizes of grid {symbol(self.name)} are not known", where=where, hint=hint
            )
        self.axes = [axis for axis, _ in mesh.axes]
        self.sizes = [size for _, size in mesh.axes]
        self.devices = Devices(self.sizes)
        self.count = self.devices.count
        functions = self.local_functions()
        self.indices = IndexValues(self.count, self.sizes)
        sent = [op for op in ops if op.name == "shard.send"]
        others = [op for op in ops if op.name not in ("shard.recv", "shard.send")]
        for op in ops:
            self.check_axes(op)
        for function in functions:
            check_reached(function, self.sizes, self.alike_along(function))
        waiting = list[Any]()
        for op in ops:
            if op.name == "shard.send":
                waiting.append(op)
            elif op.name == "shard.recv":
                self.pair(op, waiting)
        for op in sent:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
        for op in others:
            self.place, self.loc = ir.InsertionPoint(op), op.location
            self.rewrite(op)
        self.replace_dependent()
        self.erase_indices()
        self.wrap_all(functions)

    def local_functions(self) -> list[Any]:
        """The functions that are programs of one device: all but those of whole tensors, which have
        annotations. Raises ShardlogError for one that has both annotations and collectives."""
        functions = list[Any]()
        for function in symbols(self.module, "func.func").values():
            annotated = _is_annotated(function)
            own = next((op for op in operations_in(function) if op.name.startswith("shard.")), None)
            if annotated and own is not None:
                name = symbol(function.name.value)
                message = f"{own.name} is of the program of a device, and {name} annotates whole tensors"
                hint = "leave out one of both; shardlog partition --as shard writes the program of a device"
                raise ShardlogError(message, where=location(own), hint=hint)
            if not annotated and len(function.regions[0].blocks):
                functions.append(function)
        return functions

    def rewrite(self, op: Operation) -> None:
        if op.name in _INDICES:
            return
        make = _MADE.get(op.name)
        if make is None:
            self.refuse(op, "it has no meaning if all devices run it alike")
        value = make(self, op)
        if value.type != op.results[0].type:
            self.refuse(op, f"its result is {value.type}, not {op.results[0].type}")
        op.results[0].replace_all_uses_with(value)
        op.erase()

    def replace_dependent(self) -> None:
        """Replaces the ops that take a number of the device."""
        replaced = list[Any]()
        for op in operations_in(self.module):
            self.place, self.loc = ir.InsertionPoint(op), op.location
            if self.depend(op):
                replaced.append(op)
        for op in replaced:  # only now: numbers are known by values, and a new one may be at an old address
            op.erase()

    def depend(self, op: Operation) -> bool:
        """Replaces an op that takes a number of the device: a choice by it, or a tensor of it. Returns
        whether it is one."""
        if op.name == "arith.select" and op.operands[0].type == ir.IntegerType.get_signless(1):
            index = self.indices.of(op.operands[0])
            if index is None:
                return False
            _, one, other = op.operands
            replacement = self.where(index != 0, one, other)
        elif op.name == "tensor.from_elements" and len(op.operands) == 1:
            index = self.indices.of(op.operands[0])
            if index is None:
                return False
            replacement = self.one("stablehlo.convert", [self.number(index)], op.results[0].type)
        else:
            return False
        op.results[0].replace_all_uses_with(replacement)
        return True

    def where(self, chosen: Any, one: Any, other: Any) -> Any:
        """One tensor on devices that are chosen, and another one elsewhere."""
        boolean = ir.IntegerType.get_signless(1)
        has = self.number(chosen.astype(np.int64))
        scalar = self.one("stablehlo.convert", [has], ir.RankedTensorType.get([], boolean))
        wide = ir.RankedTensorType.get(list(one.type.shape), boolean)
        none = {"broadcast_dimensions": ir.DenseI64ArrayAttr.get([])}
        everywhere = self.one("stablehlo.broadcast_in_dim", [scalar], wide, none)
        return self.one("stablehlo.select", [everywhere, one, other], one.type)

    def refuse(self, op: Operation, why: str) -> NoReturn:
        """Raises ShardlogError for an op."""
        hint = "write it as a collective of a group: docs/mesh_shard.md lists the supported ones"
        raise ShardlogError(f"{op.name} cannot run: {why}", where=location(op), hint=hint)

    def erase_indices(self) -> None:
        """Erases coordinates of devices that nothing uses any more. Others become numbers that the program
        computes with. Raises ShardlogError for those that are not known."""
        for op in reversed(operations_in(self.module)):
            if op.name.startswith(_OF_INDICES) and not is_used(op):
                op.erase()
        asking = [op for op in operations_in(self.module) if op.name.startswith("shard.")]
        answers = [[self.indices.of(value) for value in op.results] for op in asking]
        for op, indices in zip(asking, answers, strict=True):
            self.place, self.loc = ir.InsertionPoint(op), op.location
            for value, index in zip(op.results, indices, strict=True):
                if index is None:
                    self.refuse(op, "its operand is not known before it runs")
                self.compute_with(value, index)
            op.erase()

    def compute_with(self, value: Value, index: Table) -> None:
        """Replaces a coordinate of the device by a number that the program looks up."""
        held = self.one("tensor.extract", [self.number(index)], self.i32)
        number = self.one("arith.index_cast", [held], value.type)
        value.replace_all_uses_with(number)

    # ---- Groups --------------------------------------------------------------------------------------------

    def check_axes(self, op: Operation) -> None:
        """Raises ShardlogError for axes that the grid does not have: --mesh may have given it others."""
        lists = axis_lists(op.attributes["split_axes"]) if op.name == "shard.update_halo" else ()
        for axis in (*self.group_axes(op), *(axis for axes in lists for axis in axes)):
            if axis >= len(self.sizes):
                hint = f"keep the number of axes, as in --mesh {self.name}=2x3"
                axes = counted(len(self.sizes), "axis", "axes")
                message = f"{op.name} is along axis {axis}, and {symbol(self.name)} has {axes}"
                raise ShardlogError(message, where=location(op), hint=hint)

    def group_axes(self, op: Operation) -> list[int]:
        """The axes of a group, outermost first."""
        return list(integers(op.attributes.get("grid_axes")))

    def root(self, op: Operation, label: str) -> Table:
        """The device of its group that an attribute names, by device."""
        axes, given = self.group_axes(op), list(integers(op.attributes[label]))
        operands = iter([*op.operands][1:])
        coordinates = self.devices.coordinates()
        for axis, number in zip(axes, given, strict=True):
            if number == DYNAMIC:
                index = self.indices.of(next(operands))
                if index is None:
                    self.refuse(op, f"its {label} is not known before it runs")
                if ((index < 0) | (index >= self.sizes[axis])).any():
                    self.refuse(op, f"its {label} is outside of the grid on some devices")
                coordinates[axis] = index
            else:
                coordinates[axis] = number
        return np.asarray(np.ravel_multi_index(tuple(coordinates), self.sizes))

    # ---- Ops of StableHLO ----------------------------------------------------------------------------------

    def op(
        self, name: str, operands: Sequence[Any], type_: Any, attributes: Any = None, regions: int = 0
    ) -> Any:
        return ir.Operation.create(
            name,
            results=[type_],
            operands=list(operands),
            attributes=attributes or {},
            regions=regions,
            loc=self.loc,
            ip=self.place,
        )

    def one(self, name: str, operands: Sequence[Value], type_: ir.Type, attributes: Any = None) -> Any:
        return self.op(name, operands, type_, attributes).results[0]

    def next_channel(self) -> ir.Attribute:
        self.channel += 1
        return ir.Attribute.parse(f"#stablehlo.channel_handle<handle = {self.channel}, type = 1>")

    def collective(
        self, kind: str, value: Value, sizes: Sequence[int], groups: Table, attributes: Any, combine: str = ""
    ) -> Any:
        """The result of a collective over groups."""
        type_ = ir.RankedTensorType(value.type)
        result = ir.RankedTensorType.get(list(sizes), type_.element_type)
        attributes = {
            **attributes,
            "replica_groups": _dense(groups),
            "channel_handle": self.next_channel(),
        }
        if kind != "all_to_all":
            attributes["use_global_device_ids"] = ir.UnitAttr.get()
        op = self.op(f"stablehlo.{kind}", [value], result, attributes, 1 if combine else 0)
        if combine:
            scalar = ir.RankedTensorType.get([], type_.element_type)
            block = op.regions[0].blocks.append(scalar, scalar, arg_locs=[self.loc] * 2)
            ip = ir.InsertionPoint(block)
            both = ir.Operation.create(
                combine, results=[scalar], operands=list(block.arguments), loc=self.loc, ip=ip
            )
            ir.Operation.create("stablehlo.return", operands=list(both.results), loc=self.loc, ip=ip)
        return op.results[0]

    def permuted(self, value: Value, source: Table) -> Any:
        """The value of another device, or zeros if there is none (-1)."""
        pairs = np.asarray([(s, d) for d, s in enumerate(source.tolist()) if s >= 0], np.int64).reshape(-1, 2)
        attributes = {"source_target_pairs": _dense(pairs), "channel_handle": self.next_channel()}
        return self.one("stablehlo.collective_permute", [value], value.type, attributes)

    def number(self, table: Table) -> Any:
        """The entry of a table for this device, a scalar of type i32."""
        alike = bool((table == table[0]).all())
        entries = _dense(table.astype(np.int32)[0] if alike else table.astype(np.int32))
        held = self.one("stablehlo.constant", [], entries.type, {"value": entries})
        if alike:
            return held
        device = self.one(
            "stablehlo.partition_id", [], ir.RankedTensorType.get([], ir.IntegerType.get_unsigned(32))
        )
        scalar = ir.RankedTensorType.get([], self.i32)
        at = self.one("stablehlo.convert", [device], scalar)
        sizes = {"slice_sizes": ir.DenseI64ArrayAttr.get([1])}
        picked = self.one(
            "stablehlo.dynamic_slice", [held, at], ir.RankedTensorType.get([1], self.i32), sizes
        )
        return self.one("stablehlo.reshape", [picked], scalar)

    def part(self, value: Value, dim: int, size: int, start: Table) -> Any:
        """This many rows of a dimension, from a start that each device has."""
        type_ = ir.RankedTensorType(value.type)
        sizes = list(type_.shape)
        sizes[dim] = size
        zero = self.number(np.zeros(self.count, np.int64))
        starts = [self.number(start) if d == dim else zero for d in range(len(sizes))]
        result = ir.RankedTensorType.get(sizes, type_.element_type)
        attributes = {"slice_sizes": ir.DenseI64ArrayAttr.get(sizes)}
        return self.one("stablehlo.dynamic_slice", [value, *starts], result, attributes)

    def reshape(self, value: Value, sizes: Sequence[int]) -> Any:
        element = ir.RankedTensorType(value.type).element_type
        return self.one("stablehlo.reshape", [value], ir.RankedTensorType.get(list(sizes), element))

    # ---- Collectives of the dialect ------------------------------------------------------------------------

    def dimension(self, op: Operation, *labels: str) -> int:
        """The dimension that one of these attributes names."""
        label = next(label for label in labels if label in op.attributes)
        return int(ir.IntegerAttr(op.attributes[label]).value)

    def all_gather(self, op: Operation) -> Any:
        axes, dim, value = self.group_axes(op), self.dimension(op, "gather_axis"), op.operands[0]
        if not axes:
            return value
        groups, sizes = self.devices.along(axes), list(value.type.shape)
        sizes[dim] *= groups.shape[1]
        return self.collective("all_gather", value, sizes, groups, {"all_gather_dim": self.integer(dim)})

    def integer(self, value: int) -> Any:
        return ir.IntegerAttr.get(self.i64, value)

    def combined(self, op: Operation, kind: str, sizes: Sequence[int], attributes: Any) -> Any:
        """The result of a collective that reduces."""
        axes, value = self.group_axes(op), op.operands[0]
        element = ir.RankedTensorType(op.results[0].type).element_type
        if element != ir.RankedTensorType(value.type).element_type:  # it reduces in the type of its result
            value = self.one("stablehlo.convert", [value], ir.RankedTensorType.get(value.type.shape, element))
        if not axes:
            return value
        reduction = kind_of(op.attributes.get("reduction"))
        combine = _reductions().get("sum" if reduction == "average" else reduction)
        if combine is None:
            self.refuse(op, f"its reduction is not known ({reduction})")
        if why := misfit(reduction, element):
            self.refuse(op, f"its elements are {element}, and {why}")
        groups = self.devices.along(axes)
        result = self.collective(kind, value, sizes, groups, attributes, combine)
        if reduction != "average":
            return result
        type_ = ir.RankedTensorType(result.type)
        number = f"{groups.shape[1]}.0"
        number = f"({number}, 0.0)" if isinstance(element, ir.ComplexType) else number
        count = ir.Attribute.parse(f"dense<{number}> : {type_}")
        held = self.one("stablehlo.constant", [], type_, {"value": count})
        return self.one("stablehlo.divide", [result, held], type_)

    def all_reduce(self, op: Operation) -> Any:
        return self.combined(op, "all_reduce", op.operands[0].type.shape, {})

    def reduce_scatter(self, op: Operation) -> Any:
        dim = self.dimension(op, "scatter_dim", "scatter_axis")
        sizes = list(op.operands[0].type.shape)
        sizes[dim] //= prod(self.sizes[axis] for axis in self.group_axes(op))
        return self.combined(op, "reduce_scatter", sizes, {"scatter_dimension": self.integer(dim)})

    def all_slice(self, op: Operation) -> Any:
        axes, dim, value = self.group_axes(op), self.dimension(op, "slice_axis"), op.operands[0]
        return self.own_part(value, dim, axes)

    def own_part(self, value: Value, dim: int, axes: Sequence[int]) -> Any:
        tile = value.type.shape[dim] // prod(self.sizes[axis] for axis in axes)
        return self.part(value, dim, tile, self.devices.index(axes) * tile) if axes else value

    def all_to_all(self, op: Operation) -> Any:
        axes, value = self.group_axes(op), op.operands[0]
        split, concat = self.dimension(op, "split_axis"), self.dimension(op, "concat_axis")
        if not axes:
            return value
        groups, sizes = self.devices.along(axes), list(value.type.shape)
        count = groups.shape[1]
        sizes[split] //= count
        sizes[concat] *= count
        attributes = {
            "split_dimension": self.integer(split),
            "concat_dimension": self.integer(concat),
            "split_count": self.integer(count),
        }
        return self.collective("all_to_all", value, sizes, groups, attributes)

    def broadcast(self, op: Operation) -> Any:
        return self.of_device(op.operands[0], self.group_axes(op), self.root(op, "root"))

    def of_device(self, value: Value, axes: Sequence[int], device: Table) -> Any:
        """The value that a device of the group has, by device."""
        if not axes:
            return value
        sizes, groups = list(value.type.shape), self.devices.along(axes)
        stacked = self.collective(
            "all_gather",
            self.reshape(value, [1, *sizes]),
            [groups.shape[1], *sizes],
            groups,
            {"all_gather_dim": self.integer(0)},
        )
        return self.reshape(self.part(stacked, 0, 1, self.devices.index(axes)[device]), sizes)

    def scatter(self, op: Operation) -> Any:
        axes = self.group_axes(op)
        whole = self.of_device(op.operands[0], axes, self.root(op, "root"))
        return self.own_part(whole, self.dimension(op, "scatter_dim", "scatter_axis"), axes)

    def gather(self, op: Operation) -> Any:
        self.root(op, "root")  # elsewhere the result is anything, and so the same
        return self.all_gather(op)

    def reduce(self, op: Operation) -> Any:
        self.root(op, "root")
        return self.all_reduce(op)

    def shift(self, op: Operation) -> Any:
        axis = self.dimension(op, "shift_axis")
        offset, rotates = ir.IntegerAttr(op.attributes["offset"]).value, "rotate" in op.attributes
        coordinates = self.devices.coordinates()
        moved = coordinates[axis] - offset
        inside = (moved >= 0) & (moved < self.sizes[axis])
        coordinates[axis] = moved % self.sizes[axis]
        source = np.ravel_multi_index(tuple(coordinates), self.sizes)
        return self.permuted(op.operands[0], source if rotates else np.where(inside, source, -1))

    def update_halo(self, op: Operation) -> Any:
        value, lists = op.operands[0], axis_lists(op.attributes["split_axes"])
        halos = list(integers(op.attributes.get("static_halo_sizes")))
        if DYNAMIC in halos:
            self.refuse(op, "its halo sizes are not known before it runs")
        sharded = [(d, axes) for d, axes in enumerate(lists) if axes]
        for (d, axes), low, high in zip(sharded, halos[::2], halos[1::2], strict=True):
            own, parts = value.type.shape[d] - low - high, self.devices.along(axes).shape[1]
            for distance in range(1, parts) if own else ():  # one neighbour may have fewer rows than a halo
                done = own * (distance - 1)
                if (count := min(own, low - done)) > 0:
                    places = low + own - count, low - done - count
                    value = self.with_halo(value, d, axes, count, places, distance)
                if (count := min(own, high - done)) > 0:
                    value = self.with_halo(value, d, axes, count, (low, low + own + done), -distance)
        return value

    def with_halo(
        self,
        value: Value,
        dim: int,
        axes: Sequence[int],
        count: int,
        places: tuple[int, int],
        distance: int,
    ) -> Any:
        """A value of which some rows come from the neighbour at a distance: before it, if that is above 0.
        ``places`` are the first row there and here. Without a neighbour the rows are unchanged."""
        own, groups = self.devices.index(axes), self.devices.along(axes)
        neighbour = np.full(self.count, -1)
        for row in groups:
            if distance > 0:
                neighbour[row[distance:]] = row[:-distance]
            else:
                neighbour[row[:distance]] = row[-distance:]
        everywhere, (there, at) = np.ones(self.count, np.int64), places
        rows = self.part(value, dim, count, everywhere * there)
        taken = self.permuted(rows, neighbour)
        held = self.part(value, dim, count, everywhere * at)
        inside = (own >= distance) & (own < groups.shape[1] + distance)
        rows = self.where(inside, taken, held)
        zero = self.number(np.zeros(self.count, np.int64))
        starts = [self.number(everywhere * at) if d == dim else zero for d in range(len(value.type.shape))]
        return self.one("stablehlo.dynamic_update_slice", [value, rows, *starts], value.type)

    def pair(self, op: Any, sends: list[Any]) -> None:
        """Makes one permutation of a receive and the first send before it that nothing received yet, between
        devices that name each other: messages arrive in order."""
        self.place, self.loc = ir.InsertionPoint(op), op.location
        if "source" not in op.attributes:
            self.refuse(op, "it names no source device")
        source = self.root(op, "source")
        for send in sends:
            same = send.attributes["grid_axes"] == op.attributes["grid_axes"]
            if (
                same
                and send.results[0].type == op.results[0].type
                and send.operation.block == op.operation.block
            ):
                target = self.root(send, "destination")
                if np.array_equal(target[source], np.arange(self.count)):
                    received = self.permuted(send.operands[0], source)
                    op.results[0].replace_all_uses_with(received)
                    op.erase()
                    sends.remove(send)
                    return
        self.refuse(op, "no shard.send before it, of such a tensor, sends to each device that receives here")

    # ---- The boundary --------------------------------------------------------------------------------------

    def wrap_all(self, functions: Sequence[FunctionOp]) -> None:
        """Makes programs for all devices of functions, and notes whether the one that runs is among them."""
        for function in functions:
            self.wrap(function)
        every, names = symbols(self.module, "func.func"), [function.name.value for function in functions]
        if len(names) == len(every) or main_function(every) in names:
            self.module.operation.attributes[LOCAL] = ir.UnitAttr.get()

    def alike_along(self, function: FunctionOp) -> list[list[int]]:
        """The axes along which all devices are given the same, by argument. Raises ShardlogError for axes
        that the grid does not have."""
        alike = list[list[int]]()
        for i, entry in enumerate(boundary_attributes(function, "arg_attrs")):
            alike.append(list(integers(entry[ALIKE])) if ALIKE in entry else [])
            for axis in alike[-1]:
                if not 0 <= axis < len(self.sizes):
                    axes = counted(len(self.sizes), "axis", "axes")
                    message = f"{ALIKE} of argument {i} names axis {axis}, and {symbol(self.name)} has {axes}"
                    hint = "list the axes along which all devices are given the same, as in array<i16: 0>"
                    raise ShardlogError(message, where=location(function), hint=hint)
        return alike

    def wrap(self, function: FunctionOp) -> None:
        """Puts the body of a function into a manual computation on all devices."""
        block = function.regions[0].blocks[0]
        end = block.operations[-1].operation
        where = location(function)
        given, returned = list(block.arguments), list(end.operands)
        for value in (*given, *returned):
            if not isinstance(value.type, ir.RankedTensorType) or not value.type.has_static_shape:
                hint = "tensors of static shape are the boundary of a program that runs"
                raise ShardlogError(f"{value.type} cannot be one on each device", where=where, hint=hint)
        local = [value.type for value in given]
        inner_types = [self.with_devices(t, 1) for t in local]
        every = range(len(self.sizes))
        own = [[axis for axis in every if axis not in alike] for alike in self.alike_along(function)]
        outer_types = [
            self.with_devices(t, prod(self.sizes[axis] for axis in axes))
            for t, axes in zip(local, own, strict=True)
        ]
        results = [self.with_devices(v.type, self.count) for v in returned]
        shardings = (
            [self.sharding(t, axes) for t, axes in zip(outer_types, own, strict=True)],
            [self.sharding(t, every) for t in results],
        )
        inside = list(block.operations)[:-1]
        for label in ("arg_attrs", "res_attrs"):
            if label in function.attributes:
                del function.attributes[label]
        first = ir.InsertionPoint.at_block_begin(block)
        computation = ir.Operation.create(
            "sdy.manual_computation",
            results=results,
            operands=given,
            attributes={
                "in_shardings": sdy.TensorShardingPerValueAttr.get(shardings[0]),
                "out_shardings": sdy.TensorShardingPerValueAttr.get(shardings[1]),
                "manual_axes": sdy.ManualAxesAttr.get([ir.StringAttr.get(axis) for axis in self.axes]),
            },
            regions=1,
            loc=function.location,
            ip=first,
        )
        body = computation.regions[0].blocks.append(*inner_types, arg_locs=[function.location] * len(given))
        self.loc, self.place = function.location, ir.InsertionPoint(body)
        values = [self.reshape(v, t.shape) for v, t in zip(body.arguments, local, strict=True)]
        for old, new in zip(given, values, strict=True):
            old.replace_all_uses_except(new, computation)
        done = ir.Operation.create(
            "sdy.return", operands=list(end.operands), loc=end.location, ip=ir.InsertionPoint(body)
        )
        for op in inside:
            op.operation.move_before(done)
        self.place = ir.InsertionPoint(done)
        for i, value in enumerate(list(done.operands)):
            done.operands[i] = self.reshape(value, [1, *value.type.shape])
        for old, type_ in zip(given, outer_types, strict=True):
            old.set_type(type_)
        for i, value in enumerate(computation.results):
            end.operands[i] = value
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(outer_types, results))
        given_to = [ir.DictAttr.get({"sdy.sharding": s}) for s in shardings[0]]
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(given_to)
        function.attributes["res_attrs"] = ir.ArrayAttr.get(
            [ir.DictAttr.get({"sdy.sharding": s}) for s in shardings[1]]
        )

    @staticmethod
    def with_devices(type_: ir.Type, count: int) -> Any:
        """The type of the values of this many devices."""
        tensor = ir.RankedTensorType(type_)
        return ir.RankedTensorType.get([count, *tensor.shape], tensor.element_type)

    def sharding(self, type_: ir.Type, axes: Iterable[int]) -> Any:
        """A value for each device along these axes."""
        first = sdy.DimensionShardingAttr.get(
            [sdy.AxisRefAttr.get(self.axes[axis]) for axis in axes], is_closed=True
        )
        rest = [sdy.DimensionShardingAttr.get([], is_closed=True)] * (ir.RankedTensorType(type_).rank - 1)
        return sdy.TensorShardingAttr.get(self.name, [first, *rest])


_INDICES = (
    "shard.process_linear_index",
    "shard.process_multi_index",
    "shard.grid_shape",
    "shard.neighbors_linear_indices",
)
_OF_INDICES = (*_INDICES, "tensor.extract", "arith.constant", "arith.index_cast")
_MADE: dict[str, Callable[[Global, Any], Any]] = {
    "shard.all_gather": Global.all_gather,
    "shard.all_reduce": Global.all_reduce,
    "shard.all_slice": Global.all_slice,
    "shard.all_to_all": Global.all_to_all,
    "shard.broadcast": Global.broadcast,
    "shard.gather": Global.gather,
    "shard.reduce": Global.reduce,
    "shard.reduce_scatter": Global.reduce_scatter,
    "shard.scatter": Global.scatter,
    "shard.shift": Global.shift,
    "shard.update_halo": Global.update_halo,
}
