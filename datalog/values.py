"""Values as Soufflé writes them, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine.plan.plan import Column

Records = Mapping[str, tuple[Column, ...]]


def text_of(column: Column, value: Any, records: Records) -> str:
    """A value of a column as Soufflé writes it to a file: symbols as they are, records as in a program."""
    if column.type == "record":
        if value is None:
            return "nil"
        fields = zip(records[column.type_name], value, strict=True)
        return f"[{', '.join(text_of(field, part, records) for field, part in fields)}]"
    return float_text(value) if column.type == "float" else str(value)


def float_text(value: float) -> str:
    """A float with 17 digits, as C++ streams write it."""
    return f"{value:.17g}"
