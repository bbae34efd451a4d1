"""The ops of a module, by their symbols and in their order, and copies of modules."""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator, Mapping
from itertools import count, zip_longest
from typing import Any

from jaxlib.mlir import ir

from ...errors import ShardlogError, closest
from ..signature import text_of
from .types import FunctionOp, Operation


def symbols(module: ir.Module, kind: str) -> dict[str, Any]:
    """The ops of a kind, such as "func.func", by their symbols."""
    ops = (op for op in module.body.operations if op.operation.name == kind)
    return {text_of(op.attributes["sym_name"]): op for op in ops}


def operations_in(op: Operation | ir.Module, order: ir.WalkOrder = ir.WalkOrder.PRE_ORDER) -> list[Any]:
    """The operations inside an op or a module, at any depth, without the bindings' classes for each kind of
    op: their lookup takes most of the time of ``ops_in``."""
    operations: list[Any] = []

    def taken() -> Generator[ir.WalkResult, ir.Operation, None]:
        add, on = operations.append, ir.WalkResult.ADVANCE
        inner = yield on
        while True:
            add(inner)
            inner = yield on

    take = taken()  # a generator goes on faster than a function starts
    next(take)
    op.operation.walk(take.send, order)
    operations.pop(0 if order == ir.WalkOrder.PRE_ORDER else -1)  # the op itself
    return operations


def children(op: Operation) -> list[Any]:
    """The operations in the regions of an operation, without those inside of them."""
    operations: list[Any] = []
    add, into, past = operations.append, ir.WalkResult.ADVANCE, ir.WalkResult.SKIP

    def visit(inner: ir.Operation) -> ir.WalkResult:
        add(inner)
        return past if len(operations) > 1 else into

    op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    del operations[0]  # the op itself
    return operations


def ops_in(op: Operation | ir.Module, order: ir.WalkOrder = ir.WalkOrder.PRE_ORDER) -> list[Any]:
    """The ops inside an op or a module, at any depth."""
    return [inner.opview for inner in operations_in(op, order)]


def named_in(op: Operation, *, calls: bool = True) -> set[str]:
    """The symbols that an op and ops inside of it name among their attributes: the decomposition of a
    composite, and what ``func.call`` calls, if ``calls`` count."""
    every = (op, *operations_in(op))
    return set[str]().union(
        *(named_by(each) for each in every if calls or each.operation.name != "func.call")
    )


def named_by(op: Operation) -> set[str]:
    """The symbols that an op names among its own attributes."""
    names, attributes = set[str](), op.attributes
    for label in attributes:
        if label == "value":  # of a constant: complex ones have no class in Python
            continue
        waiting: list[Any] = [attributes[label]]
        for entry in waiting:  # which grows
            if isinstance(entry, ir.FlatSymbolRefAttr):
                names.add(entry.value)
            elif isinstance(entry, ir.ArrayAttr):
                waiting.extend(entry)
            elif isinstance(entry, ir.DictAttr):
                waiting.extend(entries_of(entry).values())
    return names


def is_custom_call(op: Any, target: str) -> bool:
    """Whether the owner of a value is the custom call of a target."""
    if op is None or isinstance(op, ir.Block) or op.operation.name != "stablehlo.custom_call":
        return False
    return text_of(op.attributes["call_target_name"]) == target


def called(op: Operation) -> str:
    """The rules' name of an op: its own name; for a custom call "@" and its target."""
    target = op.attributes.get("call_target_name")
    return str(op.operation.name) if target is None else f"@{text_of(target)}"


def boundary_attributes(function: Operation, label: str) -> list[Any]:
    """The attributes of each argument ("arg_attrs") or result ("res_attrs") of a func.func."""
    if label in function.attributes:
        return list(function.attributes[label])
    of_class: Any = function  # of func.func
    types = of_class.type.inputs if label == "arg_attrs" else of_class.type.results
    return [ir.DictAttr.get({})] * len(types)


def entries_of(attribute: Any, *without: str) -> dict[str, Any]:
    """The entries of a dictionary of attributes, without some names."""
    entries = map(attribute.__getitem__, range(len(attribute)))  # to iterate over it ends in an IndexError
    return {name: entry.attr for entry in entries if (name := entry.name) not in without}


def with_attributes(entry: ir.Attribute, added: dict[str, ir.Attribute]) -> ir.DictAttr:
    """A dictionary of attributes with more of them, or with others in place of its own."""
    return ir.DictAttr.get(entries_of(entry) | added)


