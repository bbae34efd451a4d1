"""Source lines for a module of an XLA dump: only the HLO beside it has them.

Shardy's modules are dumped without locations. The HLO of the same program has them, but its ops may be in
another order. So ops are matched from the returned values of each block backwards.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jaxlib.mlir import ir

from ...errors import ShardlogError
from ...notations.frontend_attributes import read_frontend_attributes
from ...program.mlir.modules import bytecode_of, is_used, symbols
from ...program.mlir.types import Operation
from .text import Text, parse_module

SAME = {"sdy.constant": "stablehlo.constant"}  # names that XLA's importer changes
_ADDED = ("sdy.sharding_constraint", "stablehlo.reshape")  # only one of the two may have them


def with_lines(text: Text, hlo: bytes) -> Text:
    """A program with the locations of the same program after a round trip through HLO (bytecode). Unchanged
    if that cannot be read: only source lines are lost."""
    module = parse_module(text)
    try:
        with module.context, ir.Location.unknown():
            named = ir.Module.parse(hlo)
            read_frontend_attributes(named)
    except (ir.MLIRError, ShardlogError):
        return text
    ours, theirs = symbols(module, "func.func"), symbols(named, "func.func")
    for name in ours.keys() & theirs.keys():
        _give_lines(ours[name], theirs[name])
    return replace(text, data=bytecode_of(module))


def _give_lines(ours: Operation, theirs: Operation) -> None:
    done: set[ir.Operation] = set()
    waiting: list[tuple[Any, Any]] = [(ours, theirs)]
    while waiting:
        a, b = _without_added(*(op.operation for op in waiting.pop()))
        if a in done or not _alike(a, b):
            continue
        done.add(a)
        a.location = b.location
        for mine, other in zip(a.operands, b.operands, strict=True):
            if not isinstance(mine.owner, ir.Block) and not isinstance(other.owner, ir.Block):
                waiting.append((mine.owner, other.owner))
        for one, two in zip(_blocks(a), _blocks(b), strict=True):
            for argument, named in zip(one.arguments, two.arguments, strict=False):
                argument.set_location(named.location)
            ours_ends, their_ends = _ends(one), _ends(two)
            for kind in ours_ends.keys() & their_ends.keys():
                waiting.extend(zip(ours_ends[kind], their_ends[kind], strict=False))


def _ends(block: ir.Block) -> dict[str, list[Any]]:
    """The ops of a block whose results nothing uses, if they have any, by name."""
    by_name: dict[str, list[Any]] = {}
    for op in block.operations:
        if not is_used(op):
            by_name.setdefault(op.operation.name, []).append(op)
    return by_name


def _without_added(a: Any, b: Any) -> tuple[Any, Any]:
    """Two ops. If only one of them renames or reshapes a value, its operand's op instead."""
    while _name(a) != _name(b):
        if (before := _named_anew(b)) is not None:
            b = before
        elif (before := _named_anew(a)) is not None:
            a = before
        else:
            break
    return a, b


def _named_anew(op: Operation) -> Any:
    """The op whose result an op only names or shapes anew; None where it does more."""
    if op.name not in _ADDED or op.operands[0].type != op.results[0].type:
        return None
    owner = op.operands[0].owner
    return None if isinstance(owner, ir.Block) else owner.operation


def _name(op: Operation) -> str:
    return str(SAME.get(op.name, op.name))


def _alike(ours: Operation, theirs: Operation) -> bool:
    counts = [(len(op.operands), len(op.results), len(op.regions)) for op in (ours, theirs)]
    return _name(ours) == _name(theirs) and counts[0] == counts[1]


def _blocks(op: Operation) -> list[Any]:
    return [block for region in op.regions for block in region.blocks]
