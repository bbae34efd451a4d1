"""Facts from Python, checked against the relation that they are for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, TypeAlias

from ..language.diagnostics import EngineError, counted
from ..plan.plan import Column, Relation
from .floats import canonical

if TYPE_CHECKING:
    import numpy as np

Rows: TypeAlias = "Iterable[Sequence[Any]] | np.ndarray[Any, Any]"

DEEPEST = 500  # levels of records, which is how deep Python recurses

_LIMITS = {"number": (-(1 << 63), (1 << 63) - 1), "unsigned": (0, (1 << 64) - 1)}
EXPECTED = {
    "number": "a number of 64 bits",
    "unsigned": "an unsigned number of 64 bits",
    "float": "a float",
    "symbol": "a text",
    "record": "a tuple or None",
}


def tuples(
    relation: Relation, rows: Rows, records: Mapping[str, tuple[Column, ...]], first: int = 0
) -> list[tuple[Any, ...]]:
    """The rows as tuples of the relation's types. Raises EngineError for a row that does not fit, with its
    number from ``first`` on."""
    width = len(relation.columns)
    result = []
    for i, row in enumerate(rows.tolist() if hasattr(rows, "tolist") else rows, first):
        if not isinstance(row, Sequence) or isinstance(row, str | bytes) or len(row) != width:
            expected = f"a tuple of {counted(width, 'value')}"
            raise EngineError(f"`{relation.name}`, fact {i}: expected {expected}, found {row!r}")
        values = []
        for column, value in zip(relation.columns, row, strict=True):
            try:
                values.append(_value(column, value, records))
            except (TypeError, ValueError, OverflowError):
                raise EngineError(
                    f"`{relation.name}`, fact {i}, column `{column.name}`: "
                    f"expected {EXPECTED[column.type]}, found {value!r}"
                ) from None
        result.append(tuple(values))
    return result


def real(value: Any) -> float:
    """A Python number as a float: there is one NaN. Raises TypeError or OverflowError."""
    if isinstance(value, str | bytes | bytearray):
        raise TypeError
    return canonical(float(value))


def _value(
    column: Column, value: Any, records: Mapping[str, tuple[Column, ...]], levels: int = DEEPEST
) -> Any:
    """A Python value as a value of the column's type. Raises TypeError, ValueError or OverflowError, and
    EngineError for records of more levels."""
    if column.type in _LIMITS:
        low, high = _LIMITS[column.type]
        number = int(index(value))
        if not low <= number <= high:
            raise ValueError
        return number
    if column.type == "float":
        return real(value)
    if column.type == "symbol":
        if not isinstance(value, str):
            raise TypeError
        value.encode()  # a half of a character is no text
        return str.__str__(value)
    if value is None:
        return None
    if not levels:
        raise too_deep()
    if not isinstance(value, tuple):
        raise TypeError
    parts = []
    for field, part in zip(records[column.type_name], value, strict=True):
        parts.append(_value(field, part, records, levels - 1))
    return tuple(parts)


def too_deep() -> EngineError:
    """The error for records of more levels than there may be."""
    return EngineError(f"a record that is nested more than {DEEPEST} levels deep")
