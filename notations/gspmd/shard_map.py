"""Manual computations in GSPMD's form: custom calls around ops on shards.

    %a = custom_call @Sharding(%full)               how the value is sharded
    %b = custom_call @SPMDFullToShardShape(%a)      one shard of it, manual along some axes
    %c = call @body(%b)                             what is done with the shards
    %d = custom_call @Sharding(%c)
    %e = custom_call @SPMDShardToFullShape(%d)      how the shards make up a value again

JAX's shard_map and XLA's exporter write it around the call of a function. Others, such as PyTorch/XLA,
write it around ops in the same block. Ops that hang together so become one ``sdy.manual_computation``, and
a region in a region becomes one in its body.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ...errors import ShardlogError
from ...program.function import location
from ...program.meshes import Mesh
from ...program.mlir.modules import boundary_attributes, operations_in, put_in_place_of, symbols
from ...program.mlir.types import Operation, Value
from ...program.shardings import manual_axes
from .regions import FULL_TO_SHARD, PATTERN, SHARD_TO_FULL, OpRegion, Regions, crosses

Manual = dict[Any, tuple[str, ...]]  # value -> the axes that its sharding says are manual

_CALL, _CONSTRAINT = "func.call", "sdy.sharding_constraint"


def read_shard_maps(module: ir.Module, mesh: Mesh, manual: Manual) -> None:
    """Makes a manual computation of every region with the pattern above, in place.

    The ``@Sharding`` in it are constraints already, the other custom calls have sdy shardings. ``manual``
    are the axes that the shardings of these ops say are manual, by their results. Raises ShardlogError for
    an incomplete pattern.
    """
    functions = symbols(module, "func.func")
    reader = _ShardMapReader(mesh, manual, functions)
    done: set[str] = set()

    def visit(name: str) -> None:
        """Callees first: bodies are copied, and may have manual computations themselves."""
        if name in done or name not in functions:
            return
        done.add(name)
        for call in _calls(functions[name]):
            visit(_callee(call))
        reader.read(functions[name].operation, frozenset())

    for name in functions:
        visit(name)
    called = {_callee(call) for function in functions.values() for call in _calls(function)}
    for name in sorted(reader.bodies - called):
        functions.pop(name).operation.erase()


def _calls(function: Operation) -> list[Any]:
    return [op for op in operations_in(function) if op.name == _CALL]


def _callee(call: Operation) -> str:
    return str(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)


def _constrains(op: Operation) -> bool:
    return op is not None and not isinstance(op, ir.Block) and op.operation.name == _CONSTRAINT


def _manual_axes(op: Operation) -> list[str]:
    if op.operation.name != "sdy.manual_computation":
        return []
    axes: Any = sdy.ManualAxesAttr(op.attributes["manual_axes"])
    return list(axes)


def _unconstrained(value: Value) -> Any:
    return value.owner.operands[0] if _constrains(value.owner) else value


def _used(value: Value) -> bool:
    return any(True for _ in value.uses)


def give_body(computation: sdy.ManualComputationOp, function: Operation, kept: Iterable[int]) -> None:
    """Gives a manual computation a copy of a function's body, which returns the results in ``kept``."""
    copy = function.operation.clone()
    copy.regions[0].blocks[0].append_to(computation.regions[0])
    last = list(computation.regions[0].blocks[0].operations)[-1]
    sdy.ReturnOp([last.operands[i] for i in kept], loc=last.location, ip=ir.InsertionPoint(last))
    last.operation.erase()


@dataclass(frozen=True)
class _Crossing:
    """A value that crosses the boundary of a manual computation."""

    value: Any  # outside where it enters, inside where it leaves
    sharding: ir.Attribute
    axes: frozenset[str] = frozenset()  # manual inside but not outside


