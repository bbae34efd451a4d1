"""What makes a clause meaningful: its relations exist, its arity fits, its variables are grounded.

A variable is grounded if it is an argument of a positive atom of the body (also inside a record there), or
equals a term whose variables are grounded. An unnamed variable may stand only where any value will do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .diagnostics import Reporter, counted, did_you_mean
from .scopes import holds_wildcard, terms, variables
from .syntax import (
    Aggregate,
    Atom,
    Call,
    Cast,
    Clause,
    Comparison,
    Literal,
    Negation,
    Record,
    Term,
    Variable,
    Wildcard,
)
from .types import literals


def check_atoms(clause: Clause, columns: Mapping[str, Sequence[object]], reporter: Reporter) -> bool:
    """Whether every relation of the clause is declared and gets as many arguments as it has columns."""
    right = True
    for literal in literals((clause.head, *clause.body)):
        atom = literal.atom if isinstance(literal, Negation) else literal
        if not isinstance(atom, Atom):
            continue
        known = columns.get(atom.name)
        if known is None:
            hint = did_you_mean(atom.name, columns) or f"declare it: .decl {atom.name}(...)"
            reporter.error("E0201", atom.at, f"unknown relation `{atom.name}`", hint)
            right = False
        elif len(known) != len(atom.args):
            reporter.error(
                "E0302", atom.at, f"`{atom.name}` has {counted(len(known), 'column')}, not {len(atom.args)}"
            )
            right = False
    return right


def check_grounded(clause: Clause, reporter: Reporter) -> None:
    """Report every variable of the clause that no positive atom or equation gives a value."""
    grounded = _check_body(clause.body, set(), reporter)
    for term in clause.head.args:
        _check_term(term, grounded, reporter)


def grounded_by(body: Iterable[Literal], known: set[str]) -> set[str]:
    """The variables that have a value once ``body`` holds, given those that are ``known`` before."""
    grounded = set(known)
    equations: list[Comparison] = []
    for literal in body:
        if isinstance(literal, Atom):
            for term in literal.args:
                if type(term) is Variable:
                    grounded.add(term.name)
                elif isinstance(term, Record):
                    grounded |= _bound_by_pattern(term)
        elif isinstance(literal, Comparison) and literal.operator == "=":
            equations.append(literal)
    size = -1
    while equations and size != len(grounded):
        size = len(grounded)
        for equation in equations:
            for left, right in ((equation.left, equation.right), (equation.right, equation.left)):
                if variables(right) <= grounded and not holds_wildcard(right):
                    grounded |= _bound_by_pattern(left)
    return grounded


def _bound_by_pattern(term: Term) -> set[str]:
    """The variables that get a value where ``term`` is matched with a value: itself, or a record's fields."""
    if isinstance(term, Variable):
        return {term.name}
    if isinstance(term, Record):
        return {name for arg in term.args for name in _bound_by_pattern(arg)}
    return set()


def _check_body(body: Iterable[Literal], known: set[str], reporter: Reporter) -> set[str]:
    grounded = grounded_by(body, known)
    for literal in body:
        if isinstance(literal, Atom | Negation):
            for term in terms(literal):
                wildcard = isinstance(literal, Atom) or isinstance(term, Wildcard)
                _check_term(term, grounded, reporter, wildcard)
        elif isinstance(literal, Comparison):
            equation = literal.operator == "="
            for term in terms(literal):
                _check_term(term, grounded, reporter, wildcard=equation and isinstance(term, Record))
    return grounded


def _check_term(term: Term, grounded: set[str], reporter: Reporter, wildcard: bool = False) -> None:
    """Report what has no value in ``term``; ``wildcard``: an unnamed variable may stand here."""
    if isinstance(term, Variable):
        if term.name not in grounded:
            name = term.name.partition("@")[0]
            reporter.error(
                "E0401",
                term.at,
                f"the variable `{name}` has no value: no positive atom of the body holds it",
                did_you_mean(name, (n for n in grounded if "@" not in n and n != name)),
            )
    elif isinstance(term, Wildcard):
        if not wildcard:
            reporter.error("E0402", term.at, "an unnamed variable `_` has no value here")
    elif isinstance(term, Record):
        for arg in term.args:
            _check_term(arg, grounded, reporter, wildcard)
    elif isinstance(term, Call):
        for arg in term.args:
            _check_term(arg, grounded, reporter)
    elif isinstance(term, Cast):
        _check_term(term.value, grounded, reporter)
    elif isinstance(term, Aggregate):
        inner = _check_body(term.body, grounded, reporter)
        if term.target is not None:
            _check_term(term.target, inner, reporter)
