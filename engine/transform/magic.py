"""Magic sets: only the part of a program that a goal needs.

``path(1, x)`` asks only for the paths from 1. So the relation gets a copy for calls whose first argument is
bound (b) and whose others are free (f), and a relation of the wanted values:

    path@bf@wanted(1).
    path@bf(x, z) :- path@bf@wanted(x), path@bf(x, y), edge(y, z).

Arguments are bound from left to right; the atom with the most bound arguments comes next. The number of
copies is limited; relations of further kinds of calls are computed in full. Relations that are negated,
aggregated over, closed, chosen from, numbered or subsumed are computed in full, and so are all that they
depend on. The copies depend on such relations and not the other way, so that the program stays stratified.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from ..analysis.checks import grounded_by
from ..analysis.scopes import holds_generator, holds_wildcard, variables
from ..analysis.strata import clause_uses
from ..language.syntax import (
    Atom,
    Call,
    Clause,
    Comparison,
    Constant,
    Literal,
    Nil,
    Record,
    RelationDeclaration,
    Term,
    Variable,
    Wildcard,
)
from ..language.walk import parts, terms
from .numbers import depends

_MOST_COPIES = 32  # copies of a relation; for more kinds of calls it is computed in full
_MOST_LITERALS = 1_000_000  # literals that all copies have, about

Kinds = dict[str, str]
Clauses = list[tuple[Clause, Kinds]]
_T = TypeVar("_T")


def ask(
    clauses: Clauses,
    declared: Mapping[str, RelationDeclaration],
    goals: Collection[str],
    full: Collection[str],
    *,
    updates: bool,
) -> tuple[Clauses, dict[str, RelationDeclaration]]:
    """The clauses that compute the relations ``goals``, and the declarations of new relations.

    ``full`` are relations to compute in full if they are needed. With ``updates`` facts may be added to all
    relations.
    """
    return _Magic(clauses, declared, full, updates).ask(goals)


class _Magic:
    def __init__(
        self,
        clauses: Clauses,
        declared: Mapping[str, RelationDeclaration],
        full: Collection[str],
        updates: bool,
    ) -> None:
        self.declared = declared
        self.updates = updates
        self.clauses: dict[str, Clauses] = {}
        for clause, kinds in clauses:
            self.clauses.setdefault(clause.head.name, []).append((clause, kinds))
        self.whole = set(full) | {name for name in self.clauses if self.is_whole(name)}
        self.found: Clauses = []
        self.new: dict[str, RelationDeclaration] = {}
        self.in_full: set[str] = set()
        self.waiting: list[tuple[str, str]] = []  # relations, each with the known arguments of a call
        self.copies: Counter[str] = Counter()
        self.literals = 0

    def is_whole(self, name: str) -> bool:
        """Whether a relation has more to it than its rules."""
        declaration = self.declared[name]
        return (
            "eqrel" in declaration.qualifiers
            or bool(declaration.choices)
            or any(c.subsumes or any(map(depends, (c.head, *c.body))) for c, _ in self.clauses[name])
        )

    def ask(self, goals: Collection[str]) -> tuple[Clauses, dict[str, RelationDeclaration]]:
        self.compute(goal for goal in goals if goal in self.whole)
        # Before the goals are asked: negated relations may depend on one of them.
        self.compute(self.denied(goals))
        asked = [goal for goal in goals if goal not in self.in_full]
        self.in_full.update(asked)
        for goal in asked:
            for clause, kinds in self.clauses.get(goal, ()):
                self.rewrite(clause, kinds, goal, None)
        for name, pattern in self.waiting:  # which grows
            for clause, kinds in self.clauses[name]:
                wanted = Atom(_wanted(name, pattern), _bound(clause.head.args, pattern), clause.head.at)
                self.rewrite(clause, kinds, _copy(name, pattern), wanted)
        return self.found, self.new

    def denied(self, goals: Collection[str]) -> dict[str, None]:
        """The relations that goals, and all that they depend on, negate or aggregate over."""
        needed, denied = dict.fromkeys(goals), dict[str, None]()
        waiting = list(needed)
        while waiting:
            for clause, _ in self.clauses.get(waiting.pop(), ()):
                for use in clause_uses(clause):
                    if use.strict:
                        denied[use.relation] = None
                    if use.relation not in needed:
                        needed[use.relation] = None
                        waiting.append(use.relation)
        return denied

    def rewrite(self, clause: Clause, kinds: Kinds, head: str, wanted: Atom | None) -> None:
        body: list[Literal] = [] if wanted is None else [wanted]
        before: list[Literal] = [] if wanted is None else [_loosened(wanted, set())]
        bound = grounded_by(before, set())
        computed: set[str] = set()  # variables whose values are computed: asking with these might never end
        self.compute(use.relation for use in clause_uses(clause) if use.strict)
        for literal in _in_order(clause.body, bound, kinds):
            if isinstance(literal, Atom) and literal.name in self.clauses and literal.name not in self.whole:
                pattern = "".join("b" if _is_given(t, bound - computed) else "f" for t in literal.args)
                if "b" in pattern and self.may_copy(literal.name, pattern):
                    literal = self.call(literal, pattern, before, clause, kinds)
                else:
                    self.compute([literal.name])
            elif isinstance(literal, Atom):
                self.compute([literal.name])
            body.append(literal)
            if isinstance(literal, Atom) or (_is_plain(literal) and _is_ready(literal, bound, kinds)):
                before.append(_loosened(literal, bound) if isinstance(literal, Atom) else literal)
                more = grounded_by([literal], bound) - bound
                bound |= more
                if not isinstance(literal, Atom) and any(map(_computes, terms(literal))):
                    computed |= more
        self.found.append((clause._replace(head=clause.head._replace(name=head), body=tuple(body)), kinds))

    def may_copy(self, name: str, pattern: str) -> bool:
        """Whether there is a copy for such calls, or may be one more."""
        if _copy(name, pattern) in self.new:
            return True
        # Each call in a rule repeats the literals before it.
        size = sum(10 + len(clause.body) ** 2 for clause, _ in self.clauses[name])
        if self.copies[name] == _MOST_COPIES or self.literals + size > _MOST_LITERALS:
            return False
        self.copies[name] += 1
        self.literals += size
        return True

    def call(self, atom: Atom, pattern: str, before: Sequence[Literal], clause: Clause, kinds: Kinds) -> Atom:
        """The atom of the copy of a relation. Earlier literals give the values that it wants."""
        copy, wanted = _copy(atom.name, pattern), _wanted(atom.name, pattern)
        if copy not in self.new:
            declaration = self.declared[atom.name]
            columns = _bound(declaration.columns, pattern)
            self.new[copy] = declaration._replace(name=copy, qualifiers=frozenset())
            self.new[wanted] = declaration._replace(name=wanted, qualifiers=frozenset(), columns=columns)
            self.waiting.append((atom.name, pattern))
            if self.updates:  # The copy has the facts that are added to the relation.
                args = tuple(Variable(f"@{i}", atom.at) for i in range(len(atom.args)))
                body = Atom(wanted, _bound(args, pattern), atom.at), atom._replace(args=args)
                self.found.append((Clause(Atom(copy, args, atom.at), body, clause.text), {}))
        head = Atom(wanted, _bound(atom.args, pattern), atom.at)
        if [(head.name, head.args)] != [(x.name, x.args) for x in before if isinstance(x, Atom)]:
            self.found.append((Clause(head, tuple(before), clause.text), kinds))
        return atom._replace(name=copy)

    def compute(self, names: Iterable[str]) -> None:
        """Keep the rules of relations and of all that they depend on."""
        waiting = [name for name in names if name in self.clauses]
        while waiting:
            name = waiting.pop()
            if name in self.in_full:
                continue
            self.in_full.add(name)
            for clause, kinds in self.clauses[name]:
                self.found.append((clause, kinds))
                waiting += [use.relation for use in clause_uses(clause) if use.relation in self.clauses]


def _copy(name: str, pattern: str) -> str:
    return f"{name}@{pattern}"


def _wanted(name: str, pattern: str) -> str:
    return f"{name}@{pattern}@wanted"


def _bound(parts: Sequence[_T], pattern: str) -> tuple[_T, ...]:
    return tuple(part for part, mark in zip(parts, pattern, strict=True) if mark == "b")


def _is_pattern(term: Term) -> bool:
    return isinstance(term, Variable | Constant | Nil | Record)


def _loosened(atom: Atom, bound: set[str]) -> Atom:
    """The atom without arguments that depend on variables that are unknown at that point."""
    bound = grounded_by([atom], bound)
    return atom._replace(
        args=tuple(
            Wildcard(atom.at) if _computes(term) and not variables(term) <= bound else term
            for term in atom.args
        )
    )


def _is_given(term: Term, bound: set[str]) -> bool:
    """Whether a term is known without computing anything."""
    return _is_known(term, bound) and not _computes(term)


def _computes(term: Term) -> bool:
    return isinstance(term, Call) or any(map(_computes, parts(term)))


def _is_known(term: Term, bound: set[str]) -> bool:
    return variables(term) <= bound and not holds_wildcard(term) and not holds_generator(term)


def _is_plain(literal: Literal) -> bool:
    """Whether a literal only compares known terms, or binds a variable."""
    return isinstance(literal, Comparison) and not any(map(holds_generator, terms(literal)))


def _in_order(body: Iterable[Literal], bound: set[str], kinds: Kinds) -> list[Literal]:
    """Comparisons as soon as possible, then the atom with the most known arguments; negations and aggregates
    last."""
    bound, waiting = set(bound), list(body)
    ordered: list[Literal] = []
    while waiting:
        ready = [literal for literal in waiting if _is_plain(literal) and _is_ready(literal, bound, kinds)]
        atoms = [literal for literal in waiting if isinstance(literal, Atom)]
        if ready:
            chosen = ready[0]
        elif atoms:
            chosen = max(atoms, key=lambda atom: sum(_is_known(term, bound) for term in atom.args))
        else:
            return ordered + waiting
        waiting = [literal for literal in waiting if literal is not chosen]
        ordered.append(chosen)
        bound |= grounded_by([chosen], bound)
    return ordered


def _is_ready(literal: Literal, bound: set[str], kinds: Kinds) -> bool:
    """Whether a comparison can be made, or gives a variable its value."""
    assert isinstance(literal, Comparison)
    left, right = (_is_known(term, bound) for term in (literal.left, literal.right))
    if literal.operator != "=" or (left and right):
        return left and right
    target, value = (literal.right, literal.left) if left else (literal.left, literal.right)
    return (left or right) and _is_pattern(target) and not _may_be_zero(target, value, kinds)


def _may_be_zero(target: Term, value: Term, kinds: Kinds) -> bool:
    """Whether a float may equal zero: there are two zeros, so that it has the value of an atom."""
    is_float = isinstance(target, Variable) and kinds.get(target.name) == "float"
    return is_float and not (isinstance(value, Constant) and value.value)
