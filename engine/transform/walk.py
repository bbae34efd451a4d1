"""Rewriting of terms, literals and clauses from the inside out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..analysis.scopes import map_literal, parts, terms
from ..language.syntax import Aggregate, Atom, Branch, Call, Cast, Clause, Literal, Negation, Record, Term

ChangeTerm = Callable[[Term], Term]
ChangeAtom = Callable[[Atom], Atom]


def same(atom: Atom) -> Atom:
    """The atom itself."""
    return atom


def rewrite_term(term: Term, change: ChangeTerm, atom: ChangeAtom = same) -> Term:
    """The term with ``change`` applied to its parts, then to itself, and ``atom`` to atoms of aggregates."""
    if isinstance(term, Call | Record | Branch):
        term = term._replace(args=tuple(rewrite_term(arg, change, atom) for arg in term.args))
    elif isinstance(term, Cast):
        term = term._replace(value=rewrite_term(term.value, change, atom))
    elif isinstance(term, Aggregate):
        target = None if term.target is None else rewrite_term(term.target, change, atom)
        body = tuple(rewrite_literal(literal, change, atom) for literal in term.body)
        term = term._replace(target=target, body=body)
    return change(term)


def rewrite_literal(literal: Literal, change: ChangeTerm, atom: ChangeAtom = same) -> Literal:
    """The literal with ``change`` applied to all terms in it, and ``atom`` to its atoms."""
    literal = map_literal(literal, lambda term: rewrite_term(term, change, atom))
    if isinstance(literal, Negation):
        return literal._replace(atom=atom(literal.atom))
    return atom(literal) if isinstance(literal, Atom) else literal


def rewrite_clause(clause: Clause, change: ChangeTerm, atom: ChangeAtom = same) -> Clause:
    """The clause with ``change`` applied to all terms in it, and ``atom`` to its atoms."""
    head = rewrite_literal(clause.head, change, atom)
    assert isinstance(head, Atom)
    return clause._replace(
        head=head, body=tuple(rewrite_literal(literal, change, atom) for literal in clause.body)
    )


def all_terms(literal: Literal) -> Iterator[Term]:
    """Every term in a literal, also those in aggregates."""
    waiting = list(terms(literal))
    while waiting:
        term = waiting.pop()
        yield term
        waiting += parts(term)
