"""The names in a text of Datalog: where each is declared and used, and its meaning.

It goes by tokens, so that a text with errors, as one that is being written, has its names too.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from ...engine.language.lexer import KEYWORDS
from ...engine.language.terms import CASTS, DEEPEST
from ..formatting.pieces import Comment, Statement, TokenPiece, statements_of

_LOADS = frozenset([".input", ".output", ".printsize", ".limitsize", ".override"])
_NAMED = re.compile(r"\{(\w+)\}")  # a variable in the sentence of a rule
_LONGEST = 1_000  # characters of a declaration that are told


@dataclass(frozen=True)
class Name:
    """A name from ``start`` up to ``end`` in a text. ``kind`` is "relation", "type", "column", "component",
    "instance", "branch", "variable" or "file".

    ``scope`` tells apart what different statements call by one name. ``argument`` is, for a variable, the
    relation and the column that it stands for. ``within`` is the path of the component that the name stands
    in, as in "Graph.Edges", and ``path`` the instances before it, as in "a.b." before a relation.
    """

    kind: str
    text: str
    start: int
    end: int
    declares: bool = False
    scope: int = -1
    argument: tuple[Name, int] | None = None
    within: str = ""
    path: tuple[str, ...] = ()


@dataclass(frozen=True)
class Declaration:
    """The meaning of a name: its declaration as written, the comment about it, and its columns."""

    name: Name
    text: str
    comment: str = ""
    columns: tuple[tuple[str, str], ...] = ()


@dataclass
class RuleFileNames:
    """The names of a text in its order, its declarations, and the sentences of rules, by the relations in
    their heads.

    ``bases`` has, by the path of a component, the names of its base components; ``instances`` has by where
    it stands, and its name, the name of an instance's component.
    """

    in_order: list[Name] = field(default_factory=list)
    declarations: list[Declaration] = field(default_factory=list)
    sentences: list[tuple[Name, str]] = field(default_factory=list)
    statements: list[tuple[int, int]] = field(default_factory=list)  # their starts and ends
    components: list[tuple[int, str]] = field(default_factory=list)  # where one begins or goes on, its path
    bases: dict[str, list[str]] = field(default_factory=dict)
    instances: dict[tuple[str, str], str] = field(default_factory=dict)

    def at(self, offset: int) -> Name | None:
        """The name that holds a place, or ends there."""
        return next((name for name in self.in_order if name.start <= offset <= name.end), None)

    def within(self, offset: int) -> str:
        """The path of the component that holds a place."""
        i = bisect_right(self.components, offset, key=lambda component: component[0])
        return self.components[i - 1][1] if i else ""

    def includes(self) -> Iterator[Name]:
        """The names of the files that the text includes."""
        return (name for name in self.in_order if name.kind == "file")


def names_of(text: str) -> RuleFileNames:
    """The names of a text."""
    statements, last = statements_of(text, "", strict=False)
    names = RuleFileNames()
    inside: list[str] = []  # the paths of the components that are open
    following = [*(statement.pieces[0].comments for statement in statements[1:]), last]
    for scope, (statement, behind) in enumerate(zip(statements, following, strict=False)):
        first, end = statement.pieces[0], statement.pieces[-1]
        names.statements.append((first.at, end.at + len(end.text)))
        if first.kind == "}" and inside:
            inside.pop()
            names.components.append((first.at, inside[-1] if inside else ""))
        within = inside[-1] if inside else ""
        _Statement(names, text, statement, _comment(first.comments, behind), (scope, within)).read()
        if statement.opens:
            named = next((p.text for p in statement.pieces[1:] if p.kind == "identifier"), "?")
            path = f"{within}.{named}" if within else named
            inside.append(path if len(inside) < DEEPEST else within)
            names.components.append((end.at, inside[-1]))
    return names


def _comment(above: Sequence[Comment], behind: Sequence[Comment]) -> str:
    """The comment about a declaration: behind it, or in the lines above."""
    comments = [comment for comment in behind[:1] if not comment.own_line]
    for comment in behind[len(comments) :]:
        if not comment.is_far:
            break
        comments.append(comment)
    if not comments:
        for comment in above[::-1]:
            if comment.text.startswith("// --") or comment.is_preprocessed or not comment.own_line:
                break
            comments.insert(0, comment)
            if comment.blank_before:
                break
    return " ".join(_words(comment) for comment in comments)


def _words(comment: Comment) -> str:
    text = comment.text.removeprefix("/*").removesuffix("*/")
    return " ".join(line.strip().lstrip("/*").strip() for line in text.split("\n")).strip()


def _without_annotations(pieces: list[TokenPiece]) -> list[TokenPiece]:
    """The pieces without annotations, as in ``@[name = value]``."""
    kept: list[TokenPiece] = []
    depth = 0  # of the brackets of an annotation
    for piece, after in zip(pieces, [*pieces[1:], None], strict=True):
        if depth or (piece.kind in ("@", "@!") and after is not None and after.kind == "["):
            depth += (piece.kind in ("@", "@!", "[", "(", "{")) - (piece.kind in ("]", ")", "}"))
            depth -= depth == 1 and piece.kind == "]"
        else:
            kept.append(piece)
    return kept


class _Statement:
    """Reads the names of one statement."""

    def __init__(
        self, names: RuleFileNames, text: str, statement: Statement, comment: str, scope: tuple[int, str]
    ) -> None:
        self.names, self.text, self.comment = names, text, comment
        self.scope, self.within = scope
        self.statement, self.pieces = statement, _without_annotations(statement.pieces)

    def add(
        self,
        kind: str,
        piece: TokenPiece,
        *,
        declares: bool = False,
        argument: tuple[Name, int] | None = None,
        path: tuple[str, ...] = (),
    ) -> Name:
        scope = self.scope if kind in ("variable", "column") else -1
        end = piece.at + len(piece.text)
        name = Name(kind, piece.text, piece.at, end, declares, scope, argument, self.within, path)
        self.names.in_order.append(name)
        return name

    def read(self) -> None:
        kind = self.statement.kind
        if kind in (".decl", ".type", ".functor"):
            self.declaration("type" if kind == ".type" else "relation")
        elif kind == ".lattice":
            self.lattice()
        elif kind in (".comp", ".init"):
            self.component(kind)
        elif kind in _LOADS:
            self.loaded()
        elif kind == ".include":
            self.included()
        elif not kind and self.pieces:  # or there is nothing but an annotation
            self.clause()

    def included(self) -> None:
        for piece in self.pieces[1:]:
            if piece.kind == "string":
                name = Name("file", piece.text.strip('"'), piece.at, piece.at + len(piece.text))
                self.names.in_order.append(name)

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
            elif self.qualifies(i):
                self.add("instance", piece, path=self.path(i))
            elif self.pieces[i - 1 - 2 * len(self.path(i))].kind in (":", "=", "<:", "|"):
                self.add("type", piece, path=self.path(i))
                if depth and columns:
                    columns[-1] = (columns[-1][0], ".".join((*self.path(i), piece.text)))
            elif depth or self.pieces[i - 1].kind in ("choice-domain", ","):
                self.add("column", piece)
        for name in declared:
            self.declare(name, tuple(columns))

    def lattice(self) -> None:
        """``.lattice t<> { Bottom -> $b(), ... }``: the names of a type and of branches."""
        for before, piece in pairwise(self.pieces):
            if piece.kind == "identifier" and before.kind in (".lattice", "$"):
                self.add("branch" if before.kind == "$" else "type", piece)

    def declare(self, name: Name, columns: tuple[tuple[str, str], ...] = ()) -> None:
        self.names.declarations.append(Declaration(name, self.written, self.comment, columns))

    @cached_property
    def written(self) -> str:
        """The statement in one line, of which the end may be left out."""
        start, end = self.names.statements[-1]
        text = " ".join(self.text[start : min(end, start + _LONGEST)].split())
        return text if end - start <= _LONGEST else f"{text} ..."

    def component(self, kind: str) -> None:
        """``.comp a<t> : b<t>, c {`` and ``.init a = b<t>``. The names in brackets behind ``.comp`` are the
        component's own."""
        around, depth, first = self.within, 0, ""
        own = "." if around else ""
        is_head = kind == ".comp"
        for i, piece in enumerate(self.pieces[1:], 1):
            depth += (piece.kind == "<") - (piece.kind == ">")
            is_head = is_head and piece.kind != ":"
            if piece.kind != "identifier":
                continue
            self.within = f"{around}{own}{first}" if depth and kind == ".comp" else around
            if not first:
                first = piece.text
                self.declare(self.add("component" if kind == ".comp" else "instance", piece, declares=True))
            elif depth:
                self.add("type", piece, declares=is_head, path=self.path(i))
            else:
                self.add("component", piece)
                if kind == ".init":
                    self.names.instances[around, first] = piece.text
                else:
                    self.names.bases.setdefault(f"{around}{own}{first}", []).append(piece.text)
        self.within = around

    def path(self, i: int) -> tuple[str, ...]:
        """The instances before a piece, which dots without blanks join to it."""
        instances: list[str] = []
        while i >= 2 and self.qualifies(i - 2):
            i -= 2
            instances.insert(0, self.pieces[i].text)
        return tuple(instances)

    def qualifies(self, i: int) -> bool:
        """Whether a piece is an instance before a dot and a name."""
        return (
            self.kind(i) == "identifier"
            and self.kind(i + 1) == "."
            and i + 2 < len(self.pieces)
            and self.pieces[i + 1].touches
            and self.pieces[i + 2].touches
        )

    def loaded(self) -> None:
        depth = 0
        for i, piece in enumerate(self.pieces[1:], 1):
            depth += (piece.kind == "(") - (piece.kind == ")")
            if piece.kind == "identifier" and depth == 0:
                self.add("instance" if self.qualifies(i) else "relation", piece, path=self.path(i))

    def clause(self) -> None:
        """Relations and variables; a relation has a sentence where a rule with one concludes it."""
        sentences = [comment for comment in self.pieces[0].comments if comment.is_sentence]
        for comment in sentences:
            for match in _NAMED.finditer(comment.text):
                start, end = (comment.at + place for place in match.span(1))
                name = Name("variable", match[1], start, end, scope=self.scope, within=self.within)
                self.names.in_order.append(name)
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
                    self.names.sentences.append((self.names.in_order[-1], sentence))

    def kind(self, i: int) -> str:
        """The kind of a piece, "" where there is none."""
        return self.pieces[i].kind if 0 <= i < len(self.pieces) else ""

    def bracket(self, i: int) -> _Bracket:
        if self.pieces[i].kind != "(" or i == 0:
            return _Bracket()
        called = self.pieces[i - 1].text
        last = self.names.in_order[-1] if self.names.in_order else None
        is_relation = last is not None and last.kind == "relation" and last.start == self.pieces[i - 1].at
        return _Bracket(called, last if is_relation else None)

    def word(self, i: int, around: _Bracket | None) -> None:
        piece, before, after = self.pieces[i], self.kind(i - 1), self.kind(i + 1)
        if before == "@" or piece.text in CASTS:
            return
        path = self.path(i)
        if self.qualifies(i):
            self.add("instance", piece, path=path)
        elif self.kind(i - 1 - 2 * len(path)) == "$":
            self.add("branch", piece, path=path)
        elif after == "(":
            self.add("relation", piece, path=path)
        elif around is not None and around.called == "as" and around.index == 1:
            self.add("type", piece, path=path)
        else:
            whole = before in ("(", ",") and after in (")", ",")
            relation = around.relation if around is not None and whole else None
            self.add("variable", piece, argument=(relation, around.index) if around and relation else None)


@dataclass
class _Bracket:
    """The name whose arguments a bracket holds, and which of them comes next; ``relation`` where it is
    one."""

    called: str = ""
    relation: Name | None = None
    index: int = 0


def is_name(text: str) -> bool:
    """Whether a text can be the name of a relation, a type or a variable."""
    word = text.replace("?", "_")
    return word.isascii() and word.isidentifier() and text not in KEYWORDS
