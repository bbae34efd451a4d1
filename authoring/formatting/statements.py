"""One statement as lines: where the author broke it, aligned; elsewhere only where it would be too long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...engine.language.terms import DEEPEST
from .pieces import Comment, Statement, TokenPiece
from .spacing import gaps

WIDTH = 120
STEP = 4  # columns of a level
_FARTHEST = STEP * DEEPEST  # where a line begins

_LONG = 2_000  # pieces of a statement that is left unchanged


@dataclass
class Line:
    """A line of a statement: its code, the comment behind it, and a blank line before it."""

    code: str
    comment: Comment | None = None
    blank_before: bool = False


def lines_of(statement: Statement) -> list[Line]:
    """The lines of a statement. What stands before its first piece is left out."""
    pieces = statement.pieces
    apart = gaps(statement)
    breaks = _kept_breaks(pieces)
    lines = _laid_out(statement, apart, breaks)
    if _fits(lines) or len(pieces) > _LONG or any(piece.comments for piece in pieces[1:]):
        return lines
    for other in _narrower(statement, apart, breaks):
        shorter = _laid_out(statement, apart, other)
        if _fits(shorter):
            return shorter
    return lines


def _fits(lines: Iterable[Line]) -> bool:
    return all(len(line.code) <= WIDTH for line in lines)


def _kept_breaks(pieces: Sequence[TokenPiece]) -> set[int]:
    """The pieces that begin a line, as in the source. Commas and ends stay with the piece before."""
    breaks = {i for i, piece in enumerate(pieces) if i and piece.newline}
    open_: list[int] = []
    for i, piece in enumerate(pieces):
        closes = piece.nesting < 0
        opened = open_.pop() if closes and open_ else None
        if piece.nesting > 0:
            open_.append(i)
        if i not in breaks or piece.comments:
            continue
        block = opened is not None and opened + 1 in breaks
        if (closes and opened is not None and not block) or piece.kind == ".":
            breaks.discard(i)
        elif piece.kind in (",", ":-") and i + 1 < len(pieces):
            breaks.discard(i)
            breaks.add(i + 1)
    return breaks


def _laid_out(statement: Statement, apart: Sequence[bool], breaks: set[int]) -> list[Line]:
    margin = " " * (STEP * statement.level)
    lines = [Line(margin + statement.pieces[0].text)]
    layout = _Indents(len(margin), bool(statement.kind))
    layout.enter(statement.pieces[0], len(margin), 0 in breaks or 1 in breaks)
    for i, piece in enumerate(statement.pieces[1:], 1):
        starts_line, space = i in breaks, apart[i]
        if piece.comments:
            starts_line |= _comments(lines, piece, layout.indent(piece), starts_line)
            space = True
        if starts_line:
            column = layout.indent(piece)
            lines.append(Line(" " * column + piece.text, blank_before=piece.blank_before and i in breaks))
        else:
            column = len(lines[-1].code) + space
            lines[-1].code += " " * space + piece.text
        layout.enter(piece, column, i + 1 in breaks)
    return lines


def _comments(lines: list[Line], piece: TokenPiece, column: int, breaks: bool) -> bool:
    """Add the comments before a piece that would begin a line at ``column``; ``breaks``: it does. Returns
    whether it must."""
    alone = False  # whether the last line is a comment's own
    for comment, after in zip(piece.comments, [*piece.comments[1:], None], strict=True):
        above = lines[-1].comment
        is_line = comment.text.startswith("//") and not comment.is_sentence
        goes_on = is_line and above is not None and above.column == comment.column
        if comment.own_line and goes_on:
            lines.append(Line("", Comment(comment.text, comment.column, True, False)))
        elif comment.own_line or "\n" in comment.text:
            margin = 0 if comment.is_preprocessed else column
            lines.append(Line(" " * margin + comment.text, blank_before=comment.blank_before))
            alone = True
        elif alone or not (breaks if after is None else after.own_line or "\n" in after.text):
            lines[-1].code += f" {comment.text}"
        elif above is not None:
            above.text += f" {comment.text}"
        else:
            lines[-1].comment = Comment(comment.text, comment.column, False, False)
    return alone


class _Indents:
    """The columns at which lines begin."""

    def __init__(self, margin: int, is_directive: bool) -> None:
        self.margin, self.is_directive = margin, is_directive
        self.body: int | None = None  # of the literals of a rule
        self.open: list[
            tuple[int, int, int]
        ] = []  # brackets: where they stand, what they hold, and what ends them
        self.awaits: str = ""  # what the next piece is the first of

    def indent(self, piece: TokenPiece) -> int:
        """The column of a piece that begins a line."""
        if self.open:
            bracket, inside, outside = self.open[-1]
            column = bracket if piece.kind == ";" else outside if piece.nesting < 0 else inside
            return min(column, _FARTHEST)
        if self.body is not None:
            return self.body
        return self.margin + STEP if self.is_directive or piece.kind in (":-", "<=") else self.margin

    def enter(self, piece: TokenPiece, column: int, breaks: bool) -> None:
        """Go on behind a piece at a column; ``breaks``: the next one begins a line."""
        if self.awaits == "inside" and self.open:
            bracket, _, outside = self.open[-1]
            self.open[-1] = (bracket, column, outside)
        elif self.awaits == "body":
            self.body = column
        self.awaits = ""
        if piece.nesting < 0:
            if self.open:
                self.open.pop()
        elif piece.nesting > 0:
            outside = self.indent_of_line()
            self.open.append((column, outside + STEP, outside))
            self.awaits = "" if breaks else "inside"
        elif not self.open and (piece.kind == ":-" or (piece.kind == "<=" and self.body is None)):
            self.body = self.margin + STEP
            self.awaits = "" if breaks else "body"

    def indent_of_line(self) -> int:
        """Where the line begins that has a bracket at its end."""
        if self.open:
            return self.open[-1][1]
        return self.body if self.body is not None else self.margin


def _narrower(statement: Statement, apart: Sequence[bool], breaks: set[int]) -> Iterable[set[int]]:
    """Where else the lines of a statement may be broken, the least change first."""
    pieces = statement.pieces
    neck = next((i for i, piece in enumerate(pieces) if piece.kind == ":-"), None)
    if neck is not None:
        yield breaks | {neck + 1}
    outer = [i for i in _behind_commas(pieces, 0) if neck is None or i > neck]
    inner = [i for i in _behind_commas(pieces, 1) if neck is None or i > neck]
    for choices in (outer, inner, sorted({*outer, *inner})):
        start = set() if neck is None else {neck + 1}
        yield _filled(statement, apart, start, choices)


def _behind_commas(pieces: Sequence[TokenPiece], deepest: int) -> list[int]:
    """The pieces behind commas and semicolons that stand in so many brackets or in one fewer."""
    places, depth = [], 0
    for i, piece in enumerate(pieces[:-1]):
        depth += piece.nesting
        if piece.kind in (",", ";") and depth <= deepest:
            places.append(i + 1)
    return places


def _filled(statement: Statement, apart: Sequence[bool], start: set[int], choices: Sequence[int]) -> set[int]:
    """Breaks at as few of ``choices`` as do."""
    breaks = set(start)
    for here, after in pairwise([*choices, len(statement.pieces)]):
        part = Statement(statement.pieces[:after], statement.level)
        if not _fits(_laid_out(part, apart, breaks)[-1:]):
            breaks.add(here)
    return breaks