def bytecode_of(module: ir.Module) -> bytes:
    """A module as MLIR bytecode."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def copy_of(module: ir.Module) -> ir.Module:
    """A copy of a module, in the same context."""
    with module.context:
        copy = ir.Module.create(module.operation.location)
        for name in module.operation.attributes:
            copy.operation.attributes[name] = module.operation.attributes[name]
        end = ir.InsertionPoint(copy.body)
        for op in module.body.operations:
            op.operation.clone(end)
        return copy


def is_used(op: Operation) -> bool:
    """Whether anything uses a result of an op."""
    return any(True for result in op.results for _ in result.uses)


def put_like(op: Any, name: str, attributes: dict[str, ir.Attribute]) -> Any:
    """Gives the uses of an op to another one, put before it, of the same operands and types; returns that."""
    replacement = ir.Operation.create(
        name,
        results=[result.type for result in op.results],
        operands=[*op.operands],
        attributes=attributes,
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    for old, new in zip(op.results, replacement.results, strict=True):
        old.replace_all_uses_with(new)
    return replacement


def put_in_place(block: ir.Block, op: Any) -> None:
    """Replaces an op by the ops of a block. The op's operands replace the block's arguments, and the
    returned values replace the op's results."""
    for argument, operand in zip(block.arguments, op.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *ops, end = block.operations
    for inner in ops:
        inner.operation.move_before(op)
    for result, value in zip(op.results, end.operands, strict=True):
        result.replace_all_uses_with(value)
    op.erase()


def put_in_place_of(call: Any, function: Any) -> None:
    """Replaces a call by a copy of the function's body. The locations of the copy name the call."""
    copy = function.operation.clone(ir.InsertionPoint(function))
    place = call.operation.location
    for op in operations_in(copy):
        op.location = ir.Location.callsite(op.location, [place])
    put_in_place(copy.regions[0].blocks[0], call)
    copy.erase()


def put_calls_in_place(main: FunctionOp, functions: Mapping[str, FunctionOp]) -> None:
    """Inlines calls of ``functions`` in a func.func, also calls inside of these, but not calls in its loops
    and branches."""
    block = main.regions[0].blocks[0]
    while calls := [op for op in block.operations if op.operation.name == "func.call"]:
        for call in calls:
            put_in_place_of(call, functions[ir.FlatSymbolRefAttr(call.attributes["callee"]).value])


def public(function: FunctionOp) -> bool:
    """Whether a func.func can be called from outside of the module."""
    visibility: Any = function.attributes.get("sym_visibility")
    return visibility is None or visibility.value == "public"


def main_function(functions: Mapping[str, FunctionOp]) -> str:
    """The entry point: the only function, ``main``, or the only one that can be called from outside of the
    module and that no other calls. Raises ShardlogError if it has no body."""
    name = _entry_name(functions)
    if not functions[name].operation.regions[0].blocks:
        raise ShardlogError(f"the function {name} has no body", hint="expected the module that defines it")
    return name


def _entry_name(functions: Mapping[str, FunctionOp]) -> str:
    if len(functions) == 1:
        return next(iter(functions))
    if "main" in functions:
        return "main"
    if not functions:
        raise ShardlogError("the module has no function", hint="expected a func.func")
    named = set[str]().union(*map(named_in, functions.values()))
    entries = [name for name, function in functions.items() if public(function) and name not in named]
    if len(entries) == 1:
        return entries[0]
    message = "the module has several functions and none is called main"
    hint = f"name the entry function, as in --entry {next(iter(entries or functions))}, or entry= in Python; "
    raise ShardlogError(message, hint=f"{hint}there are: {', '.join(entries or functions)}")


def make_main(module: ir.Module, name: str) -> None:
    """Calls a function ``main``, in place; one that is called so has another name from then on. Raises
    ShardlogError where there is no such function, or where it has no body."""
    functions = symbols(module, "func.func")
    if name not in functions:
        raise ShardlogError(f"no function @{name}", where="--entry", hint=closest(name, functions))
    function = functions[name]
    if not len(function.regions[0].blocks):
        raise ShardlogError(f"@{name} has no body", where="--entry", hint="expected a function with one")
    if name == "main":
        return
    if "main" in functions:
        named = [op.attributes for op in module.body.operations if "sym_name" in op.attributes]
        taken = {text_of(attributes["sym_name"]) for attributes in named}
        other = next(free for n in count() if (free := f"main_{n}") not in taken)
        _rename(module, functions["main"], other)
    _rename(module, function, "main")
    if "sym_visibility" in function.attributes:
        del function.attributes["sym_visibility"]


def _rename(module: ir.Module, function: FunctionOp, name: str) -> None:
    old = text_of(function.attributes["sym_name"])
    ir.SymbolTable.replace_all_symbol_uses(old, name, module.operation)
    function.attributes["sym_name"] = ir.StringAttr.get(name)


def with_main(module: ir.Module) -> ir.Module:
    """A module whose entry point is called ``main``, as XLA wants it: the given one, or a copy."""
    functions = symbols(module, "func.func")
    if (name := main_function(functions)) == "main":
        return module
    renamed = copy_of(module)
    with renamed.context:
        symbols(renamed, "func.func")[name].attributes["sym_name"] = ir.StringAttr.get("main")
    return renamed


def side_by_side(one: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """The ops and block arguments in two ops, these included, in the order of their text, in pairs. Where
    only one has an op, the other one is None, and the rest of that block is left out."""
    yield one, other
    for mine, theirs in zip_longest(one.regions, other.regions):
        blocks = zip_longest(mine.blocks if mine else (), theirs.blocks if theirs else ())
        for a, b in blocks:
            yield from zip_longest(a.arguments if a else (), b.arguments if b else ())
            for x, y in zip_longest(a.operations if a else (), b.operations if b else ()):
                if x is None or y is None:
                    yield x, y
                    break
                yield from side_by_side(x, y)
