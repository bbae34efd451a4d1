"""Runs programs of MLIR's dialect mpi, for all processes in one: NumPy arrays are tensors and buffers.

Processes take turns. A send waits for its receive, as MPI may have it: a program in which all wait fails.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from jaxlib.mlir import ir
from shardlog.importers.dialects.statements import in_generic_form
from shardlog.importers.sources.text import make_context

Array = Any
_DYNAMIC = -(1 << 63)
_REDUCED: dict[str, Callable[[Any], Any]] = {
    "MPI_SUM": np.add.reduce,
    "MPI_PROD": np.multiply.reduce,
    "MPI_MAX": np.maximum.reduce,
    "MPI_MIN": np.minimum.reduce,
    "MPI_BAND": np.bitwise_and.reduce,
    "MPI_BOR": np.bitwise_or.reduce,
    "MPI_BXOR": np.bitwise_xor.reduce,
}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "arith.addi": np.add,
    "arith.muli": np.multiply,
    "arith.divui": np.floor_divide,
    "arith.remui": np.remainder,
    "stablehlo.add": np.add,
    "stablehlo.compare": np.equal,
    "stablehlo.remainder": np.remainder,
    "stablehlo.divide": np.divide,
    "stablehlo.multiply": np.multiply,
    "stablehlo.subtract": np.subtract,
}
_COMPARED: dict[int, Callable[[Any, Any], Any]] = {0: np.equal, 6: np.less}


class Group(NamedTuple):
    """A communicator: the processes of the world that are in it, by their ranks in it."""

    number: int
    members: tuple[int, ...]


class Request(NamedTuple):
    """What a process waits for: all of a group, or one other process of it."""

    op: str
    group: Group
    given: Any = None
    other: int = -1  # a process of the world


def run(text: str, inputs: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """What the first function of a program gives on each process, from what each is given."""
    with make_context():
        module = ir.Module.parse(in_generic_form(text.encode()))
        functions = {
            str(op.attributes["sym_name"]).strip('"'): op.operation
            for op in module.body.operations
            if op.operation.name == "func.func"
        }
        world = Group(0, tuple(range(len(inputs))))
        processes = [_Process(functions, world, rank) for rank in world.members]
        turns = [
            p.call(next(iter(functions)), list(given)) for p, given in zip(processes, inputs, strict=True)
        ]
        return _serve(turns)


def _serve(turns: list[Generator[Request, Any, list[Array]]]) -> list[list[Array]]:
    """Lets processes go on until all of them end."""
    waiting: dict[int, Request] = {}
    results: dict[int, list[Array]] = {}
    groups = 0

    def resume(rank: int, value: Any = None) -> None:
        waiting.pop(rank, None)
        try:
            waiting[rank] = turns[rank].send(value)
        except StopIteration as stopped:
            results[rank] = stopped.value

    for rank in range(len(turns)):
        resume(rank)
    while waiting:
        for rank, request in list(waiting.items()):
            members = request.group.members
            if request.op == "recv":
                sender = waiting.get(request.other)
                if sender and sender.op == "send" and sender.group == request.group and sender.other == rank:
                    resume(rank, sender.given)
                    resume(request.other)
                    break
            elif request.op != "send" and all(
                m in waiting and waiting[m].op == request.op and waiting[m].group == request.group
                for m in members
            ):
                answers = _together(request.op, [waiting[m].given for m in members], members, groups)
                groups += len(members)
                for member, answer in zip(members, answers, strict=True):
                    resume(member, answer)
                break
        else:
            raise AssertionError(f"all processes wait: {waiting}")
    return [results[rank] for rank in range(len(turns))]


def _together(op: str, given: list[Any], members: tuple[int, ...], groups: int) -> list[Any]:
    """What each member of a group gets."""
    if op == "comm_split":
        made = []
        for color, _ in given:
            alike = [(key, m) for (c, key), m in zip(given, members, strict=True) if c == color]
            number = groups + 1 + min(m for _, m in alike)
            made.append(Group(number, tuple(m for _, m in sorted(alike))))
        return made
    if op == "allgather":
        return [np.stack(given)] * len(members)
    kind = given[0][0]
    assert all(k == kind for k, _ in given)
    found = _REDUCED[kind](np.stack([value for _, value in given]))
    if op == "allreduce":
        return [found] * len(members)
    assert op == "reduce_scatter_block"
    return list(found.reshape(len(members), -1))


class _Process:
    def __init__(self, functions: dict[str, Any], world: Group, rank: int) -> None:
        self.functions, self.world, self.rank = functions, world, rank
        self.values: dict[Any, Any] = {}

    def call(self, name: str, given: list[Any]) -> Generator[Request, Any, list[Any]]:
        """What a function returns."""
        block = self.functions[name].regions[0].blocks[0]
        self.values.update(zip(block.arguments, given, strict=True))
        return (yield from self.block(block))

    def block(self, block: Any) -> Generator[Request, Any, list[Any]]:
        """What the last op of a block hands on."""
        for op in block.operations:
            op = op.operation
            operands = [self.values[value] for value in op.operands]
            if op.name in ("func.return", "scf.yield"):
                return operands
            results = yield from self.op(op, operands)
            self.values.update(zip(op.results, results, strict=True))
        raise AssertionError("a block that does not end")

    def op(self, op: Any, given: list[Any]) -> Generator[Request, Any, Sequence[Any]]:
        """The results of an op."""
        name = op.name
        if name == "scf.if":
            return (yield from self.block(op.regions[0 if given[0] else 1].blocks[0]))
        if name == "func.call":
            inner = _Process(self.functions, self.world, self.rank)
            return (yield from inner.call(str(op.attributes["callee"]).lstrip("@"), given))
        if name in ("mpi.send", "mpi.recv"):
            buffer, _, other, group = given
            request = Request(name[4:], group, buffer.copy(), group.members[int(other)])
            received = yield request
            if name == "mpi.recv":
                assert received.shape == buffer.shape and received.dtype == buffer.dtype
                buffer[...] = received
            return []
        if name == "mpi.comm_split":
            return [(yield Request("comm_split", given[0], (int(given[1]), int(given[2]))))]
        if name in ("mpi.allgather", "mpi.allreduce", "mpi.reduce_scatter_block"):
            out, into, group = given
            assert not np.shares_memory(out, into), "MPI forbids that buffers overlap"
            kind = str(op.attributes["op"])[len("#mpi.opclass<") : -1] if "op" in op.attributes else None
            found = yield Request(name[4:], group, out.copy() if kind is None else (kind, out.copy()))
            into[...] = found.reshape(into.shape)
            return []
        return [*self.alone(op, given)]

    def alone(self, op: Any, given: list[Any]) -> Sequence[Any]:
        """The results of an op that waits for nobody."""
        name, attributes = op.name, op.attributes
        result: Any = op.results[0].type if len(op.results) else None
        if name == "mpi.comm_world":
            return [self.world]
        if name == "mpi.comm_rank":
            return [given[0].members.index(self.rank)]
        if name == "mpi.comm_size":
            return [len(given[0].members)]
        if name == "cf.assert":
            assert given[0], attributes["msg"]
            return []
        if name in ("arith.constant", "stablehlo.constant"):
            value = attributes["value"]
            if isinstance(value, ir.IntegerAttr | ir.FloatAttr):
                return [value.value]
            if str(value.type).endswith("xindex>"):
                listed = str(value).partition("[")[2].partition("]")[0]
                return [np.array(list(map(int, listed.split(", "))))]
            return [np.asarray(value)]
        if name == "arith.cmpi":
            return [bool(_COMPARED[ir.IntegerAttr(attributes["predicate"]).value](*given))]
        if name in _BINARY:
            return [_BINARY[name](*given)]
        if name == "arith.index_cast":
            return given
        if name in ("bufferization.to_buffer", "bufferization.to_tensor"):
            return [np.array(given[0])]  # as it stands in memory row by row
        if name in ("arith.extf", "arith.truncf", "arith.extui", "arith.trunci", "stablehlo.convert"):
            return [given[0].astype(_dtype(result.element_type))]
        if name == "arith.bitcast":
            return [given[0].view(_dtype(result.element_type))]
        if name == "memref.alloc":
            return [np.full(list(result.shape), 77, _dtype(result.element_type))]
        if name == "memref.copy":
            given[1][...] = given[0]
            return []
        if name == "memref.transpose":
            order = [int(str(e)[1:]) for e in ir.AffineMapAttr(attributes["permutation"]).value.results]
            seen = given[0].transpose(order)
            strides = [step // seen.itemsize for step in seen.strides]
            assert f"strided<[{', '.join(map(str, strides))}]>" in str(result)
            return [seen]
        if name in ("memref.expand_shape", "memref.collapse_shape", "stablehlo.reshape"):
            return [given[0].reshape(list(result.shape))]
        if name in ("memref.subview", "tensor.extract_slice"):
            dynamic = iter(given[1:])
            starts = [next(dynamic) if n == _DYNAMIC else n for n in _numbers(attributes["static_offsets"])]
            sizes = _numbers(attributes["static_sizes"])
            assert all(
                a >= 0 and a + n <= whole for a, n, whole in zip(starts, sizes, given[0].shape, strict=True)
            )
            part = given[0][tuple(slice(a, a + n) for a, n in zip(starts, sizes, strict=True))]
            return [part.reshape(list(result.shape))]  # which is a view still
        if name == "stablehlo.dynamic_slice":
            sizes = _numbers(attributes["slice_sizes"])
            return [given[0][tuple(slice(int(a), int(a) + n) for a, n in zip(given[1:], sizes, strict=True))]]
        if name == "tensor.from_elements":
            return [np.asarray(given[0], _dtype(result.element_type))]
        if name == "stablehlo.broadcast_in_dim":  # of a scalar
            return [np.broadcast_to(given[0], list(result.shape))]
        if name in ("stablehlo.select", "arith.select"):
            return [np.where(*given)]
        if name == "stablehlo.dynamic_update_slice":
            made, update = given[0].copy(), given[1]
            made[tuple(slice(int(a), int(a) + n) for a, n in zip(given[2:], update.shape, strict=True))] = (
                update
            )
            return [made]
        if name == "tensor.empty":
            return [np.full(list(result.shape), 77, _dtype(result.element_type))]
        if name == "linalg.fill":
            return [np.full_like(given[1], given[0])]
        if name == "linalg.matmul":
            return [given[2] + given[0] @ given[1]]
        if name == "tensor.extract":
            return [given[0][tuple(map(int, given[1:]))]]
        raise AssertionError(f"no meaning for {op}")


def _numbers(attribute: Any) -> list[int]:
    return list(ir.DenseI64ArrayAttr(attribute))


def _dtype(element: Any) -> Any:
    """The type of NumPy's for a type of elements."""
    text = str(element)
    if text in ("bf16", "f8E4M3FN", "f8E5M2"):
        return np.dtype(
            getattr(
                ml_dtypes, {"bf16": "bfloat16", "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2"}[text]
            )
        )
    if text == "i1":
        return np.dtype(bool)
    kind = {"f": "f", "i": "i", "u": "u", "s": "i"}[text[0]]
    return np.dtype(f"{kind}{int(text.lstrip('fuis')) // 8}")
