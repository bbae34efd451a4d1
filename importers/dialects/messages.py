"""The program of a process, whose collectives are calls of MPI, as a program for all devices.

It is read as ``partition --as mpi`` writes it: the number of processes is asserted, communicators are made of
numbers that follow from the rank, and messages are sent and received in pairs. A process is a device. Buffers
become the tensors that they hold, in the order of the program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ...errors import ShardlogError
from ...program.carried import DYNAMIC
from ...program.devices import Devices, Table
from ...program.function import location
from ...program.meshes import MOST_DEVICES, Mesh
from ...program.mlir.modules import is_used, operations_in, symbols
from ...program.mlir.types import Operation, Value
from ...program.shardings import mesh_attribute
from ...rulebook.shipped import shipped
from .grids import integers
from .local import Global
from .places import IndexValues

_MESH, _AXIS = "processes", "rank"
_OURS = ("mpi.", "memref.", "bufferization.")  # ops that are gone afterwards
_HINT = "calls are read as partition --as mpi writes them; write the program with --as shard, and run that"


@cache
def _combined_by() -> dict[str, str]:
    """The op of StableHLO that combines two elements, by MPI's name for the reduction."""
    rows = shipped("dialects/statements").evaluate({})
    by_kind = {kind: op for op, kind in rows["combined_as"]}
    return {op: by_kind[kind] for kind, elements, op in rows["reduced_by_mpi"] if elements == "number"}


def has_calls(module: ir.Module) -> bool:
    """Whether a module calls MPI."""
    return any(op.name.startswith("mpi.") for op in operations_in(module))


def calls_to_global(module: ir.Module) -> None:
    """Turns the program of a process, in place, into one for all devices.

    Raises ShardlogError for calls that have no meaning for all devices alike.
    """
    with module.context, ir.Location.unknown():
        _Calls(module).write()


class _Ranks(IndexValues):
    """Numbers of a program by process, and its communicators."""

    def __init__(self, count: int) -> None:
        super().__init__(count, [count])
        self.numbers: dict[Any, Table | None] = {}
        self.groups: dict[Any, Table] = {}

    def of(self, value: Value) -> Table | None:
        if value not in self.numbers:
            self.numbers[value] = self.evaluated(value)
        return self.numbers[value]

    def evaluated(self, value: Value) -> Table | None:
        """A number for each process, as far as that is known."""
        op = None if isinstance(value.owner, ir.Block) else value.owner.operation
        if op is not None and op.name == "mpi.comm_rank":
            return self.place(op.operands[0])
        if op is not None and op.name == "mpi.comm_size":
            return np.full(self.count, self.group(op.operands[0]).shape[1])
        if op is None or op.name not in _COMPUTED:
            return super().of(value)
        one, other = map(self.of, op.operands)
        if one is None or other is None or (op.name in _DIVIDES and not other.all()):
            return None
        if op.name == "arith.cmpi":
            compare = _COMPARED.get(ir.IntegerAttr(op.attributes["predicate"]).value)
            return None if compare is None else np.asarray(compare(one, other), np.int64)
        return np.asarray(_COMPUTED[op.name](one, other))

    def group(self, communicator: Value) -> Table:
        """The groups of a communicator: a row for each, with its processes in order.

        Raises ShardlogError for groups that differ in size, or are not known.
        """
        if communicator not in self.groups:
            self.groups[communicator] = self._group(communicator)
        return self.groups[communicator]

    def _group(self, communicator: Value) -> Table:
        op = communicator.owner.operation
        if op.name == "mpi.comm_world":
            return np.arange(self.count)[None]
        world, color, key = op.operands
        colors, keys = self.of(color), self.of(key)
        if world.owner.operation.name != "mpi.comm_world" or colors is None or keys is None:
            raise refused(op, "its groups do not follow from the rank")
        rows = [np.flatnonzero(colors == each) for each in np.unique(colors)]
        if len({len(row) for row in rows}) > 1:
            raise refused(op, "its groups differ in size")
        return np.asarray([row[np.argsort(keys[row], kind="stable")] for row in rows])

    def place(self, communicator: Value) -> Table:
        """The place of each process in its group."""
        groups, places = self.group(communicator), np.empty(self.count, np.int64)
        for row in groups:
            places[row] = np.arange(len(row))
        return places

    def process(self, communicator: Value, rank: Table) -> Table:
        """For each process, the process with the given rank in its group; -1 if there is none."""
        processes = np.full(self.count, -1)
        for row in self.group(communicator):
            ranks = rank[row]
            valid = (ranks >= 0) & (ranks < len(row))
            processes[row[valid]] = row[ranks[valid]]
        return processes


