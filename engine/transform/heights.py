"""Heights: a program whose rounds are the heights of another one's tuples.

All relations that a proof may go through grow side by side, in one stratum. A fact has height 0; a tuple is
found in the round after that of the last tuple it follows from, in whichever stratum that was. What is denied
and what aggregates go through is taken as it was computed, so that there is nothing to stratify:

    path@grown(x, y) :- path(x, y).                                             facts
    path@grown(x, z) :- path@grown(x, y), edge(y, z), !blocked@complete(z).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ..analysis.strata import clause_uses
from ..language.syntax import (
    Atom,
    Clause,
    Constant,
    Counter,
    Literal,
    Nil,
    RelationDeclaration,
    Text,
    Variable,
)
from ..language.walk import rewrite_clause
from .magic import Clauses, Kinds
from .numbers import uncounted

_GROWN, _COMPLETE = "@grown", "@complete"
_START = "@start"  # holds from the beginning


class Heights(NamedTuple):
    """The clauses of the program, the relations that they name, and those that grow."""

    clauses: Clauses
    declared: dict[str, RelationDeclaration]
    grown: tuple[str, ...]


def grown(name: str) -> str:
    """The name of the relation that grows by height."""
    return name + _GROWN


def computed(name: str) -> str:
    """What a relation is called in the program whose heights are asked for; itself where it is another."""
    return name.replace(_COMPLETE, "")


def by_height(
    clauses: Clauses,
    declared: Mapping[str, RelationDeclaration],
    kinds: Mapping[str, str],
    goal: str,
    derived: Collection[str],
    chosen: Collection[str],
) -> Heights:
    """The program for the heights of the tuples of ``goal`` and of all that their proofs may go through.

    ``kinds`` are those of types; ``derived`` the relations that have more than facts; of those that are
    ``chosen`` rules give more than there is in the end.
    """
    by_head: dict[str, Clauses] = {}
    for clause, names in clauses:
        if not clause.subsumes:
            by_head.setdefault(clause.head.name, []).append((clause, names))
    needed: dict[str, Clauses] = {}
    waiting = [goal]
    for name in waiting:  # which grows
        if name in derived and name not in needed:
            needed[name] = by_head.get(name, [])
            uses = (use for clause, _ in needed[name] for use in clause_uses(clause))
            waiting += [use.relation for use in uses if use.strict != "negation"]
    return _ByHeight(declared, kinds, derived, chosen).program(needed)


class _ByHeight:
    def __init__(
        self,
        declared: Mapping[str, RelationDeclaration],
        kinds: Mapping[str, str],
        derived: Collection[str],
        chosen: Collection[str],
    ) -> None:
        self.old = declared
        self.kinds = kinds
        self.derived = derived
        self.chosen = chosen
        self.declared = {
            name: relation._replace(qualifiers=frozenset(), choices=()) for name, relation in declared.items()
        }

    def program(self, needed: Mapping[str, Clauses]) -> Heights:
        found: Clauses = []
        for name, clauses in needed.items():
            relation = self.old[name]
            closed = relation.qualifiers & {"eqrel"}
            self.declared[grown(name)] = relation._replace(name=grown(name), qualifiers=closed, choices=())
            found.append(self.facts(relation))
            for clause, kinds in clauses:
                fact = not clause.body and all(isinstance(t, Constant | Nil) for t in clause.head.args)
                found.append((clause, kinds) if fact else self.rewritten(clause, kinds))
        at = next(iter(self.old.values())).at
        self.declared[_START] = RelationDeclaration(_START, (), frozenset(), at)
        found.append((Clause(Atom(_START, (), at), (), Text(at, at, "")), {}))
        return Heights(found, self.declared, (*map(grown, needed), _START))

    def facts(self, relation: RelationDeclaration) -> tuple[Clause, Kinds]:
        """The clause that takes the facts of a relation."""
        at = relation.at
        args = tuple(Variable(f"{i}@", at) for i in range(len(relation.columns)))
        facts = Atom(relation.name, args, at)
        body: list[Literal] = [facts]
        if relation.name in self.chosen:
            body.append(self.complete(facts))
        kinds = {f"{i}@": self.kinds[column.type_name] for i, column in enumerate(relation.columns)}
        return Clause(facts._replace(name=grown(relation.name)), tuple(body), Text(at, at, "")), kinds

    def rewritten(self, clause: Clause, kinds: Kinds) -> tuple[Clause, Kinds]:
        """A clause of the relations that grow."""
        chosen = clause.head.name in self.chosen
        plain = uncounted(clause)
        if plain is not clause:
            clause, kinds = self.filled(plain, kinds)
            chosen = True
        strict = rewrite_clause(clause, lambda term: term, self.complete)
        body: list[Literal] = []
        grows = False
        for before, literal in zip(clause.body, strict.body, strict=True):
            if isinstance(before, Atom) and isinstance(literal, Atom) and before.name in self.derived:
                literal, grows = literal._replace(name=grown(before.name)), True
            body.append(literal)
        if chosen:
            body.append(strict.head)
        if not grows:
            body.append(Atom(_START, (), clause.head.at))
        head = strict.head._replace(name=grown(clause.head.name))
        return clause._replace(head=head, body=tuple(body), plans=()), kinds

    def filled(self, clause: Clause, kinds: Kinds) -> tuple[Clause, Kinds]:
        """A clause with variables in place of the counters of its head."""
        args, kinds = list(clause.head.args), dict(kinds)
        for i, column in enumerate(self.old[clause.head.name].columns):
            if isinstance(args[i], Counter):
                args[i] = Variable(f"{i}@", clause.head.at)
                kinds[f"{i}@"] = self.kinds[column.type_name]
        return clause._replace(head=clause.head._replace(args=tuple(args))), kinds

    def complete(self, atom: Atom) -> Atom:
        """An atom of a relation as it was computed."""
        if atom.name not in self.derived:
            return atom
        name = atom.name + _COMPLETE
        self.declared[name] = self.declared[atom.name]._replace(name=name)
        return atom._replace(name=name)
