"""The program of each device, with the collectives of the dialect shard."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import permutations
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func, sdy

from ...errors import ShardlogError
from ...importers.dialects.reaching import exchanges_inside
from ...program.carried import ALIKE, DYNAMIC, LOCAL, SPELLING
from ...program.devices import Devices
from ...program.function import location
from ...program.meshes import SubAxis
from ...program.mlir.modules import copy_of, is_used, operations_in, symbols
from ...program.mlir.types import FunctionOp, Operation, Value
from ...rulebook.shipped import shipped
from .grids import MeshGrid
from .places import DeviceValues

_GROUPS, _PAIRS = "replica_groups", "source_target_pairs"
_RESHAPE = "stablehlo.reshape"
_COMPUTATION = "sdy.manual_computation"


@cache
def _words() -> dict[str, Any]:
    """The dialect's words for collectives of StableHLO; see ``rules/dialects/collectives.dl``."""
    rows = shipped("dialects/statements").evaluate({})
    dimensions: dict[str, dict[str, str]] = {}
    for name, attribute, label in rows["dimension_of"]:
        dimensions.setdefault(name, {})[attribute] = label
    return {"op": dict(rows["collective_of"]), "dimensions": dimensions, "kind": dict(rows["combined_as"])}


def localized(module: ir.Module, grid: MeshGrid, scatter: str, *, whole_arguments: bool = False) -> ir.Module:
    """A copy of a partitioned module as functions of local tensors, with the collectives of shard on a grid.

    ``scatter`` is the name of the attribute for the scattered dimension. With ``whole_arguments`` a function
    takes whole tensors, and each device slices its part. Raises ShardlogError for a collective that the
    dialect does not have.
    """
    copy = copy_of(module)
    with copy.context, ir.Location.unknown():
        _Local(copy, grid, scatter, whole_arguments).write()
    return copy