@dataclass
class _Exchange:
    """The messages of a choice between branches: from which process each receives, to which it sends, and
    which processes copy instead."""

    source: Table
    target: Table
    copies: Table
    buffers: dict[str, Any]  # "sent" and "received"


class _Calls(Global):
    def write(self) -> None:
        self.put_calls_in_place()
        functions = [f for f in symbols(self.module, "func.func").values() if len(f.regions[0].blocks)]
        self.count = self.processes()
        self.name, self.axes, self.sizes = _MESH, [_AXIS], [self.count]
        place = ir.InsertionPoint.at_block_begin(self.module.body)
        sdy.MeshOp(_MESH, mesh_attribute(Mesh("", ((_AXIS, self.count),))), ip=place)
        self.devices, self.ranks = Devices(self.sizes), _Ranks(self.count)
        self.indices = self.ranks
        self.held: dict[Any, Any] = {}  # by buffer: the tensor that it holds
        done = list[Any]()
        for function in functions:
            for op in [each.operation for each in function.regions[0].blocks[0].operations]:
                self.place, self.loc = ir.InsertionPoint(op), op.location
                if self.call(op):
                    done.append(op)
        self.replace_dependent()
        self.erase(done)
        self.wrap_all(functions)

    def processes(self) -> int:
        """The number of processes, which the program asserts."""
        ops = operations_in(self.module)
        for op in ops:
            if op.name == "cf.assert" and (comparison := op.operands[0].owner.operation).name == "arith.cmpi":
                size, count = (value.owner.operation for value in comparison.operands)
                if size.name == "mpi.comm_size" and count.name == "arith.constant":
                    processes = int(ir.IntegerAttr(count.attributes["value"]).value)
                    if not 1 <= processes <= MOST_DEVICES:
                        raise refused(op, f"{processes:,} processes, and there may be 1 to {MOST_DEVICES:,}")
                    return processes
        raise refused(
            next(op for op in ops if op.name.startswith("mpi.")), "the number of its processes is not known"
        )

    def call(self, op: Operation) -> bool:
        """Replaces an op's use of buffers by tensors. Returns whether the op is gone."""
        inside = list(operations_in(op))
        if op.name == "scf.if" and any(each.name == "mpi.recv" for each in inside):
            self.exchange(op)
        elif any(each.name.startswith(_OURS) for each in inside):
            raise refused(op, "it calls MPI in a loop or in a branch")
        elif op.name in _CALLED:
            _CALLED[op.name](self, op)
        elif op.name.startswith("mpi.") and op.name not in _SILENT:
            raise refused(op, "this call is not supported")
        elif op.name == "tensor.extract_slice" and DYNAMIC in integers(op.attributes["static_offsets"]):
            self.cut(op)
        else:
            return bool(op.name.startswith((*_OURS, "cf.assert")))
        return True

    def erase(self, done: Sequence[Any]) -> None:
        """Erases ops that are replaced, and the numbers that only they use."""
        for op in reversed(done):
            if is_used(op):  # a number, or the return code of a call
                continue
            op.erase()
        for op in reversed(operations_in(self.module)):
            if op.name.startswith(("arith.", "tensor.extract", *_OURS)) and not is_used(op):
                op.erase()
        for op in operations_in(self.module):
            if op.name.startswith(_OURS):
                raise refused(op, "the program computes with its result")

    # ---- Buffers -------------------------------------------------------------------------------------------

    def read(self, buffer: Value) -> Any:
        """The tensor that a buffer holds."""
        if buffer in self.held:
            return self.held[buffer]
        op = buffer.owner.operation
        if op.name == "bufferization.to_buffer":
            return op.operands[0]
        if op.name in ("memref.expand_shape", "memref.collapse_shape"):
            return self.reshape(self.read(op.operands[0]), ir.MemRefType(buffer.type).shape)
        if op.name == "memref.transpose":
            return self.transposed(self.read(op.operands[0]), _permutation(op.attributes["permutation"]))
        if op.name == "memref.subview":
            whole, number = self.row(op)
            part = self.part(self.read(whole), 0, 1, number)
            return self.reshape(part, ir.MemRefType(buffer.type).shape)
        raise refused(op, "nothing is in its buffer before")

    def store(self, buffer: Value, value: Value) -> None:
        """Puts a tensor into a buffer."""
        op = buffer.owner.operation
        if list(value.type.shape) != list(ir.MemRefType(buffer.type).shape):
            raise refused(op, f"its shape differs from the {value.type} that a call puts there")
        if op.name == "memref.alloc":
            self.held[buffer] = value
        elif op.name == "memref.subview":
            whole, number = self.row(op)
            rows = self.reshape(value, [1, *value.type.shape])
            if whole not in self.held:
                self.held[whole] = self.zeros(ir.MemRefType(whole.type))
            old, zero = self.read(whole), self.number(np.zeros(self.count, np.int64))
            places = [self.number(number), *[zero] * (len(rows.type.shape) - 1)]
            self.held[whole] = self.one("stablehlo.dynamic_update_slice", [old, rows, *places], old.type)
        else:
            raise refused(op, "it is written through a view")

    def zeros(self, type_: Any) -> Any:
        tensor = ir.RankedTensorType.get(list(type_.shape), type_.element_type)
        zero = "0" if isinstance(type_.element_type, ir.IntegerType) else "0.0"
        return self.one(
            "stablehlo.constant", [], tensor, {"value": ir.Attribute.parse(f"dense<{zero}> : {tensor}")}
        )

    def row(self, op: Operation) -> tuple[Any, Table]:
        """The buffer that a view is a row of, and the number of the row, by process."""
        whole, shape = op.operands[0], list(ir.MemRefType(op.operands[0].type).shape)
        offset, *others = integers(op.attributes["static_offsets"])
        sizes, result = list(integers(op.attributes["static_sizes"])), ir.MemRefType(op.results[0].type).shape
        number = self.ranks.of(op.operands[1]) if offset == DYNAMIC else np.full(self.count, offset)
        if any(others) or sizes != [1, *shape[1:]] or list(result) != shape[1:] or number is None:
            raise refused(op, "its row does not follow from the rank")
        return whole, number

    def transposed(self, value: Value, order: Sequence[int]) -> Any:
        type_ = ir.RankedTensorType(value.type)
        result = ir.RankedTensorType.get([type_.shape[d] for d in order], type_.element_type)
        held = {"permutation": ir.DenseI64ArrayAttr.get(list(order))}
        return self.one("stablehlo.transpose", [value], result, held)

    def copy(self, op: Operation) -> None:
        self.store(op.operands[1], self.read(op.operands[0]))

    def to_tensor(self, op: Operation) -> None:
        op.results[0].replace_all_uses_with(self.read(op.operands[0]))

    def cut(self, op: Operation) -> None:
        """A slice that begins where the part of the device does."""
        value, sizes = op.operands[0], list(integers(op.attributes["static_sizes"]))
        given = iter([*op.operands][1:])
        starts = [
            self.ranks.of(next(given)) if offset == DYNAMIC else np.full(self.count, offset)
            for offset in integers(op.attributes["static_offsets"])
        ]
        for dim, (start, size) in enumerate(zip(starts, sizes, strict=True)):
            if start is None:
                raise refused(op, "its offset does not follow from the rank")
            value = self.part(value, dim, size, start) if size != value.type.shape[dim] else value
        op.results[0].replace_all_uses_with(value)

    # ---- Calls ---------------------------------------------------------------------------------------------

    def all_reduce(self, op: Operation) -> None:
        sent, received, communicator = op.operands
        value = self.read(sent)
        groups = self.ranks.group(communicator)
        result = self.collective("all_reduce", value, value.type.shape, groups, {}, self.combine(op))
        self.store(received, result)

    def all_gather(self, op: Operation) -> None:
        sent, received, communicator = op.operands
        value, groups = self.read(sent), self.ranks.group(communicator)
        rows, sizes = self.reshape(value, [1, *value.type.shape]), [groups.shape[1], *value.type.shape]
        result = self.collective("all_gather", rows, sizes, groups, {"all_gather_dim": self.integer(0)})
        self.store(received, result)

    def reduce_scatter(self, op: Operation) -> None:
        sent, received, communicator = op.operands
        value, groups = self.read(sent), self.ranks.group(communicator)
        if list(value.type.shape)[:1] != [groups.shape[1]]:
            raise refused(op, f"it sends no {groups.shape[1]} parts")
        sizes, along = [1, *value.type.shape[1:]], {"scatter_dimension": self.integer(0)}
        result = self.collective("reduce_scatter", value, sizes, groups, along, self.combine(op))
        self.store(received, self.reshape(result, sizes[1:]))

    def combine(self, op: Operation) -> str:
        """The op that combines two elements."""
        name = str(op.attributes["op"]).partition("<")[2].rstrip(">")
        if name not in _combined_by():
            raise refused(op, f"its reduction is not known ({name})")
        return _combined_by()[name]

    def exchange(self, op: Operation) -> None:
        """Makes one permutation of the messages in the branches of an op."""
        none = np.full(self.count, -1)
        exchange = _Exchange(none, none.copy(), np.zeros(self.count, bool), {})
        self.collect(op, np.ones(self.count, bool), exchange)
        receives = exchange.source >= 0
        if not np.array_equal(exchange.target[exchange.source[receives]], np.flatnonzero(receives)):
            raise refused(op, "some messages are not received by the process they are sent to")
        sent, received = self.read(exchange.buffers["sent"]), exchange.buffers["received"]
        value = self.permuted(sent, exchange.source)
        if exchange.copies.any():
            value = self.where(exchange.copies, sent, value)
        if not (receives | exchange.copies).all():
            value = self.where(receives | exchange.copies, value, self.read(received))
        self.store(received, value)

    def collect(self, op: Operation, on: Table, exchange: _Exchange) -> None:
        """Collects the messages of the branches of an op, on those processes that come to it."""
        condition = self.ranks.of(op.operands[0])
        if condition is None:
            raise refused(op, "its condition does not follow from the rank")
        for region, taken in zip(op.regions, (on & (condition != 0), on & (condition == 0)), strict=True):
            for inner in _ops_of(region):
                if inner.name == "scf.if":
                    self.collect(inner, taken, exchange)
                elif inner.name == "memref.copy":
                    self.use(inner, exchange, sent=inner.operands[0], received=inner.operands[1])
                    exchange.copies |= taken
                elif inner.name in ("mpi.send", "mpi.recv"):
                    buffer, _, rank, communicator = inner.operands
                    sends = inner.name == "mpi.send"
                    self.use(inner, exchange, **{"sent" if sends else "received": buffer})
                    if (ranks := self.ranks.of(rank)) is None:
                        raise refused(inner, "its rank is not known before it runs")
                    others = self.ranks.process(communicator, ranks)[taken]
                    if (others < 0).any():
                        raise refused(inner, "its rank is not in the communicator")
                    (exchange.target if sends else exchange.source)[taken] = others
                elif inner.name != "scf.yield":
                    raise refused(inner, "it is in a branch with messages")

    def use(self, op: Operation, exchange: _Exchange, **buffers: Any) -> None:
        """Notes the buffers of a message. Raises ShardlogError for others than the messages before."""
        for what, buffer in buffers.items():
            if exchange.buffers.setdefault(what, buffer) != buffer:
                raise refused(op, f"another buffer is {what} in the same branches")


