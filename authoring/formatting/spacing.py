"""Which pieces of a statement stand apart.

Commas are followed by a space, and operators stand between spaces. There are no spaces inside of brackets,
except in the braces of aggregates and the parentheses of disjunctions. Arithmetic stands as the author
wrote it, ``n + 1`` or ``n+1``, for that shows what belongs together.
"""

from __future__ import annotations

from ...engine.language.lexer import token_at
from .pieces import Statement, TokenPiece

_ARITHMETIC = frozenset(["+", "-", "*", "/", "%", "^"])
_WORDS = frozenset(["band", "bnot", "bor", "bshl", "bshr", "bshru", "bxor", "land", "lnot", "lor", "lxor"])
_LOADS = frozenset([".input", ".output", ".printsize", ".limitsize"])  # with options, as in (IO=file)
# A colon belongs to what it follows.
_NAMES_TYPES = frozenset([".decl", ".functor", ".lattice", ".plan", ".type"])
_ANGLED = frozenset([".comp", ".decl", ".init", ".lattice", ".override"])  # < and > are brackets
_TARGETED = frozenset(
    ["max", "mean", "min", "sum"]
)  # max(x, y) is a functor, max (x + y) : { ... } an aggregate
# What comes before a term: a minus behind it is a sign.
_BEFORE_TERM = (
    frozenset(
        ["(", "[", "{", ",", ":", ":-", ";", "=", "!=", "<", "<=", ">", ">=", "->", "|", "!", *_TARGETED]
    )
    | _ARITHMETIC
    | _WORDS
)
_TIGHT_BEHIND = frozenset(["(", "[", "@", "@!", "!"])
_TIGHT_BEFORE = frozenset([",", ".", ")", "]"])
_OWN_IN_DIRECTIVES = frozenset([":", "=", "<", ">"])


def gaps(statement: Statement) -> list[bool]:
    """For each piece of a statement, whether a space stands before it."""
    spaced = _Gaps(statement).before_pieces()
    _keep_apart(statement.pieces, spaced)
    return spaced


def _keep_apart(pieces: list[TokenPiece], apart: list[bool]) -> None:
    """Puts spaces between pieces that would be other tokens without, as ``!`` and ``=``, or ``choice`` and
    ``-`` and ``domain``."""
    start = 0
    while start < len(pieces):
        end = next((i for i in range(start + 1, len(pieces)) if apart[i]), len(pieces))
        text, at = "".join(piece.text for piece in pieces[start:end]), 0
        for i in range(start, end - 1):
            behind = at + len(pieces[i].text)
            apart[i + 1] = token_at(text, at) != (at, behind)
            at = behind
        start = end


class _Gaps:
    def __init__(self, statement: Statement) -> None:
        self.pieces, self.directive = statement.pieces, statement.kind
        self.open: list[tuple[str, bool]] = []  # brackets around the piece, and whether they hold a body
        self.groups = set[int]() if self.directive else _bodies(self.pieces)
        self.signs: set[int] = set()
        self.gaps = [False]

    def before_pieces(self) -> list[bool]:
        self.enter(0)
        for i in range(1, len(self.pieces)):
            if self.pieces[i].kind == "-" and self.pieces[i - 1].kind in _BEFORE_TERM:
                self.signs.add(i)
            if self.pieces[i].nesting < 0:
                holds_body = self.open.pop()[1] if self.open else False
                empty = self.pieces[i - 1].nesting > 0
                self.gaps.append(not empty and (holds_body or self.pieces[i].kind == "}"))
            else:
                self.gaps.append(self.apart(i))
                self.enter(i)
        return self.gaps

    def enter(self, i: int) -> None:
        if self.pieces[i].nesting > 0:
            self.open.append((self.pieces[i].kind, i in self.groups))

    def apart(self, i: int) -> bool:
        before, piece = self.pieces[i - 1], self.pieces[i]
        kind, last = piece.kind, before.kind
        if kind in _TIGHT_BEFORE:
            return False
        if last == "(" and self.open and self.open[-1][1]:
            return True
        if last in _TIGHT_BEHIND or i - 1 in self.signs:
            return False
        if last == "." or (last == "$" and kind == "identifier"):
            return not piece.touches or piece.text[:1].isdigit()
        if kind == "(":
            return self.apart_from_parenthesis(i)
        if self.directive and (kind in _OWN_IN_DIRECTIVES or last in _OWN_IN_DIRECTIVES):
            return self.apart_in_directive(before, piece)
        if kind in _ARITHMETIC and i not in self.signs:
            return not piece.touches
        if last in _ARITHMETIC:
            return self.gaps[i - 1]
        return True

    def apart_from_parenthesis(self, i: int) -> bool:
        before, piece = self.pieces[i - 1], self.pieces[i]
        if before.kind in _TARGETED:
            return not piece.touches
        if before.kind in _ARITHMETIC:
            return self.gaps[i - 1]
        called = before.kind == "identifier" or before.kind[:1].isalpha()
        return not called or before.kind in _WORDS or before.kind == "choice-domain"

    def apart_in_directive(self, before: TokenPiece, piece: TokenPiece) -> bool:
        kind, last = piece.kind, before.kind
        if kind == ":" and (self.open or self.directive in _NAMES_TYPES):
            return False
        if "=" in (kind, last):
            return not (self.open and self.directive in _LOADS)
        if self.directive in _ANGLED:
            return not (kind in ("<", ">") or last == "<")
        return True


def _bodies(pieces: list[TokenPiece]) -> set[int]:
    """The parentheses that hold literals, as in ``( a(x) ; b(x) )``, by index."""
    bodies: set[int] = set()
    open_: list[int] = []
    for i, piece in enumerate(pieces):
        if piece.nesting > 0:
            open_.append(i)
        elif piece.nesting < 0:
            if open_:
                open_.pop()
        elif piece.kind in (",", ";") and open_ and pieces[open_[-1]].kind == "(":
            last = pieces[open_[-1] - 1].kind if open_[-1] else ""
            if last in (":-", ",", ";", "!", "(", "{"):
                bodies.add(open_[-1])
    return bodies
