"""Rows as a table, and numbers in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

STACK = "name stack"  # a column that is left out where no row has one
_NUMBER = re.compile(r"-?[\d,.]+")
_TIMES = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))
_LEAST_TIME = 1e-9  # seconds: shorter times are printed as less than this
_ROUNDED = 0.9995  # of a unit: what three digits show as all of it


def table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Columns below their names and a line. Numbers stand to the right, and paths of places are short."""
    cells = [[str(value) for value in row] for row in rows]
    if STACK in names and all(row[names.index(STACK)] == "-" for row in cells):
        at = names.index(STACK)
        names, cells = [*names[:at], *names[at + 1 :]], [[*row[:at], *row[at + 1 :]] for row in cells]
    if "place" in names:
        at = names.index("place")
        for row, place in zip(cells, _nearer([row[at] for row in cells]), strict=True):
            row[at] = place
    columns = list(zip(names, *cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [len(cells) > 0 and all(map(_NUMBER.fullmatch, column[1:])) for column in columns]

    def line(entries: Iterable[str]) -> str:
        padded = (e.rjust(w) if r else e.ljust(w) for e, w, r in zip(entries, widths, right, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join([line(names), line("-" * w for w in widths), *map(line, cells)])


def _nearer(places: list[str]) -> list[str]:
    """Places as seen from the working folder. If none is in it, all lose the folder that they share."""
    known = [place for place in places if place != "-"]
    folders = [Path(place.partition(":")[0]).parent for place in known]
    if not known or not all(folder.is_absolute() for folder in folders):
        return places  # as the user named them
    base = Path.cwd()
    if not any(folder.is_relative_to(base) for folder in folders):
        base = Path(os.path.commonpath(folders))
    return [place.removeprefix(f"{base}{os.sep}") for place in places]


def short_table(
    names: Sequence[str], rows: Sequence[Sequence[Any]], most: int | None, count: int = 0
) -> list[str]:
    """An empty line, a table, and how many rows are left out if there are more than ``most``: of ``count``,
    where ``rows`` are only the first of them. Nothing where there are no rows."""
    if not rows:
        return []
    left = max(count, len(rows)) - len(rows[:most])
    lines = ["", table(names, rows[:most])]
    return [*lines, f"... {left:,} more (--full shows all)"] if left else lines


def time_text(seconds: float, digits: int = 3) -> str:
    """A time in the largest unit that it reaches, without powers of ten."""
    if 0 < seconds < _LEAST_TIME:
        return f"<{_LEAST_TIME / 1e-6:g} us"
    unit, scale = next((pair for pair in _TIMES if seconds >= _ROUNDED * pair[1]), _TIMES[-1])
    number = seconds / scale
    return f"{number:,.0f} {unit}" if number >= 1000 else f"{number:.{digits}g} {unit}"


def plural(count: int, noun: str) -> str:
    """So many of something: ``1 device``, ``1,024 devices``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def part_text(part: float, whole: float) -> str:
    """A part in percent."""
    return f"{100 * part / whole:.0f} %" if whole else "0 %"
