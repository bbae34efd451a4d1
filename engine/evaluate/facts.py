"""Facts from Python, checked against the relation that they are for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, TypeAlias

from ..language.diagnostics import EngineError, counted
from ..plan.plan import Column, Relation

if TYPE_CHECKING:
    import numpy as np

Rows: TypeAlias = "Iterable[Sequence[Any]] | np.ndarray[Any, Any]"

_LIMITS = {"number": (-(1 << 63), (1 << 63) - 1), "unsigned": (0, (1 << 64) - 1)}
EXPECTED = {
    "number": "a number of 64 bits",
    "unsigned": "an unsigned number of 64 bits",
    "float": "a float",
    "symbol": "a text",
    "record": "a tuple or None",
}


def tuples(
    relation: Relation, rows: Rows, records: Mapping[str, tuple[Column, ...]]
) -> list[tuple[Any, ...]]:
    """The rows as tuples of the relation's types. Raises EngineError for a row that does not fit."""
    width = len(relation.columns)
    result = []
    for i, row in enumerate(rows.tolist() if hasattr(rows, "tolist") else rows):
        if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != width:
            found = 0 if not isinstance(row, Sequence) else len(row)
            raise EngineError(
                f"`{relation.name}`, fact {i}: expected {counted(width, 'value')}, found {found}: {row!r}"
            )
        values = []
        for column, value in zip(relation.columns, row, strict=True):
            try:
                values.append(_value(column, value, records))
            except (TypeError, ValueError):
                raise EngineError(
                    f"`{relation.name}`, fact {i}, column `{column.name}`: "
                    f"expected {EXPECTED[column.type]}, found {value!r}"
                ) from None
        result.append(tuple(values))
    return result


def _value(column: Column, value: Any, records: Mapping[str, tuple[Column, ...]]) -> Any:
    """A Python value as a value of the column's type. Raises TypeError or ValueError."""
    if column.type in _LIMITS:
        low, high = _LIMITS[column.type]
        number = int(index(value))
        if not low <= number <= high:
            raise ValueError
        return number
    if column.type == "float":
        if isinstance(value, str):
            raise TypeError
        return float(value) + 0.0
    if column.type == "symbol":
        if not isinstance(value, str):
            raise TypeError
        return value
    if value is None:
        return None
    fields = records[column.type_name]
    if not isinstance(value, tuple):
        raise TypeError
    return tuple(_value(field, part, records) for field, part in zip(fields, value, strict=True))
