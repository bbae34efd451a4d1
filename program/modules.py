"""The ops of a module, by their symbols."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from jaxlib.mlir import ir

from ..errors import ShardlogError, closest


def symbols(module: ir.Module, kind: str) -> dict[str, Any]:
    """The ops of a kind, such as "func.func", by their symbols."""
    ops = (op for op in module.body.operations if op.operation.name == kind)
    return {ir.StringAttr(op.attributes["sym_name"]).value: op for op in ops}


def public(function: Any) -> bool:
    """Whether a func.func can be called from outside of the module."""
    visibility: Any = function.attributes.get("sym_visibility")
    return visibility is None or visibility.value == "public"


def main_function(functions: dict[str, Any]) -> str:
    """The entry point: the only function, or ``main``."""
    if len(functions) == 1:
        return next(iter(functions))
    if "main" in functions:
        return "main"
    if not functions:
        raise ShardlogError("the module has no function", hint="expected a func.func")
    message = "the module has several functions and none is called main"
    raise ShardlogError(message, hint=closest("main", functions))


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
