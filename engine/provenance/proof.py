"""Proofs: why a tuple holds.

``Derivations`` evaluates a program once more without optimisation, and records the derivations of every
tuple. The records are well-founded, because a rule reads only earlier rounds. ``proof_check`` verifies
proofs.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, NamedTuple

from ..evaluate.facts import tuples
from ..evaluate.functors import Registers
from ..evaluate.ordinals import Ordinals
from ..evaluate.program import Facts, LoadedProgram, Row
from ..evaluate.reference import STEPS, Evaluation, Tuple
from ..plan.plan import QueryPlan, Rule, Source
from .matching import Extents, Rules

_Key = tuple[int, Tuple]


class _Note(NamedTuple):
    """A derivation of a tuple. ``rule`` is None for facts, and for pairs that an eqrel adds."""

    rule: Rule | None
    premises: tuple[_Key, ...] = ()
    counted: tuple[_Key, ...] = ()


_GIVEN = _Note(None)


@dataclass(frozen=True, eq=False)
class Proof:
    """A tuple and its premises. Proofs of equal tuples are one object, shared by all users.

    ``source`` is the rule, None for a given fact and for a pair that an eqrel adds. ``premises`` prove the
    atoms of the rule's body, ``counted`` the tuples that its aggregates read, and ``bindings`` are the
    variables of the rule. In a keyed program there is no key column. ``open`` is a step that was not
    expanded, or whose premises are gone because other tuples made them superfluous. ``replaced`` is None if
    the tuple still exists at the end; otherwise it has the tuple that replaced it, if any.
    """

    relation: str
    row: Row
    source: Source | None = None
    premises: tuple[Proof, ...] = ()
    counted: tuple[Proof, ...] = ()
    bindings: tuple[tuple[str, Any], ...] = ()
    open: bool = False
    replaced: tuple[Row, ...] | None = None

    @cached_property
    def sentence(self) -> str:
        """The sentence of the rule with the values of its variables; empty where it has none."""
        text = self.source.sentence if self.source else ""
        return fill(text, {n: str(v) for n, v in self.bindings}) if text else ""

    def values(self, type_name: str) -> list[Any]:
        """The values of the variables of a type that the sentence names."""
        types = dict(self.source.types) if self.source else {}
        return [value for name, value in self.bindings if types.get(name) == type_name]

    def steps(self) -> Iterator[Proof]:
        """Every proof in this one, itself first, each once, nearer ones first."""
        return chain((self,), self._behind)

    @cached_property
    def _behind(self) -> tuple[Proof, ...]:
        proofs = dict[int, Proof]()  # without this one: no proof refers to itself
        queue = deque([self])
        while queue:
            proof = queue.popleft()
            for premise in (*proof.premises, *proof.counted):
                if id(premise) not in proofs:
                    proofs[id(premise)] = premise
                    queue.append(premise)
        return tuple(proofs.values())


def shown(bindings: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The variables in the text of a rule, without internal ones, which stand for parts of it."""
    return tuple([pair for pair in bindings.items() if not pair[0].startswith("@")])


def fill(sentence: str, names: Mapping[str, str]) -> str:
    """A sentence with ``{x}`` replaced by the name of x. Variables without a name stay."""
    return re.sub(r"\{(\w+)\}", lambda match: names.get(match[1], match[0]), sentence)