class _ShardMapReader:
    """``mesh`` is the mesh of the shardings. ``manual`` are the axes that the sharding of a value declares
    manual. ``bodies``: the functions that became the body of a manual computation."""

    def __init__(self, mesh: Mesh, manual: Manual, functions: dict[str, Operation]) -> None:
        self.mesh, self.manual, self.functions = mesh, manual, functions
        self.plain = sdy.TensorShardingAttr.get(mesh.name, [])
        self.bodies: set[str] = set()

    def read(self, op: Operation, around: frozenset[str]) -> None:
        """Makes manual computations of the regions in an op. ``around``: the axes that are manual there."""
        if not any(map(crosses, operations_in(op))):
            return
        for block in (block for region in op.regions for block in region.blocks):
            regions = Regions(block)
            for region in regions.outermost:
                self.write(region, regions, around)
            regions.clean()
            for inner in list(block.operations):
                if len(inner.regions):
                    self.read(inner.operation, around | frozenset(_manual_axes(inner)))

    def write(self, region: OpRegion, regions: Regions, around: frozenset[str]) -> None:
        """Puts a manual computation in the place of a region."""
        call = _only_call(region)
        if call is not None:  # in the order of its operands and results
            given, number = [*call.operands], {value: n for n, value in enumerate(call.results)}
            region.enter.sort(key=lambda op: given.index(op.results[0]))
            region.leave.sort(key=lambda op: number.get(_unconstrained(op.operands[0]), len(number)))
        entering = [*map(self.entering, region.enter), *map(self.captured, region.captured)]
        leaving = [*map(self.leaving, region.leave)]
        axes = frozenset[str]().union(*(crossing.axes for crossing in entering + leaving)) - around
        arguments: list[Any] = [
            [op.results[0].type for op in region.leave],
            [crossing.value for crossing in entering],
            sdy.TensorShardingPerValueAttr.get([crossing.sharding for crossing in entering]),
            sdy.TensorShardingPerValueAttr.get([crossing.sharding for crossing in leaving]),
            manual_axes(name for name, _ in self.mesh.axes if name in axes),
        ]
        where, constraints = region.location, [op.operands[0].owner for op in region.enter + region.leave]
        computation = regions.put(
            region,
            lambda ip: sdy.ManualComputationOp(*arguments, loc=where, ip=ip),
            [crossing.value for crossing in leaving],
        )
        for op in dict.fromkeys(filter(_constrains, constraints)):
            if not any(map(_used, op.results)):
                op.operation.erase()
        body = None if call is None else self.functions.get(_callee(call))
        if body is not None and len(body.regions[0].blocks):
            self.bodies.add(_callee(call))
            put_in_place_of(computation.regions[0].blocks[0].operations[0], body)

    def captured(self, value: Value) -> _Crossing:
        """A scalar, or a value that is no tensor, that is used inside unchanged."""
        return _Crossing(value, self.plain)

    def entering(self, shard: Operation) -> _Crossing:
        value = shard.operands[0]
        constraint: Any = value.owner
        if _constrains(constraint):
            sharding = constraint.attributes["sharding"]
            return _Crossing(constraint.operands[0], sharding, self.axes(shard.results[0], value))
        return _Crossing(value, _sharding_of(value, shard), self.axes(shard.results[0], value))

    def leaving(self, full: Operation) -> _Crossing:
        if "sdy.sharding" not in full.attributes:
            raise ShardlogError(f"@{SHARD_TO_FULL} has no sharding", where=location(full), hint=PATTERN)
        (sharding,) = sdy.TensorShardingPerValueAttr(full.attributes["sdy.sharding"]).shardings
        axes = self.axes(full.operands[0], full.results[0])
        return _Crossing(_unconstrained(full.operands[0]), sharding, axes)

    def axes(self, inside: Value, outside: Value) -> frozenset[str]:
        return frozenset(self.manual.get(inside, ())) - frozenset(self.manual.get(outside, ()))


def _only_call(region: OpRegion) -> Any:
    """The only op of a region, if that is a call of all values that enter it; or None."""
    left = [_unconstrained(op.operands[0]).owner for op in region.leave]
    calls = [op for op in region.inside if not _constrains(op)] or left
    if any(isinstance(op, ir.Block) or op != calls[0] for op in calls) or calls[0].operation.name != _CALL:
        return None
    given = {op.results[0] for op in region.enter}
    return calls[0] if given <= set(calls[0].operands) else None


def _sharding_of(value: Any, shard: Operation) -> Any:
    """The sharding that a value without a constraint has where it is made."""
    owner = value.owner
    if isinstance(owner, ir.Block) and owner.owner.operation.name == "func.func":
        entry: Any = boundary_attributes(owner.owner, "arg_attrs")[value.arg_number]
        if "sdy.sharding" in entry:
            return entry["sdy.sharding"]
    elif not isinstance(owner, ir.Block) and "sdy.sharding" in owner.attributes:
        return list(sdy.TensorShardingPerValueAttr(owner.attributes["sdy.sharding"]).shardings)[
            value.result_number
        ]
    message = f"the operand of @{FULL_TO_SHARD} has no sharding"
    raise ShardlogError(message, where=location(shard), hint=PATTERN)
