"""Rows as a table of plain text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Columns under their names and a line; numbers to the right, with thousands separated."""
    cells = [[_cell(value) for value in row] for row in rows]
    kinds = [[isinstance(value, int | float) for value in row] for row in rows]
    right = [all(column) for column in zip(*kinds, strict=True)] or [False] * len(names)
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]

    def line(entries: Iterable[str]) -> str:
        padded = (e.rjust(w) if r else e.ljust(w) for e, w, r in zip(entries, widths, right, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join([line(names), line("-" * w for w in widths), *map(line, cells)])


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}" if isinstance(value, float) else str(value)
