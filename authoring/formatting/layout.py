"""Datalog in one layout.

Lines are broken where the author broke them, and where they would be longer than 120 columns; there is at
most one blank line between two others. Comments behind code stand in column 61 where they can, and lines
that continue them below. Rows of facts and rules below each other that were aligned are aligned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .alignment import AlignedLine, Cell, Part, align
from .pieces import Comment, Statement, TokenPiece, statements_of, tokens_of
from .spacing import gaps
from .statements import STEP, WIDTH, Line, lines_of

_COMMENTS = 60  # the column of comments behind code, from 0


def formatted(text: str, file: str = "<text>") -> str:
    """The text in the layout. Raises DatalogError for invalid tokens."""
    statements, last = statements_of(text, file)
    rows: list[AlignedLine] = []
    for before, statement in zip([None, *statements], statements, strict=False):
        _add(rows, before, statement)
    _add_comments(rows, last, 0)
    align(rows)
    new_text = "".join(f"{line}\n" for line in _written(rows))
    _check_same(text, new_text, file)
    return new_text


def _add(rows: list[AlignedLine], before: Statement | None, statement: Statement) -> None:
    """Add a statement with the comments before it."""
    first = statement.pieces[0]
    margin = STEP * statement.level
    _add_comments(rows, first.comments, margin)
    lines = lines_of(statement)
    follows = before is not None and not (first.newline or first.comments) and not before.opens
    if follows and len(lines) == 1 and rows[-1].table:
        rows[-1].cells.append(_cell(statement, lines[0], before))
        return
    for i, line in enumerate(lines):
        row = AlignedLine(margin, [], line.comment, line.blank_before)
        if i == 0:
            row.blank_before = first.blank_before and first.newline
            row.table = len(lines) == 1
            row.cells = [_cell(statement, line, None)]
        elif line.code:
            row.margin, row.cells = 0, [Cell(line.code)]
        row.ends = i == len(lines) - 1
        rows.append(row)


def _cell(statement: Statement, line: Line, before: Statement | None) -> Cell:
    """A statement that begins in a line, with its parts if it ends there, too."""
    pieces = statement.pieces
    gap = 0 if before is None else _space(before.pieces[-1], pieces[0])
    cell = Cell(line.code.strip(), pieces[0].column, gap)
    if statement.kind or any(piece.comments or piece.newline for piece in pieces[1:]):
        return cell
    neck = next((i for i, piece in enumerate(pieces) if piece.kind == ":-"), None)
    if neck is None:
        cell.relation = pieces[0].text
    apart = gaps(statement)
    depth = 0
    for i, piece in enumerate(pieces):
        starts = i == neck if neck is not None else depth == 1 and i > 0 and pieces[i - 1].kind == ","
        if i == 0 or starts:
            space = _space(pieces[i - 1], piece) if i else 0
            cell.parts.append(Part("", piece.column - pieces[0].column, space))
        part = cell.parts[-1]
        part.code += " " * (apart[i] and part.code != "") + piece.text
        depth += piece.nesting
    return cell


def _space(before: TokenPiece, after: TokenPiece) -> int:
    return after.at - before.at - len(before.text)


def _add_comments(rows: list[AlignedLine], comments: Iterable[Comment], margin: int) -> None:
    """Add the comments between two statements."""
    for comment in comments:
        above = rows[-1] if rows else None
        if above is not None and not comment.own_line:
            if above.comment is None:
                above.comment = Comment(comment.text, comment.column, False, False)
            else:
                above.comment.text += f" {comment.text}"
            continue
        belongs = above is not None and (above.ends or not above.cells) and above.margin >= 0
        if belongs and comment.is_far:
            rows.append(AlignedLine(margin, [], Comment(comment.text, comment.column, True, False)))
        else:
            # A negative margin: nothing belongs to a comment of its own.
            row = AlignedLine(-1, [Cell(" " * (0 if comment.is_preprocessed else margin) + comment.text)])
            row.blank_before = comment.blank_before
            rows.append(row)


def _written(rows: Sequence[AlignedLine]) -> Iterator[str]:
    for i, row in enumerate(rows):
        if row.blank_before and i:
            yield ""
        code = row.text()
        if row.comment is None:
            yield code
            continue
        text = row.comment.text
        column = max(len(code) + 2, min(_COMMENTS, WIDTH - len(text))) if code else _COMMENTS
        movable = text.startswith("//") and not row.comment.is_sentence and row.ends
        if code and movable and column > _COMMENTS and column + len(text) > WIDTH >= _COMMENTS + len(text):
            yield code
            yield " " * _COMMENTS + text
        else:
            yield code.ljust(column) + text


def _check_same(text: str, laid_out: str, file: str) -> None:
    """Only white space between tokens is other than before, and every rule keeps its sentence."""
    before, after = tokens_of(text, file), tokens_of(laid_out, file)
    same = (before.kinds, before.texts, before.sentences) == (after.kinds, after.texts, after.sentences)
    assert same and unspaced(text) == unspaced(laid_out), f"the layout of {file} changes it"


def unspaced(text: str) -> str:
    """A text without white space."""
    return "".join(text.split())
