"""Attributes in statements, in generic form: a function for each kind of attribute (``formats.py``)."""

from __future__ import annotations

import re
from collections.abc import Callable

from ...program.carried import DYNAMIC
from .cursor import STRING, WORD, Cursor, UnfittingError

_NUMBER = re.compile(r"-?\d+")
_LISTS = re.compile(r"\[\s*(?:\[[\s\d,-]*\]\s*,?\s*)*\]")


def entries(brackets: str) -> list[str]:
    """The entries of a list in brackets."""
    inside = brackets[1:-1].strip()
    return [entry.strip() for entry in inside.split(",")] if inside else []


def _axes(cursor: Cursor, op: str) -> str:
    numbers = ", ".join(_numbers(cursor, "axes, as in [0, 1]"))
    return f"array<i16: {numbers}>" if numbers else "array<i16>"


def _numbers(cursor: Cursor, expected: str) -> list[str]:
    """The numbers of a list in brackets."""
    start = cursor.next()
    numbers = entries(cursor.balanced("["))
    if not all(map(_NUMBER.fullmatch, numbers)):
        raise UnfittingError(start, expected)
    return numbers


def _axis_lists(cursor: Cursor, op: str) -> str:
    if not _LISTS.match(cursor.text, start := cursor.next()):
        raise UnfittingError(start, "a list of axes for each dimension, as in [[0], [1]]")
    return f"#{op.partition('.')[0]}<axisarray{cursor.balanced('[')}>"


def _i64s(cursor: Cursor, op: str) -> str:
    numbers = ", ".join(_numbers(cursor, "numbers, as in [0, 1]"))
    return f"array<i64: {numbers}>" if numbers else "array<i64>"


def _dims(cursor: Cursor, op: str) -> str:
    if cursor.looks_at("["):
        return _i64s(cursor, op)
    sizes = cursor.match(re.compile(r"(?:-?\d+|\?)(?:x(?:-?\d+|\?))*"), "the sizes of axes, as in 2x3")
    return f"array<i64: {', '.join(str(DYNAMIC) if size == '?' else size for size in sizes.split('x'))}>"


def _reduction(cursor: Cursor, op: str) -> str:
    if cursor.looks_at("#"):
        return cursor.value()
    kind = (
        cursor.balanced("<")[1:-1].strip()
        if cursor.looks_at("<")
        else cursor.match(WORD, "a kind of reduction")
    )
    return f"#shard<partial {kind}>" if op.startswith("shard.") else f"#mesh.partial<{kind}>"


def _sharding(cursor: Cursor, op: str) -> str:
    return f"#mesh.shard{cursor.balanced('<')}"


def _partial(cursor: Cursor, op: str) -> str:
    kind = cursor.match(WORD, "a kind of reduction, as in sum")
    return f'"{kind}{cursor.balanced("[")}"'


# Kind -> the function that reads an attribute of that kind, of an op of this name.
ATTRIBUTES: dict[str, Callable[[Cursor, str], str]] = {
    "axes": _axes,
    "axis_lists": _axis_lists,
    "i64s": _i64s,
    "dims": _dims,
    "list": _dims,
    "index": lambda cursor, op: f"{cursor.number()} : index",
    "i64": lambda cursor, op: f"{cursor.number()} : i64",
    "reduction": _reduction,
    "sharding": _sharding,
    "partial": _partial,
    "opclass": lambda cursor, op: f"#mpi.opclass<{cursor.match(WORD, 'an op of MPI, as in MPI_SUM')}>",
    "string": lambda cursor, op: cursor.match(STRING, "a string"),
    "any": lambda cursor, op: cursor.value(),
}
