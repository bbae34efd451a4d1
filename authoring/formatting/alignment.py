"""Alignment in consecutive lines: of the parts that the author aligned.

That is statements that stand side by side, the `:-` of rules, and the arguments of facts of one relation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from .pieces import Comment
from .statements import WIDTH


@dataclass
class Part:
    """A part of a line that may be aligned with parts of lines above and below. ``column`` is the column of
    its start in the source, and ``gap`` the number of blanks before it there."""

    code: str
    column: int
    gap: int


@dataclass
class Cell:
    """A statement that is one line, or a line of one. ``parts``: the head of a rule, and what follows; or
    what commas part in a fact."""

    code: str
    column: int = 0
    gap: int = 0
    parts: list[Part] = field(default_factory=list)
    relation: str = ""  # of a fact


@dataclass
class AlignedLine:
    """A line. A margin of -1: nothing belongs to a comment of its own."""

    margin: int
    cells: list[Cell] = field(default_factory=list)
    comment: Comment | None = None
    blank_before: bool = False
    table: bool = False  # its statements begin and end in it
    ends: bool = False  # a statement ends in it
    starts: tuple[
        int, ...
    ] = ()  # the columns of its cells, or of the parts of its one cell, where they are aligned

    def text(self) -> str:
        """The code of the line, aligned; "" if there is none."""
        cell = self.cells[0] if len(self.cells) == 1 else None
        if cell is not None and self.starts:
            codes, gap = [part.code for part in cell.parts], 1
        else:
            codes, gap = [cell.code for cell in self.cells], 2
        line = ""
        for i, code in enumerate(codes):
            line = (line.ljust(self.starts[i]) if self.starts else line + " " * gap * (i > 0)) + code
        return " " * max(0, self.margin) + line if line else ""


def align(rows: Sequence[AlignedLine]) -> None:
    """Set the columns of aligned parts."""
    for run in _runs(rows, lambda row: row.margin if len(row.cells) > 1 else None):
        parts = [[Part(cell.code, cell.column, cell.gap) for cell in row.cells] for row in run]
        _align(run, parts, 2)
    for run in _runs(rows, _neck):
        _align(run, [row.cells[0].parts for row in run], 1)
    for run in _runs(rows, _shape_of_fact):
        _align(run, [row.cells[0].parts for row in run], 1)


def _neck(row: AlignedLine) -> Hashable:
    """The column of a rule's `:-` in the source."""
    parts = row.cells[0].parts if len(row.cells) == 1 else []
    return (row.margin, parts[1].column) if len(parts) == 2 and not row.cells[0].relation else None


def _shape_of_fact(row: AlignedLine) -> Hashable:
    """The relation and the arity of a fact with several arguments."""
    cell = row.cells[0] if len(row.cells) == 1 else Cell("")
    return (row.margin, cell.relation, len(cell.parts)) if cell.relation and len(cell.parts) > 1 else None


def _runs(rows: Sequence[AlignedLine], key: Callable[[AlignedLine], Hashable]) -> Iterator[list[AlignedLine]]:
    """Two rows or more that follow each other without a blank line and have one key, which is not None."""
    run: list[AlignedLine] = []
    for before, row in pairwise([None, *rows, None]):
        alike = before is not None and row is not None and row.table and not row.blank_before
        if run and not (alike and row is not None and key(row) == key(run[-1])):
            if len(run) > 1:
                yield run
            run = []
        if row is not None and row.table and key(row) is not None:
            run.append(row)


def _align(run: Sequence[AlignedLine], parts: Sequence[Sequence[Part]], least: int) -> None:
    """Align parts of lines, if the author aligned some; ``least``: the spaces between them otherwise."""
    places: dict[tuple[int, int], list[int]] = {}
    for line in parts:
        for i, part in enumerate(line[1:]):
            places.setdefault((i, part.column), []).append(part.gap)
    if not any(len(gaps) > 1 and max(gaps) > least for gaps in places.values()):
        return
    starts = [0]
    for i in range(max(map(len, parts)) - 1):
        starts.append(starts[i] + least + max(len(line[i].code) for line in parts if len(line) > i + 1))
    for row, line in zip(run, parts, strict=True):
        row.starts = tuple(starts[: len(line)])
    if any(len(row.text()) > WIDTH for row in run):
        for row in run:
            row.starts = ()
