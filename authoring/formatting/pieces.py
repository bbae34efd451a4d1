"""Datalog as statements of pieces: tokens, and the comments and line breaks between them.

The tokens are the engine's, and what stands between two of them is kept: whatever the language has as
syntax goes through. Lines of the preprocessor are kept as comments are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

from ...engine.language.diagnostics import Reporter
from ...engine.language.lexer import DIRECTIVES, Tokens, tokenize
from ...engine.language.sources import Sources
from ...engine.language.terms import DEEPEST

_GAP = re.compile(
    r"(?P<comment>//[^\n]*|/\*[\s\S]*?\*/|^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*)|\n|[^\S\n]+", re.MULTILINE
)
# A line of the preprocessor, and tokens that may look like one: comments and strings.
_PREPROCESSED = re.compile(
    r"//[^\n]*|/\*[\s\S]*?\*/|\"(?:[^\"\\\n]|\\.)*\""
    r"|^(?P<line>[ \t]*\#(?![ \t]*include\b)(?:[^\n]*\\\n)*[^\n]*)",
    re.MULTILINE,
)
_DIRECTIVES = frozenset(f".{name}" for name in DIRECTIVES)
_FAR = 40  # the column from which on a comment belongs to the code above
_BLOCKS = frozenset([".comp"])  # directives whose braces hold statements
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
# The tokens after which a name in a directive does not start the next statement.
_GOES_ON = frozenset(
    [",", "(", "[", "{", "<", ".", ":", "=", "|", "<:", "->", "::", "choice-domain", *_DIRECTIVES]
)


@dataclass
class Comment:
    """A comment with its column in the source, from 0. ``own_line``: only white space is before it on its
    line."""

    text: str
    column: int
    own_line: bool
    blank_before: bool
    at: int = -1  # its place in the source

    @property
    def is_sentence(self) -> bool:
        """Whether it is a doc comment, which belongs to the rule below it."""
        return self.text.startswith("///") and not self.text.startswith("////")

    @property
    def is_far(self) -> bool:
        """Whether it stands so far to the right that it belongs to the code above."""
        return self.column >= _FAR and not (self.blank_before or self.is_sentence or self.is_preprocessed)

    @property
    def is_preprocessed(self) -> bool:
        """Whether it is a line of the preprocessor, which stands where it does."""
        return self.text.startswith("#")


@dataclass
class TokenPiece:
    """A token, with the comments before it, whether it starts a line, and whether it touches the token
    before."""

    kind: str
    text: str
    at: int
    comments: list[Comment]
    newline: bool
    blank_before: bool
    touches: bool
    column: int  # in the source, from 0

    @property
    def nesting(self) -> int:
        """How many brackets more are open behind it: 1, 0 or -1."""
        return (self.kind in _OPENING) - (self.kind in _CLOSING)


@dataclass
class Statement:
    """A clause or a directive; ``level``: how many components it stands in, as far as these may be nested.
    ``opens``: its brace starts one."""

    pieces: list[TokenPiece] = field(default_factory=list)
    level: int = 0
    opens: bool = False

    @property
    def kind(self) -> str:
        """The directive, or "" for a clause."""
        kind = self.pieces[0].kind
        return kind if kind in _DIRECTIVES else ""


def tokens_of(text: str, file: str, *, strict: bool = True) -> Tokens:
    """The tokens of a text with one "end". Raises DatalogError for invalid tokens, if ``strict``."""
    sources = Sources()
    reporter = Reporter(sources) if strict else Reporter(sources, most=inf)

    def hidden(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0]) if match["line"] else match[0]

    tokens = tokenize(_PREPROCESSED.sub(hidden, text), sources.add(file, text), reporter, as_written=True)
    for kind, word, at in zip(tokens.kinds, tokens.texts, tokens.places, strict=True):
        if kind == "string" and (len(word) == 1 or word[-1] != '"'):
            reporter.error("E0101", at, "this string is not closed", 'close it with " on the same line')
    if strict:
        reporter.finish()
    number = tokens.kinds.index("end") + 1
    return Tokens(tokens.kinds[:number], tokens.texts[:number], tokens.places[:number], tokens.sentences)


def statements_of(text: str, file: str, *, strict: bool = True) -> tuple[list[Statement], list[Comment]]:
    """The statements of a text, and the comments behind the last one. Raises DatalogError for invalid
    tokens, if ``strict``."""
    *pieces, end = _pieces(text, tokens_of(text, file, strict=strict))
    return list(_statements(pieces)), end.comments


def _pieces(text: str, tokens: Tokens) -> Iterator[TokenPiece]:
    """The tokens as pieces; the last one is the end."""
    end = 0
    for kind, word, at in zip(tokens.kinds, tokens.texts, tokens.places, strict=True):
        comments, newline, blank = _gap(text, end, at)
        column = at - text.rfind("\n", 0, at) - 1
        yield TokenPiece(kind, word, at, comments, newline, blank, end == at, column)
        end = at + len(word)


def _gap(text: str, start: int, end: int) -> tuple[list[Comment], bool, bool]:
    """The comments in a gap between tokens, and whether a line, and a blank one, end after the last."""
    comments: list[Comment] = []
    newlines = 0 if start else 2
    for match in _GAP.finditer(text, start, end):
        if match["comment"]:
            column = match.start() - text.rfind("\n", 0, match.start()) - 1
            comments.append(Comment(match[0].strip(), column, newlines > 0, newlines > 1, match.start()))
            newlines = 0
        elif match[0] == "\n":
            newlines += 1
    return comments, newlines > 0, newlines > 1


def _statements(pieces: list[TokenPiece]) -> Iterator[Statement]:
    """Cuts pieces into statements, without knowing more of the grammar than where they end."""
    level, current, depth = 0, Statement(), 0
    for i, piece in enumerate(pieces):
        if current.pieces and _starts_statement(piece, pieces[i - 1], current.kind, depth, level):
            yield current
            current, depth = Statement(), 0
        if not current.pieces:
            if piece.kind == "}" and level:
                level -= 1
            current.level = min(level, DEEPEST)
        current.pieces.append(piece)
        if piece.nesting > 0:
            depth += 1
        elif piece.nesting < 0:
            depth = max(0, depth - 1)
        ends = piece.kind == "." and not _qualifies(pieces, i)
        if piece.kind == "{" and depth == 1 and current.kind in _BLOCKS:
            current.opens = ends = True
            level += 1
        if ends or (piece.kind == "}" and len(current.pieces) == 1):
            yield current
            current, depth = Statement(), 0
    if current.pieces:
        yield current


def _starts_statement(piece: TokenPiece, before: TokenPiece, directive: str, depth: int, level: int) -> bool:
    if piece.kind in _DIRECTIVES:
        return True
    if depth:
        return False
    if piece.kind == "}":
        return level > 0
    return (
        bool(directive)
        and piece.kind in ("identifier", "@", "@!")
        and (before.kind not in _GOES_ON or before.kind == ".once")
    )


def _qualifies(pieces: list[TokenPiece], i: int) -> bool:
    """Whether the dot is part of a name, as in ``component.relation``."""
    if not 0 < i < len(pieces) - 1:
        return False
    before, dot, after = pieces[i - 1 : i + 2]
    return before.kind == "identifier" == after.kind and dot.touches and after.touches
