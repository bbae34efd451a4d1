"""Texts to the syntax tree: directives and declarations; facts and rules are in ``clauses``.

The grammar is Soufflé's. After an error the parser goes on at the next clause or directive, so that one run
reports many errors.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from .clauses import ClauseParser
from .diagnostics import Reporter, did_you_mean
from .lexer import DIRECTIVES, KEYWORDS, unescape
from .syntax import (
    Atom,
    BranchDeclaration,
    Clause,
    ColumnDeclaration,
    Component,
    ComponentInstance,
    ComponentType,
    Directive,
    Lattice,
    Module,
    RelationDeclaration,
    RuleText,
    Term,
    TypeDeclaration,
)
from .terms import DEEPEST, NO_CODE
from .tokens import ReportedError

_QUALIFIERS = frozenset(
    [
        "brie", "btree", "btree_delete", "eqrel", "inline", "input", "magic", "no_inline", "no_magic",
        "output", "overridable", "printsize",
    ]
)  # fmt: skip
_TRANSFERS = ("input", "output", "printsize")
_STORAGE = frozenset(["brie", "btree", "btree_delete", "eqrel"])
_REPEATED = frozenset(  # options that may stand several times
    ["include-dir", "libraries", "library-dir", "macro", "pragma", "show", "warn", "wno"]
)
BOUNDS = "max(_, _), min(_, _), _ bor _ or _ band _"  # of lattices
_DIRECTIVE_KINDS = frozenset(f".{name}" for name in DIRECTIVES)

Include = Callable[[str, int, Module], None]


class NoRulesError(Exception):
    """A text does not begin as rules do."""


def parse(
    text: str, start: int, module: Module, reporter: Reporter, include: Include, *, strict: bool = False
) -> None:
    """Add the declarations and clauses of a text to ``module``.

    ``start`` is the position of the text's first character; ``include(path, at, module)`` is called for every
    ``.include`` where it stands. With ``strict`` an error in the first statement raises NoRulesError, and
    nothing is reported.
    """
    _Parser(text, start, module, reporter, include).program(strict)


class _Parser(ClauseParser):
    def __init__(self, text: str, start: int, module: Module, reporter: Reporter, include: Include) -> None:
        super().__init__(text, start, module, reporter)
        self.include = include
        self.around: list[Component] = []  # the components that the token is in

    def program(self, strict: bool) -> None:
        while self.kinds[self.i] != "end":
            self.statement()
            if strict and self.reporter.unreadable(self.start, self.places[self.i]):
                self.reporter.forget(self.start)
                raise NoRulesError
            strict = False
        self.unattached()

    def unattached(self) -> None:
        """Warn of doc comments before this token, because they cannot describe it."""
        for at in self.comments.get(self.i, ()):
            self.reporter.warning(
                "W0104", at, "this doc comment describes nothing: no rule or declaration follows it"
            )

    def statement(self) -> None:
        """Read one statement, or report it and go on behind it."""
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
            ".comp": self.component,
            ".init": self.instance,
            ".functor": self.functor,
            ".lattice": self.lattice,
            ".override": self.override,
            ".number_type": self.old_type,
            ".symbol_type": self.old_type,
        }
        kind, start = self.kinds[self.i], self.i
        try:
            if kind in statements:
                statements[kind]()
            elif kind[0] == "." or kind == "$":
                self.not_a_statement(kind)
            elif kind != "identifier" and self.i and kind not in KEYWORDS:
                self.error("E0102", self.places[self.i], f"expected an atom, found `{self.texts[self.i]}`")
            else:
                self.clause()
        except ReportedError:
            self.module.unread = True
            self.recover()
            self.i = max(self.i, start + 1)  # whatever it is, it is behind us

    def not_a_statement(self, kind: str) -> NoReturn:
        at, word = self.places[self.i], self.texts[self.i + 1] if kind == "." else kind[1:]
        self.i += 1
        if kind == ".plan":
            self.error("E0102", at, "`.plan` must follow a rule")
        self.error("E0102", at, f"unknown directive `.{word}`", did_you_mean(word, DIRECTIVES))

    def functor(self) -> None:
        """``.functor name(types): type``, where the caller has a function of this name."""
        start = self.places[self.i]
        self.i += 1
        at, name = self.places[self.i], self.texts[self.i]
        if name not in self.module.callable:
            if self.kinds[self.i] == "identifier":
                self.module.functors.setdefault(name)
            self.error("E0105", start, "user functors are not supported", NO_CODE)
        self.i += 1
        self.take("(", "`(`")
        columns: list[ColumnDeclaration] = []
        while not self.accept(")"):
            if columns:
                self.take(",", "`,` or `)`")
            if self.kinds[self.i + 1] == ":":
                self.i += 2
            type_name, place = self.qualified("a type")
            columns.append(ColumnDeclaration(f"x{len(columns)}", type_name, place))
        self.take(":", "`:` and the type of the value")
        type_name, place = self.qualified("a type")
        columns.append(ColumnDeclaration("value", type_name, place))
        if self.texts[self.i] == "stateful":
            self.error("E0105", self.places[self.i], "a stateful functor has no values to ask for ahead")
        if self.module.functors.get(name) is not None:
            self.error("E0202", at, f"the functor `{name}` is declared twice")
        self.module.functors[name] = RelationDeclaration(name, tuple(columns), frozenset(), at)

    def lattice(self) -> None:
        start = self.places[self.i]
        self.i += 1
        at = self.places[self.i]
        name = self.take("identifier", "the name of a type")
        for kind in ("<", ">", "{"):
            self.take(kind, f"`{kind}`")
        operators = [self.lattice_operator()]
        while self.accept(","):
            operators.append(self.lattice_operator())
        self.take("}", "`,` or `}`")
        text = RuleText(start, self.places[self.i - 1] + 1, "")
        self.module.lattices.append(Lattice(name, tuple(operators), at, text))

    def lattice_operator(self) -> tuple[str, Term, int]:
        at = self.places[self.i]
        name = self.take("identifier", "Bottom, Top, Lub or Glb")
        self.take("->", "`->` and the meaning of the operator")
        if self.kinds[self.i] == "@":
            message = "user functors are not supported"
            self.error("E0105", self.places[self.i], message, f"a bound may be {BOUNDS}")
        self.nested, self.depth = False, 0
        return name, self.expression(), at

    def recover(self) -> None:
        """Go on behind the next end of a clause, at the next directive, or at the end of the component."""
        kinds = self.kinds
        while kinds[self.i] != "end" and kinds[self.i] not in _DIRECTIVE_KINDS:
            if kinds[self.i] == "}" and self.around:
                break
            self.i += 1
            if kinds[self.i - 1] == ".":
                break
        if kinds[self.i] == ".plan" and kinds[self.i - 1] == ".":  # that of the rule that is left out
            with suppress(ReportedError):
                self.query_plan()

    def skip_one(self) -> None:
        self.i += 1

    def pragma(self) -> None:
        start = self.places[self.i]
        self.i += 1
        at = self.places[self.i]
        key = unescape(self.take("string", "the name of an option in quotes"), at, self.reporter)
        value, at = "", self.places[self.i]
        if self.accept("string"):
            value = unescape(self.texts[self.i - 1], at, self.reporter)
        if key not in _REPEATED and key in dict(self.module.pragmas):
            self.reporter.warning("W0105", start, f'this takes the place of an earlier `.pragma "{key}"`')
        self.module.pragmas.append((key, value))

    def component(self) -> None:
        self.i += 1
        kind, bases = self.component_type(), []
        while self.kinds[self.i] in (":", ","):
            self.i += 1
            bases.append(self.component_type())
        self.take("{", "`:` and a component, or `{`")
        if len(self.around) == DEEPEST:
            self.too_deep(kind.at)
        component, outside = Component(kind, tuple(bases), Module()), self.module
        component.body.symbols, component.body.functors = outside.symbols, outside.functors
        component.body.callable = outside.callable
        outside.components.append(component)
        self.module = component.body
        self.around.append(component)
        while self.kinds[self.i] not in ("}", "end"):
            self.statement()
        self.module = outside
        self.around.pop()
        outside.broken |= component.body.broken
        self.unattached()
        if not self.accept("}"):
            self.error("E0102", kind.at, f"the component `{kind.name}` is not closed", "close it with }")

    def override(self) -> None:
        self.i += 1
        at = self.places[self.i]
        if not self.around:
            self.error("E0102", self.places[self.i - 1], "`.override` is allowed only in components")
        self.around[-1].overrides.setdefault(self.take("identifier", "the name of a relation"), at)

    def component_type(self) -> ComponentType:
        at = self.places[self.i]
        name = self.take("identifier", "the name of a component")
        parameters: list[str] = []
        if self.accept("<"):
            parameters.append(self.qualified("a parameter")[0])
            while self.accept(","):
                parameters.append(self.qualified("a parameter")[0])
            self.take(">", "`,` or `>`")
        return ComponentType(name, tuple(parameters), at)

    def instance(self) -> None:
        self.i += 1
        at = self.places[self.i]
        name = self.take("identifier", "the name of the instance")
        self.take("=", "`=` and a component")
        self.module.instances.append(ComponentInstance(name, self.component_type(), at))

    def old_type(self) -> None:
        """``.number_type name`` and ``.symbol_type name``, as Soufflé once had them."""
        base, start = self.kinds[self.i][1:7], self.places[self.i]
        self.i += 1
        at = self.places[self.i]
        name = self.take("identifier", "the name of the new type")
        self.old_declaration(start, name, base)
        self.module.types.append(TypeDeclaration(name, "subtype", ((base, at),), (), at))

    def old_declaration(self, start: int, name: str, base: str) -> None:
        message = "this way to declare a type is out of use"
        self.reporter.warning("W0101", start, message, f"write: .type {name} <: {base}")

    def included(self) -> None:
        self.unattached()
        self.i += 1
        at = self.places[self.i]
        name = unescape(self.take("string", "the name of a file in quotes"), at, self.reporter)
        self.include(name, at, self.module)

    def type(self) -> None:
        start = self.places[self.i]
        self.i += 1
        at = self.places[self.i]
        name = self.take("identifier", "the name of the new type")
        form = "union"
        names: list[tuple[str, int]] = []
        columns: tuple[ColumnDeclaration, ...] = ()
        branches: list[BranchDeclaration] = []
        if self.kinds[self.i] not in ("<:", "="):  # as Soufflé once had it
            form = "subtype"
            names.append(("symbol", at))
            self.old_declaration(start, name, "symbol")
        elif self.accept("<:"):
            form = "subtype"
            names.append(self.qualified("a type"))
        else:
            self.take("=", "`<:` or `=`")
            if self.kinds[self.i] == "[":
                form = "record"
                columns = self.columns("[", "]")
            elif self.kinds[self.i] == "identifier" and self.kinds[self.i + 1] == "{":
                form = "branches"
                branches.append(self.branch())
                while self.accept("|"):
                    branches.append(self.branch())
            else:
                names.append(self.qualified("a type"))
                while self.accept("|"):
                    names.append(self.qualified("a type"))
        self.module.types.append(TypeDeclaration(name, form, tuple(names), columns, at, tuple(branches)))

    def branch(self) -> BranchDeclaration:
        at = self.places[self.i]
        name = self.take("identifier", "the name of a branch")
        return BranchDeclaration(name, self.columns("{", "}"), at)

    def relation(self) -> None:
        start = self.places[self.i]
        self.i += 1
        names = [(self.places[self.i], self.take("identifier", "the name of the new relation"))]
        while self.accept(","):
            names.append((self.places[self.i], self.take("identifier", "the name of the new relation")))
        self.module.broken.update(name for _, name in names)
        noted = self.noted() if self.kinds[self.i] == "=" else None
        columns = self.columns("(", ")") if noted is None else ()
        first = self.i
        qualifiers = self.qualifiers()
        for kind, at in zip(self.kinds[first : self.i], self.places[first : self.i], strict=True):
            if kind in _TRANSFERS:
                hint = " ".join(f".{kind} {name}" for _, name in names)
                self.reporter.warning("W0102", at, f"the qualifier `{kind}` is out of use", f"write: {hint}")
        choices = self.choices() if noted is None else ()
        self.module.broken.difference_update(name for _, name in names)
        for at, name in names:
            self.module.relations.append(
                RelationDeclaration(name, columns, frozenset(qualifiers), at, choices)
            )
            for kind in _TRANSFERS:
                if kind in qualifiers:
                    self.module.directives.append(Directive(kind, name, at))
            if noted is not None:
                text = RuleText(start, self.places[self.i - 1] + len(self.texts[self.i - 1]), "")
                self.module.clauses.append(Clause(Atom(name, (), at), (noted,), text, notes=True))

    def noted(self) -> Atom:
        """``= debug_delta(relation)``: the relation whose tuples another one has with their rounds."""
        self.i += 1
        self.take("debug_delta", "`debug_delta`")
        self.take("(", "`(` and the name of a relation")
        name, at = self.qualified("the name of a relation")
        self.take(")", "`)`")
        return Atom(name, (), at)

    def qualifiers(self) -> set[str]:
        qualifiers = set()
        while self.kinds[self.i] in _QUALIFIERS:
            if self.kinds[self.i] in qualifiers:
                message = f"`{self.kinds[self.i]}` is given twice"
                self.reporter.error("E0102", self.places[self.i], message)
            qualifiers.add(self.kinds[self.i])
            self.i += 1
        if len(qualifiers & _STORAGE) > 1:
            both = " and ".join(f"`{name}`" for name in sorted(qualifiers & _STORAGE))
            self.reporter.error("E0102", self.places[self.i - 1], f"a relation cannot be {both}")
        return qualifiers

    def choices(self) -> tuple[tuple[tuple[str, ...], int], ...]:
        """``choice-domain column, (column, column)``, if it stands here."""
        choices: list[tuple[tuple[str, ...], int]] = []
        if self.accept("choice-domain"):
            while not choices or self.accept(","):
                at = self.places[self.i]
                if self.accept("("):
                    names = [self.take("identifier", "the name of a column")]
                    while self.accept(","):
                        names.append(self.take("identifier", "the name of a column"))
                    self.take(")", "`,` or `)`")
                else:
                    names = [self.take("identifier", "the name of a column")]
                choices.append((tuple(names), at))
        return tuple(choices)

    def columns(self, opening: str, closing: str) -> tuple[ColumnDeclaration, ...]:
        self.take(opening, f"`{opening}`")
        columns: list[ColumnDeclaration] = []
        while not self.accept(closing):
            if columns:
                self.take(",", f"`,` or `{closing}`")
            at = self.places[self.i]
            name = self.take("identifier", "the name of a column")
            self.take(":", "`:` and the type of the column")
            type_name = self.qualified("a type")[0]
            lattice = self.accept("<")
            if lattice:
                self.take(">", "`>`")
            columns.append(ColumnDeclaration(name, type_name, at, lattice))
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
            self.error("E0102", start, "`.limitsize` needs a number of tuples", hint)
        self.module.directives += [Directive(kind, name, at, parameters) for name, at in names]

    def parameters(self) -> tuple[tuple[str, str], ...]:
        """``(key=value, ...)``, if it stands here."""
        pairs: list[tuple[str, str]] = []
        if self.accept("(") and not self.accept(")"):
            while True:
                key = self.take("identifier", "the name of a parameter")
                self.take("=", "`=` and the value of the parameter")
                kind, text, at = self.kinds[self.i], self.texts[self.i], self.places[self.i]
                if kind not in ("string", "identifier", "number", "true", "false"):
                    self.expected("a text, a name, a number, true or false")
                self.i += 1
                pairs.append((key, unescape(text, at, self.reporter) if kind == "string" else text))
                if self.accept(")"):
                    break
                self.take(",", "`,` or `)`")
        return tuple(pairs)
