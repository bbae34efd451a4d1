"""Small functions with collectives, as many of ``jnp`` are, take the place of their calls: what is sent in
several calls can become one collective there."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from jaxlib.mlir import ir

from ..program.mlir.modules import main_function, named_in, operations_in, put_in_place_of, symbols
from ..rulebook.book import lowerings
from .combining import KINDS

_SMALL = 128  # ops of a function: larger ones, as layers, have little in common with what is around them


def put_in_place_of_calls(module: ir.Module, apart: Collection[Any] = ()) -> bool:
    """Puts small functions that send something in the place of their calls, but for those with ops that stay
    ``apart``, and returns whether there were any."""
    functions = symbols(module, "func.func")
    del functions[main_function(functions)]
    taken = set[str]()
    with module.context:
        while senders := {name for name, func in functions.items() if _sends(func, apart)}:
            calls = [op for op in operations_in(module) if _callee(op) in senders]
            if not calls:
                break
            for call in calls:
                taken.add(name := _callee(call))
                put_in_place_of(call, functions[name])
        named = named_in(module.operation) if taken else set()
        for name in taken - named:
            functions[name].erase()
    return bool(taken)


def _sends(func: Any, apart: Collection[Any]) -> bool:
    """Whether a function is small and has collectives, none of them ``apart``."""
    ops = operations_in(func)
    return len(ops) <= _SMALL and any(op.name in KINDS for op in ops) and not any(op in apart for op in ops)


def _callee(op: Any) -> str:
    """The function that an op calls; empty for other ops."""
    if lowerings().get(op.name) != "call":
        return ""
    return str(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)
