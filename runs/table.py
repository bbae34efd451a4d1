"""Rows as a table, of plain text or HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
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


def html_table(names: Sequence[str], rows: Iterable[Sequence[Any]], most: int = 1000) -> str:
    """A table of HTML; of more than ``most`` rows the first ones, and how many more there are."""
    found = list(rows)
    lines = [_html_row("th", names), *(_html_row("td", row) for row in found[:most])]
    if len(found) > most:
        lines.append(f'<tr><td colspan="{len(names)}">... {len(found) - most:,} more</td></tr>')
    return "\n".join(["<table>", *lines, "</table>"])


def _html_row(cell: str, values: Iterable[Any]) -> str:
    return f"<tr>{''.join(f'<{cell}>{escape(str(value))}</{cell}>' for value in values)}</tr>"
