"""Heights: a program whose rounds are the heights of another program's tuples.

All relations that a proof may go through grow side by side, in one stratum. A fact has height 0; a tuple is
found in the round after the last of its premises, in whichever stratum that was. Negated atoms and aggregates
read the computed relations, so that there is nothing to stratify:

    path@grown(x, y) :- path(x, y).                                             facts
    path@grown(x, z) :- path@grown(x, y), edge(y, z), !blocked@complete(z).

Where tuples replace others, with subsumption or in lattices, conclusions may follow from tuples that are gone
in the end. So these relations are computed once more, and their intermediate tuples are kept:

    far@again(y, n + 1) :- far@again(x, n), edge(x, y).         as it was computed
    far@again(x, n) <= far@again(x, m) :- m < n.
    far@seen(x, n) :- far@again(x, n).                          in the same stratum
    far@seen(x, n) :- far@complete(x, n).
    far@grown(y, n + 1) :- far@grown(x, n), edge(x, y), far@seen(y, n + 1).
    near@grown(x) :- far@grown(x, n), far@complete(x, n).       a rule of others takes what is left
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ..analysis.scopes import holds_wildcard
from ..analysis.strata import clause_uses
from ..language.syntax import (
    Atom,
    Clause,
    Comparison,
    Constant,
    Counter,
    Literal,
    Nil,
    RelationDeclaration,
    RuleText,
    Variable,
    Wildcard,
)
from ..language.walk import rewrite_clause
from .lattices import is_pairs, unfolded
from .magic import Clauses, Kinds
from .numbers import uncounted

_GROWN, _COMPLETE = "@grown", "@complete"
_AGAIN, _SEEN = "@again", "@seen"
_START = "@start"  # holds from the beginning


class Heights(NamedTuple):
    """The clauses of the program, the relations that they name, and the relations of each stratum. Those that
    grow are in the last."""

    clauses: Clauses
    declared: dict[str, RelationDeclaration]
    together: tuple[tuple[str, ...], ...]


def grown(name: str) -> str:
    """The name of the relation that grows by height."""
    return name + _GROWN


def computed(name: str) -> str:
    """The name of a relation in the program whose heights are wanted; otherwise its own."""
    return name.replace(_COMPLETE, "")


class Proved(NamedTuple):
    """The relations involved in proofs of tuples of ``goal``.

    ``derived`` are the relations with more than facts. Rules of ``chosen`` ones derive more tuples than
    remain. ``replaced`` has the relations in which proofs go through replaced tuples, each with the relations
    of its stratum.
    """

    goal: str
    derived: Collection[str]
    chosen: Collection[str]
    replaced: Mapping[str, Collection[str]]


def limited(name: str) -> str:
    """The name of the relation whose size bounds the size of its second computation."""
    return name.removesuffix(_AGAIN)


def by_height(
    clauses: Clauses, declared: Mapping[str, RelationDeclaration], kinds: Mapping[str, str], proved: Proved
) -> Heights:
    """The program for the heights of ``proved`` tuples and of all tuples in their proofs. ``kinds`` are those
    of types."""
    by_head: dict[str, Clauses] = {}
    for clause, names in unfolded(clauses, paired=True):
        if not clause.subsumes:
            by_head.setdefault(clause.head.name, []).append((clause, names))
    needed: dict[str, Clauses] = {}
    waiting = [proved.goal]
    for name in waiting:  # which grows
        if name in proved.derived and name not in needed:
            needed[name] = by_head.get(name, [])
            uses = (use for clause, _ in needed[name] for use in clause_uses(clause))
            waiting += [
                use.relation for use in uses if use.strict != "negation" and not is_pairs(use.relation)
            ]
    return _ByHeight(clauses, declared, kinds, proved).program(needed)


class _ByHeight:
    def __init__(
        self,
        clauses: Clauses,
        declared: Mapping[str, RelationDeclaration],
        kinds: Mapping[str, str],
        proved: Proved,
    ) -> None:
        self.clauses = clauses
        self.subsumed = {clause.head.name for clause, _ in clauses if clause.subsumes}
        self.old = declared
        self.kinds = kinds
        _, self.derived, self.chosen, self.replaced = proved
        self.declared = {
            name: relation._replace(qualifiers=frozenset(), choices=()) for name, relation in declared.items()
        }

    def program(self, needed: Mapping[str, Clauses]) -> Heights:
        written: Clauses = []
        for name, clauses in needed.items():
            relation = self.old[name]
            closed = relation.qualifiers & {"eqrel"}
            self.declared[grown(name)] = relation._replace(name=grown(name), qualifiers=closed, choices=())
            written.append(self.facts(relation))
            for clause, kinds in clauses:
                written.append((clause, kinds) if _is_fact(clause) else self.rewritten(clause, kinds))
        at = next(iter(self.old.values())).at
        self.declared[_START] = RelationDeclaration(_START, (), frozenset(), at)
        written.append((Clause(Atom(_START, (), at), (), RuleText(at, at, "")), {}))
        strata = dict.fromkeys(tuple(self.replaced[name]) for name in needed if name in self.replaced)
        again = [self.again(names, written) for names in strata]
        return Heights(written, self.declared, (*again, (*map(grown, needed), _START)))

    def again(self, names: Collection[str], clauses: Clauses) -> tuple[str, ...]:
        """Declare relations that compute a stratum once more and keep intermediate tuples, and add the
        clauses."""
        copies: dict[str, RelationDeclaration] = {}
        for name in names:
            relation = self.old[name]
            copies[name + _AGAIN] = relation._replace(name=name + _AGAIN)
            clauses.append(self.copied(relation, name, name + _AGAIN))
            if name in self.subsumed:
                copies[name + _SEEN] = self.declared[name]._replace(name=name + _SEEN)
                left = self.complete(Atom(name, (), relation.at)).name
                clauses += [self.copied(relation, its, name + _SEEN) for its in (name + _AGAIN, left)]
        self.declared |= copies

        def renamed(atom: Atom) -> Atom:
            return atom._replace(name=atom.name + _AGAIN) if atom.name in names else self.complete(atom)

        for clause, kinds in self.clauses:
            if clause.head.name in names and not _is_fact(clause):
                clauses.append((rewrite_clause(clause, lambda term: term, renamed)._replace(plans=()), kinds))
        return tuple(copies)

    def facts(self, relation: RelationDeclaration) -> tuple[Clause, Kinds]:
        """The clause that takes the facts of a relation."""
        clause, kinds = self.copied(relation, relation.name, grown(relation.name))
        if relation.name in self.chosen:
            left = self.kept(clause.head._replace(name=relation.name))
            clause = clause._replace(body=(*clause.body, left))
        return clause, kinds

    def copied(self, relation: RelationDeclaration, name: str, copy: str) -> tuple[Clause, Kinds]:
        """The clause that takes the tuples of a relation of this name into another."""
        at = relation.at
        args = tuple(Variable(f"{i}@", at) for i in range(len(relation.columns)))
        kinds = {f"{i}@": self.kinds[column.type_name] for i, column in enumerate(relation.columns)}
        return Clause(Atom(copy, args, at), (Atom(name, args, at),), RuleText(at, at, "")), kinds

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
            if not isinstance(before, Atom) or before.name not in self.derived:
                body.append(literal)
            elif is_pairs(before.name):
                body.append(self.kept(before))
            else:
                grows = True
                if before.name in self.subsumed.difference(self.replaced.get(clause.head.name, ())):
                    before, equations, kinds = self.named(before, kinds)  # both atoms are about one tuple
                    body += [self.complete(before), *equations]
                body.append(before._replace(name=grown(before.name)))
        if chosen:
            body.append(self.kept(clause.head))
        if not grows:
            body.append(Atom(_START, (), clause.head.at))
        head = strict.head._replace(name=grown(clause.head.name))
        return clause._replace(head=head, body=tuple(body), plans=(), notes=False), kinds

    def named(self, atom: Atom, kinds: Kinds) -> tuple[Atom, list[Literal], Kinds]:
        """An atom with variables for terms that are or contain wildcards, the conditions on these, and
        kinds."""
        args, equations, kinds = list(atom.args), list[Literal](), dict(kinds)
        for i, column in enumerate(self.old[atom.name].columns):
            if holds_wildcard(term := args[i]):
                args[i] = Variable(f"{i}@{atom.at}", atom.at)
                kinds[f"{i}@{atom.at}"] = self.kinds[column.type_name]
                if not isinstance(term, Wildcard):
                    equations.append(Comparison("=", args[i], term, atom.at))
        return atom._replace(args=tuple(args)), equations, kinds

    def filled(self, clause: Clause, kinds: Kinds) -> tuple[Clause, Kinds]:
        """A clause with variables in place of the counters of its head."""
        args, kinds = list(clause.head.args), dict(kinds)
        for i, column in enumerate(self.old[clause.head.name].columns):
            if isinstance(args[i], Counter):
                args[i] = Variable(f"{i}@", clause.head.at)
                kinds[f"{i}@"] = self.kinds[column.type_name]
        return clause._replace(head=clause.head._replace(args=tuple(args))), kinds

    def kept(self, atom: Atom) -> Atom:
        """An atom of a relation as it was computed, with replaced tuples."""
        if atom.name not in self.replaced:
            return self.complete(atom)
        return atom._replace(name=atom.name + (_SEEN if atom.name in self.subsumed else _AGAIN))

    def complete(self, atom: Atom) -> Atom:
        """An atom of a relation as it was computed."""
        if atom.name not in self.derived:
            return atom
        name = atom.name + _COMPLETE
        self.declared[name] = self.declared[atom.name]._replace(name=name)
        return atom._replace(name=name)


def _is_fact(clause: Clause) -> bool:
    return not clause.body and all(isinstance(t, Constant | Nil) for t in clause.head.args)
