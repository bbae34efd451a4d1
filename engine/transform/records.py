"""Records whose type nothing tells: ``[a, b] = [1, 2]`` is ``a = 1, b = 2``.

A variable that stands only beside ``=`` and ``!=``, as ``r`` in ``r = [x, y], r = [v, w]``, is replaced by a
record that it equals.
"""

from __future__ import annotations

from collections import Counter

from ..language.syntax import Clause, Comparison, Constant, Literal, Record, Term, Truth, Variable, Wildcard
from ..language.walk import all_terms, rewrite_literal

MOST_CLAUSES = 1_000  # clauses that one becomes


def fold_records(clause: Clause) -> list[Clause]:
    """The clause without comparisons of two records: several clauses where fields may differ."""
    if not any(isinstance(x, Comparison) and _compares(x) for x in clause.body):
        return [clause]
    while True:
        before = clause
        clause = _without_aliases(clause)
        bodies: list[list[Literal]] = [[]]
        for literal in clause.body:
            ways = _folded(literal) if isinstance(literal, Comparison) else [[literal]]
            if len(bodies) * len(ways) > MOST_CLAUSES:
                return [clause]
            bodies = [[*start, *way] for start in bodies for way in ways]
        if len(bodies) != 1:
            return [folded for body in bodies for folded in _again(clause, body)]
        clause = clause._replace(body=tuple(bodies[0]))
        if clause == before:
            return [clause]


def _again(clause: Clause, body: list[Literal]) -> list[Clause]:
    folded = clause._replace(body=tuple(body))
    return [folded] if folded == clause else fold_records(folded)


def _compares(literal: Comparison) -> bool:
    """Whether a comparison may be one of records."""
    sides = (literal.left, literal.right)
    return literal.operator in ("=", "!=") and any(isinstance(side, Record) for side in sides)


def _without_aliases(clause: Clause) -> Clause:
    """The clause with records in place of the variables that are nothing but names for them."""
    while True:
        uses = _names(clause.head, *clause.body)
        beside = Counter(
            side.name
            for x in clause.body
            if isinstance(x, Comparison) and x.operator in ("=", "!=")
            for side in (x.left, x.right)
            if isinstance(side, Variable)
        )
        alias = next((a for x in clause.body if (a := _alias(x)) and uses[a[0]] == beside[a[0]] > 1), None)
        if alias is None:
            return clause
        name, record, defined = alias

        def change(term: Term, name: str = name, record: Record = record) -> Term:
            return record if isinstance(term, Variable) and term.name == name else term

        body = (rewrite_literal(x, change) for x in clause.body if x is not defined)
        clause = clause._replace(body=tuple(body))


def _names(*literals: Literal) -> Counter[str]:
    """How often each variable stands in literals."""
    return Counter(t.name for x in literals for t in all_terms(x) if isinstance(t, Variable))


def _alias(literal: Literal) -> tuple[str, Record, Literal] | None:
    """The variable and the record that an equation names it for."""
    if isinstance(literal, Comparison) and literal.operator == "=":
        for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
            if isinstance(one, Variable) and isinstance(other, Record):
                inside = _names(Comparison("=", other, other, 0))
                return None if one.name in inside else (one.name, other, literal)
    return None


def _folded(literal: Comparison) -> list[list[Literal]]:
    """The alternatives that a comparison of two records stands for."""
    left, right = literal.left, literal.right
    if literal.operator == "=" and isinstance(left, Wildcard) and isinstance(right, Record | Constant):
        return [[]]
    if literal.operator == "=" and isinstance(right, Wildcard) and isinstance(left, Record | Constant):
        return [[]]
    if not (isinstance(left, Record) and isinstance(right, Record)) or literal.operator not in ("=", "!="):
        return [[literal]]
    equal = literal.operator == "="
    if len(left.args) != len(right.args):
        return [[literal]]  # reported later
    ways: list[list[Literal]] = [[]] if equal else []
    for one, other in zip(left.args, right.args, strict=True):
        inner = _folded(Comparison(literal.operator, one, other, literal.at))
        ways = [[*way, *more] for way in ways for more in inner] if equal else ways + inner
        if len(ways) > MOST_CLAUSES:
            return [[literal]]
    return ways or [[Truth(False, literal.at)]]
