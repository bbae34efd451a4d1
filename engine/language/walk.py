"""Walks over literals and terms, and rewriting of them from the inside out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from .syntax import (
    Aggregate,
    Atom,
    Branch,
    Call,
    Cast,
    Clause,
    Comparison,
    Literal,
    Negation,
    Record,
    Term,
)

ChangeTerm = Callable[[Term], Term]
ChangeAtom = Callable[[Atom], Atom]


def literals(clause: Clause) -> Iterable[Literal]:
    """The head and all literals of the body, those in aggregates too."""
    own = (clause.head, *clause.body)
    return _all_literals(own) if clause.nested else own


def _all_literals(body: Iterable[Literal]) -> Iterator[Literal]:
    for literal in body:
        yield literal
        for term in terms(literal):
            yield from _inner_literals(term)


def _inner_literals(term: Term) -> Iterator[Literal]:
    if isinstance(term, Aggregate):
        yield from _all_literals(term.body)
        if term.target is not None:
            yield from _inner_literals(term.target)
    elif isinstance(term, Call | Record | Branch):
        for arg in term.args:
            yield from _inner_literals(arg)
    elif isinstance(term, Cast):
        yield from _inner_literals(term.value)


def terms(literal: Literal) -> tuple[Term, ...]:
    """The terms of a literal."""
    if isinstance(literal, Atom):
        return literal.args
    if isinstance(literal, Comparison):
        return (literal.left, literal.right)
    if isinstance(literal, Negation):
        return literal.atom.args
    return ()


def parts(term: Term) -> tuple[Term, ...]:
    """The terms in a term, including those in an aggregate's body."""
    if isinstance(term, Call | Record | Branch):
        return term.args
    if isinstance(term, Cast):
        return (term.value,)
    if isinstance(term, Aggregate):
        inside = tuple(inner for literal in term.body for inner in terms(literal))
        return inside if term.target is None else (*inside, term.target)
    return ()


def map_literal(literal: Literal, change: Callable[[Term], Term]) -> Literal:
    """The literal with ``change`` applied to each of its terms."""
    if isinstance(literal, Atom):
        return literal._replace(args=tuple(map(change, literal.args)))
    if isinstance(literal, Negation):
        return literal._replace(atom=literal.atom._replace(args=tuple(map(change, literal.atom.args))))
    if isinstance(literal, Comparison):
        return literal._replace(left=change(literal.left), right=change(literal.right))
    return literal


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


def rewrite_literal(literal: Literal, change: ChangeTerm | None, atom: ChangeAtom = same) -> Literal:
    """The literal with ``change`` applied to all terms in it (None: they stay), and ``atom`` to its atoms."""
    if change is not None:
        literal = map_literal(literal, lambda term: rewrite_term(term, change, atom))
    if isinstance(literal, Negation):
        return literal._replace(atom=atom(literal.atom))
    return atom(literal) if isinstance(literal, Atom) else literal


def rewrite_clause(clause: Clause, change: ChangeTerm | None, atom: ChangeAtom = same) -> Clause:
    """The clause with ``change`` applied to all terms in it (None: they stay), and ``atom`` to its atoms."""
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