class _Local:
    def __init__(self, module: ir.Module, grid: MeshGrid, scatter: str, whole_arguments: bool) -> None:
        self.module, self.grid, self.scatter, self.whole = module, grid, scatter, whole_arguments
        self.devices = Devices(grid.sizes)
        self.count = self.devices.count
        self.places = DeviceValues(self.count)
        self.reference = ir.FlatSymbolRefAttr.get(grid.name)
        self._axes: dict[Any, list[int] | None] = {}

    def write(self) -> None:
        for op in operations_in(self.module):
            if op.name in _words()["op"]:
                self.collective(op)
            elif _PAIRS in op.attributes:
                self.permutation(op)
        for of_constants in (False, True):  # a table says where parts begin, and is not used any more then
            for op in operations_in(self.module):
                if op.name == "stablehlo.dynamic_slice" and _is_constant(op.operands[0]) == of_constants:
                    self.slice(op)
            self.erase_unused()
        for op in operations_in(self.module):
            if op.name in ("stablehlo.partition_id", "stablehlo.replica_id"):
                self.number(op)
        for function in symbols(self.module, "func.func").values():
            self.unwrap(function)
        body = self.module.body
        for op in symbols(self.module, "sdy.mesh").values():
            op.erase()
        place = ir.InsertionPoint.at_block_begin(body)
        self.op("shard.grid", [], [], self.grid.attributes(), place)
        for op in operations_in(self.module):
            for label in [label for label in op.attributes if label.startswith("shard.")]:
                del op.attributes[label]  # said of whole tensors
        for label in ("mhlo.num_partitions", "mhlo.num_replicas", LOCAL, SPELLING):
            if label in self.module.operation.attributes:
                del self.module.operation.attributes[label]

    def op(
        self, name: str, operands: Sequence[Any], types: Sequence[ir.Type], attributes: Any, place: Any
    ) -> Any:
        return ir.Operation.create(
            name, results=list(types), operands=list(operands), attributes=attributes, ip=place
        )

    def replace(
        self, op: Any, name: str, operands: Sequence[Value], attributes: dict[str, ir.Attribute]
    ) -> None:
        """Replaces an op by one of the dialect."""
        types = [result.type for result in op.results]
        replacement = self.op(name, operands, types, attributes, ir.InsertionPoint(op))
        replacement.location = op.location
        for old, new in zip(op.results, replacement.results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()

    # ---- Collectives ---------------------------------------------------------------------------------------

    def collective(self, op: ir.Operation) -> None:
        """Several values in one collective are several collectives here."""
        words = _words()
        groups = np.asarray(op.attributes[_GROUPS])
        axes = self.axes_of(groups, ordered=bool(words["dimensions"].get(op.name)))
        if axes is None:
            self.refuse(op, f"its groups {groups.tolist()} are not groups along axes of the grid")
        attributes: dict[str, Any] = {"grid": self.reference, "grid_axes": self.numbers(axes or [])}
        for attribute, label in words["dimensions"].get(op.name, {}).items():
            label = self.scatter if label == "scatter_dim" else label
            number = ir.IntegerAttr(op.attributes[attribute]).value
            attributes[label] = ir.IntegerAttr.get(ir.IndexType.get(), number)
        if len(op.regions):
            inside = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
            kind = words["kind"].get(inside[0]) if len(inside) == 2 else None
            if kind is None:
                self.refuse(op, f"its reduction by {', '.join(inside[:-1])} has no word")
            attributes["reduction"] = ir.Attribute.parse(f"#shard<partial {kind}>")
        name, place = words["op"][op.name], ir.InsertionPoint(op)
        for operand, result in zip(op.operands, op.results, strict=True):
            collective = self.op(name, [operand], [result.type], attributes, place)
            collective.location = op.location
            result.replace_all_uses_with(collective.results[0])
        op.erase()

    def axes_of(self, groups: npt.NDArray[np.int64], *, ordered: bool) -> list[int] | None:
        """The axes of the grid along which devices of a group differ, outermost first; None for other
        groups."""
        key = groups.shape, groups.tobytes(), ordered
        if key not in self._axes:
            self._axes[key] = self.find_axes(groups, ordered)
        return self._axes[key]

    def find_axes(self, groups: npt.NDArray[np.int64], ordered: bool) -> list[int] | None:
        wanted = {tuple(row) if ordered else tuple(sorted(row)) for row in groups.tolist()}
        differ = [
            axis
            for axis, coordinates in enumerate(np.unravel_index(groups, self.grid.sizes))
            if (coordinates != coordinates[:, :1]).any()
        ]
        for axes in permutations(differ):
            along = self.devices.along(axes).tolist()
            if {tuple(row) if ordered else tuple(sorted(row)) for row in along} == wanted:
                return list(axes)
        return None

    def permutation(self, op: ir.Operation) -> None:
        """A shift along an axis, or sends and receives between devices."""
        pairs = np.asarray(op.attributes[_PAIRS]).reshape(-1, 2)
        source = np.full(self.count, -1)
        source[pairs[:, 1]] = pairs[:, 0]
        receives = source >= 0
        if not receives.all():
            self.fill(op, receives)
        shifted = self.shift(source)
        if shifted is not None:
            self.replace(op, "shard.shift", [op.operands[0]], shifted)
            return
        source = _all_receive(source)
        target = np.full(self.count, -1)
        for device, giver in enumerate(source):
            if giver != device or target[device] < 0:
                target[giver] = device if target[giver] in (-1, giver) else target[giver]
        if sorted(target) != list(range(self.count)):
            self.refuse(op, "a device sends to several others")
        place = ir.InsertionPoint(op)
        axes = self.numbers(range(len(self.grid.sizes)))
        linear = self.op(
            "shard.process_linear_index", [], [ir.IndexType.get()], {"grid": self.reference}, place
        )
        shared = {"grid": self.reference, "grid_axes": axes}
        dynamic = ir.DenseI64ArrayAttr.get([DYNAMIC] * len(self.grid.sizes))
        to, of = (self.coordinates(table, linear.results[0], place) for table in (target, source))
        value = op.operands[0]
        self.op("shard.send", [value, *to], [value.type], shared | {"destination": dynamic}, place)
        self.replace(op, "shard.recv", [value, *of], shared | {"source": dynamic})

    def fill(self, op: Any, receives: npt.NDArray[np.bool_]) -> None:
        """Makes the result of a permutation zero on devices that receive nothing."""
        place, type_ = ir.InsertionPoint.after(op), ir.RankedTensorType(op.results[0].type)
        zeros = ir.Attribute.parse(f"dense<{_zero(type_.element_type)}> : {type_}")
        constant = (
            "arith" if str(type_.element_type)[0] in "fbi" else "stablehlo"
        )  # which has no unsigned ones
        zero = self.op(f"{constant}.constant", [], [type_], {"value": zeros}, place).results[0]
        linear = self.op(
            "shard.process_linear_index", [], [ir.IndexType.get()], {"grid": self.reference}, place
        )
        entry = self.entry(receives.astype(np.int64), linear.results[0], place)
        boolean = ir.IntegerType.get_signless(1)
        condition = self.op("arith.index_cast", [entry], [boolean], {}, place).results[0]
        value = op.results[0]
        filled = self.op("arith.select", [condition, value, zero], [type_], {}, place)
        value.replace_all_uses_except(filled.results[0], filled)

    def shift(self, source: npt.NDArray[np.int64]) -> dict[str, Any] | None:
        """The attributes of a rotation along one axis that gives each device that receives the value of
        ``source``."""
        own, receives = self.devices.coordinates(), source >= 0
        theirs = np.stack(np.unravel_index(np.where(receives, source, 0), self.grid.sizes))
        own, theirs = own[:, receives], theirs[:, receives]
        differ = [axis for axis in range(len(self.grid.sizes)) if (own[axis] != theirs[axis]).any()]
        if len(differ) != 1:
            return None
        (axis,) = differ
        size = self.grid.sizes[axis]
        offsets = {int(o) for o in (own[axis] - theirs[axis]) % size}
        if len(offsets) != 1:
            return None
        (offset,) = offsets
        return {
            "grid": self.reference,
            "grid_axes": self.numbers([axis]),
            "shift_axis": ir.IntegerAttr.get(ir.IndexType.get(), axis),
            "offset": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), offset),
            "rotate": ir.UnitAttr.get(),
        }

    def coordinates(self, table: npt.NDArray[np.int64], linear: Value, place: ir.InsertionPoint) -> list[Any]:
        """The coordinates of a device that a table has for each."""
        return [self.entry(each, linear, place) for each in np.unravel_index(table, self.grid.sizes)]

    def entry(self, table: npt.NDArray[np.int64], linear: Value, place: ir.InsertionPoint) -> Any:
        """The number that a table has for the device."""
        index = ir.IndexType.get()
        entries = ", ".join(map(str, table.tolist()))
        type_ = ir.RankedTensorType.get([self.count], index)
        value = {"value": ir.Attribute.parse(f"dense<[{entries}]> : {type_}")}
        held = self.op("arith.constant", [], [type_], value, place)
        return self.op("tensor.extract", [held.results[0], linear], [index], {}, place).results[0]

    # ---- Parts ---------------------------------------------------------------------------------------------

    def slice(self, op: Operation) -> None:
        """A slice that begins where the device's part does."""
        value = op.operands[0]
        sizes, shape = list(ir.RankedTensorType(op.results[0].type).shape), list(value.type.shape)
        cut = [d for d, (size, whole) in enumerate(zip(sizes, shape, strict=True)) if size != whole]
        starts = self.places.of(op.operands[1 + cut[0]]) if len(cut) == 1 else None
        if starts is None:
            return
        (d,) = cut
        tile = sizes[d]
        parts = starts // tile
        if shape[d] % tile or not np.array_equal(parts * tile, starts):
            return
        axes = self.axes_of_parts(parts, shape[d] // tile)
        if axes is None:
            return
        attributes = {
            "grid": self.reference,
            "grid_axes": self.numbers(axes),
            "slice_axis": ir.IntegerAttr.get(ir.IndexType.get(), d),
        }
        self.replace(op, "shard.all_slice", [value], attributes)

    def axes_of_parts(self, parts: npt.NDArray[np.int64], count: int) -> list[int] | None:
        """The axes along which devices have different parts, outermost first."""
        every = range(len(self.grid.sizes))
        for length in every:
            for axes in permutations(every, length + 1):
                size = prod(self.grid.sizes[axis] for axis in axes)
                if size == count and np.array_equal(self.devices.index(axes), parts):
                    return list(axes)
        return None

    def number(self, op: ir.Operation) -> None:
        """The number of the device, as a tensor."""
        place, index = ir.InsertionPoint(op), ir.IndexType.get()
        linear = self.op("shard.process_linear_index", [], [index], {"grid": self.reference}, place)
        i32 = ir.IntegerType.get_signless(32)
        cast = self.op("arith.index_cast", linear.results, [i32], {}, place)
        scalar = ir.RankedTensorType.get([], i32)
        tensor = self.op("tensor.from_elements", cast.results, [scalar], {}, place)
        self.replace(op, "stablehlo.convert", tensor.results, {})

    def numbers(self, axes: Any) -> ir.Attribute:
        listed = ", ".join(map(str, axes))
        return ir.Attribute.parse(f"array<i16: {listed}>" if listed else "array<i16>")

    # ---- Functions -----------------------------------------------------------------------------------------

    def unwrap(self, function: Any) -> None:
        """A function whose body is one manual computation becomes a function of local tensors."""
        block = function.regions[0].blocks[0]
        inside = [op.operation for op in block.operations if op.operation.name == _COMPUTATION]
        if not inside:  # it runs on one device, or has whole tensors
            for label in ("arg_attrs", "res_attrs"):
                if label in function.attributes:
                    del function.attributes[label]
            return
        (computation,) = inside
        inner = computation.regions[0].blocks[0]
        types = [value.type for value in inner.arguments]
        returned = inner.operations[-1].operation
        results = [value.type for value in returned.operands]
        given = [value.type for value in block.arguments] if self.whole else types
        unwrapped: Any = func.FuncOp(
            function.name.value, ir.FunctionType.get(given, results), ip=ir.InsertionPoint(function)
        )
        entry = unwrapped.add_entry_block()
        order = [ir.BlockArgument(_unconstrained(value)).arg_number for value in computation.operands]
        values = [entry.arguments[i] for i in order]
        last = ir.InsertionPoint(entry)
        shardings = computation.attributes["in_shardings"]
        if self.whole:
            for i, sharding in zip(order, sdy.TensorShardingPerValueAttr(shardings).shardings, strict=True):
                if sdy.TensorShardingAttr(sharding).unreduced_axes:
                    message = f"argument {i} is a partial result, and a device has no part of the whole"
                    raise ShardlogError(message, where=location(function), hint="leave out --whole-arguments")
            values = [
                self.part(value, sharding, last)
                for value, sharding in zip(values, _shardings(shardings), strict=True)
            ]
        for argument, value in zip(inner.arguments, values, strict=True):
            argument.replace_all_uses_with(value)
        end = func.ReturnOp(list(returned.operands), ip=last)
        for op in list(inner.operations)[:-1]:
            op.operation.move_before(end.operation)
        returned.erase()
        function.erase()
        if exchanges_inside(unwrapped):
            self.note_alike(unwrapped, dict(zip(order, _axes_of_each(shardings), strict=True)))
        if LOCAL in self.module.operation.attributes and not self.whole:
            self.without_devices(unwrapped, end)

    def note_alike(self, function: FunctionOp, axes: Mapping[int, list[SubAxis]]) -> None:
        """Notes on the arguments of a function along which axes of the grid devices are given the same:
        collectives may depend on it. ``axes`` are those along which an argument differs."""
        noted = []
        for i in range(len(function.arguments)):
            differs = [] if self.whole else self.grid.numbers(axes.get(i, []))
            alike = [axis for axis in range(len(self.grid.sizes)) if axis not in differs]
            noted.append(ir.DictAttr.get({ALIKE: self.numbers(alike)} if alike else {}))
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(noted)

    def without_devices(self, function: Any, end: Any) -> None:
        """Takes the first dimension, of devices, off the arguments and results of a function."""
        entry = function.entry_block
        for argument in entry.arguments:
            outer, row = argument.type, _row(argument.type)
            reshape = self.op(_RESHAPE, [argument], [outer], {}, ir.InsertionPoint.at_block_begin(entry))
            argument.replace_all_uses_except(reshape.results[0], reshape)
            argument.set_type(row)
            for op in [use.owner.operation for use in reshape.results[0].uses]:
                if op.name == _RESHAPE and op.results[0].type == row:
                    op.results[0].replace_all_uses_with(argument)
                    op.erase()
            if not is_used(reshape):
                reshape.erase()
        for i, value in enumerate(end.operands):
            row = _row(value.type)
            op = None if isinstance(value.owner, ir.Block) else value.owner.operation
            if op is not None and op.name == _RESHAPE and op.operands[0].type == row:
                end.operands[i] = op.operands[0]
                if not is_used(op):
                    op.erase()
            else:
                reshape = self.op(_RESHAPE, [value], [row], {}, ir.InsertionPoint(end))
                end.operands[i] = reshape.results[0]
        given, results = ([v.type for v in values] for values in (entry.arguments, end.operands))
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(given, results))

    def part(self, value: Value, sharding: Any, place: ir.InsertionPoint) -> Any:
        """The part of a whole tensor that the device has."""
        for d, axes in enumerate(sharding):
            numbers = self.grid.numbers(axes)
            if not numbers:
                continue
            type_ = ir.RankedTensorType(value.type)
            sizes = list(type_.shape)
            sizes[d] //= prod(self.grid.sizes[axis] for axis in numbers)
            attributes = {
                "grid": self.reference,
                "grid_axes": self.numbers(numbers),
                "slice_axis": ir.IntegerAttr.get(ir.IndexType.get(), d),
            }
            result = ir.RankedTensorType.get(sizes, type_.element_type)
            value = self.op("shard.all_slice", [value], [result], attributes, place).results[0]
        return value

    def erase_unused(self) -> None:
        """Erases the ops that computed the offsets of parts."""
        for op in reversed(operations_in(self.module)):
            alone = len(op.results) and not len(op.regions)
            if op.name.startswith("stablehlo.") and alone and not is_used(op):
                op.erase()

    def refuse(self, op: Operation, why: str) -> None:
        """Raises ShardlogError for an op that the dialect cannot say."""
        hint = "write the program for XLA: leave out --as shard"
        raise ShardlogError(f"{op.name} has no counterpart in shard: {why}", where=location(op), hint=hint)


