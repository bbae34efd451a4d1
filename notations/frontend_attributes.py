"""sdy's shardings as XLA carries them through HLO: text in ``mhlo.frontend_attributes``, read back before a
module is imported.

HLO has no attributes of dialects, so XLA writes meshes (``xla.sdy.meshes``, on the module), shardings
(``xla.sdy.sharding``) and op rules (``xla.sdy.sharding_rule``) as strings, and ops of sdy as custom calls:

    @Sharding                      a constraint
    @xla.sdy.FuncResultSharding    the sharding of what a function returns
    @xla.sdy.ShardingGroup         a sharding group
    @xla.sdy.PropagationBarrier    a propagation barrier
    @xla.sdy.GlobalToLocalShape    what enters a manual computation: a call of
    @xla.sdy.LocalToGlobalShape    ``@xla.sdy.manual_computation_body``, and what leaves it

As in XLA's importer (sdy_round_trip/import_shardy_attrs.cc, shard_map_import.cc), shardings on other ops
are ignored, because XLA copies these attributes from op to op. GSPMD's ``mhlo.sharding`` stands beside
them, and adds nothing.

Since jaxlib 0.11 a compile gives Shardy ``mhlo.sharding`` by named axes (``gspmd/named.py``) in place of
these shardings. They stand on arguments and results of functions, and on ``@Sharding``, of which there is
one for every value that enters a manual computation. The custom calls that enter and leave a manual
computation, and its call, have them with the manual axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..errors import ShardlogError
from ..program.function import location
from ..program.meshes import Mesh, symbol
from ..program.mlir.modules import (
    boundary_attributes,
    entries_of,
    is_custom_call,
    is_used,
    operations_in,
    symbols,
    with_attributes,
)
from ..program.mlir.types import Attributes, Operation, Value
from ..program.shardings import changed, manual_axes, mesh_attribute
from ..program.signature import text_of
from .gspmd.hlo_sharding import parse
from .gspmd.named import NamedSharding, is_named
from .gspmd.regions import FULL_TO_SHARD, SHARD_TO_FULL
from .gspmd.shard_map import give_body
from .tuples import TUPLES, flatten_tuples
from .xla_loops import LOOP, simplify_loops

_A = TypeVar("_A", bound=ir.Attribute)
_TILES = "mhlo.sharding"
_ATTRIBUTES = "mhlo.frontend_attributes"
_SHARDING, _MESHES = "xla.sdy.sharding", "xla.sdy.meshes"
_TUPLES = {"xla.sdy.tuple_args_shardings": "arg_attrs", "xla.sdy.tuple_results_shardings": "res_attrs"}
_BODY = "xla.sdy.manual_computation_body", "xla.sdy.inlinable_manual_computation_body"
_ENTERS, _LEAVES = "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"
_READ = _ATTRIBUTES, _TILES, "call_target_name"  # what ops have that are read
_DIRECTIONS = range(3)  # none, forward, backward
_CALLBACKS = tuple(f"xla{ffi}_python_{kind}_callback" for ffi in ("", "_ffi") for kind in ("cpu", "gpu"))


def calls_back(op: Operation) -> bool:
    """Whether an op calls a function of Python."""
    return any(is_custom_call(op, target) for target in _CALLBACKS)


def read_frontend_attributes(module: ir.Module) -> bool:
    """Replaces XLA's strings and custom calls in a module by sdy's meshes, shardings and ops. Loops no
    longer carry values that they never change. Returns whether there were any strings.

    Raises ShardlogError for malformed strings.
    """
    meshes: Any = _read(module.operation, _MESHES, "module", ir.DictAttr)
    functions = symbols(module, "func.func")
    if meshes is None and not any(map(_mentions, functions.values())):
        return False
    begin, there = ir.InsertionPoint.at_block_begin(module.body), symbols(module, "sdy.mesh")
    for mesh in meshes or ():
        mesh_attribute = _as(sdy.MeshAttr, mesh.attr, _MESHES, "module")
        if mesh.name not in there:  # XLA has written those of collectives itself
            sdy.MeshOp(mesh.name, mesh_attribute, ip=begin)
        elif there[mesh.name].attributes["mesh"] != mesh_attribute:
            raise ShardlogError(f"two meshes are called {symbol(mesh.name)}", where=_MESHES)
    main = functions.get("main")
    for key, label in _TUPLES.items():
        shardings = _read(module.operation, key, "module", sdy.TensorShardingPerValueAttr)
        if shardings is not None and main is not None:
            _set(main, label, dict(enumerate(sdy.TensorShardingPerValueAttr(shardings).shardings)))
    _drop(module.operation, _MESHES, *_TUPLES)  # XLA prefers these to sdy's shardings
    kinds = set[str]()
    for function in functions.values():
        _read_boundary(function)
        for op in operations_in(function):
            kinds.add(op.name)
            attributes = op.attributes
            if len(attributes) and any(label in attributes for label in _READ):
                _read_op(op.opview, function)
    if kinds & TUPLES:
        flatten_tuples(module)
    _read_manual_computations(functions)
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        first = error.error_diagnostics[0].message if error.error_diagnostics else str(error)
        raise ShardlogError(f"XLA's output is not valid: {first}") from None
    if LOOP in kinds:
        simplify_loops(module)
    return True


def _mentions(function: Operation) -> bool:
    """Whether a function has a sharding that XLA wrote."""
    entries = [entry for label in ("arg_attrs", "res_attrs") for entry in function.attributes.get(label, ())]
    return any(_SHARDING in _frontend_attributes(entry) or _has_named(entry) for entry in entries) or any(
        _has_named(op.attributes)
        or any(a.name.startswith("xla.sdy.") for a in _frontend_attributes(op.attributes))
        for op in operations_in(function)
    )


def _has_named(attributes: Attributes) -> bool:
    """Whether a sharding by named axes is among them."""
    return _TILES in attributes and is_named(attributes[_TILES])


def _named(attributes: Attributes, where: str) -> list[NamedSharding]:
    """The shardings by named axes, of a tuple or the only one; none where there are others."""
    if not _has_named(attributes):
        return []
    parsed = parse(text_of(attributes[_TILES]), where)
    several = parsed if isinstance(parsed, tuple) else (parsed,)
    return [sharding for sharding in several if isinstance(sharding, NamedSharding)]


def _frontend_attributes(attributes: Attributes) -> Any:
    """The frontend attributes; empty where there are none."""
    if _ATTRIBUTES not in attributes or not isinstance(attributes[_ATTRIBUTES], ir.DictAttr):
        return {}
    return attributes[_ATTRIBUTES]


def _read(op: Operation, name: str, where: str, kind: type[_A]) -> _A | None:
    """The attribute that a string of the frontend attributes says; None where there is none. Raises
    ShardlogError where it is not of the class ``kind``."""
    attributes = _frontend_attributes(op.attributes)
    return _parsed(attributes[name], name, where, kind) if name in attributes else None


def _parsed(attribute: ir.Attribute, name: str, where: str, kind: type[_A]) -> _A:
    text = text_of(attribute) if isinstance(attribute, ir.StringAttr) else str(attribute)
    return _as(kind, text, name, where)


def _as(kind: type[_A], spelled: str | ir.Attribute, name: str, where: str) -> _A:
    try:
        return kind(ir.Attribute.parse(spelled) if isinstance(spelled, str) else spelled)
    except (ir.MLIRError, ValueError):  # ValueError: not UTF-8, or something else
        hint = "expected the form that this version of XLA writes"
        raise ShardlogError(f"{name} is not understood", where=where, hint=hint) from None


def _without(attributes: Iterable[ir.NamedAttribute], *names: str) -> ir.DictAttr | None:
    """Frontend attributes except for some; None where none are left."""
    rest = {entry.name: entry.attr for entry in attributes if entry.name not in names}
    return ir.DictAttr.get(rest) if rest else None


def _drop(op: Operation, *names: str) -> None:
    """Takes frontend attributes off an op."""
    if len(attributes := _frontend_attributes(op.attributes)):
        rest = _without(attributes, *names)
        del op.attributes[_ATTRIBUTES]
        if rest:
            op.attributes[_ATTRIBUTES] = rest


def _set(function: Operation, label: str, shardings: Mapping[int, ir.Attribute]) -> None:
    """Sets shardings of arguments ("arg_attrs") or results ("res_attrs") of a function."""
    entries = boundary_attributes(function, label)
    if max(shardings, default=-1) >= len(entries):
        message = f"{max(shardings) + 1} shardings for {len(entries)} values"
        raise ShardlogError(message, where=location(function), hint="expected one for each")
    for index, sharding in shardings.items():
        entries[index] = with_attributes(entries[index], {"sdy.sharding": sharding})
    function.attributes[label] = ir.ArrayAttr.get(entries)


def _read_boundary(function: Operation) -> None:
    """The shardings of a function's arguments and results. GSPMD's are removed."""
    kind = function.attributes["function_type"].value
    for label, types in (("arg_attrs", kind.inputs), ("res_attrs", kind.results)):
        if label not in function.attributes:
            continue
        read: dict[tuple[ir.Attribute, ir.Type], ir.DictAttr] = {}  # most entries are like others
        given = list(zip(function.attributes[label], types, strict=True))
        for index, (entry, type_) in enumerate(given):
            if (entry, type_) not in read:
                end = "argument" if label == "arg_attrs" else "result"
                where = f"{location(function)}: {end} {index} of @{text_of(function.attributes['sym_name'])}"
                read[entry, type_] = _read_entry(entry, type_, label, function, where)
        function.attributes[label] = ir.ArrayAttr.get([read[one] for one in given])


def _read_entry(
    entry: ir.DictAttr, type_: ir.Type, label: str, function: Operation, where: str
) -> ir.DictAttr:
    """The attributes of an argument ("arg_attrs") or a result of a function."""
    kept = entries_of(entry, _TILES)
    for sharding in _named(entry, where):
        kept["sdy.sharding"] = _attribute(sharding, type_, function, where)
    if _SHARDING in (attributes := _frontend_attributes(kept)):
        if label == "arg_attrs":
            kept["sdy.sharding"] = _parsed(attributes[_SHARDING], _SHARDING, where, sdy.TensorShardingAttr)
        rest = _without(kept.pop(_ATTRIBUTES), _SHARDING)
        kept |= {_ATTRIBUTES: rest} if rest else {}
    return ir.DictAttr.get(kept)


def _attribute(sharding: NamedSharding, type_: ir.Type, op: Operation, where: str) -> ir.Attribute:
    """The attribute of a sharding that stands on ``op`` or in it; its mesh is declared, if it has a name."""
    if sharding.mesh.name:
        _declare(sharding.mesh, op.operation)
    try:
        return sharding.attribute(type_)
    except ShardlogError as error:
        raise ShardlogError(error.message, where=where, hint=error.hint) from None


def _declare(mesh: Mesh, op: Operation) -> None:
    """Declares a mesh in the module around ``op``, if it is not there."""
    while op.parent is not None:
        op = op.parent.operation
    block = op.regions[0].blocks[0]
    if all(text_of(o.attributes["sym_name"]) != mesh.name for o in block if "sym_name" in o.attributes):
        sdy.MeshOp(mesh.name, mesh_attribute(mesh), ip=ir.InsertionPoint.at_block_begin(block))


def _read_op(op: Operation, function: Operation) -> None:
    """Reads what stands on an op, which may then be another op."""
    name = op.operation.name
    target = text_of(op.attributes["call_target_name"]) if name == "stablehlo.custom_call" else ""
    kept = (
        name in ("stablehlo.infeed", "stablehlo.outfeed") or target in (*_OPS, _ENTERS, _LEAVES) or _calls(op)
    )
    if target in (FULL_TO_SHARD, SHARD_TO_FULL) and _has_named(op.attributes):
        hint = "give XLA's input instead: 00.input_module.mlir or 01.before_propagation.mlir"
        raise ShardlogError(
            f"@{target} occurs only in programs that XLA has rewritten", where=location(op), hint=hint
        )
    if _TILES in op.attributes and not kept:
        del op.attributes[_TILES]
    if target in _OPS:
        if len(op.operands) != 1 or len(op.results) > 1:
            raise ShardlogError(f"@{target} takes one value", where=location(op), hint="expected one operand")
        _OPS[target](op, function)
        return
    if not len(_frontend_attributes(op.attributes)):
        return
    rule = _read(op, "xla.sdy.sharding_rule", location(op), sdy.OpShardingRuleAttr)
    sharding = _read(op, _SHARDING, location(op), sdy.TensorShardingPerValueAttr)
    if rule is not None:
        op.attributes["sdy.sharding_rule"] = rule
    sends = name in ("stablehlo.send", "stablehlo.recv", "stablehlo.after_all") or calls_back(op)
    if sharding is not None and sends:
        op.attributes["sdy.sharding"] = sharding
    _drop(op, _SHARDING, "xla.sdy.sharding_rule")


def _only(op: Operation) -> Any:
    """The sharding on a custom call with one result. Raises ShardlogError where there is none."""
    shardings = _read(op, _SHARDING, location(op), sdy.TensorShardingPerValueAttr)
    for sharding in _named(op.attributes, location(op)):
        return _attribute(sharding, op.results[0].type, op, location(op))
    if shardings is None or len(sdy.TensorShardingPerValueAttr(shardings).shardings) != 1:
        target = text_of(op.attributes["call_target_name"])
        raise ShardlogError(f"@{target} has no sharding", where=location(op), hint=f"expected {_SHARDING}")
    return sdy.TensorShardingAttr(sdy.TensorShardingPerValueAttr(shardings).shardings[0])


def _replace(op: Operation, values: Iterable[Value]) -> None:
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.operation.erase()


def _constrain(op: Operation, sharding: ir.Attribute) -> None:
    constraint = sdy.ShardingConstraintOp(
        op.operands[0], sharding, loc=op.location, ip=ir.InsertionPoint(op.operation)
    )
    _replace(op, constraint.operation.results)


def _constraint(op: Operation, function: Operation) -> None:
    _constrain(op, _only(op))


def _function_result(op: Operation, function: Operation) -> None:
    """A function's result has the sharding. Where something else uses the value too, as in a function that
    was inlined, it is an open constraint."""
    sharding = _only(op)
    returned: dict[int, Any] = {}
    others = False
    for result in op.results:
        for use in result.uses:
            if use.owner.operation.name == "func.return":
                returned[use.operand_number] = sharding
            else:
                others = True
    _set(function, "res_attrs", returned)
    if others:
        _constrain(op, _opened(sharding))
    else:
        _replace(op, op.operands)


def _opened(sharding: sdy.TensorShardingAttr) -> Any:
    dimensions = [
        sdy.DimensionShardingAttr.get(d.axes, is_closed=False, priority=d.priority)
        for d in map(sdy.DimensionShardingAttr, sharding.dimension_shardings)
    ]
    return changed(sharding, dimension_shardings=dimensions)


def _group(op: Operation, function: Operation) -> None:
    number = _read(op, "xla.sdy.sharding_group_id", location(op), ir.IntegerAttr)
    if number is None:
        raise ShardlogError("a sharding group has no number", where=location(op))
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ir.IntegerAttr(number).value)
    sdy.ShardingGroupOp(op.operands[0], number, loc=op.location, ip=ir.InsertionPoint(op.operation))
    if not is_used(op):
        op.operation.erase()
    else:
        _replace(op, op.operands)


def _barrier(op: Operation, function: Operation) -> None:
    allowed = _read(op, "xla.sdy.allowed_direction", location(op), ir.IntegerAttr)
    if allowed is None or allowed.value not in _DIRECTIONS:
        raise ShardlogError("a barrier has no direction", where=location(op))
    barrier = sdy.PropagationBarrierOp(
        op.operands[0], allowed_direction=allowed, loc=op.location, ip=ir.InsertionPoint(op.operation)
    )
    _replace(op, barrier.operation.results)


_OPS: dict[str, Callable[[Any, Any], None]] = {
    "Sharding": _constraint,
    "xla.sdy.FuncResultSharding": _function_result,
    "xla.sdy.ShardingGroup": _group,
    "xla.sdy.PropagationBarrier": _barrier,
}


def _calls(op: Operation) -> bool:
    """Whether an op is the call of the body of a manual computation."""
    return op.operation.name == "func.call" and any(mark in op.attributes["callee"].value for mark in _BODY)


def _read_manual_computations(functions: dict[str, Operation]) -> None:
    """Makes a manual computation of every call of a body; bodies inside of others first."""
    bodies = [name for name in functions if any(mark in name for mark in _BODY)]
    done: set[str] = set()

    def visit(name: str) -> None:
        if name in done or name not in functions:
            return
        done.add(name)
        for op in [op.opview for op in operations_in(functions[name]) if op.name == "func.call"]:
            callee = op.attributes["callee"].value
            visit(callee)
            if callee in bodies:
                _manual_computation(op, functions[callee])

    for name in functions if bodies else ():
        visit(name)
    for name in bodies:
        functions.pop(name).operation.erase()


def _manual_computation(call: Operation, body: Operation) -> None:
    enters = [op for operand in call.operands if is_custom_call(op := operand.owner, _ENTERS)]
    users = [use.owner.opview for result in call.results for use in result.uses]
    leaves = [op for op in users if is_custom_call(op, _LEAVES)]
    using = [use.owner for op in enters[:1] for result in op.results for use in result.uses]
    # Other users of their values would use values that no longer exist.
    alone = all(op.operation == call.operation for op in using) and users == leaves[:1] * len(users)
    if (
        not (alone and len(body.regions[0].blocks))
        or bool(enters) != bool(len(call.operands))
        or bool(leaves) != bool(len(call.results))
    ):
        raise ShardlogError(
            f"the call of @{call.attributes['callee'].value} is not between @{_ENTERS} and @{_LEAVES}",
            where=location(call),
            hint="expected a manual computation as XLA writes it",
        )
    boundary = _named_boundary(call, enters[:1], leaves[:1]) or _said_boundary(call, enters[:1], leaves[:1])
    computation = sdy.ManualComputationOp(
        [result.type for result in leaves[0].results] if leaves else [],
        *boundary,
        loc=call.location,
        ip=ir.InsertionPoint(call.operation),
    )
    give_body(computation, body, range(len(call.results)))
    if leaves:
        _replace(leaves[0], computation.results)
    call.operation.erase()
    if enters:
        constraints = dict.fromkeys(operand.owner for operand in enters[0].operands)
        enters[0].operation.erase()
        for op in constraints:
            if _constrains(op) and not any(True for _ in op.results[0].uses):
                op.operation.erase()


def _said_boundary(call: Operation, enters: list[Operation], leaves: list[Operation]) -> tuple[Any, ...]:
    """The operands of a manual computation, its shardings and its manual axes, by the frontend attributes
    of the custom calls that enter and leave it."""
    where, many = location(call), sdy.TensorShardingPerValueAttr
    ends = [(op, key) for several, key in ((enters, "in"), (leaves, "out")) for op in several]
    by_end = {key: _read(op, f"xla.sdy.{key}_shardings", where, many) for op, key in ends}
    manual_axes = (_read(op, "xla.sdy.manual_axes", where, sdy.ManualAxesAttr) for op, _ in ends)
    axes = next((axes for axes in manual_axes if axes is not None), sdy.ManualAxesAttr.get([]))
    # A call that XLA itself made has them on the call.
    operands = [operand for op in enters for operand in op.operands]
    return operands, by_end.get("in") or many.get([]), by_end.get("out") or many.get([]), axes


def _named_boundary(
    call: Operation, enters: list[Operation], leaves: list[Operation]
) -> tuple[Any, ...] | None:
    """The same as shardings by named axes say it; None where there are none. The constraints on what enters
    are its shardings."""
    where = location(call)
    shardings_named = [_named(op.attributes, where) for op in (call, *enters, *leaves)]
    if not any(shardings_named):
        return None
    axes = {axis.name: None for named in shardings_named for sharding in named for axis in sharding.manual}
    operands, entering, leaving = [], [], []
    for operand in (operand for op in enters for operand in op.operands):
        owner: Any = operand.owner
        if not _constrains(owner):
            message = f"the operand of @{_ENTERS} has no sharding"
            raise ShardlogError(message, where=where, hint="expected @Sharding on it")
        alone = len([*operand.uses]) == 1
        operands.append(owner.operands[0] if alone else operand)
        entering.append(owner.attributes["sharding"])
    for op, named in zip(leaves, shardings_named[-1:], strict=False):
        if len(named) != len(op.results):
            message = f"{len(named)} shardings for the {len(op.results)} results of @{_LEAVES}"
            raise ShardlogError(message, where=where, hint="expected one for each")
        leaving = [_attribute(s, result.type, op, where) for s, result in zip(named, op.results, strict=True)]
    many = sdy.TensorShardingPerValueAttr
    return operands, many.get(entering), many.get(leaving), manual_axes(axes)


def _constrains(op: Operation) -> bool:
    return not isinstance(op, ir.Block) and op.operation.name == "sdy.sharding_constraint"