def refused(op: Operation, why: str) -> ShardlogError:
    """The error for a call that is not read."""
    return ShardlogError(f"{op.name} cannot run: {why}", where=location(op), hint=_HINT)


def _ops_of(region: ir.Region) -> Iterator[Any]:
    return (op.operation for block in region.blocks for op in block.operations)


def _permutation(attribute: ir.Attribute) -> list[int]:
    """The order of dimensions that a permutation says."""
    return list(map(int, re.findall(r"\d+", str(attribute).partition("->")[2])))


_DIVIDES = ("arith.divui", "arith.remui")
_COMPUTED: dict[str, Callable[[Table, Table], Any]] = {
    "arith.addi": np.add,
    "arith.muli": np.multiply,
    "arith.divui": np.floor_divide,
    "arith.remui": np.remainder,
    "arith.cmpi": np.equal,
}
_COMPARED: dict[int, Callable[[Table, Table], Any]] = {0: np.equal, 1: np.not_equal, 2: np.less, 6: np.less}
_SILENT = ("mpi.comm_world", "mpi.comm_size", "mpi.comm_rank", "mpi.comm_split")
_CALLED: dict[str, Callable[[_Calls, Any], None]] = {
    "bufferization.to_tensor": _Calls.to_tensor,
    "memref.copy": _Calls.copy,
    "mpi.allgather": _Calls.all_gather,
    "mpi.allreduce": _Calls.all_reduce,
    "mpi.reduce_scatter_block": _Calls.reduce_scatter,
}
