"""Manual computations in GSPMD's form: custom calls around the call of a function.

    %a = custom_call @Sharding(%full)               how the value is sharded
    %b = custom_call @SPMDFullToShardShape(%a)      one shard of it, manual along some axes
    %c = call @body(%b)                             what is done with the shards
    %d = custom_call @Sharding(%c)
    %e = custom_call @SPMDShardToFullShape(%d)      how the shards make up a value again

This is what JAX's shard_map and XLA's exporter write. It becomes one ``sdy.manual_computation``.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..errors import ShardlogError
from .function import location
from .source import symbols

FULL_TO_SHARD, SHARD_TO_FULL = "SPMDFullToShardShape", "SPMDShardToFullShape"
_PATTERN = "expected @Sharding and @SPMDFullToShardShape for every operand of a call, and for every result "
_PATTERN += "@Sharding and @SPMDShardToFullShape, as JAX's shard_map writes it"

Manual = dict[Any, tuple[str, ...]]  # value -> the axes that its sharding says are manual


def read_shard_maps(module: ir.Module, manual: Manual, axes: list[str]) -> None:
    """Makes a manual computation of every call with the pattern above.

    The ``@Sharding`` in it are constraints already, the other custom calls have sdy shardings. ``axes`` are
    those of the mesh. Raises ShardlogError for what is left of a pattern.
    """
    functions = symbols(module, "func.func")
    done: set[str] = set()

    def visit(name: str) -> None:
        """Callees first: bodies are copied, and may have manual computations themselves."""
        if name in done or name not in functions:
            return
        done.add(name)
        for call in _ops(functions[name], "func.call"):
            callee = call.attributes["callee"].value
            visit(callee)
            if callee in functions and _bounded(call):
                _convert(call, functions[callee], manual, axes)

    for name in functions:
        visit(name)
    for function in functions.values():
        for op in _ops(function, "stablehlo.custom_call"):
            if _is(op, FULL_TO_SHARD) or _is(op, SHARD_TO_FULL):
                target = op.attributes["call_target_name"].value
                message = f"@{target} does not enclose the call of a function"
                raise ShardlogError(message, where=location(op), hint=_PATTERN)


def _ops(function: Any, name: str) -> list[Any]:
    found: list[Any] = []

    def visit(op: Any) -> ir.WalkResult:
        if op.name == name:
            found.append(op.opview)
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _is(value_or_op: Any, target: str) -> bool:
    op: Any = value_or_op.owner if isinstance(value_or_op, ir.Value) else value_or_op
    if isinstance(op, ir.Block) or op.operation.name != "stablehlo.custom_call":
        return False
    return bool(op.attributes["call_target_name"].value == target)


def _constraint(value: Any) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name == "sdy.sharding_constraint"


def _user(value: Any) -> Any:
    """The only op that uses a value; None where there are others."""
    users = [use.owner for use in value.uses]
    return users[0] if len(users) == 1 else None


def _bounded(call: Any) -> bool:
    """Whether a call is in the pattern, with an operand or a result."""
    if any(_is(operand, FULL_TO_SHARD) for operand in call.operands):
        return True
    return any(_leaving(result) for result in call.results)


def _leaving(result: Any) -> tuple[Any, Any] | None:
    """The constraint and the custom call through which a result leaves; None where it does not."""
    constraint = _user(result)
    if constraint is None or constraint.operation.name != "sdy.sharding_constraint":
        return None
    last = _user(constraint.results[0])
    return (constraint, last) if last is not None and _is(last, SHARD_TO_FULL) else None


def _convert(call: Any, function: Any, manual: Manual, axes: list[str]) -> None:
    operands, entering, inner, outer = [], [], set[str](), set[str]()
    for operand in call.operands:
        if not _is(operand, FULL_TO_SHARD) or not _constraint(operand.owner.operands[0]):
            _refuse(call, "an operand")
        constraint = operand.owner.operands[0]
        operands.append(constraint.owner.operands[0])
        entering.append(constraint.owner.attributes["sharding"])
        inner |= set(manual.get(operand, ()))
        outer |= set(manual.get(constraint, ()))
    leaving: list[tuple[Any, Any] | None] = []
    for result in call.results:
        found = _leaving(result)
        if found is None and any(True for _ in result.uses):
            _refuse(call, "a result")
        leaving.append(found)
        if found is not None:
            inner |= set(manual.get(found[0].results[0], ()))
            outer |= set(manual.get(found[1].results[0], ()))
    kept = [(i, pair[1].results[0]) for i, pair in enumerate(leaving) if pair is not None]
    given = [
        sdy.TensorShardingPerValueAttr(full.owner.attributes["sdy.sharding"]).shardings[0] for _, full in kept
    ]
    names = ", ".join(f'"{name}"' for name in axes if name in inner - outer)
    made = sdy.ManualComputationOp(
        [full.type for _, full in kept],
        operands,
        sdy.TensorShardingPerValueAttr.get(entering),
        sdy.TensorShardingPerValueAttr.get(given),
        ir.Attribute.parse(f"#sdy<manual_axes{{{names}}}>"),
        loc=call.location,
        ip=ir.InsertionPoint(call),
    )
    copy = function.operation.clone()
    block = copy.regions[0].blocks[0]
    block.append_to(made.regions[0])
    last = list(block.operations)[-1]
    sdy.ReturnOp([last.operands[i] for i, _ in kept], loc=last.location, ip=ir.InsertionPoint(last))
    last.operation.erase()
    for (_, full), result in zip(kept, made.results, strict=True):
        full.replace_all_uses_with(result)
    shards = list(dict.fromkeys(call.operands))
    dead = [op for pair in leaving if pair is not None for op in reversed(pair)] + [call]
    dead += [shard.owner for shard in shards]
    dead += dict.fromkeys(shard.owner.operands[0].owner for shard in shards)
    for op in dead:
        if not any(True for result in op.results for _ in result.uses):
            op.operation.erase()


def _refuse(call: Any, what: str) -> None:
    callee = call.attributes["callee"].value
    message = f"{what} of the call of @{callee} does not cross the boundary of a manual computation"
    raise ShardlogError(message, where=location(call), hint=_PATTERN)
