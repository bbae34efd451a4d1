"""Keyed programs: every rule speaks of one key, so the program can be solved key by key.

A relation is keyed if its first column has the key's type. In a rule all keyed atoms and the head carry the
same variable in that column, and it stands nowhere else. Then the column can be dropped.
"""

from __future__ import annotations

from collections.abc import Set

from .diagnostics import Reporter
from .scopes import map_literal, terms
from .syntax import Aggregate, Atom, Call, Cast, Clause, Comparison, Literal, Negation, Record, Term, Variable
from .types import literals


def check_key(clause: Clause, keyed: Set[str], key: str, reporter: Reporter) -> None:
    """Report E0404 if the clause does not speak of one key. Scopes must be resolved."""
    head = clause.head
    atoms = [
        literal.atom if isinstance(literal, Negation) else literal
        for literal in literals((head, *clause.body))
        if isinstance(literal, Atom | Negation)
    ]
    carriers = [atom for atom in atoms if atom.name in keyed]
    if not carriers:
        return
    hint = f"all relations keyed by `{key}` carry one variable in their first column, which stands nowhere else"

    def broken(at: int, why: str) -> None:
        reporter.error("E0404", at, f"this rule does not speak of one `{key}`: {why}", hint)

    first = carriers[0].args[0]
    if head.name not in keyed:
        return broken(head.at, f"`{head.name}` is not keyed, but `{carriers[0].name}` is")
    if len(carriers) == 1:
        return broken(head.at, f"`{head.name}` is keyed, but no atom of its body is")
    for atom in carriers:
        term = atom.args[0]
        if not isinstance(term, Variable):
            return broken(term.at, f"the key of `{atom.name}` is not a variable")
        assert isinstance(first, Variable)
        if term.name != first.name:
            names = (term.name.partition("@")[0], first.name)
            return broken(
                term.at, f"the key of `{atom.name}` is `{names[0]}`, that of `{head.name}` is `{names[1]}`"
            )
    for atom_or_literal in literals((head, *clause.body)):
        places = terms(atom_or_literal)
        if isinstance(atom_or_literal, Atom | Negation):
            name = (atom_or_literal.atom if isinstance(atom_or_literal, Negation) else atom_or_literal).name
            places = places[1:] if name in keyed else places
        for term in places:
            at = _find(term, first.name) if isinstance(first, Variable) else None
            if at is not None:
                return broken(at, f"its key `{first.name}` is used as a value")


def _find(term: Term, name: str) -> int | None:
    """Where a variable stands in a term, outside of the literals of aggregates."""
    if isinstance(term, Variable):
        return term.at if term.name == name else None
    parts: tuple[Term, ...] = ()
    if isinstance(term, Call | Record):
        parts = term.args
    elif isinstance(term, Cast):
        parts = (term.value,)
    elif isinstance(term, Aggregate) and term.target is not None:
        parts = (term.target,)
    return next((at for part in parts if (at := _find(part, name)) is not None), None)


def drop_key(clause: Clause, keyed: Set[str]) -> Clause:
    """The clause without the first column of its keyed atoms."""

    def change(term: Term) -> Term:
        if isinstance(term, Call | Record):
            return term._replace(args=tuple(map(change, term.args)))
        if isinstance(term, Cast):
            return term._replace(value=change(term.value))
        if isinstance(term, Aggregate):
            target = None if term.target is None else change(term.target)
            return term._replace(target=target, body=tuple(map(drop, term.body)))
        return term

    def drop(literal: Literal) -> Literal:
        if isinstance(literal, Negation):
            atom = drop(literal.atom)
            assert isinstance(atom, Atom)
            return literal._replace(atom=atom)
        if isinstance(literal, Atom) and literal.name in keyed:
            literal = literal._replace(args=literal.args[1:])
        return map_literal(literal, change) if isinstance(literal, Atom | Comparison) else literal

    head = drop(clause.head)
    assert isinstance(head, Atom)
    return Clause(head, tuple(map(drop, clause.body)), clause.text)
