"""The program of each device, whose collectives are calls of MPI: ops of LLVM's dialect mpi.

The device of a process is its rank: devices are numbered row by row. Collectives are called in communicators
of groups, which each function makes first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from math import prod
from typing import Any, NoReturn

from jaxlib.mlir import ir

from ...errors import ShardlogError
from ...importers.dialects.grids import integers, kind_of
from ...program.function import location
from ...program.meshes import symbol
from ...program.mlir.modules import is_used, operations_in, symbols
from ...program.mlir.types import FunctionOp, Operation, Value
from ...rulebook.shipped import shipped
from .grids import MeshGrid

Axes = tuple[int, ...]


@cache
def _words() -> dict[str, Any]:
    """What MPI has words for; see ``rules/dialects/messages.dl``."""
    rows = shipped("dialects/statements").evaluate({})
    return {
        "op": {(kind, elements): op for kind, elements, op in rows["reduced_by_mpi"]},
        "datatypes": {element for (element,) in rows["datatype"]},
        "carried": {element: how for element, *how in rows["carried_as"]},
        "reduced": {element: how for element, *how in rows["reduced_as"]},
    }


def with_messages(module: ir.Module, grid: MeshGrid) -> None:
    """Replaces the collectives of shard by calls of MPI, in a program of local tensors.

    Raises ShardlogError for a reduction or an element type that MPI does not have.
    """
    with module.context, ir.Location.unknown():
        for function in symbols(module, "func.func").values():
            ops = [op for op in operations_in(function) if op.name.startswith("shard.")]
            if ops:
                _Process(function, ops, grid).write()
            if "arg_attrs" in function.attributes:  # of the grid
                del function.attributes["arg_attrs"]
        for op in symbols(module, "shard.grid").values():
            op.erase()


class _Process:
    """A function of a process. What a collective needs is written before its op, ``place``; the place of the
    device and its communicators stand at the head of the function."""

    def __init__(self, function: FunctionOp, ops: list[Any], grid: MeshGrid) -> None:
        self.function, self.ops, self.grid = function, ops, grid
        self.sizes = grid.sizes
        self.i32, self.i64, self.index = (
            ir.IntegerType.get_signless(32),
            ir.IntegerType.get_signless(64),
            ir.IndexType.get(),
        )
        self.comm = ir.Type.parse("!mpi.comm")
        self.place: Any = None
        self.loc: Any = function.location
        self.places: dict[Axes, Any] = {}  # the place of the device in its group
        self.groups: dict[Axes, Any] = {}  # the communicator of its group
        self.sent: Any = None  # the send that waits for its receive
        self.written: list[Any] = []
        self.constants: dict[tuple[int, str], Any] = {}

    def write(self) -> None:
        self.place = ir.InsertionPoint(self.function.regions[0].blocks[0].operations[0])
        self.head()
        head = self.written.copy()
        for op in self.ops:
            self.place, self.loc = ir.InsertionPoint(op), op.location
            replacement = _MADE[op.name](self, op)
            if replacement is not None:
                op.results[0].replace_all_uses_with(replacement)
            if op.name != "shard.send":
                op.erase()
        for op in reversed(head):
            if len(op.results) and not is_used(op):
                op.erase()

    # ---- The head of the function --------------------------------------------------------------------------

    def head(self) -> None:
        """Writes the communicators, and the place of the device in its groups."""
        world = self.one("mpi.comm_world", [], self.comm)
        self.start = ir.InsertionPoint(world.owner)
        size = self.one("mpi.comm_size", [world], self.i32)
        count = prod(self.sizes)
        wanted = self.number(count, self.i32)
        same = self.one(
            "arith.cmpi", [size, wanted], ir.IntegerType.get_signless(1), {"predicate": self.attribute(0)}
        )
        message = f"the grid {symbol(self.grid.name)} has {count} devices, of which each is a process"
        self.op("cf.assert", [same], [], {"msg": ir.StringAttr.get(message)})
        rank = self.one("mpi.comm_rank", [world], self.i32)
        self.world = world
        self.device = self.one("arith.index_cast", [rank], self.index)
        self.at = self.coordinates(self.device)
        every = tuple(range(len(self.sizes)))
        for op in self.ops:
            axes = self.axes(op)
            if not axes:
                continue
            if axes not in self.places:
                self.places[axes] = self.along(axes)
            if op.name in _OF_GROUPS and axes not in self.groups:
                if axes == every:
                    self.groups[axes] = world
                    continue
                others = [axis for axis in every if axis not in axes]
                color = self.narrow(self.along(others) if others else self.number(0, self.index))
                key = self.narrow(self.places[axes])
                self.groups[axes] = self.one("mpi.comm_split", [world, color, key], self.comm)

    def axes(self, op: Operation) -> Axes:
        """The axes of the group of an op, outermost first."""
        return tuple(integers(op.attributes.get("grid_axes")))

    def along(self, axes: Sequence[int]) -> Any:
        """The number of the device along axes, outermost first."""
        if len(axes) == 1:
            return self.at[axes[0]]
        return self.linear([self.at[axis] for axis in axes], [self.sizes[axis] for axis in axes])

    def linear(self, coordinates: Sequence[Value], sizes: Sequence[int]) -> Any:
        """The number of a place in a grid of these sizes, row by row."""
        number = coordinates[0]
        for coordinate, size in zip(coordinates[1:], sizes[1:], strict=True):
            rows = self.of_two("arith.muli", number, size)
            number = self.one("arith.addi", [rows, coordinate], self.index)
        return number

    def coordinates(self, number: Value) -> list[Any]:
        """The place in the grid of the device that has a number."""
        coordinates = []
        for size in reversed(self.sizes[1:]):
            coordinates.append(self.of_two("arith.remui", number, size))
            number = self.of_two("arith.divui", number, size)
        return [number, *reversed(coordinates)]

    # ---- Ops -----------------------------------------------------------------------------------------------

    def op(self, name: str, operands: Sequence[Any], types: Sequence[ir.Type], attributes: Any = None) -> Any:
        op = ir.Operation.create(
            name,
            results=list(types),
            operands=list(operands),
            attributes=attributes or {},
            loc=self.loc,
            ip=self.place,
        )
        self.written.append(op)
        return op

    def one(self, name: str, operands: Sequence[Value], type_: ir.Type, attributes: Any = None) -> Any:
        return self.op(name, operands, [type_], attributes).results[0]

    def attribute(self, value: int) -> Any:
        return ir.IntegerAttr.get(self.i64, value)

    def number(self, value: int, type_: ir.Type) -> Any:
        """A constant, which stands at the head of the function."""
        key = value, str(type_)
        if key not in self.constants:
            place, self.place = self.place, self.start
            held = {"value": ir.IntegerAttr.get(type_, value)}
            self.constants[key] = self.one("arith.constant", [], type_, held)
            self.place = place
        return self.constants[key]

    def of_two(self, name: str, value: Value, number: int) -> Any:
        """An op of arithmetic on a value and a number."""
        return self.one(name, [value, self.number(number, self.index)], self.index)

    def narrow(self, value: Value) -> Any:
        """A number of type index as MPI has numbers."""
        return self.one("arith.index_cast", [value], self.i32)

    def refuse(self, op: Operation, why: str) -> NoReturn:
        """Raises ShardlogError for an op that MPI cannot say."""
        hint = "write the program with --as shard, or compute with another type"
        raise ShardlogError(f"{op.name} has no counterpart in mpi: {why}", where=location(op), hint=hint)

    # ---- Buffers -------------------------------------------------------------------------------------------

    def alloc(self, shape: Sequence[int], element: ir.Type) -> Any:
        none = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])}
        return self.one("memref.alloc", [], _memref(shape, element), none)

    def buffer(self, value: Value) -> Any:
        """The buffer of a tensor, to be read only."""
        type_ = ir.RankedTensorType(value.type)
        held = _memref(type_.shape, type_.element_type)
        return self.one("bufferization.to_buffer", [value], held, {"read_only": ir.UnitAttr.get()})

    def tensor(self, buffer: Value) -> Any:
        """The tensor that a buffer holds, which nothing else uses."""
        type_ = ir.MemRefType(buffer.type)
        held = ir.RankedTensorType.get(list(type_.shape), type_.element_type)
        return self.one("bufferization.to_tensor", [buffer], held, {"restrict": ir.UnitAttr.get()})

    def first(self, buffer: Value, dim: int) -> Any:
        """A buffer in which a dimension comes first, as they stand in memory."""
        rank = len(ir.MemRefType(buffer.type).shape)
        return self.transposed(buffer, [dim, *(d for d in range(rank) if d != dim)])

    def transposed(self, buffer: Value, order: Sequence[int]) -> Any:
        """A buffer with its dimensions in another order."""
        if list(order) == sorted(order):
            return buffer
        type_ = ir.MemRefType(buffer.type)
        shape = [type_.shape[d] for d in order]
        strides = [_strides(type_.shape)[d] for d in order]
        view = _memref(shape, type_.element_type, f"strided<[{', '.join(map(str, strides))}]>")
        order_map = ir.AffineMapAttr.get(ir.AffineMap.get_permutation(list(order)))
        seen = self.one("memref.transpose", [buffer], view, {"permutation": order_map})
        result = self.alloc(shape, type_.element_type)
        self.op("memref.copy", [seen, result], [])
        return result

    def in_parts(self, buffer: Value, dim: int, count: int) -> Any:
        """A buffer whose dimension is split in two: the parts, and the rows of a part."""
        type_ = ir.MemRefType(buffer.type)
        shape = list(type_.shape)
        shape[dim : dim + 1] = [count, shape[dim] // count]
        attributes = {
            "reassociation": _pairs(len(shape), dim),
            "static_output_shape": ir.DenseI64ArrayAttr.get(shape),
        }
        return self.one("memref.expand_shape", [buffer], _memref(shape, type_.element_type), attributes)

    def joined(self, buffer: Value, dim: int) -> Any:
        """A buffer whose first dimension, of parts, becomes part of another one, which the parts have at
        ``dim``."""
        rank = len(ir.MemRefType(buffer.type).shape)
        order = [*range(1, dim + 1), 0, *range(dim + 1, rank)]
        moved = self.transposed(buffer, order)
        type_ = ir.MemRefType(moved.type)
        shape = list(type_.shape)
        shape[dim : dim + 2] = [shape[dim] * shape[dim + 1]]
        attributes = {"reassociation": _pairs(rank, dim)}
        return self.one("memref.collapse_shape", [moved], _memref(shape, type_.element_type), attributes)

    def part(self, buffer: Value, number: Value) -> Any:
        """The part of a buffer that has a number, in its first dimension."""
        type_ = ir.MemRefType(buffer.type)
        shape, rank = list(type_.shape)[1:], len(type_.shape)
        layout = f"strided<[{', '.join(map(str, _strides(shape)))}], offset: ?>"
        attributes = {
            "static_offsets": ir.DenseI64ArrayAttr.get([_DYNAMIC] + [0] * (rank - 1)),
            "static_sizes": ir.DenseI64ArrayAttr.get([1, *shape]),
            "static_strides": ir.DenseI64ArrayAttr.get([1] * rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 0, 0]),
        }
        return self.one(
            "memref.subview", [buffer, number], _memref(shape, type_.element_type, layout), attributes
        )

    def carried(self, op: Operation, value: Value, how: str) -> tuple[Any, Callable[[Any], Any]]:
        """A tensor with an element type that MPI has, and a function that converts a tensor back."""
        words, type_ = _words(), ir.RankedTensorType(value.type)
        element = str(type_.element_type)
        if element in words["datatypes"]:
            return value, lambda tensor: tensor
        if element not in words[how]:
            self.refuse(op, f"there is no datatype for {element}")
        other, there, back = words[how][element]
        changed = ir.Type.parse(other)
        sent = self.one(there, [value], ir.RankedTensorType.get(list(type_.shape), changed))

        def again(tensor: Value) -> Any:
            shape = list(ir.RankedTensorType(tensor.type).shape)
            return self.one(back, [tensor], ir.RankedTensorType.get(shape, type_.element_type))

        return sent, again

    # ---- Collectives ---------------------------------------------------------------------------------------

    def reduction(self, op: Operation) -> Any:
        """The op by which MPI reduces."""
        kind = kind_of(op.attributes.get("reduction"))
        element = ir.RankedTensorType(op.operands[0].type).element_type
        elements = "boolean" if str(element) == "i1" else "number"
        by = _words()["op"].get((kind, elements))
        if by is None:
            self.refuse(op, f"there is no reduction {kind}")
        return {"op": ir.Attribute.parse(f"#mpi.opclass<{by}>")}

    def all_reduce(self, op: Operation) -> Any:
        sent, again = self.carried(op, op.operands[0], "reduced")
        type_ = ir.RankedTensorType(sent.type)
        into = self.alloc(type_.shape, type_.element_type)
        group = self.groups[self.axes(op)]
        self.op("mpi.allreduce", [self.buffer(sent), into, group], [], self.reduction(op))
        return again(self.tensor(into))

    def all_gather(self, op: Operation) -> Any:
        sent, again = self.carried(op, op.operands[0], "carried")
        type_, axes = ir.RankedTensorType(sent.type), self.axes(op)
        into = self.alloc([self.count(axes), *type_.shape], type_.element_type)
        self.op("mpi.allgather", [self.buffer(sent), into, self.groups[axes]], [])
        return again(self.tensor(self.joined(into, self.dimension(op, "gather_axis"))))

    def reduce_scatter(self, op: Operation) -> Any:
        sent, again = self.carried(op, op.operands[0], "reduced")
        type_, axes = ir.RankedTensorType(sent.type), self.axes(op)
        dim = self.dimension(op, "scatter_dim")
        parts = self.first(self.in_parts(self.buffer(sent), dim, self.count(axes)), dim)
        into = self.alloc(ir.MemRefType(parts.type).shape[1:], type_.element_type)
        self.op("mpi.reduce_scatter_block", [parts, into, self.groups[axes]], [], self.reduction(op))
        return again(self.tensor(into))

    def all_slice(self, op: Operation) -> Any:
        value, dim, result = op.operands[0], self.dimension(op, "slice_axis"), op.results[0].type
        sizes = list(ir.RankedTensorType(result).shape)
        start = self.of_two("arith.muli", self.places[self.axes(op)], sizes[dim])
        attributes = {
            "static_offsets": ir.DenseI64ArrayAttr.get(
                [_DYNAMIC if d == dim else 0 for d in range(len(sizes))]
            ),
            "static_sizes": ir.DenseI64ArrayAttr.get(sizes),
            "static_strides": ir.DenseI64ArrayAttr.get([1] * len(sizes)),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 0, 0]),
        }
        return self.one("tensor.extract_slice", [value, start], result, attributes)

    def all_to_all(self, op: Operation) -> Any:
        """In turn k, each device sends to the device k places further in its group."""
        sent, again = self.carried(op, op.operands[0], "carried")
        axes = self.axes(op)
        count, own = self.count(axes), self.places[axes]
        split, concat = self.dimension(op, "split_axis"), self.dimension(op, "concat_axis")
        parts = self.first(self.in_parts(self.buffer(sent), split, count), split)
        type_ = ir.MemRefType(parts.type)
        into = self.alloc(type_.shape, type_.element_type)
        self.op("memref.copy", [self.part(parts, own), self.part(into, own)], [])
        for turn in range(1, count):
            to, of = self.beside(own, turn, count), self.beside(own, count - turn, count)
            self.exchange(self.part(parts, to), self.part(into, of), to, of, axes, turn)
        return again(self.tensor(self.joined(into, concat)))

    def shift(self, op: Operation) -> Any:
        """A rotation."""
        sent, again = self.carried(op, op.operands[0], "carried")
        type_, axes = ir.RankedTensorType(sent.type), (self.dimension(op, "shift_axis"),)
        count, own = self.count(axes), self.places[axes]
        offset = ir.IntegerAttr(op.attributes["offset"]).value % count
        if not offset:
            return op.operands[0]
        to, of = self.beside(own, offset, count), self.beside(own, count - offset, count)
        into = self.alloc(type_.shape, type_.element_type)
        self.exchange(self.buffer(sent), into, to, of, axes, offset)
        return again(self.tensor(into))

    def beside(self, own: Value, offset: int, count: int) -> Any:
        """The place in a group that is so many places on, around its end."""
        return self.of_two("arith.remui", self.of_two("arith.addi", own, offset), count)

    def exchange(self, out: Value, into: Value, to: Value, of: Value, axes: Axes, offset: int) -> None:
        """Sends to the device ``offset`` places further in the group, and receives from the device ``offset``
        places before. In each ring, some devices receive first: otherwise all would wait for a receiver."""
        count, own = self.count(axes), self.places[axes]
        rows = self.of_two("arith.divui", own, min(offset, count - offset))
        odd = self.of_two("arith.remui", rows, 2)
        receives = self.compare("eq", odd, self.number(1, self.index))
        self.send_and_receive(out, into, self.narrow(to), self.narrow(of), self.groups[axes], receives)

    def compare(self, how: str, one: Value, other: Value) -> Any:
        predicate = {"predicate": self.attribute(_PREDICATES[how])}
        return self.one("arith.cmpi", [one, other], ir.IntegerType.get_signless(1), predicate)

    def send_and_receive(
        self, out: Value, into: Value, to: Value, of: Value, group: Value, receives: Value
    ) -> None:
        """Sends a buffer and receives into another one; in this order, unless ``receives``."""
        tag = self.number(0, self.i32)

        def send() -> None:
            self.op("mpi.send", [out, tag, to, group], [])

        def receive() -> None:
            self.op("mpi.recv", [into, tag, of, group], [])

        self.either(receives, (receive, send), (send, receive))

    def either(
        self, condition: Any, then: Sequence[Callable[[], None]], other: Sequence[Callable[[], None]]
    ) -> None:
        """Writes two branches."""
        branches = ir.Operation.create("scf.if", operands=[condition], regions=2, loc=self.loc, ip=self.place)
        place = self.place
        for region, steps in zip(branches.regions, (then, other), strict=True):
            self.place = ir.InsertionPoint(region.blocks.append())
            for step in steps:
                step()
            self.op("scf.yield", [], [])
        self.place = place

    def send(self, op: Operation) -> None:
        """What is sent here is written with the receive that follows."""
        self.sent = op

    def receive(self, op: Operation) -> Any:
        """Devices send to and receive from any other, each from one; some keep their own. Those send first
        who send to a later device: in each ring of devices, some do and some do not."""
        sent, self.sent = self.sent, None
        value, again = self.carried(op, sent.operands[0], "carried")
        to, of = (self.linear([*each.operands][1:], self.sizes) for each in (sent, op))
        type_ = ir.RankedTensorType(value.type)
        out, into = self.buffer(value), self.alloc(type_.shape, type_.element_type)
        stays, receives = self.compare("eq", to, self.device), self.compare("ult", to, self.device)
        target, source = self.narrow(to), self.narrow(of)
        self.either(
            stays,
            [lambda: self.op("memref.copy", [out, into], [])],
            [lambda: self.send_and_receive(out, into, target, source, self.world, receives)],
        )
        received = again(self.tensor(into))
        sent.results[0].replace_all_uses_with(sent.operands[0])
        sent.erase()
        return received

    def process_linear_index(self, op: Operation) -> Any:
        return self.device

    def count(self, axes: Axes) -> int:
        """The number of devices of a group."""
        return prod(self.sizes[axis] for axis in axes)

    def dimension(self, op: Operation, label: str) -> int:
        return int(ir.IntegerAttr(op.attributes[label]).value)


_DYNAMIC = -(1 << 63)
_PREDICATES = {"eq": 0, "ult": 6}  # of arith.cmpi
_MADE: dict[str, Callable[[_Process, Any], Any]] = {
    "shard.all_gather": _Process.all_gather,
    "shard.all_reduce": _Process.all_reduce,
    "shard.all_slice": _Process.all_slice,
    "shard.all_to_all": _Process.all_to_all,
    "shard.process_linear_index": _Process.process_linear_index,
    "shard.recv": _Process.receive,
    "shard.reduce_scatter": _Process.reduce_scatter,
    "shard.send": _Process.send,
    "shard.shift": _Process.shift,
}
_OF_GROUPS = {*_MADE} - {"shard.all_slice", "shard.recv", "shard.send", "shard.process_linear_index"}


def _memref(shape: Sequence[int], element: ir.Type, layout: str = "") -> Any:
    sizes = "".join(f"{size}x" for size in shape)
    return ir.Type.parse(f"memref<{sizes}{element}{', ' + layout if layout else ''}>")


def _strides(shape: Sequence[int]) -> list[int]:
    """The strides of a buffer whose elements stand in memory row by row."""
    return [*accumulate([1, *reversed(list(shape)[1:])], lambda one, other: one * other)][::-1][-len(shape) :]


def _pairs(rank: int, dim: int) -> ir.Attribute:
    """A reassociation that merges ``dim`` with the dimension after it."""
    groups = [[d] for d in range(dim)] + [[dim, dim + 1]] + [[d] for d in range(dim + 2, rank)]
    return ir.ArrayAttr.get(
        [
            ir.ArrayAttr.get([ir.IntegerAttr.get(ir.IntegerType.get_signless(64), d) for d in group])
            for group in groups
        ]
    )
