"""Rows as a table of plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

_NUMBER = re.compile(r"-?[\d,.]+")


def table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Columns below their names and a line; columns of numbers stand to the right."""
    cells = [[str(value) for value in row] for row in rows]
    columns = list(zip(names, *cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [len(cells) > 0 and all(map(_NUMBER.fullmatch, column[1:])) for column in columns]

    def line(entries: Iterable[str]) -> str:
        padded = (e.rjust(w) if r else e.ljust(w) for e, w, r in zip(entries, widths, right, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join([line(names), line("-" * w for w in widths), *map(line, cells)])
