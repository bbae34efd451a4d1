"""Compares two modules op by op, regions and functions included."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from jaxlib.mlir import ir

from .oracle import context

Block = ir.Block
Numbers = dict["ir.Value[ir.Type]", str]


def differences(ours: str, theirs: str, *, limit: int = 10) -> list[str]:
    """The differences between two modules given as text, at most `limit` entries; empty where they are equal.

    Two modules are equal where MLIR prints the same text for both.
    """
    if ours == theirs:
        return []
    with context():
        left, right = ir.Module.parse(ours), ir.Module.parse(theirs)
        if str(left) == str(right):
            return []
        differences = []
        for difference in _blocks(left.body, right.body, {}, {}, "module"):
            differences.append(difference)
            if len(differences) == limit:
                break
        return differences or ["the printed texts differ, but no op does"]


def _blocks(left: Block, right: Block, ours: Numbers, theirs: Numbers, place: str) -> Iterator[str]:
    """The differences between two blocks. `ours` and `theirs` name the values seen so far by position."""
    for numbers, block in ((ours, left), (theirs, right)):
        for argument in block.arguments:
            numbers[argument] = f"argument {argument.arg_number} of {place}"
    types = [str(a.type) for a in left.arguments], [str(a.type) for a in right.arguments]
    if types[0] != types[1]:
        yield f"{place}: argument types {types[0]}, expected {types[1]}"
    for i, (a, b) in enumerate(zip_longest(left.operations, right.operations)):
        if a is None or b is None:
            extra = _show(a or b)
            yield f"{place}: {'missing' if a is None else 'unexpected'} op {i}: {extra}"
            return
        here = f"{place} / {i} {_name(b.operation)}"
        if _name(a.operation) != _name(b.operation):
            yield f"{here}: {_show(a)}\n    expected {_show(b)}"
            return
        yield from _ops(a.operation, b.operation, ours, theirs, here)


def _ops(a: ir.Operation, b: ir.Operation, ours: Numbers, theirs: Numbers, here: str) -> Iterator[str]:
    """The differences between two ops of the same name."""
    wrong: list[str] = []
    operands = [ours[v] for v in a.operands], [theirs[v] for v in b.operands]
    if operands[0] != operands[1]:
        wrong.append(f"operands {operands[0]}, expected {operands[1]}")
    types = [str(v.type) for v in a.results], [str(v.type) for v in b.results]
    if types[0] != types[1]:
        wrong.append(f"types {types[0]}, expected {types[1]}")
    attributes = _attributes(a), _attributes(b)
    for name in attributes[0] | attributes[1]:
        mine, expected = attributes[0].get(name), attributes[1].get(name)
        if mine is None or expected is None or mine != expected:
            wrong.append(f"{name} = {mine}, expected {expected}")
    yield from (f"{here}: {w}\n    in {_show(a)}" for w in wrong)
    for numbers, op in ((ours, a), (theirs, b)):
        for i, value in enumerate(op.results):
            numbers[value] = f"result {i} of {here}"
    if [len(r.blocks) for r in a.regions] != [len(r.blocks) for r in b.regions]:
        yield f"{here}: the regions differ"
        return
    for r, (one, other) in enumerate(zip(a.regions, b.regions, strict=True)):
        place = here if len(a.regions) == 1 else f"{here} region {r}"
        for x, y in zip(one.blocks, other.blocks, strict=True):
            yield from _blocks(x, y, ours, theirs, place)


def _attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    """The attributes of an op; those of function arguments and results one by one."""
    found: dict[str, ir.Attribute] = {}
    for name in op.attributes:
        attribute = op.attributes[name]
        if name in ("arg_attrs", "res_attrs"):
            kind = "argument" if name == "arg_attrs" else "result"
            entries = enumerate(map(ir.DictAttr, ir.ArrayAttr(attribute)))
            found |= {f"{kind} {i}": entry for i, entry in entries if len(entry)}
        else:
            found[name] = attribute
    return found


def _name(op: ir.Operation) -> str:
    """The name of an op, with its symbol where it has one."""
    if "sym_name" in op.attributes:
        return f"{op.name} @{ir.StringAttr(op.attributes['sym_name']).value}"
    return str(op.name)


def _show(op: ir.OpView | ir.Operation) -> str:
    """An op as one line, without its regions; a function by its name."""
    if "sym_name" in op.operation.attributes:
        return _name(op.operation)
    text = str(op.operation.get_asm(skip_regions=True, use_local_scope=True)).strip().replace("\n", " ")
    return text if len(text) < 400 else text[:400] + " ..."
