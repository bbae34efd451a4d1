"""Counters: ``autoinc()`` numbers the solutions of a rule from 0, in the order of their values.
``recursive_iteration_cnt()`` is the number of the round.

The solutions become a relation of their own, which is sorted, and the counting rule reads it: ``r(x, $) :-
a(x).`` becomes ``r@1(x) :- a(x).`` and ``r(x, $) :- r@1(x).``
"""

from __future__ import annotations

from collections.abc import Mapping

from ..analysis.checks import grounded_by
from ..analysis.scopes import variables
from ..language.syntax import (
    Atom,
    Clause,
    ColumnDeclaration,
    Counter,
    IterationCount,
    Literal,
    RelationDeclaration,
    Variable,
)
from ..language.walk import all_terms, terms


def counts(literal: Literal) -> list[int]:
    """The places of the counters of solutions in a literal."""
    return [term.at for term in all_terms(literal) if isinstance(term, Counter)]


def depends(literal: Literal) -> bool:
    """Whether a literal depends on a counter, of solutions or of rounds."""
    return any(isinstance(term, Counter | IterationCount) for term in all_terms(literal))


def number_solutions(
    clause: Clause, kinds: Mapping[str, str], number: int
) -> tuple[RelationDeclaration, Clause, Clause] | None:
    """The relation of a clause's solutions with its rule, and the clause that counts them; None where nothing
    counts."""
    if not any(map(counts, (clause.head, *clause.body))):
        return None
    plain: list[Literal] = []
    rest: list[Literal] = []
    later: set[str] = set()
    waiting = list(clause.body)
    bound = grounded_by([literal for literal in waiting if not counts(literal)], set())
    for literal in waiting:
        names = set().union(*map(variables, terms(literal)))
        (rest if counts(literal) or not names <= bound else plain).append(literal)
    for literal in (*rest, clause.head):
        later.update(*map(variables, terms(literal)))
    at = min(place for literal in (*rest, clause.head) for place in counts(literal))
    shared = sorted(bound & later)
    name = f"{clause.head.name}@{number}"
    columns = tuple(ColumnDeclaration(n, kinds.get(n, "number"), at) for n in shared)
    atom = Atom(name, tuple(Variable(n, at) for n in shared), at)
    relation = RelationDeclaration(name, columns, frozenset(["sorted"]), at)
    return relation, clause._replace(head=atom, body=tuple(plain)), clause._replace(body=(atom, *rest))


def uncounted(clause: Clause) -> Clause:
    """A clause without terms that depend on counters; a counter in its head replaces them."""
    if not any(map(depends, (clause.head, *clause.body))):
        return clause
    plain = [literal for literal in clause.body if not depends(literal)]
    bound = grounded_by(plain, set())
    body = tuple(x for x in plain if set().union(*map(variables, terms(x))) <= bound)
    args = tuple(
        Counter(clause.head.at) if depends(Atom("", (term,), 0)) or not variables(term) <= bound else term
        for term in clause.head.args
    )
    return clause._replace(head=clause.head._replace(args=args), body=body)
