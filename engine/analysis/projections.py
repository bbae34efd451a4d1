"""Projections of atoms in aggregates, for counts as Soufflé has them.

An aggregate over a single atom counts tuples: ``count : { edge(x, _) }`` is the number of edges. An aggregate
over several atoms counts the ways to choose its named variables: ``count : { edge(x, _), node(x) }`` is the
number of nodes with an edge. For that, an atom with unnamed columns is replaced by its projection, a relation
of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..language.diagnostics import Reporter
from ..language.syntax import (
    Aggregate,
    Atom,
    Branch,
    Clause,
    Literal,
    Record,
    RelationDeclaration,
    Term,
    Variable,
    Wildcard,
)
from ..language.walk import rewrite_clause, terms
from .scopes import holds_generator, holds_wildcard, variables

BAGS = ("count", "sum", "mean")  # aggregates for which every solution counts


def counts_bindings(aggregate: Aggregate) -> bool:
    """Whether an aggregate counts the choices of its named variables rather than tuples."""
    atoms = [literal for literal in aggregate.body if isinstance(literal, Atom)]
    if len(atoms) > 1:
        return True
    names = [term.name for atom in atoms for term in atom.args if isinstance(term, Variable)]
    inside = [term for literal in aggregate.body for term in terms(literal)]
    if aggregate.target is not None:
        inside.append(aggregate.target)
    return len(set(names)) < len(names) or any(map(holds_generator, inside))


class Projections:
    """Replaces atoms in clauses, and collects the declarations and rules of the projections."""

    def __init__(self, declared: Mapping[str, RelationDeclaration], reporter: Reporter) -> None:
        self.relations: dict[str, RelationDeclaration] = {}
        self.clauses: list[Clause] = []
        self._declared = declared
        self._reporter = reporter

    def clause(self, clause: Clause) -> Clause:
        """The clause with projections in its aggregates."""
        if not clause.nested:
            return clause

        def change(term: Term) -> Term:
            if not (isinstance(term, Aggregate) and term.function in BAGS and counts_bindings(term)):
                return term
            return term._replace(body=tuple(self._projected(literal, term, clause) for literal in term.body))

        return rewrite_clause(clause, change)

    def _projected(self, literal: Literal, aggregate: Aggregate, clause: Clause) -> Literal:
        if not isinstance(literal, Atom):
            return literal
        used = set().union(*map(variables, literal.args))
        for term in literal.args:
            if isinstance(term, Record | Branch) and holds_wildcard(term):
                self._reporter.error(
                    "E0104",
                    term.at,
                    "an unnamed variable in a record is not supported yet in an aggregate over several atoms",
                    "give it a name",
                )
        kept = [i for i, term in enumerate(literal.args) if not isinstance(term, Wildcard)]
        if len(kept) == len(literal.args) or used <= set(aggregate.outer):
            return literal
        columns = self._declared[literal.name].columns
        shown = ",".join(column.name if i in kept else "_" for i, column in enumerate(columns))
        name = f"{literal.name}({shown})"
        if name not in self.relations:
            self.relations[name] = RelationDeclaration(
                name, tuple(columns[i] for i in kept), frozenset(), literal.at
            )
            values = [Variable(column.name, literal.at) for column in columns]
            body = tuple(v if i in kept else Wildcard(literal.at) for i, v in enumerate(values))
            head = Atom(name, tuple(values[i] for i in kept), literal.at)
            self.clauses.append(Clause(head, (Atom(literal.name, body, literal.at),), clause.text))
        return Atom(name, tuple(literal.args[i] for i in kept), literal.at)
