"""Witnesses: variables of the rule that only the body of a ``min`` or ``max`` gives a value.

In ``r(n, y) :- n = max x : { a(x, y) }`` the values of ``y`` are those with the greatest ``x``. Such a body
is written out once more, for the value of the aggregate: ``n = max x : { a(x, _) }, a(n, y)``. The same is
done for an aggregate inside of another one if it uses no variable of the outer one's own: it then has one
value.
"""

from __future__ import annotations

from itertools import count

from ..analysis.checks import grounded_by
from ..analysis.scopes import direct_names, resolve
from ..language.syntax import Aggregate, Clause, Comparison, Literal, Term, Variable, Wildcard
from ..language.walk import all_terms, parts, rewrite_literal, rewrite_term, terms


def write_out_witnesses(clause: Clause) -> Clause:
    """The clause with a copy of the body of every aggregate that has witnesses."""
    if not clause.nested:
        return clause
    clause = clause._replace(body=tuple(map(_without_wildcard, clause.body)))
    numbers = count(1)
    while True:
        witnessed = next(((a, names) for a in _aggregates(clause) if (names := _witnesses(clause, a))), None)
        if witnessed is None:
            return clause
        clause = _written_out(clause, *witnessed, next(numbers))


def _without_wildcard(literal: Literal) -> Literal:
    """An equation of an unnamed variable and an aggregate with a name for it."""
    if not (isinstance(literal, Comparison) and literal.operator == "="):
        return literal
    if not (isinstance(literal.left, Wildcard) and isinstance(literal.right, Aggregate)):
        return literal
    return literal._replace(left=Variable(f"_@{literal.left.at}", literal.left.at))


def _aggregates(clause: Clause, *, inner: bool = True) -> list[Aggregate]:
    """The ``min`` and ``max`` of the clause that use no variable of an enclosing aggregate's own; with
    ``inner``, nested ones too."""
    aggregates: list[Aggregate] = []
    rules = direct_names((clause.head, *clause.body))
    waiting = [(term, set[str]()) for literal in (clause.head, *clause.body) for term in terms(literal)]
    while waiting:
        term, enclosing = waiting.pop(0)
        inside = enclosing
        if isinstance(term, Aggregate):
            if term.function in ("min", "max") and enclosing.isdisjoint(_names(term.body)):
                aggregates.append(term)
            target = set() if term.target is None else _names((Comparison("=", term.target, term.target, 0),))
            if not inner:
                continue
            inside = enclosing | target | direct_names(term.body) - rules
        waiting += [(part, inside) for part in parts(term)]
    return aggregates


def _names(literals: tuple[Literal, ...]) -> set[str]:
    return {t.name for literal in literals for t in all_terms(literal) if isinstance(t, Variable)}


def _witnesses(clause: Clause, aggregate: Aggregate) -> set[str]:
    """The variables that the body of an aggregate gives a value, and nothing else does."""
    marker = Variable("aggregate@", aggregate.at)
    outside = _replaced(clause, aggregate, marker)
    wanted = direct_names((outside.head, *outside.body)) & _names(aggregate.body)
    if not wanted:
        return set()
    bound = grounded_by(resolve(outside).body, {marker.name})
    inside = grounded_by(resolve(clause._replace(body=aggregate.body)).body, bound)
    return (wanted & inside) - bound


def _replaced(clause: Clause, aggregate: Aggregate, new: Term) -> Clause:
    """The clause with ``new`` where the aggregate stands."""

    def change(term: Term) -> Term:
        return new if isinstance(term, Aggregate) and term.at == aggregate.at else term

    head, *body = (rewrite_literal(literal, change) for literal in (clause.head, *clause.body))
    return clause._replace(head=head, body=tuple(body))  # type: ignore[arg-type]


def _written_out(clause: Clause, aggregate: Aggregate, witnesses: set[str], number: int) -> Clause:
    result = Variable(f"{aggregate.function}@{number}", aggregate.at)
    target = aggregate.target
    assert target is not None
    own = _names((*aggregate.body, Comparison("=", target, target, 0))) - witnesses
    nested = aggregate.at not in (a.at for a in _aggregates(clause, inner=False))
    own -= _names((clause.head, *_replaced(clause, aggregate, result).body)) - _names(
        (Comparison("=", target, target, 0),)
    )

    def inner(term: Term) -> Term:
        return _renamed(term, witnesses, f"@i{number}")

    def outer(term: Term) -> Term:
        return _renamed(term, own, f"@o{number}")

    alone = rewrite_term(aggregate, inner)
    copies = tuple(rewrite_literal(literal, outer) for literal in aggregate.body)
    equal = Comparison("=", result, rewrite_term(target, outer), aggregate.at)
    # What an enclosing aggregate counts depends on whether there is one in it.
    new = _replaced(clause, aggregate, alone if nested else result)
    given = Comparison("=", result, alone, aggregate.at)
    return new._replace(body=(*new.body, given, *copies, equal))


def _renamed(term: Term, names: set[str], suffix: str) -> Term:
    if isinstance(term, Variable) and term.name in names:
        return term._replace(name=term.name + suffix)
    return term
