"""Checks of declarations: relations, facts about them, and directives."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ..language.diagnostics import Reporter, did_you_mean
from ..language.sources import Sources
from ..language.syntax import Atom, Module, RelationDeclaration
from .types import PRIMITIVES, Types


def declare_once(module: Module, sources: Sources, reporter: Reporter) -> None:
    """Leave of each relation its first declaration, and report the others."""
    declared: dict[str, RelationDeclaration] = {}
    for declaration in module.relations:
        first = declared.setdefault(declaration.name, declaration)
        if first is not declaration:
            place = sources.locate(first.at)
            message = f"the relation `{declaration.name}` is declared twice"
            hint = f"it is declared first at {place.file}:{place.line}"
            reporter.error("E0202", declaration.at, message, hint)
    module.relations = list(declared.values())


def declared_relations(module: Module, types: Types, reporter: Reporter) -> dict[str, RelationDeclaration]:
    """The relations by name; reports errors in any of them."""
    declared = {declaration.name: declaration for declaration in module.relations}
    for declaration in module.relations:
        if declaration.name in types.kinds and declaration.name not in PRIMITIVES:
            message = f"`{declaration.name}` is a type already"
            reporter.error("E0202", declaration.at, message, "give the relation another name")
        _check_columns(declaration, types, reporter)
        _check_choices(declaration, reporter)
    _check_subsuming(module, declared, reporter)
    return declared


def _check_columns(declaration: RelationDeclaration, types: Types, reporter: Reporter) -> None:
    names: set[str] = set()
    for column in declaration.columns:
        if column.name in names:
            reporter.error("E0202", column.at, f"the column `{column.name}` is declared twice")
        names.add(column.name)
        if column.type_name not in types.kinds:
            hint = partial(did_you_mean, column.type_name, types.kinds)
            reporter.error("E0201", column.at, f"unknown type `{column.type_name}`", hint)
    if "eqrel" in declaration.qualifiers and (
        len(declaration.columns) != 2
        or len({types.kinds.get(column.type_name) for column in declaration.columns}) != 1
    ):
        message = f"the eqrel `{declaration.name}` needs two columns of one type"
        reporter.error("E0303", declaration.at, message)


def _check_choices(declaration: RelationDeclaration, reporter: Reporter) -> None:
    columns = {column.name for column in declaration.columns}
    for group, at in declaration.choices:
        for name in group:
            if name not in columns:
                hint = partial(did_you_mean, name, columns)
                reporter.error("E0201", at, f"`{declaration.name}` has no column `{name}`", hint)


def _check_subsuming(module: Module, declared: Mapping[str, RelationDeclaration], reporter: Reporter) -> None:
    """Report relations whose tuples cannot be deleted, and rules that compare tuples of two relations."""
    subsuming = [clause for clause in module.clauses if clause.subsumes]
    for name in dict.fromkeys(clause.head.name for clause in subsuming):
        declaration = declared.get(name)
        if declaration is not None and not declaration.columns:
            message = f"`{name}` has one tuple at most, which nothing makes superfluous"
            reporter.error("E0303", declaration.at, message)
    for clause in subsuming:
        if isinstance(clause.body[1], Atom) and clause.body[1].name != clause.head.name:
            message = "the tuples before and after `<=` are of two relations"
            reporter.error("E0303", clause.head.at, message)


def directives_of(
    module: Module, declared: Mapping[str, RelationDeclaration], reporter: Reporter
) -> dict[str, set[str]]:
    """The kinds of directives ("input", "output", ...) of each relation. Reports directives of unknown
    relations."""
    kinds: dict[str, set[str]] = {name: set() for name in declared}
    for directive in module.directives:
        if directive.name in declared:
            if directive.kind in kinds[directive.name] & {"printsize", "limitsize"}:
                message = f"`.{directive.kind}` of `{directive.name}` is given twice"
                reporter.error("E0202", directive.at, message)
            kinds[directive.name].add(directive.kind)
        elif directive.name not in module.broken:
            hint = partial(did_you_mean, directive.name, declared)
            reporter.error("E0201", directive.at, f"unknown relation `{directive.name}`", hint)
    return kinds


def check_no_files(module: Module, reporter: Reporter) -> None:
    """Report directives that name files: these rules get their facts from whoever runs them."""
    for directive in module.directives:
        if {"IO", "filename", "dbname"} & dict(directive.parameters).keys():
            message = f"this `.{directive.kind}` names a file, but these rules read and write none"
            hint = f"write: .{directive.kind} {directive.name}"
            reporter.error("E0105", directive.at, message, hint)
