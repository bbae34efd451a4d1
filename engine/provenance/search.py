"""Proofs over the results of a store: premises are searched on demand.

Only the round of each tuple is recorded while rules run. If rounds give the heights of tuples (``rounds``), a
search among tuples of lower height finds a proof of least height. Otherwise the tuples are derived once more
in the order of heights (``transform.heights``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

from ...collector import no_collections
from ..analysis.strata import clause_uses
from ..evaluate.limits import UNLIMITED, Limits
from ..evaluate.store import Store
from ..language.syntax import Aggregate, Clause, Literal
from ..plan.cache import Request
from ..plan.compiler import CheckedClauses, compile_heights
from ..plan.plan import QueryPlan, Source
from ..transform.heights import Proved, grown
from .bodies import BodySolver, Key, RemainingBody
from .extents import Hits, StoredExtents
from .matching import Bindings, Matcher, Row, Rules
from .proof import Proof, shown
from .rounds import Rounds, atoms, chosen, replaced_in
from .trace import Trace, TracedRelation

_COUNTED = 1000  # tuples of aggregates that a proof has
TRIES = 10_000  # combinations of tuples that are looked at to see how far a rule gets


class _ProofStep(NamedTuple):
    source: Source | None = None
    premises: tuple[Key, ...] = ()
    counted: tuple[Key, ...] = ()
    bindings: Bindings | None = None
    lost: bool = False


_FACT = _ProofStep()
_OPEN = _ProofStep()  # not looked into


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


class ProofSearch:
    """Proofs of the tuples of a store, after its last evaluation.

    ``at_once``: whether everything was computed in one evaluation, and not incrementally. ``replaced``:
    proofs may also go through tuples that others replaced; by default only if there is no other proof.
    """

    def __init__(
        self,
        plan: QueryPlan,
        request: Request,
        written: CheckedClauses,
        store: Store,
        *,
        at_once: bool = True,
        limits: Limits = UNLIMITED,
        replaced: bool = False,
    ) -> None:
        self._plan, self._request, self._written, self._store = plan, request, written, store
        self._at_once, self._limits = at_once, limits
        self._strata_of = replaced_in(plan)  # relations in which tuples replace others
        self._replaced = self._strata_of if replaced else {}
        self._through: ProofSearch | None = None  # the search through replaced tuples
        self.rules = Rules(written=written, ordinal=store.ordinal)
        self._clauses: dict[str, list[tuple[Source, Clause]]] = {}
        for source, clause in written.clauses:
            if source not in plan.sources:
                continue  # a fact
            self._clauses.setdefault(clause.head.name, []).append((source, clause))
        self._subsuming: dict[str, list[tuple[Clause, tuple[Literal, ...]]]] = {}
        for clause in written.subsuming:
            self._subsuming.setdefault(clause.head.name, []).append((clause, clause.body[1:]))
        self._eqrels = {relation.name for relation in plan.relations if relation.eqrel}
        self._strata = {plan.relations[i].name: n for n, s in enumerate(plan.strata) for i in s.relations}
        self._derived = self._eqrels.union(self._strata)
        self._higher = {  # the rules with atoms that are not facts
            name: [
                (source, clause) for source, clause in clauses if self._derived.intersection(atoms(clause))
            ]
            for name, clauses in self._clauses.items()
        }
        self._traces: dict[str, Trace] = {}  # by goals
        self._passed: set[str] = set()  # relations whose tuples were found in the order of heights
        self._rounds: Rounds | None = None
        self._offsets: dict[str, int] = {}  # the number to add to the round of a tuple for its height
        self.extents = StoredExtents(store, plan)
        self._given: dict[str, set[Row]] = {}
        self._steps: dict[Key, _ProofStep] = {}
        self._heights: dict[Key, int | None] = {}
        self._aggregates: dict[int, list[Aggregate]] = {}  # by the identity of the clause
        self._matcher = Matcher(self.rules, self.extents, self.extents)
        self._bodies = BodySolver(self.rules, self.extents, self._below)

    # ---- Why ---------------------------------------------------------------------------------------------

    def proof(self, relation: str, row: Row, depth: int | None = None) -> Proof | None:
        """The proof of a tuple, with at most this many levels; None if it does not hold."""
        goal = (relation, tuple(row))
        if not self.extents.holds(*goal):
            return None
        with no_collections():
            self._order(relation)
            if (through := self._other(goal)) is not None:
                return through.proof(relation, row, depth)
            if not self._replaced:
                proof = self._trace(relation).proof(relation, goal[1], depth)
                if proof is not None:
                    return proof
            distances = {goal: 0}
            near = [goal]
            for key in near:  # which grows
                distance = distances[key]
                if distance == depth:
                    break
                step = self._step(key)
                for premise in step.premises + step.counted:
                    if premise not in distances:
                        distances[premise] = distance + 1
                        near.append(premise)
            return self._built(near, {key for key in near if distances[key] != depth})

    def _trace(self, goal: str) -> Trace:
        """A search in the core for proofs of a relation's tuples."""
        if goal not in self._traces:
            reached, denied, waiting = dict.fromkeys([goal]), dict[str, None](), [goal]
            for name in waiting:  # which grows
                for use in (use for _, clause in self._clauses.get(name, ()) for use in clause_uses(clause)):
                    if use.strict == "negation":
                        denied[use.relation] = None
                    elif use.relation not in reached:
                        reached[use.relation] = None
                        waiting.append(use.relation)
            tables = [self._table(name, name in reached) for name in reached | denied]
            self._traces[goal] = Trace(self._store, tables, self._matcher, self._written.declared, self._step)
        return self._traces[goal]

    def _table(self, name: str, reached: bool) -> TracedRelation:
        """A relation for proofs in the core, which ``reached`` says may go through its tuples."""
        extent = self.extents.extent(name, ordered=True)
        whole = extent.count == self._store.count(name)
        if name not in self._derived:
            return TracedRelation(name, extent, whole)
        higher, clauses = self._higher.get(name, ()), self._clauses.get(name, ())
        given = [(*each, each in higher) for each in clauses]
        offset = self._offsets.get(name) if reached else None
        facts = self._facts(name) if name in self._eqrels else None
        return TracedRelation(name, extent, whole, offset, given, facts)

    def height(self, relation: str, row: Row) -> int:
        """The height of a proof that was asked for."""
        through = self._other((relation, row))
        return (self._height((relation, row)) or 0) if through is None else through.height(relation, row)

    def _other(self, goal: Key) -> ProofSearch | None:
        """The search through replaced tuples, if every proof of a tuple needs one."""
        if not self._strata_of or self._replaced or self._height(goal) is not None:
            return None
        if self._through is None:
            self._through = ProofSearch(
                self._plan,
                self._request,
                self._written,
                self._store,
                at_once=self._at_once,
                limits=self._limits,
                replaced=True,
            )
        self._through._order(goal[0])
        return self._through

    def _order(self, goal: str) -> None:
        """See that the heights of the tuples are known that proofs of a relation may go through."""
        needed, waiting = dict.fromkeys([goal]), [goal]
        for name in waiting:  # which grows
            uses = (use for _, clause in self._clauses.get(name, ()) for use in clause_uses(clause))
            more = [u.relation for u in uses if u.strict != "negation" and u.relation in self._derived]
            waiting += dict.fromkeys(name for name in more if name not in needed)
            needed.update(dict.fromkeys(more))
        if self._rounds is None:
            self._rounds = Rounds(self._plan, self._clauses, self._facts, self._at_once)
            self._offsets.update(self._rounds.offsets)
        ordered = all(map(self._rounds.says, needed)) and self._replaced.keys().isdisjoint(needed)
        if ordered or self._passed.issuperset(needed):
            return
        proved = Proved(goal, self._derived, chosen(self._plan), self._replaced)
        plan, shared = compile_heights(self._request, proved)
        answers = self._store.ask_found(plan.to_json(), shared, self._limits)
        self.extents.at_height(
            {name: answers[grown(name)] for name in needed if grown(name) in answers}, self._replaced
        )
        self._bodies.forget()
        self._traces.clear()
        self._passed.update(needed)
        self._offsets.update(dict.fromkeys(needed, 0))

    def _built(self, keys: list[Key], closed: set[Key]) -> Proof:
        """The proof of the first of some goals. Each other goal is a premise of an earlier one. Steps that
        are not in ``closed`` stay open."""
        proofs: dict[Key, Proof] = {}
        waiting = keys.copy()
        while waiting:
            key = waiting.pop()
            if key in proofs:
                continue
            step = self._step(key) if key in closed else _OPEN
            if step is _FACT:
                proofs[key] = Proof(*key, replaced=self._replaced_by(key))
                continue
            missing = [k for k in step.premises + step.counted if k not in proofs]
            if missing:
                waiting.append(key)
                waiting += missing
                continue
            proofs[key] = Proof(
                *key,
                step.source,
                tuple([proofs[k] for k in step.premises]),
                tuple([proofs[k] for k in step.counted]),
                shown(step.bindings or {}),
                step.lost or (step is _OPEN and not self.is_given(*key)),
                self._replaced_by(key),
            )
        return proofs[keys[0]]

    def _replaced_by(self, key: Key) -> tuple[Row, ...] | None:
        """The tuple that has replaced a tuple, if it exists in the end; None if the tuple itself exists."""
        relation, row = key
        if relation not in self._replaced or self.extents.holds(*key):
            return None
        for clause, others in self._subsuming.get(relation, ()):
            start = self._start(clause, dict(enumerate(row)))
            for _, held in self._bodies.solutions(others, start) if start is not None else ():
                (_, (_, other)), *_ = sorted(held)
                return (other,)
        return ()

    def is_given(self, relation: str, row: Row) -> bool:
        """Whether a tuple is a fact."""
        return relation not in self._derived or row in self._facts(relation)

    def _facts(self, relation: str) -> set[Row]:
        if relation not in self._given:
            self._given[relation] = set(self._store.facts(relation))
        return self._given[relation]

    def _step(self, key: Key) -> _ProofStep:
        step = self._steps.get(key)
        if step is None:
            step = self._steps[key] = _FACT if self.is_given(*key) else self._derivation(key)
        return step

    def _below(self, atom: str, hits: Hits, height: int) -> Iterator[Row]:
        """Those of the tuples of an atom that are of lesser height."""
        offset = self._offsets.get(atom)
        if offset is not None:
            return hits.tuples(height - offset)
        if atom not in self._derived:
            return hits.tuples()
        heights = ((row, self._height((atom, row))) for row in hits.tuples())
        return (row for row, level in heights if level is not None and level < height)

    def _height(self, key: Key) -> int | None:
        """The height of a tuple; None if it follows only from superfluous tuples."""
        return 0 if self.is_given(*key) else self._derived_height(key)

    def _derived_height(self, key: Key) -> int | None:
        """The height of a tuple that is no fact."""
        offset = self._offsets.get(key[0])
        if offset is not None:
            round_ = self.extents.round(*key)
            return None if round_ is None else round_ + offset
        if key not in self._heights:
            self._steps[key], self._heights[key] = self._lowest(*key)
        return self._heights[key]

    def _lowest(self, relation: str, row: Row) -> tuple[_ProofStep, int | None]:
        """The derivation of a tuple with the least height, found from derivations of any height; and that
        height."""
        best, below = _ProofStep(lost=True), None
        limit = sys.maxsize
        while limit > 0:
            derivations = self._derivations(self._clauses.get(relation, ()), dict(enumerate(row)), limit)
            step = next((step for _, step in derivations), None)
            if step is None:
                break
            best, below = step, max((self._height(key) or 0 for key in step.premises), default=0)
            limit = below
        return best, None if below is None else below + 1

    def _derivation(self, key: Key) -> _ProofStep:
        """The first derivation of a tuple from those below its height: all of these are of the least."""
        height = self._derived_height(key)
        if key in self._steps:
            return self._steps[key]
        if height is None:
            through = self._other(key)
            return _ProofStep(lost=True) if through is None else through._step(key)
        relation, row = key
        clauses = self._clauses if height == 1 else self._higher  # tuples of height 1 follow from facts alone
        derivations = self._derivations(clauses.get(relation, ()), dict(enumerate(row)), height)
        step = next((step for _, step in derivations), None)
        if step is None and relation in self._eqrels:
            step = self._path(relation, row, height)
        return step or _ProofStep(lost=True)

    def _derivations(
        self, clauses: Iterable[tuple[Source, Clause]], wanted: dict[int, Any], height: int
    ) -> Iterator[tuple[Row, _ProofStep]]:
        """The tuples with the ``wanted`` values that rules derive from tuples below a height, with
        multiplicity."""
        for source, clause in clauses if height > 0 else ():
            start = self._start(clause, wanted)
            if start is None:
                continue
            home = self._replaced.get(clause.head.name, ())
            for bindings, held in self._bodies.solutions(clause.body, start, height, home):
                row = self._head(clause, wanted, bindings)
                if row is not None:
                    premises = tuple(dict.fromkeys([key for _, key in sorted(held)]))
                    yield row, _ProofStep(source, premises, self._counted(clause, bindings), bindings)

    def _start(self, clause: Clause, wanted: dict[int, Any]) -> Bindings | None:
        """The variables of a clause that its head gives a value; None where the head cannot be the tuple."""
        bindings: Bindings = self.rules.key(clause)
        shape = self.rules.shape(clause.head)
        if any(wanted.get(i, value) != value for i, value in shape.constants.items()):
            return None
        for i, name in shape.variables:
            if i in wanted and bindings.setdefault(name, wanted[i]) != wanted[i]:
                return None
        others = (self._matcher.unified(t, wanted[i], bindings) for i, t in shape.others if i in wanted)
        return None if None in others else bindings

    def _head(self, clause: Clause, wanted: dict[int, Any], bindings: Bindings) -> Row | None:
        """The tuple that a solution of a clause's body gives; None where it has not the ``wanted`` values."""
        args, matcher = self.rules.args(clause.head), self._matcher
        for i, term in self.rules.shape(clause.head).others:  # ``_start`` has seen to all else
            if i in wanted and not matcher.equal(term, wanted[i], bindings):
                return None
        return tuple(
            [wanted[i] if i in wanted else matcher.value(term, bindings) for i, term in enumerate(args)]
        )

    def _counted(self, clause: Clause, bindings: Bindings) -> tuple[Key, ...]:
        """The tuples that the aggregates of a clause read, up to this many."""
        if id(clause) not in self._aggregates:
            self._aggregates[id(clause)] = list(_aggregates((clause.head, clause.body)))
        aggregates = self._aggregates[id(clause)]
        return (
            tuple(dict.fromkeys(islice(self._gone_through(aggregates, bindings), _COUNTED)))
            if aggregates
            else ()
        )

    def _gone_through(self, aggregates: Iterable[Aggregate], bindings: Bindings) -> Iterator[Key]:
        for aggregate in aggregates:
            outer = {name: bindings[name] for name in aggregate.outer if name in bindings}
            for _, held in self._bodies.solutions(aggregate.body, outer):
                yield from (key for _, key in sorted(held))

    def _path(self, relation: str, row: Row, height: int) -> _ProofStep | None:
        """The fewest pairs, each given or derived by a rule, that lead from one member of a class to
        another."""
        start, end = row
        before: dict[Any, tuple[Any, Row]] = {}
        queue = [start]
        for member in queue:
            for pair in self._direct(relation, member, height):
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
        return _ProofStep(premises=tuple(dict.fromkeys((relation, pair) for pair in path[::-1])))

    def _direct(self, relation: str, member: Any, height: int) -> Iterator[Row]:
        """The pairs with a member that are facts, or that rules derive from tuples below a height."""
        yield from sorted(pair for pair in self._facts(relation) if member in pair)
        for column in (0, 1):
            for pair, _ in self._derivations(self._clauses.get(relation, ()), {column: member}, height):
                yield pair

    # ---- Why not -----------------------------------------------------------------------------------------

    def attempts(self, relation: str, row: Row) -> list[Attempt]:
        """How far each rule of a relation gets with a tuple that does not hold, in the order of the text."""
        wanted = dict(enumerate(row))
        attempts = []
        for source, clause in self._clauses.get(relation, ()):
            start = self._start(clause, wanted)
            attempt = Attempt(source, clause, (), clause.head, {})
            attempts.append(attempt if start is None else self._furthest(attempt, start, wanted))
        return attempts

    def _furthest(self, attempt: Attempt, start: Bindings, wanted: dict[int, Any]) -> Attempt:
        best, matcher = attempt, self._matcher
        args = self.rules.args(attempt.clause.head)
        tries = 0

        def walk(done: tuple[Literal, ...], left: RemainingBody, bindings: Bindings) -> None:
            nonlocal best, tries
            if not left.literals:
                if all(matcher.equal(args[i], value, bindings) for i, value in wanted.items()):
                    best = replace(attempt, found=done, missing=None, bindings=bindings)
                return
            step, _ = self._bodies.next(left, bindings)
            if best is attempt or (best.missing is not None and len(done) > len(best.found)):
                best = replace(attempt, found=done, missing=step.literal, bindings=bindings)
            for more in matcher.literal(step.literal, bindings):
                tries += 1
                walk((*done, step.literal), step.rest, more)
                if tries > TRIES or best.missing is None:
                    return

        walk((), self._bodies.whole(attempt.clause.body, start), start)
        return replace(best, complete=tries <= TRIES or best.missing is None)


def _aggregates(node: Any) -> Iterator[Aggregate]:
    """The aggregates in a part of a syntax tree, without nested ones."""
    if isinstance(node, Aggregate):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from _aggregates(part)