def _all_receive(source: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """A permutation in which devices that received nothing receive from devices that sent nothing, from
    themselves if possible."""
    complete, free = source.copy(), set(range(len(source))) - {*source.tolist()}
    for device in np.flatnonzero(source < 0).tolist():
        complete[device] = device if device in free else -1
        free.discard(device)
    complete[complete < 0] = sorted(free)
    return complete


def _zero(element: ir.Type) -> str:
    if str(element) == "i1":
        return "false"
    if str(element).startswith("complex"):
        return "(0.0, 0.0)"
    return "0.0" if isinstance(element, ir.FloatType) else "0"


def _unconstrained(value: Value) -> Any:
    """An argument. The constraint of a partial result around it says nothing new."""
    of_argument = isinstance(value.owner, ir.Block)
    return value if of_argument else _unconstrained(value.owner.operation.operands[0])


def _is_constant(value: Value) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name == "stablehlo.constant"


def _row(type_: ir.Type) -> Any:
    """The type of a row of a tensor."""
    tensor = ir.RankedTensorType(type_)
    return ir.RankedTensorType.get(list(tensor.shape)[1:], tensor.element_type)


def _shardings(attribute: ir.Attribute) -> list[Any]:
    """The axes of each dimension, of each sharding of an attribute."""
    shardings = []
    for sharding in sdy.TensorShardingPerValueAttr(attribute).shardings:
        entries = map(sdy.DimensionShardingAttr, sdy.TensorShardingAttr(sharding).dimension_shardings)
        shardings.append([_axes(entry.axes) for entry in entries])
    return shardings


def _axes_of_each(attribute: ir.Attribute) -> list[list[SubAxis]]:
    """The axes along which devices have different parts, of each sharding of an attribute."""
    each = sdy.TensorShardingPerValueAttr(attribute).shardings
    partial = [_axes(sdy.TensorShardingAttr(sharding).unreduced_axes) for sharding in each]
    return [
        [axis for axes in [*dimensions, unreduced] for axis in axes]
        for dimensions, unreduced in zip(_shardings(attribute), partial, strict=True)
    ]


def _axes(references: Iterable[ir.Attribute]) -> list[SubAxis]:
    """The axes that sdy refers to."""
    axes = []
    for axis in map(sdy.AxisRefAttr, references):
        part: Any = axis.sub_axis_info and sdy.SubAxisInfoAttr(axis.sub_axis_info)
        pre, size = (part.pre_size, part.size) if part else (1, 1 << 62)  # all of it
        axes.append(SubAxis(axis.name, pre, size))
    return axes
