"""Proofs over what a store has computed: premises are searched for where they are asked for.

Nothing is noted while rules run but the round in which each tuple is found. A tuple of a round follows from
tuples of earlier strata and earlier rounds, so that a search among these always ends; what it finds for a
tuple is of the least height in the tuple's stratum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

from ..evaluate.store import Store
from ..language.syntax import Aggregate, Atom, Clause, Literal
from ..plan.compiler import Written
from ..plan.plan import Plan, Source
from .extents import StoredExtents
from .matching import Bindings, Matcher, Row, Rules, is_pattern
from .proof import Proof

_DERIVATIONS = 16  # that are compared for one tuple
_COUNTED = 1000  # tuples of aggregates that a proof has
TRIES = 10_000  # combinations of tuples that are looked at to see how far a rule gets

_Key = tuple[str, Row]


class _Step(NamedTuple):
    source: Source | None = None
    premises: tuple[_Key, ...] = ()
    counted: tuple[_Key, ...] = ()
    bindings: Bindings | None = None
    lost: bool = False


@dataclass(frozen=True)
class _Earlier:
    """The tuples of earlier strata, and of one stratum those of rounds before ``round``."""

    extents: StoredExtents
    stratum: frozenset[str]
    round: int

    def matching(self, relation: str, known: dict[int, Any]) -> Iterator[Row]:
        if relation in self.stratum:
            return self.extents.before(relation, known, self.round)
        return self.extents.matching(relation, known)


@dataclass(frozen=True)
class Attempt:
    """How far a rule gets with a tuple that does not hold: the literals of its body for which something is
    found, and the first for which nothing is, with the values of variables that are known.

    ``missing`` is the head where it cannot be the tuple, and None where the whole body holds: then the tuple
    was not chosen, or others made it superfluous. ``complete``: whether all combinations of tuples
    were tried; if not, one of the others may get further.
    """

    source: Source
    clause: Clause
    found: tuple[Literal, ...]
    missing: Literal | None
    bindings: Bindings
    complete: bool = True


class Search:
    """Proofs of the tuples of a store, as of its last evaluation."""

    def __init__(self, plan: Plan, written: Written, store: Store) -> None:
        self._plan, self._store = plan, store
        self.extents = StoredExtents(store, plan)
        self.rules = Rules(written=written)
        self._clauses: dict[str, list[tuple[Source, Clause]]] = {}
        for source, clause in written.clauses:
            if source not in plan.sources:
                continue  # a fact
            self._clauses.setdefault(clause.head.name, []).append((source, clause))
        self._strata: dict[str, tuple[int, frozenset[str]]] = {}
        for number, stratum in enumerate(plan.strata):
            names = frozenset(plan.relations[i].name for i in stratum.relations)
            self._strata.update(dict.fromkeys(names, (number, names)))
        self._eqrels = {relation.name for relation in plan.relations if relation.eqrel}
        self._given: dict[str, set[Row]] = {}
        self._steps: dict[_Key, _Step] = {}

    # ---- Why ---------------------------------------------------------------------------------------------

    def proof(self, relation: str, row: Row, depth: int | None = None) -> Proof | None:
        """The proof of a tuple, of so many levels at most; None where it does not hold."""
        goal = (relation, tuple(row))
        if self.extents.round(*goal) is None:
            return None
        order: dict[_Key, int] = {}  # every step with its distance from the goal
        waiting = [goal]
        distance = 0
        while waiting and (depth is None or distance <= depth):
            order.update((key, distance) for key in waiting)
            if depth is None or distance < depth:
                near = (k for key in waiting for k in (*self._step(key).premises, *self._step(key).counted))
                waiting = [key for key in dict.fromkeys(near) if key not in order]
            distance += 1
        return self._built(goal, {k for k, d in order.items() if depth is None or d < depth})

    def _built(self, goal: _Key, closed: set[_Key]) -> Proof:
        """The proof of a goal; steps that are not in ``closed`` stay open."""
        proofs: dict[_Key, Proof] = {}
        waiting = [goal]
        while waiting:
            key = waiting[-1]
            step = self._step(key) if key in closed else _Step()
            missing = [k for k in (*step.premises, *step.counted) if k not in proofs]
            waiting += missing
            if missing:
                continue
            waiting.pop()
            if key not in proofs:
                shown = (step.bindings or {}).items()
                proofs[key] = Proof(
                    *key,
                    step.source,
                    tuple(proofs[k] for k in step.premises),
                    tuple(proofs[k] for k in step.counted),
                    tuple((name, value) for name, value in shown if "@" not in name),
                    open=step.lost or (key not in closed and not self.is_given(*key)),
                )
        return proofs[goal]

    def is_given(self, relation: str, row: Row) -> bool:
        """Whether a tuple is a fact."""
        if relation not in self._strata and relation not in self._eqrels:
            return True
        if relation not in self._given:
            self._given[relation] = set(self._store.facts(relation))
        return row in self._given[relation]

    def _step(self, key: _Key) -> _Step:
        if key not in self._steps:
            step = _Step() if self.is_given(*key) else self._derivation(*key)
            self._steps[key] = step or _Step(lost=True)
        return self._steps[key]

    def _derivation(self, relation: str, row: Row) -> _Step | None:
        round_ = self.extents.round(relation, row)
        assert round_ is not None
        found = (step for _, step in self._derivations(relation, dict(enumerate(row)), round_))
        best = min(islice(found, _DERIVATIONS), key=self._latest, default=None)
        if best is None and relation in self._eqrels:
            return self._path(relation, row, round_)
        return best

    def _derivations(self, relation: str, wanted: dict[int, Any], round_: int) -> Iterator[tuple[Row, _Step]]:
        """The tuples with the ``wanted`` values that rules give from what was there before a round, each as
        often as they do."""
        earlier = _Earlier(self.extents, self._strata.get(relation, (-1, frozenset()))[1], round_)
        for source, clause in self._clauses.get(relation, ()):
            matcher = Matcher(self.rules, earlier, self.extents)
            start = self._start(matcher, clause, wanted)
            for bindings in () if start is None else self._solutions(matcher, list(clause.body), start):
                args = self.rules.args(clause.head)
                if all(matcher.equal(args[i], value, bindings) for i, value in wanted.items()):
                    row = tuple(
                        wanted[i] if i in wanted else matcher.value(term, bindings)
                        for i, term in enumerate(args)
                    )
                    yield row, self._noted(source, clause, matcher, bindings)

    def _start(self, matcher: Matcher, clause: Clause, wanted: dict[int, Any]) -> Bindings | None:
        """The variables of a clause that its head gives a value; None where the head cannot be the tuple."""
        bindings: Bindings | None = self.rules.key(clause)
        for i, term in enumerate(self.rules.args(clause.head)):
            if bindings is not None and i in wanted and is_pattern(term):
                bindings = matcher.unified(term, wanted[i], bindings)
        return bindings

    def _solutions(self, matcher: Matcher, body: list[Literal], bindings: Bindings) -> Iterator[Bindings]:
        """The solutions of a body: tests first, then the atom of which there are the fewest tuples."""
        if not body:
            yield bindings
            return
        literal = self._next(matcher, body, bindings)
        rest = [other for other in body if other is not literal]
        for more in matcher.literal(literal, bindings):
            yield from self._solutions(matcher, rest, more)

    def _next(self, matcher: Matcher, body: Sequence[Literal], bindings: Bindings) -> Literal:
        known = set(bindings)
        for literal in body:
            if self.rules.tests(literal, known):
                return literal
        ready = [literal for literal in body if self.rules.ready(literal, known)]
        atoms = [literal for literal in ready if isinstance(literal, Atom)]
        if not atoms:
            return ready[0]
        return min(atoms, key=lambda a: self.extents.at_most(a.name, matcher.known(a, bindings)))

    def _noted(self, source: Source, clause: Clause, matcher: Matcher, bindings: Bindings) -> _Step:
        atoms = [literal for literal in clause.body if isinstance(literal, Atom)]
        premises = ((atom.name, next(iter(matcher.held(atom, matcher.atoms, bindings)))[0]) for atom in atoms)
        counted = islice(self._counted(clause, bindings), _COUNTED)
        return _Step(source, tuple(dict.fromkeys(premises)), tuple(dict.fromkeys(counted)), bindings)

    def _counted(self, clause: Clause, bindings: Bindings) -> Iterator[_Key]:
        """The tuples that the aggregates of a clause go through."""
        matcher = Matcher(self.rules, self.extents, self.extents)
        for aggregate in _aggregates((clause.head, clause.body)):
            outer = {name: bindings[name] for name in aggregate.outer if name in bindings}
            for found in self._solutions(matcher, list(aggregate.body), outer):
                for literal in aggregate.body:
                    if isinstance(literal, Atom):
                        yield literal.name, next(iter(matcher.held(literal, self.extents, found)))[0]

    def _latest(self, step: _Step) -> tuple[int, int, int]:
        """The stratum and the round of the last premise; how many premises there are."""
        latest = (-1, 0)
        for relation, row in step.premises:
            if not self.is_given(relation, row):
                stratum = self._strata.get(relation, (-1, frozenset()))[0]
                latest = max(latest, (stratum, self.extents.round(relation, row) or 0))
        return (*latest, len(step.premises))

    def _path(self, relation: str, row: Row, round_: int) -> _Step | None:
        """The fewest pairs, each given or derived by a rule, that lead from one member of a class to
        another."""
        start, end = row
        before: dict[Any, tuple[Any, Row]] = {}
        queue = [start]
        for member in queue:
            for pair in self._direct(relation, member, round_):
                self._steps.setdefault((relation, pair), _Step())
                other = pair[1] if pair[0] == member else pair[0]
                if other not in before:
                    before[other] = (member, pair)
                    queue.append(other)
            if end in before:
                break
        if end not in before:
            return None
        path = [before[end][1]]
        while before[end][0] != start:
            end = before[end][0]
            path.append(before[end][1])
        return _Step(premises=tuple((relation, pair) for pair in path[::-1]))

    def _direct(self, relation: str, member: Any, round_: int) -> Iterator[Row]:
        """The pairs with a member that were given, or that rules give from what was there before a round."""
        self.is_given(relation, (member, member))
        yield from sorted(pair for pair in self._given[relation] if member in pair)
        for column in (0, 1):
            for pair, step in self._derivations(relation, {column: member}, round_):
                self._steps[relation, pair] = step
                yield pair

    # ---- Why not -----------------------------------------------------------------------------------------

    def attempts(self, relation: str, row: Row) -> list[Attempt]:
        """How far each rule of a relation gets with a tuple that does not hold, in the order of the text."""
        matcher = Matcher(self.rules, self.extents, self.extents)
        wanted = dict(enumerate(row))
        found = []
        for source, clause in self._clauses.get(relation, ()):
            start = self._start(matcher, clause, wanted)
            attempt = Attempt(source, clause, (), clause.head, {})
            found.append(attempt if start is None else self._furthest(matcher, attempt, start, wanted))
        return found

    def _furthest(
        self, matcher: Matcher, attempt: Attempt, start: Bindings, wanted: dict[int, Any]
    ) -> Attempt:
        best = attempt
        args = self.rules.args(attempt.clause.head)
        tries = 0

        def walk(done: tuple[Literal, ...], body: list[Literal], bindings: Bindings) -> None:
            nonlocal best, tries
            if not body:
                if all(matcher.equal(args[i], value, bindings) for i, value in wanted.items()):
                    best = replace(attempt, found=done, missing=None, bindings=bindings)
                return
            literal = self._next(matcher, body, bindings)
            if best is attempt or (best.missing is not None and len(done) > len(best.found)):
                best = replace(attempt, found=done, missing=literal, bindings=bindings)
            rest = [other for other in body if other is not literal]
            for more in matcher.literal(literal, bindings):
                tries += 1
                walk((*done, literal), rest, more)
                if tries > TRIES or best.missing is None:
                    return

        walk((), list(attempt.clause.body), start)
        return replace(best, complete=tries <= TRIES or best.missing is None)


def _aggregates(node: Any) -> Iterator[Aggregate]:
    """The aggregates in a part of a syntax tree, without those that stand in others."""
    if isinstance(node, Aggregate):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from _aggregates(part)
