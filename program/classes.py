"""The answers of the op rules about signatures, in the form that the graph is built from.

An op's *class* is the set of facts that its turns need. Signatures whose facts are equal share a class, so
that an addition and a multiplication of the same shape are solved once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from .function import Signatures
from .signature import StaticFacts

Facts = Mapping[str, Sequence[tuple[Any, ...]]]
End = tuple[Literal["operand", "result", "argument", "return"], int, int]  # what, region, index


_DESCRIBED: dict[Hashable, Facts] = {}  # facts about signatures by words for them, of all modules
_MOST_KEPT = 1 << 13
# The relations of op rules that turns use, without the slots and without `flows`, which depends on the
# stage.
TURN_FACTS = ("factor", "maps", "elementwise")


@dataclass(frozen=True)
class Edge:
    """A data-flow edge of an op: one sharding for all targets, which the sources exchange theirs with."""

    owner: End
    sources: tuple[End, ...]
    targets: tuple[End, ...]  # without the owner


@dataclass(frozen=True)
class SignatureAnswers:
    """The answer of the rules about one signature."""

    known: bool
    no_rule: str  # why there is none, where the rules say it
    constant: bool
    keeps_constant: bool
    expands_scalar: bool
    computes_nothing: bool
    merges: bool
    pure: bool
    pure_inside: bool
    edges: tuple[Edge, ...]
    static: Facts  # the facts for its turns
    # op-priority level (None: there are no op priorities) -> (factor, role); equal ones are one object
    flows: Mapping[int | None, tuple[tuple[int, str], ...]]

    @cached_property
    def turns(self) -> TurnFacts:
        """All that turns need."""
        static = tuple((name, tuple(rows)) for name, rows in self.static.items())
        turns = TurnFacts((static, tuple(self.flows.items())))
        if len(_TURNS) >= _MOST_KEPT:
            _TURNS.clear()
        return _TURNS.setdefault(turns, turns)


class TurnFacts:
    """Facts whose hash is computed once: answers stay for as long as the process does."""

    __slots__ = ("facts", "hash")

    def __init__(self, facts: tuple[Any, ...]) -> None:
        self.facts, self.hash = facts, hash(facts)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, TurnFacts) and self.facts == other.facts)


_TURNS: dict[TurnFacts, TurnFacts] = {}  # equal ones are one object, which saves comparing them


def knowledge(signature: Facts, facts: Facts) -> SignatureAnswers:
    """Reads ``facts``, the outputs of the op rules for one signature."""
    ends: dict[str, dict[int, list[End]]] = {"edge_owner": {}, "edge_source": {}, "edge_target": {}}
    for name, by_edge in ends.items():
        for e, end, r, i in facts[name]:
            by_edge.setdefault(e, []).append((end, r, i))
    edges = []
    for (e,) in sorted(facts["edge"]):
        owner = ends["edge_owner"][e][0]
        targets = tuple(t for t in sorted(ends["edge_target"].get(e, [])) if t != owner)
        rank = {"operand": 0, "return": 1}
        sources = tuple(sorted(ends["edge_source"].get(e, []), key=lambda s: (rank[s[0]], s[1], s[2])))
        edges.append(Edge(owner, sources, targets))
    flows: dict[int | None, list[tuple[int, str]]] = {}
    for level, f, role in facts["flows"]:
        flows.setdefault(None if level < 0 else level, []).append((f, role))
    one = {(entries := tuple(rows)): entries for rows in flows.values()}
    return SignatureAnswers(
        known=bool(facts["known"]),
        no_rule=min((reason for (reason,) in facts["no_rule"]), default=""),
        constant=bool(facts["constant"]),
        keeps_constant=bool(facts["keeps_constant"]),
        expands_scalar=bool(facts["expands_scalar"]),
        computes_nothing=bool(facts["computes_nothing"]),
        merges=bool(facts["merges"]),
        pure=bool(facts["pure"]),
        pure_inside=bool(facts["pure_inside"]),
        edges=tuple(edges),
        static={
            "tensor": [(t, role) for t, role, _, _ in signature.get("slot", ())],
            **{name: facts[name] for name in TURN_FACTS},
            **({"conservative": [()]} if "conservative" in signature else {}),
        },
        flows={level: one[tuple(rows)] for level, rows in flows.items()},
    )


@dataclass
class Classes:
    """Numbers the classes of signatures; asks the op rules (``solve``) once per signature and kind of use."""

    signatures: Signatures
    # Takes the facts about a signature, and a key that no others have, or None.
    solve: Callable[[Facts, Hashable], SignatureAnswers]
    describe: Callable[[Any, bool], Facts]
    mode: Facts = field(default_factory=dict)  # facts that hold for all signatures
    by_class: list[SignatureAnswers] = field(default_factory=list)  # a representative of each
    _by_signature: dict[tuple[int, bool], tuple[int, SignatureAnswers]] = field(default_factory=dict)
    _described: dict[int, tuple[Facts, Hashable]] = field(default_factory=dict)
    _by_facts: dict[TurnFacts, int] = field(default_factory=dict)
    _identities: dict[Any, int] = field(default_factory=dict)

    def of(self, signature: int, *, multiple_uses: bool = False) -> SignatureAnswers:
        """The answer of the rules about a signature."""
        return self._look_up(signature, multiple_uses)[1]

    def number(self, signature: int, *, multiple_uses: bool = False) -> int:
        """The class of a signature."""
        return self._look_up(signature, multiple_uses)[0]

    def facts(self, signature: int) -> Facts:
        """The facts about a signature that the op rules are given."""
        return self._told(signature)[0]

    def _told(self, signature: int) -> tuple[Facts, Hashable]:
        """The facts about a signature, and a key that is equal in all modules, or None."""
        if signature not in self._described:
            wording = self.signatures.wording(signature)
            words = None if wording is None else (wording, *self.mode)
            facts = _DESCRIBED.get(words)
            if facts is None:
                facts = {**self.describe(self.signatures.examples[signature], False), **self.mode}
            if words is not None:  # MLIR is asked once in a process
                if len(_DESCRIBED) >= _MOST_KEPT:
                    _DESCRIBED.clear()
                _DESCRIBED[words] = facts
            self._described[signature] = facts, words
        return self._described[signature]

    def _look_up(self, signature: int, multiple_uses: bool) -> tuple[int, SignatureAnswers]:
        key = (signature, multiple_uses)
        answer = self._by_signature.get(key)
        if answer is None:
            facts, words = self._told(signature)
            if multiple_uses:
                facts, words = {**facts, "multiple_uses": [()]}, words and (words, "multiple_uses")
            answers = self.solve(facts, words)
            answer = self._by_signature[key] = (self._intern(answers), answers)
        return answer

    def with_facts(self, number: int, more: StaticFacts) -> int:
        """The class of items whose turns have ``more`` facts than those of class ``number``."""
        answers = self.by_class[number]
        return self._intern(replace(answers, static={**answers.static, **dict(more)}))

    def _intern(self, answers: SignatureAnswers) -> int:
        number = self._by_facts.setdefault(answers.turns, len(self.by_class))
        if number == len(self.by_class):
            self.by_class.append(answers)
        return number

    def identity(self, name: str, operands: int, type_: int, more: StaticFacts = ()) -> int:
        """The class of an op called ``name`` whose operands and only result have one type (a data-flow edge).

        ``more`` are facts for its turns that come from elsewhere.
        """
        key = (name, operands, type_, more)
        if key not in self._identities:
            answers = self.solve(self._same_types(name, operands, type_), None)
            if more:
                answers = replace(answers, static={**answers.static, **dict(more)})
            self._identities[key] = self._intern(answers)
        return self._identities[key]

    def add(self, name: str, type_: int) -> int:
        """The signature of an op that is not in the module, whose operand and result have one type."""
        number = self.signatures.number((name, type_), None)
        self._described[number] = self._same_types(name, 1, type_), None
        return number

    def _same_types(self, name: str, operands: int, type_: int) -> Facts:
        shape = self.signatures.shapes[type_]
        rank, slots = -1 if shape is None else len(shape), range(operands + 1)
        return {
            "op": [(name,)],
            "slot": [(t, *(("operand", t) if t < operands else ("result", 0)), rank) for t in slots],
            "dim": [(t, d, size) for t in slots for d, size in enumerate(shape or ())],
            **self.mode,
        }