class Derivations:
    """The relations that ``outputs`` need, for given facts; in a keyed program the facts of one key and the
    shared ones together. Raises EngineError as evaluation does."""

    def __init__(self, program: LoadedProgram, facts: Facts, outputs: Sequence[str] | None = None) -> None:
        plan = self._plan = program.plan
        self._evaluation = evaluation = _Recorder(plan)
        for index, rows in checked(plan, facts):
            self._evaluation.give(index, rows)
        wanted = program.outputs if outputs is None else outputs
        self._evaluation.run(plan.strata, [plan.index(name) for name in wanted])
        self._rules = rules_of(plan, evaluation.ordinals)
        self._extents = Extents(lambda name: evaluation.all(plan.index(name)))

    def rows(self, relation: str) -> list[Row]:
        """The tuples of a relation, sorted."""
        return self._evaluation.rows(self._plan.index(relation))

    def proof(self, relation: str, row: Row) -> Proof | None:
        """The proof of a tuple; None where it does not hold.

        Where a tuple has several derivations, the proof takes one that asks for nothing else, if it can.
        """
        goal = (self._plan.index(relation), tuple(row))
        if not self._evaluation.holds(*goal):
            return None
        chosen = self._chosen(goal)
        proofs: dict[_Key, Proof] = {}
        waiting = [goal]
        while waiting:
            key = waiting[-1]
            missing = [k for k in (*chosen[key].premises, *chosen[key].counted) if k not in proofs]
            waiting += missing
            if not missing:
                waiting.pop()
                proofs[key] = proofs.get(key) or self._step(key, chosen[key], proofs)
        return proofs[goal]

    def _chosen(self, goal: _Key) -> dict[_Key, _Note]:
        """A derivation of the goal and of everything that it needs."""
        chosen: dict[_Key, _Note] = {}
        waiting, open_ = [goal], dict.fromkeys([goal])
        while waiting or open_:
            # Tuples with a single derivation come first, because others may need them as well.
            key = waiting.pop() if waiting else self._settled(open_, chosen)
            if key in chosen:
                continue
            notes = self._evaluation.noted.get(key, [_GIVEN])
            if len(notes) > 1 and key not in open_:
                open_[key] = None
                continue
            if len(notes) > 1 and waiting:
                continue
            open_.pop(key, None)
            chosen[key] = min(notes, key=lambda note: sum(k not in chosen for k in note.premises))
            waiting += [k for k in (*chosen[key].premises, *chosen[key].counted) if k not in chosen]
        return chosen

    def _settled(self, open_: Mapping[_Key, None], chosen: Mapping[_Key, _Note]) -> _Key:
        """The first of several whose derivation asks for the least."""
        noted = self._evaluation.noted
        return min(
            open_, key=lambda k: min(sum(p not in chosen for p in n.premises) for n in noted.get(k, [_GIVEN]))
        )

    def _step(self, key: _Key, note: _Note, proofs: Mapping[_Key, Proof]) -> Proof:
        name, row = self._plan.relations[key[0]].name, key[1]
        direct = tuple(proofs[k] for k in note.premises)
        aggregated = tuple(dict.fromkeys(p for k in note.counted for p in _unprojected(proofs[k])))
        if note.rule is None:
            return Proof(name, row, None, direct, aggregated)
        source = self._plan.sources[note.rule.source]
        if not source.sentence:
            return Proof(name, row, source, direct, aggregated)
        held = [(p.relation, p.row) for p in direct]
        bindings = next(self._rules.explains(source, name, row, held, self._extents), {})
        shown = tuple((n, v) for n, v in bindings.items() if "@" not in n and v is not None)
        return Proof(name, row, source, direct, aggregated, shown)


def checked(plan: QueryPlan, facts: Facts) -> list[tuple[int, list[Row]]]:
    """Facts by the numbers of their relations, in order. Raises EngineError for facts that do not fit."""
    named = sorted(((plan.index(name), rows) for name, rows in facts.items()), key=lambda pair: pair[0])
    return [(index, tuples(plan.relations[index], rows, plan.records)) for index, rows in named]


def rules_of(plan: QueryPlan, ordinals: Ordinals) -> Rules:
    """The rules of a plan as in the source, with the numbers of symbols, which keyed programs do not have."""
    keyed = frozenset(relation.name for relation in plan.relations if relation.keyed)
    return Rules(ordinal=ordinals.__getitem__) if plan.key is None else _rules(keyed)


