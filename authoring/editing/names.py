"""The names in a text of Datalog: where each is declared and used, what it stands for.

It goes by tokens, so that a text with errors, as one that is being written, has its names too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ...engine.language.lexer import KEYWORDS
from ...engine.language.terms import CASTS
from ..formatting.pieces import Comment, Piece, Statement, statements_of

_LOADS = frozenset([".input", ".output", ".printsize", ".limitsize", ".override"])
_NAMED = re.compile(r"\{(\w+)\}")  # a variable in the sentence of a rule
_LONGEST = 1_000  # characters of a declaration that are told


@dataclass(frozen=True)
class Name:
    """A name from ``start`` up to ``end`` in a text. ``kind`` is "relation", "type", "column", "component",
    "instance", "branch", "variable" or "file".

    ``scope`` tells apart what different statements call by one name. ``argument`` is, for a variable, the
    relation and the column that it stands for.
    """

    kind: str
    text: str
    start: int
    end: int
    declares: bool = False
    scope: int = -1
    argument: tuple[str, int] | None = None


@dataclass(frozen=True)
class Declaration:
    """What a name stands for: its declaration as written, the comment about it, and its columns."""

    name: Name
    text: str
    comment: str = ""
    columns: tuple[tuple[str, str], ...] = ()


@dataclass
class Names:
    """The names of a text in its order; what is declared; and the sentences of rules, by relation."""

    found: list[Name] = field(default_factory=list)
    declarations: list[Declaration] = field(default_factory=list)
    sentences: dict[str, list[str]] = field(default_factory=dict)
    statements: list[tuple[int, int]] = field(default_factory=list)  # their starts and ends

    def at(self, offset: int) -> Name | None:
        """The name that holds a place, or ends there."""
        return next((name for name in self.found if name.start <= offset <= name.end), None)

    def includes(self) -> Iterator[Name]:
        """The names of the files that the text includes."""
        return (name for name in self.found if name.kind == "file")


def names_of(text: str) -> Names:
    """The names of a text."""
    statements, last = statements_of(text, "", strict=False)
    names = Names()
    following = [*(statement.pieces[0].comments for statement in statements[1:]), last]
    for scope, (statement, behind) in enumerate(zip(statements, following, strict=False)):
        first, end = statement.pieces[0], statement.pieces[-1]
        names.statements.append((first.at, end.at + len(end.text)))
        _Statement(names, text, statement, _comment(first.comments, behind), scope).read()
    return names


def _comment(above: Sequence[Comment], behind: Sequence[Comment]) -> str:
    """The comment about a declaration: behind it, or in the lines above."""
    found = [comment for comment in behind[:1] if not comment.own_line]
    for comment in behind[len(found) :]:
        if not comment.is_far:
            break
        found.append(comment)
    if not found:
        for comment in above[::-1]:
            if comment.text.startswith("// --") or comment.is_preprocessed or not comment.own_line:
                break
            found.insert(0, comment)
            if comment.blank_before:
                break
    return " ".join(_words(comment) for comment in found)


def _words(comment: Comment) -> str:
    text = comment.text.removeprefix("/*").removesuffix("*/")
    return " ".join(line.strip().lstrip("/*").strip() for line in text.split("\n")).strip()


def _without_annotations(pieces: list[Piece]) -> list[Piece]:
    """The pieces without annotations, as in ``@[name = value]``."""
    found: list[Piece] = []
    depth = 0  # of the brackets of an annotation
    for piece, after in zip(pieces, [*pieces[1:], None], strict=True):
        if depth or (piece.kind in ("@", "@!") and after is not None and after.kind == "["):
            depth += (piece.kind in ("@", "@!", "[", "(", "{")) - (piece.kind in ("]", ")", "}"))
            depth -= depth == 1 and piece.kind == "]"
        else:
            found.append(piece)
    return found


class _Statement:
    """Reads the names of one statement."""

    def __init__(self, names: Names, text: str, statement: Statement, comment: str, scope: int) -> None:
        self.names, self.text, self.comment, self.scope = names, text, comment, scope
        self.statement, self.pieces = statement, _without_annotations(statement.pieces)

    def add(
        self, kind: str, piece: Piece, *, declares: bool = False, argument: tuple[str, int] | None = None
    ) -> Name:
        scope = self.scope if kind in ("variable", "column") else -1
        end = piece.at + len(piece.text)
        name = Name(kind, piece.text, piece.at, end, declares, scope, argument)
        self.names.found.append(name)
        return name

    def read(self) -> None:
        kind = self.statement.kind
        if kind in (".decl", ".type", ".functor", ".lattice"):
            self.declaration("type" if kind in (".type", ".lattice") else "relation")
        elif kind in (".comp", ".init"):
            self.component(kind)
        elif kind in _LOADS:
            self.loaded()
        elif kind == ".include":
            self.included()
        elif not kind:
            self.clause()

    def included(self) -> None:
        for piece in self.pieces[1:]:
            if piece.kind == "string":
                name = Name("file", piece.text.strip('"'), piece.at, piece.at + len(piece.text))
                self.names.found.append(name)

    def declaration(self, kind: str) -> None:
        """``.decl a, b(x: t)``, ``.type a <: b``, ``.type a = b | c``, ``.type a = [x: t]``, branches."""
        declared: list[Name] = []
        columns: list[tuple[str, str]] = []
        depth, is_head = 0, True
        for i, piece in enumerate(self.pieces[1:], 1):
            depth += piece.nesting
            if piece.kind in ("=", "<:", "("):
                is_head = False
            if piece.kind != "identifier":
                continue
            after = self.pieces[i + 1].kind if i + 1 < len(self.pieces) else ""
            if depth == 0 and is_head:
                declared.append(self.add(kind, piece, declares=True))
            elif depth and after == ":":
                columns.append((self.add("column", piece, declares=True).text, ""))
            elif after == "{":
                declared.append(self.add("branch", piece, declares=True))
            elif self.pieces[i - 1].kind in (":", "=", "<:", "|"):
                self.add("type", piece)
                if depth and columns:
                    columns[-1] = (columns[-1][0], piece.text)
            elif depth or self.pieces[i - 1].kind in ("choice-domain", ","):
                self.add("column", piece)
        for name in declared:
            self.declare(name, tuple(columns))

    def declare(self, name: Name, columns: tuple[tuple[str, str], ...] = ()) -> None:
        self.names.declarations.append(Declaration(name, self.written, self.comment, columns))

    @cached_property
    def written(self) -> str:
        """The statement in one line, of which the end may be left out."""
        start, end = self.names.statements[-1]
        text = " ".join(self.text[start : min(end, start + _LONGEST)].split())
        return text if end - start <= _LONGEST else f"{text} ..."

    def component(self, kind: str) -> None:
        """``.comp a<t> : b<t>, c {`` and ``.init a = b<t>``."""
        depth, first = 0, True
        for piece in self.pieces[1:]:
            depth += (piece.kind == "<") - (piece.kind == ">")
            if piece.kind != "identifier":
                continue
            if first:
                self.declare(self.add("component" if kind == ".comp" else "instance", piece, declares=True))
            else:
                self.add("type" if depth else "component", piece)
            first = False

    def loaded(self) -> None:
        depth = 0
        for i, piece in enumerate(self.pieces[1:], 1):
            depth += (piece.kind == "(") - (piece.kind == ")")
            if piece.kind == "identifier" and depth == 0:
                qualifies = i + 1 < len(self.pieces) and self.pieces[i + 1].kind == "."
                self.add("instance" if qualifies else "relation", piece)

    def clause(self) -> None:
        """Relations and variables; a relation has a sentence where a rule with one concludes it."""
        sentences = [comment for comment in self.pieces[0].comments if comment.is_sentence]
        for comment in sentences:
            for match in _NAMED.finditer(comment.text):
                start, end = (comment.at + place for place in match.span(1))
                self.names.found.append(Name("variable", match[1], start, end, scope=self.scope))
        sentence = " ".join(map(_words, sentences))
        open_: list[_Bracket] = []
        is_head = True
        for i, piece in enumerate(self.pieces):
            if piece.nesting > 0:
                open_.append(self.bracket(i))
            elif piece.nesting < 0:
                del open_[-1:]
            elif piece.kind == "," and open_:
                open_[-1].index += 1
            elif piece.kind == ":-":
                is_head = False
            elif piece.kind == "identifier":
                self.word(i, open_[-1] if open_ else None)
                if is_head and not open_ and sentence and self.kind(i + 1) == "(":
                    self.names.sentences.setdefault(piece.text, []).append(sentence)

    def kind(self, i: int) -> str:
        """The kind of a piece, "" where there is none."""
        return self.pieces[i].kind if 0 <= i < len(self.pieces) else ""

    def bracket(self, i: int) -> _Bracket:
        if self.pieces[i].kind != "(" or i == 0:
            return _Bracket("")
        called = self.pieces[i - 1].text
        names_relation = self.kind(i - 1) == "identifier" and self.kind(i - 2) not in ("$", "@")
        return _Bracket(called, names_relation and called not in CASTS)

    def word(self, i: int, around: _Bracket | None) -> None:
        piece, before, after = self.pieces[i], self.kind(i - 1), self.kind(i + 1)
        if before == "@" or piece.text in CASTS:
            return
        if before == "$":
            self.add("branch", piece)
        elif after == "(":
            self.add("relation", piece)
        elif after == "." and i + 2 < len(self.pieces) and self.pieces[i + 1].touches:
            self.add("instance", piece)
        elif around is not None and around.called == "as" and around.index == 1:
            self.add("type", piece)
        else:
            whole = before in ("(", ",") and after in (")", ",")
            of_relation = around is not None and around.names_relation and whole
            self.add(
                "variable", piece, argument=(around.called, around.index) if around and of_relation else None
            )


@dataclass
class _Bracket:
    """What a bracket holds the arguments of, and which of them comes next."""

    called: str
    names_relation: bool = False
    index: int = 0


def is_name(text: str) -> bool:
    """Whether a text can be the name of a relation, a type or a variable."""
    word = text.replace("?", "_")
    return word.isascii() and word.isidentifier() and text not in KEYWORDS
