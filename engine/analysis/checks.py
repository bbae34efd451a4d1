"""Checks of a clause's meaning: its relations exist, its arity fits, its variables are grounded.

A variable is grounded if it is an argument of a positive atom of the body (also inside a record there), or
equals a term whose variables are grounded. An unnamed variable may stand only where any value will do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from ..language.diagnostics import Reporter, counted, did_you_mean
from ..language.syntax import (
    Aggregate,
    Atom,
    Branch,
    Call,
    Cast,
    Clause,
    Comparison,
    Counter,
    IterationCount,
    Literal,
    Module,
    Negation,
    Record,
    RelationDeclaration,
    Term,
    Variable,
    Wildcard,
)
from ..language.walk import literals, parts, terms
from .scopes import holds_wildcard, own_name, variables

Relations = Mapping[str, RelationDeclaration]


def check_atoms(clause: Clause, module: Module, relations: Relations, reporter: Reporter) -> bool:
    """Whether every relation of the clause is declared and gets as many arguments as it has columns."""
    right = True
    for literal in literals(clause):
        atom = literal.atom if isinstance(literal, Negation) else literal
        if not isinstance(atom, Atom):
            continue
        relation = relations.get(atom.name)
        if relation is not None and len(relation.columns) == len(atom.args):
            continue
        right = False
        if relation is not None:
            columns = ", ".join(f"{column.name}:{column.type_name}" for column in relation.columns)
            reporter.error(
                "E0302",
                atom.at,
                f"`{atom.name}` has {counted(len(relation.columns), 'column')}, not {len(atom.args)}",
                f"it is declared as {atom.name}({columns})",
            )
        elif atom.name not in module.broken:
            hint = partial(_relation_hint, atom.name, relations)
            reporter.error("E0201", atom.at, f"unknown relation `{atom.name}`", hint)
    return right


def _relation_hint(name: str, relations: Relations) -> str:
    return did_you_mean(name, relations) or f"declare it: .decl {name}(...)"


def check_grounded(clause: Clause, reporter: Reporter) -> None:
    """Report every variable of the clause that no positive atom or equation gives a value."""
    places: dict[str, int] = {}
    grounded = _check_body(clause.body, set(), places, reporter)
    for term in clause.head.args:
        _check_term(term, grounded, places, reporter)
    for name, at in places.items():
        reporter.error(
            "E0401",
            at,
            f"the variable `{name}` has no value: no positive atom of the body holds it",
            partial(did_you_mean, name, [other for other in grounded if "@" not in other]),
        )


def check_fact(clause: Clause, reporter: Reporter) -> None:
    """Report a counter in a fact, which has no solutions to number and is of no round."""
    waiting = [] if clause.body else list(clause.head.args)
    while waiting:
        term = waiting.pop()
        waiting += parts(term)
        if isinstance(term, Counter | IterationCount):
            reporter.error("E0406", term.at, "a fact counts nothing", "write the number itself")


def check_aggregates(clause: Clause, reporter: Reporter) -> None:
    """Report aggregates that each need a variable which only the other one binds."""
    aggregates: list[tuple[Aggregate, set[str], set[str]]] = []
    for literal in clause.body:
        for term in terms(literal):
            if isinstance(term, Aggregate):
                names = set().union(*(variables(t) for x in term.body for t in terms(x)))
                aggregates.append((term, names, grounded_by(term.body, set())))
    for one, names, own in aggregates:
        for _, others, given in aggregates:
            if (names & others & given) - own and (names & others & own) - given:
                message = "two aggregates of this rule each use a variable of the other"
                reporter.error("E0405", one.at, message, "give the variables of one of them other names")


def grounded_by(body: Iterable[Literal], bound: set[str]) -> set[str]:
    """The variables that have a value once ``body`` holds, if those in ``bound`` have one before."""
    grounded = set(bound)
    equations: list[tuple[Term, set[str]]] = []  # a pattern, and the variables of the term that it equals
    for literal in body:
        if isinstance(literal, Atom):
            for term in literal.args:
                if type(term) is Variable:
                    grounded.add(term.name)
                elif isinstance(term, Record | Branch):
                    grounded |= _bound_by_pattern(term)
        elif isinstance(literal, Comparison) and literal.operator == "=":
            for pattern, value in ((literal.left, literal.right), (literal.right, literal.left)):
                if not holds_wildcard(value):
                    equations.append((pattern, variables(value)))
    size = -1
    while equations and size != len(grounded):
        size = len(grounded)
        for pattern, needed in equations:
            if needed <= grounded:
                grounded |= _bound_by_pattern(pattern)
    return grounded


def _bound_by_pattern(term: Term) -> set[str]:
    """The variables that get a value where ``term`` is matched with a value: itself, or a record's fields."""
    if isinstance(term, Variable):
        return {term.name}
    if isinstance(term, Record | Branch):
        return {name for arg in term.args for name in _bound_by_pattern(arg)}
    return set()


def _check_body(
    body: Iterable[Literal], bound: set[str], places: dict[str, int], reporter: Reporter
) -> set[str]:
    grounded = grounded_by(body, bound)
    for literal in body:
        for term in terms(literal):
            # In an atom any value will do for an unnamed variable; in an equation, inside of a record.
            wildcard = isinstance(literal, Atom) or (
                isinstance(term, Wildcard)
                if isinstance(literal, Negation)
                else isinstance(literal, Comparison)
                and literal.operator == "="
                and isinstance(term, Record | Branch)
            )
            _check_term(term, grounded, places, reporter, wildcard)
    return grounded


def _check_term(
    term: Term, grounded: set[str], places: dict[str, int], reporter: Reporter, wildcard: bool = False
) -> None:
    """Note where ``term`` has a variable without a value; ``wildcard``: an unnamed one may stand here."""
    if isinstance(term, Variable):
        if term.name not in grounded:
            name = own_name(term)
            places[name] = min(term.at, places.get(name, term.at))
    elif isinstance(term, Wildcard):
        if not wildcard:
            reporter.error("E0402", term.at, "an unnamed variable `_` has no value here")
    elif isinstance(term, Record | Branch):
        for arg in term.args:
            _check_term(arg, grounded, places, reporter, wildcard)
    elif isinstance(term, Call):
        for arg in term.args:
            _check_term(arg, grounded, places, reporter)
    elif isinstance(term, Cast):
        _check_term(term.value, grounded, places, reporter)
    elif isinstance(term, Aggregate):
        inner = _check_body(term.body, grounded, places, reporter)
        if term.target is not None:
            _check_term(term.target, inner, places, reporter)
