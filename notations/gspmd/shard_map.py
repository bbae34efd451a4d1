"""Manual computations in GSPMD's form: custom calls around the call of a function.

    %a = custom_call @Sharding(%full)               how the value is sharded
    %b = custom_call @SPMDFullToShardShape(%a)      one shard of it, manual along some axes
    %c = call @body(%b)                             what is done with the shards
    %d = custom_call @Sharding(%c)
    %e = custom_call @SPMDShardToFullShape(%d)      how the shards make up a value again

This is what JAX's shard_map and XLA's exporter write. It becomes one ``sdy.manual_computation``.
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
from ...program.mlir.modules import is_custom_call, ops_in, symbols
from ...program.shardings import manual_axes
from ...program.signature import text_of

FULL_TO_SHARD, SHARD_TO_FULL = "SPMDFullToShardShape", "SPMDShardToFullShape"
_PATTERN = "expected @Sharding and @SPMDFullToShardShape for every operand of a call, and for every result "
_PATTERN += "@Sharding and @SPMDShardToFullShape, as JAX's shard_map writes it"

Manual = dict[Any, tuple[str, ...]]  # value -> the axes that its sharding says are manual


def read_shard_maps(module: ir.Module, mesh: Mesh, manual: Manual) -> None:
    """Makes a manual computation of every call with the pattern above.

    The ``@Sharding`` in it are constraints already, the other custom calls have sdy shardings. ``manual`` are
    the axes that the shardings of these ops say are manual, by their results. Raises ShardlogError for what
    is left of a pattern.
    """
    functions, reader = symbols(module, "func.func"), _Reader(mesh, manual)
    done: set[str] = set()
    bodies: set[str] = set()

    def visit(name: str) -> None:
        """Callees first: bodies are copied, and may have manual computations themselves."""
        if name in done or name not in functions:
            return
        done.add(name)
        for call in _ops(functions[name], "func.call"):
            callee = call.attributes["callee"].value
            visit(callee)
            if callee in functions and reader.convert(call, functions[callee]):
                bodies.add(callee)

    for name in functions:
        visit(name)
    called = {call.attributes["callee"].value for f in functions.values() for call in _ops(f, "func.call")}
    for name in sorted(bodies - called):
        functions.pop(name).operation.erase()
    for function in functions.values():
        for op in _ops(function, "stablehlo.custom_call"):
            if is_custom_call(op, FULL_TO_SHARD) or is_custom_call(op, SHARD_TO_FULL):
                target = text_of(op.attributes["call_target_name"])
                message = f"@{target} does not enclose the call of a function"
                raise ShardlogError(message, where=location(op), hint=_PATTERN)


def _ops(function: Any, name: str) -> list[Any]:
    return [op for op in ops_in(function) if op.operation.name == name]


@dataclass(frozen=True)
class _Crossing:
    """The sharding of a value as it crosses the boundary of a manual computation."""

    outside: Any  # the whole value
    sharding: ir.Attribute
    axes: frozenset[str]  # manual inside but not outside
    ops: tuple[Any, ...]  # those in between, users first


def _constrains(op: Any) -> bool:
    return op is not None and not isinstance(op, ir.Block) and op.operation.name == "sdy.sharding_constraint"


def _user(value: Any) -> Any:
    """The only op that uses a value; None where there are others."""
    users = [use.owner for use in value.uses]
    return users[0] if len(users) == 1 else None


def _used(value: Any) -> bool:
    return any(True for _ in value.uses)


def give_body(made: Any, function: Any, kept: Iterable[int]) -> None:
    """Gives a manual computation a copy of a function's body, which returns the results in ``kept``."""
    copy = function.operation.clone()
    copy.regions[0].blocks[0].append_to(made.regions[0])
    last = list(made.regions[0].blocks[0].operations)[-1]
    sdy.ReturnOp([last.operands[i] for i in kept], loc=last.location, ip=ir.InsertionPoint(last))
    last.operation.erase()


class _Reader:
    """``mesh`` is that of the shardings, ``manual`` the axes that the sharding of a value says are manual."""

    def __init__(self, mesh: Mesh, manual: Manual) -> None:
        self.mesh, self.manual = mesh, manual
        self.plain = sdy.TensorShardingAttr.get(mesh.name, [])

    def convert(self, call: Any, function: Any) -> bool:
        """Makes a manual computation of a call in the pattern; says if it is one."""
        entering = [self.entering(operand) for operand in call.operands]
        leaving = [self.leaving(result) for result in call.results]
        if not any(crossing and crossing.ops for crossing in entering + leaving):
            return False
        kept = [i for i, result in enumerate(call.results) if _used(result)]
        if None in entering or None in [leaving[i] for i in kept]:
            message = f"not all operands and results of the call of @{call.attributes['callee'].value} cross "
            message += "the boundary of a manual computation"
            raise ShardlogError(message, where=location(call), hint=_PATTERN)
        ins = [crossing for crossing in entering if crossing is not None]
        outs = [crossing for crossing in leaving if crossing is not None]
        axes = frozenset[str]().union(*(crossing.axes for crossing in ins + outs))
        made = sdy.ManualComputationOp(
            [crossing.outside.type for crossing in outs],
            [crossing.outside for crossing in ins],
            sdy.TensorShardingPerValueAttr.get([crossing.sharding for crossing in ins]),
            sdy.TensorShardingPerValueAttr.get([crossing.sharding for crossing in outs]),
            manual_axes(name for name, _ in self.mesh.axes if name in axes),
            loc=call.location,
            ip=ir.InsertionPoint(call),
        )
        give_body(made, function, kept)
        for crossing, result in zip(outs, made.results, strict=True):
            crossing.outside.replace_all_uses_with(result)
        between = [op for crossing in outs for op in crossing.ops]
        shards = [op for crossing in ins for op in crossing.ops[:1]]
        constraints = [op for crossing in ins for op in crossing.ops[1:]]
        for op in (*between, call, *dict.fromkeys(shards), *dict.fromkeys(constraints)):
            if not any(_used(result) for result in op.results):
                op.operation.erase()
        return True

    def entering(self, operand: Any) -> _Crossing | None:
        if not isinstance(operand.type, ir.RankedTensorType):
            return _Crossing(operand, self.plain, frozenset(), ())
        shard = operand.owner
        constraint: Any = shard.operands[0].owner if is_custom_call(shard, FULL_TO_SHARD) else None
        if not _constrains(constraint):
            return None
        outside = constraint.operands[0]
        axes = self.axes(operand, constraint.results[0])
        return _Crossing(outside, constraint.attributes["sharding"], axes, (shard, constraint))

    def leaving(self, result: Any) -> _Crossing | None:
        if not _used(result):
            return None
        if not isinstance(result.type, ir.RankedTensorType):
            return _Crossing(result, self.plain, frozenset(), ())
        constraint = _user(result)
        full: Any = _user(constraint.results[0]) if _constrains(constraint) else None
        if not is_custom_call(full, SHARD_TO_FULL):
            return None
        (sharding,) = sdy.TensorShardingPerValueAttr(full.attributes["sdy.sharding"]).shardings
        axes = self.axes(constraint.results[0], full.results[0])
        return _Crossing(full.results[0], sharding, axes, (full, constraint))

    def axes(self, inside: Any, outside: Any) -> frozenset[str]:
        return frozenset(self.manual.get(inside, ())) - frozenset(self.manual.get(outside, ()))