@lru_cache(maxsize=8)
def _rules(keyed: frozenset[str]) -> Rules:
    return Rules(keyed)  # which reads each rule once


def _unprojected(proof: Proof) -> tuple[Proof, ...]:
    """The premises of a proof in the program's own relations: projections are the planner's."""
    return proof.premises if "(" in proof.relation else (proof,)


class _Recorder(Evaluation):
    """Records the derivations that each tuple has in the round of its first derivation."""

    def __init__(self, plan: QueryPlan) -> None:
        self.noted: dict[_Key, list[_Note]] = {}
        self._trail: list[_Key] = []
        self._aggregated: list[_Key] = []
        super().__init__(plan)

    def holds(self, relation: int, row: Tuple) -> bool:
        return row in self._all[relation]

    def all(self, relation: int) -> Collection[Row]:
        return self._all[relation].tuples

    def _fire(self, rule: Rule, new: Mapping[int, dict[Tuple, None]]) -> None:
        self._rule, self._found = rule, new[rule.head]
        super()._fire(rule, new)

    def _solve(self, steps: Sequence[Any], at: int, registers: Registers) -> Iterator[None]:
        if at == len(steps):
            if steps is self._rule.steps:
                row = tuple(self._value(argument, registers) for argument in self._rule.args)
                if row not in self._all[self._rule.head]:
                    note = _Note(self._rule, tuple(self._trail), tuple(self._aggregated))
                    self.noted.setdefault((self._rule.head, row), []).append(note)
            yield
            return
        step = steps[at]
        if step[0] == "scan":
            for row in self._rows(step, registers):
                self._trail.append((step[1], row))
                yield from self._solve(steps, at + 1, registers)
                self._trail.pop()
        elif step[0] == "aggregate":
            before = self._aggregated
            self._aggregated = [*before, *self._kept(step[5], registers)]
            for _ in self._aggregate(step, registers):
                yield from self._solve(steps, at + 1, registers)
            self._aggregated = before
        else:
            for _ in STEPS[step[0]](self, step, registers):
                yield from self._solve(steps, at + 1, registers)

    def _kept(self, steps: Sequence[Any], registers: Registers) -> list[_Key]:
        """The tuples that the solutions of an aggregate go through."""
        outside, self._trail = self._trail, []
        kept: dict[_Key, None] = {}
        for _ in self._solve(steps, 0, list(registers)):
            kept.update(dict.fromkeys(self._trail))
        self._trail = outside
        return list(kept)

    def _closed(self, relation: int, rows: Iterable[Tuple]) -> list[Tuple]:
        if not self._plan.relations[relation].eqrel:
            return super()._closed(relation, rows)
        rows = list(rows)
        closed = super()._closed(relation, rows)
        added = set(closed).difference(rows)
        if added:
            nearby: dict[Any, list[tuple[Any, Tuple]]] = {}
            for pair in (*self._all[relation].tuples, *rows):
                for a, b in (pair, pair[::-1]):
                    nearby.setdefault(a, []).append((b, pair))
            for pair in closed:
                if pair in added:
                    path = _path(nearby, *pair)
                    note = _Note(None, tuple((relation, p) for p in path))
                    self.noted.setdefault((relation, pair), [note])
        return closed


def _path(nearby: Mapping[Any, Sequence[tuple[Any, Tuple]]], start: Any, end: Any) -> list[Tuple]:
    """The fewest pairs that lead from one member of a class to another."""
    if start == end:
        return [nearby[start][0][1]]
    before: dict[Any, tuple[Any, Tuple]] = {}
    queue = deque([start])
    while end not in before:
        member = queue.popleft()
        for other, pair in nearby[member]:
            if other != start and other not in before:
                before[other] = (member, pair)
                queue.append(other)
    path: list[Tuple] = []
    while end != start:
        end, pair = before[end]
        path.append(pair)
    return path[::-1]
