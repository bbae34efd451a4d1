"""Texts to the syntax tree: directives and declarations; facts and rules are in ``clauses``.

The grammar is Soufflé's. After an error the parser goes on at the next clause or directive, so that one run
reports many errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from .clauses import ClauseParser, ReportedError
from .diagnostics import Reporter, did_you_mean
from .lexer import DIRECTIVES, unescape
from .syntax import ColumnDeclaration, Directive, Module, RelationDeclaration, TypeDeclaration

_QUALIFIERS = frozenset(
    [
        "brie", "btree", "btree_delete", "eqrel", "inline", "input", "magic", "no_inline", "no_magic",
        "output", "overridable", "printsize",
    ]
)  # fmt: skip
_LATER = {
    ".comp": "components", ".init": "components", ".override": "components", ".lattice": "lattices",
    ".plan": "query plans",
}  # fmt: skip
_DIRECTIVE_KINDS = frozenset(f".{name}" for name in DIRECTIVES)

Include = Callable[[str, int], None]


class NoRulesError(Exception):
    """A text does not begin as rules do."""


def parse(
    text: str, start: int, module: Module, reporter: Reporter, include: Include, *, strict: bool = False
) -> None:
    """Add the declarations and clauses of a text to ``module``.

    ``start`` is the position of the text's first character; ``include(path, at)`` is called for every
    ``.include`` where it stands. With ``strict`` an error in the first statement raises NoRulesError, and
    nothing is reported.
    """
    _Parser(text, start, module, reporter, include).program(strict)


class _Parser(ClauseParser):
    def __init__(self, text: str, start: int, module: Module, reporter: Reporter, include: Include) -> None:
        super().__init__(text, start, module, reporter)
        self.include = include

    def program(self, strict: bool) -> None:
        statements = {
            ".decl": self.relation,
            ".type": self.type,
            ".input": self.directive,
            ".output": self.directive,
            ".printsize": self.directive,
            ".limitsize": self.directive,
            ".include": self.included,
            ".once": self.skip_one,
            ".pragma": self.pragma,
        }
        kinds = self.kinds
        while (kind := kinds[self.i]) != "end":
            try:
                if kind in statements:
                    statements[kind]()
                elif kind[0] == "." or kind == "$":
                    self.not_a_statement(kind)
                else:
                    self.clause()
            except ReportedError:
                self.recover()
            if strict and self.reporter.errors_before(self.places[self.i], self.start):
                self.reporter.forget(self.start)
                raise NoRulesError
            strict = False

    def not_a_statement(self, kind: str) -> NoReturn:
        at, word = self.places[self.i], self.texts[self.i + 1] if kind == "." else kind[1:]
        self.i += 1
        if kind in _LATER:
            self.later(at, _LATER[kind])
        if kind == ".functor":
            self.error("E0105", at, "user functors are not supported", "a rule file never runs code")
        if kind in (".number_type", ".symbol_type"):
            self.error("E0102", at, f"`{kind}` is an old form", f"write: .type name <: {kind[1:7]}")
        known = [name for name in DIRECTIVES if f".{name}" not in _LATER]
        self.error("E0102", at, f"unknown directive `.{word}`", did_you_mean(word, known))

    def recover(self) -> None:
        """Go on behind the next end of a clause, or at the next directive."""
        kinds = self.kinds
        while kinds[self.i] != "end" and kinds[self.i] not in _DIRECTIVE_KINDS:
            self.i += 1
            if kinds[self.i - 1] == ".":
                break

    def skip_one(self) -> None:
        self.i += 1

    def pragma(self) -> None:
        self.i += 1
        while self.kinds[self.i] == "string":
            self.i += 1

    def included(self) -> None:
        self.i += 1
        at = self.places[self.i]
        self.include(unescape(self.take("string", "the name of a file in quotes"), at, self.reporter), at)

    def type(self) -> None:
        self.i += 1
        at = self.places[self.i]
        name = self.take("identifier", "the name of the new type")
        form = "union"
        names: list[tuple[str, int]] = []
        columns: tuple[ColumnDeclaration, ...] = ()
        if self.accept("<:"):
            form = "subtype"
            names.append(self.qualified("a type"))
        else:
            self.take("=", "`<:` or `=`")
            if self.kinds[self.i] == "[":
                form = "record"
                columns = self.columns("[", "]")
            else:
                names.append(self.qualified("a type"))
                while self.accept("|"):
                    names.append(self.qualified("a type"))
                if self.kinds[self.i] == "{":
                    self.later(names[-1][1], "algebraic data types")
        self.module.types.append(TypeDeclaration(name, form, tuple(names), columns, at))

    def relation(self) -> None:
        self.i += 1
        names = [(self.places[self.i], self.take("identifier", "the name of the new relation"))]
        while self.accept(","):
            names.append((self.places[self.i], self.take("identifier", "the name of the new relation")))
        self.module.broken.update(name for _, name in names)
        columns = self.columns("(", ")")
        qualifiers = self.qualifiers()
        self.module.broken.difference_update(name for _, name in names)
        for at, name in names:
            self.module.relations.append(RelationDeclaration(name, columns, frozenset(qualifiers), at))
            for kind in ("input", "output", "printsize"):
                if kind in qualifiers:
                    self.module.directives.append(Directive(kind, name, at))

    def qualifiers(self) -> set[str]:
        found = set()
        while self.kinds[self.i] in _QUALIFIERS:
            if self.kinds[self.i] == "inline":
                self.later(self.places[self.i], "inlined relations")
            found.add(self.kinds[self.i])
            self.i += 1
        if self.kinds[self.i] == "choice-domain":
            self.later(self.places[self.i], "choice domains")
        return found

    def columns(self, opening: str, closing: str) -> tuple[ColumnDeclaration, ...]:
        self.take(opening, f"`{opening}`")
        columns: list[ColumnDeclaration] = []
        while not self.accept(closing):
            if columns:
                self.take(",", f"`,` or `{closing}`")
            at = self.places[self.i]
            name = self.take("identifier", "the name of a column")
            self.take(":", "`:` and the type of the column")
            columns.append(ColumnDeclaration(name, self.qualified("a type")[0], at))
        return tuple(columns)

    def directive(self) -> None:
        kind, start = self.kinds[self.i][1:], self.places[self.i]
        self.i += 1
        names = [self.qualified("the name of a relation")]
        while self.accept(","):
            names.append(self.qualified("the name of a relation"))
        parameters = self.parameters()
        if kind == "limitsize" and not dict(parameters).get("n", "").isdecimal():
            hint = f"as in .limitsize {names[0][0]}(n=100)"
            self.error("E0102", start, "`.limitsize` needs how many tuples there may be", hint)
        self.module.directives += [Directive(kind, name, at, parameters) for name, at in names]

    def parameters(self) -> tuple[tuple[str, str], ...]:
        """``(key=value, ...)``, if it stands here."""
        found: list[tuple[str, str]] = []
        if self.accept("(") and not self.accept(")"):
            while True:
                key = self.take("identifier", "the name of a parameter")
                self.take("=", "`=` and the value of the parameter")
                kind, text, at = self.kinds[self.i], self.texts[self.i], self.places[self.i]
                if kind not in ("string", "identifier", "number", "true", "false"):
                    self.expected("a text, a name, a number, true or false")
                self.i += 1
                found.append((key, unescape(text, at, self.reporter) if kind == "string" else text))
                if self.accept(")"):
                    break
                self.take(",", "`,` or `)`")
        return tuple(found)
