"""Shardy's answer to a case of one turn: a module with the one op, propagated in process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..support import oracle
from .turns import Case, Held, Slot, SubAxis

LETTERS = "ijklmnopqrstuvwxyz"


def module(case: Case) -> str:
    """The module: the slots' shardings on function arguments and on the op's results."""
    types = [_type(case, dims) for dims in case.slots]
    count = len(case.operands)
    arguments = ", ".join(
        f"%arg{t}: {types[t]}"
        + (f" {{sdy.sharding = #sdy.sharding{_sharding(case, t, held)}}}" if held else "")
        for t, held in enumerate(case.held[:count])
    )
    names = ", ".join(f"%arg{t}" for t in range(count))
    results = case.held[count:]
    attributes = []
    if any(results):
        listed = ", ".join(
            _sharding(case, count + i, held or _open(dims))
            for i, (held, dims) in enumerate(zip(results, case.results, strict=True))
        )
        attributes.append(f"sdy.sharding = #sdy.sharding_per_value<[{listed}]>")
    if case.elementwise:
        name = {1: "negate", 2: "add"}[count]
        op = f"stablehlo.{name} {names} {{{', '.join(attributes)}}} : {types[-1]}"
    else:
        attributes.append(f"sdy.sharding_rule = {_rule(case)}")
        signature = f"({', '.join(types[:count])}) -> ({', '.join(types[count:])})"
        op = f"stablehlo.custom_call @f({names}) {{{', '.join(attributes)}}} : {signature}"
    bound = f"%0:{len(results)} = " if len(results) > 1 else "%0 = "
    values = [f"%0#{i}" for i in range(len(results))] if len(results) > 1 else ["%0"]
    returned = f"{', '.join(values)} : {', '.join(types[count:])}"
    axes = ", ".join(f'"{name}"={size}' for name, size in case.mesh.axes)
    return (
        f"module {{\n  sdy.mesh @mesh = <[{axes}]>\n"
        f"  func.func @main({arguments}) -> ({', '.join(types[count:])}) {{\n"
        f"    {bound}{op}\n    return {returned}\n  }}\n}}\n"
    )


def _type(case: Case, dims: Slot) -> str:
    sizes = []
    for factors in dims:
        size = 1
        for f in factors:
            size *= case.factors[f]
        sizes.append(f"{size}x")
    return f"tensor<{''.join(sizes)}f32>"


def _open(dims: Slot) -> Held:
    return Held(tuple(((), False) for _ in dims))


def _axis(case: Case, axis: SubAxis) -> str:
    name, lo, hi = axis
    whole = (lo, hi) == (1, dict(case.mesh.axes)[name])
    return f'"{name}"' if whole else f'"{name}":({lo}){hi // lo}'


def _sharding(case: Case, t: int, held: Held) -> str:
    dims = ", ".join(
        "{"
        + ", ".join([_axis(case, a) for a in axes] + ([] if closed else ["?"]))
        + "}"
        + (f"p{case.priorities[t, d]}" if (t, d) in case.priorities else "")
        for d, (axes, closed) in enumerate(held.dims)
    )
    text = f"<@mesh, [{dims}]"
    for why in ("replicated", "unreduced"):
        if axes := getattr(held, why):
            text += f", {why}={{{', '.join(_axis(case, a) for a in axes)}}}"
    return text + ">"


def _rule(case: Case) -> str:
    def slots(rows: tuple[Slot, ...]) -> str:
        return ", ".join(
            "[" + ", ".join("".join(LETTERS[f] for f in dim) for dim in dims) + "]" for dims in rows
        )

    sizes = ", ".join(f"{LETTERS[f]}={size}" for f, size in enumerate(case.factors))
    blocked = ", ".join(LETTERS[f] for f, roles in enumerate(case.flows) if not roles)
    text = f"({slots(case.operands)})->({slots(case.results)}) {{{sizes}}}"
    if blocked:
        text += f" blocked_propagation={{{blocked}}}"
    return f"#sdy.op_sharding_rule<{text}, custom>"


def gains(cases: Sequence[Case], propagate: str = "") -> list[dict[int, Any]]:
    """The gains of each case in Shardy: the new dimensions of the slots that change.

    `propagate`: the pass, where it is not that of the case's strategy.
    """
    gains = []
    with oracle.context():
        for case in cases:
            try:
                parsed = ir.Module.parse(module(case))
            except ir.MLIRError as error:
                raise oracle.OracleError(str(error)) from None
            strategy = f"sdy-aggressive-propagate{{propagation-strategy={case.strategy}}}"
            oracle.manager(propagate or strategy).run(parsed.operation)
            gains.append(_changes(case, parsed))
    return gains


def _changes(case: Case, parsed: ir.Module) -> dict[int, Any]:
    function = next(op for op in parsed.body.operations if op.operation.name == "func.func")
    attributes = function.operation.attributes
    arguments: Any = attributes["arg_attrs"] if "arg_attrs" in attributes else [{}] * len(case.operands)
    shardings: list[Any] = []
    for entry in arguments:
        shardings.append(entry["sdy.sharding"] if "sdy.sharding" in entry else None)  # noqa: SIM401
    op = function.regions[0].blocks[0].operations[0].operation
    if "sdy.sharding" in op.attributes:
        shardings += list(sdy.TensorShardingPerValueAttr(op.attributes["sdy.sharding"]).shardings)
    else:
        shardings += [None] * len(case.results)
    changes = {}
    for t, sharding in enumerate(shardings):
        before = (case.held[t] or _open(case.slots[t])).dims
        after = before if sharding is None else _dims(case, sdy.TensorShardingAttr(sharding))
        if after != before:
            changes[t] = after
    return changes


def _dims(case: Case, sharding: Any) -> tuple[tuple[tuple[SubAxis, ...], bool], ...]:
    sizes = dict(case.mesh.axes)

    def axis(attribute: Any) -> SubAxis:
        ref = sdy.AxisRefAttr(attribute)
        if ref.sub_axis_info is None:
            return ref.name, 1, sizes[ref.name]
        part = sdy.SubAxisInfoAttr(ref.sub_axis_info)
        return ref.name, part.pre_size, part.pre_size * part.size

    return tuple(
        (tuple(axis(a) for a in dim.axes), dim.is_closed)
        for dim in map(sdy.DimensionShardingAttr, sharding.dimension_shardings)
    )
