"""Keyed programs: every rule uses one key, so the program can be solved key by key.

A relation is keyed if its first column has the key's type. In a rule all keyed atoms and the head carry the
same variable in that column, and it stands nowhere else. Then the column can be dropped.
"""

from __future__ import annotations

from collections.abc import Set

from ..language.diagnostics import Reporter
from ..language.syntax import (
    Aggregate,
    Atom,
    Branch,
    Call,
    Cast,
    Clause,
    Negation,
    Record,
    Term,
    Variable,
)
from ..language.walk import literals, rewrite_clause, terms
from .scopes import own_name


def check_key(clause: Clause, keyed: Set[str], key: str, reporter: Reporter) -> None:
    """Report E0404 if the clause is not about one key. Scopes must be resolved."""
    broken = _broken(clause, keyed)
    if broken is not None:
        at, why = broken
        hint = f"every `{key}` in the first column is the same variable, which is in no other place"
        reporter.error("E0404", at, f"this rule is not about one `{key}`: {why}", hint)


def _broken(clause: Clause, keyed: Set[str]) -> tuple[int, str] | None:
    """The position and the reason if a clause uses several keys or none; None if it uses one."""
    head = clause.head
    all_literals = list(literals(clause))
    atoms = [x.atom if isinstance(x, Negation) else x for x in all_literals if isinstance(x, Atom | Negation)]
    carriers = [atom for atom in atoms if atom.name in keyed]
    if not carriers:
        return None
    if head.name not in keyed:
        return head.at, f"`{head.name}` is not keyed, but `{carriers[0].name}` is"
    if len(carriers) == 1:
        return head.at, f"`{head.name}` is keyed, but no atom of its body is"
    keys: list[Variable] = []
    for atom in carriers:
        key = atom.args[0]
        if not isinstance(key, Variable):
            return key.at, f"the key of `{atom.name}` is not a variable"
        keys.append(key)
    name = keys[0].name
    for atom, key in zip(carriers, keys, strict=True):
        if key.name != name:
            other = own_name(key)
            return key.at, f"the key of `{atom.name}` is `{other}`, that of `{head.name}` is `{name}`"
    for literal in all_literals:
        values = terms(literal)
        inner = literal.atom if isinstance(literal, Negation) else literal
        if isinstance(inner, Atom) and inner.name in keyed:
            values = values[1:]
        for term in values:
            at = _find(term, name)
            if at is not None:
                return at, f"its key `{name}` is used as a value"
    return None


def _find(term: Term, name: str) -> int | None:
    """The position of a variable in a term, outside of the literals of aggregates."""
    if isinstance(term, Variable):
        return term.at if term.name == name else None
    parts: tuple[Term, ...] = ()
    if isinstance(term, Call | Record | Branch):
        parts = term.args
    elif isinstance(term, Cast):
        parts = (term.value,)
    elif isinstance(term, Aggregate) and term.target is not None:
        parts = (term.target,)
    return next((at for part in parts if (at := _find(part, name)) is not None), None)


def drop_key(clause: Clause, keyed: Set[str]) -> Clause:
    """The clause without the first column of its keyed atoms."""
    first = clause.head.args[0] if clause.head.name in keyed else None
    key = first.name if isinstance(first, Variable) else None

    def change(term: Term) -> Term:
        if isinstance(term, Aggregate):
            return term._replace(outer=tuple(name for name in term.outer if name != key))
        return term

    def drop(atom: Atom) -> Atom:
        return atom._replace(args=atom.args[1:]) if atom.name in keyed else atom

    return rewrite_clause(clause, change if clause.nested else None, drop)
