"""Why a partitioned program has a collective: from it over the op that it serves back to the annotations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ...engine.provenance.proof import Proof
from ...errors import ShardlogError
from ...program.factors import factor_name
from ..explanation import Explanation, rule_place

if TYPE_CHECKING:
    from ...partition.choosing import Candidate
    from ...partition.knowledge import Knowledge
    from ...partition.layouts import Layout, Pieces
    from ...runs.collectives import Collective
    from ...runs.partitioned import Partitioned
    from .why import Explainer

_MOST_WAYS = 4


@dataclass(frozen=True)
class Way:
    """A way to compute the op: its factors with the axes that they are computed on, the bytes that a
    device would send for all slots and for work that others do as well, and why it was not taken (empty:
    it was)."""

    factors: tuple[tuple[str, str], ...]
    bytes: int
    lost: str
    rule: str


@dataclass(frozen=True)
class Because:
    """What the rules say about a factor of the op, and where."""

    factor: str
    axes: str
    sentence: str
    rule: str


@dataclass(frozen=True, eq=False)
class Moved:
    """Why there is a collective: how the tensor lies before and after (a text per dimension, and the axes
    over which it is partial), how the op is computed, and where the axes come from."""

    collective: Collective
    before: tuple[str, ...]
    after: tuple[str, ...]
    partial: str
    ways: tuple[Way, ...]
    because: tuple[Because, ...]
    causes: tuple[Explanation, ...]

    def __str__(self) -> str:
        from ..answers.moved_text import moved_text

        return moved_text(self)

    def as_json(self) -> dict[str, Any]:
        """The explanation as JSON has it."""
        found: dict[str, Any] = {"collective": asdict(self.collective), "partial": self.partial}
        found |= {"before": list(self.before), "after": list(self.after)}
        found["ways"] = [asdict(way) for way in self.ways]
        found["because"] = [asdict(each) for each in self.because]
        found["causes"] = [cause.as_json() for cause in self.causes]
        return found


def why_collective(explainer: Explainer, program: Partitioned, number: int) -> Moved:
    """Why a partitioned program has the collective with this number. Raises ShardlogError where it has
    none."""
    if not 0 <= number < len(program.sent):
        count = len(program.sent)
        hint = f"they are numbered from 0 to {count - 1}" if count else "the program moves nothing"
        raise ShardlogError(f"there is no collective {number}", where=explainer.record.name, hint=hint)
    return _Asked(explainer, program).moved(number)


class _Asked:
    def __init__(self, explainer: Explainer, program: Partitioned) -> None:
        self.explainer, self.program, self.axes = explainer, program, program.axes

    def moved(self, number: int) -> Moved:
        sent = self.program.sent[number]
        purpose, start, goal = sent.purpose, sent.purpose.start, sent.purpose.goal
        known, choice = purpose.known, purpose.choice
        return Moved(
            self.program.collectives[number],
            self._dims(start),
            self._dims(goal),
            self._text(start.partial) if start is not None else "",
            tuple(self._ways(known, choice)) if choice is not None and known is not None else (),
            tuple(self._because(known, choice.taken)) if choice is not None and known is not None else (),
            tuple(self._causes(number)),
        )

    # ---- Texts ------------------------------------------------------------------------------------------

    def _text(self, pieces: Pieces) -> str:
        return ",".join(self.axes.names(pieces))

    def _dims(self, layout: Layout | None) -> tuple[str, ...]:
        return () if layout is None else tuple(self._text(pieces) for pieces in layout.dims)

    # ---- The choice -------------------------------------------------------------------------------------

    def _ways(self, known: Knowledge, choice: Any) -> Iterator[Way]:
        """The way that was taken, and others, the cheapest first."""
        taken = choice.candidates.index(choice.taken)
        order = sorted(range(len(choice.candidates)), key=lambda n: (n != taken, choice.costs[n], n))
        for n in order[: 1 + _MOST_WAYS]:
            proof = None if n == taken else self._book.dearer(choice.facts, n, taken)
            factors = tuple((factor_name(f), self._text(p)) for f, p in choice.candidates[n].factors)
            yield Way(
                factors, round(choice.costs[n]), *self._said(proof, "this way", "the one that is taken")
            )

    def _because(self, known: Knowledge, taken: Candidate) -> Iterator[Because]:
        """Why the op can be computed in parts as it is, for each of its factors."""
        for factor, pieces in taken.factors:
            proof = self._book.because(known.signature, "splits", (factor,))
            sentence, rule = self._said(proof)
            yield Because(factor_name(factor), self._text(pieces), sentence, rule)

    def _said(self, proof: Proof | None, *candidates: str) -> tuple[str, str]:
        """The sentence of a proof, with factors by their names and the second of two candidates in words."""
        if proof is None or proof.source is None:
            return "", ""
        sentence = proof.source.sentence
        for name, value in proof.bindings:
            types = dict(proof.source.types)
            said = factor_name(value) if types.get(name) == "factor_id" else str(value)
            if candidates and types.get(name) == "candidate_id":
                said = candidates[name == "than"]
            sentence = sentence.replace(f"{{{name}}}", said)
        return sentence[:1].upper() + sentence[1:], rule_place(proof)

    @property
    def _book(self) -> Any:
        return self.program.result.book

    # ---- Where the axes come from -----------------------------------------------------------------------

    def _causes(self, number: int) -> Iterator[Explanation]:
        """Of each axis of the collective, why a tensor at the op has it; that which moves comes first."""
        purpose = self.program.sent[number].purpose
        pieces = self.program.sent[number].pieces or self._changed(purpose.start, purpose.goal)
        op = self.program.op_of(purpose)
        slots: list[tuple[int, Layout]] = list(enumerate(purpose.held))
        if not slots and purpose.start is not None:
            slots = [(purpose.slot, purpose.start)]
        slots.sort(key=lambda pair: pair[0] != purpose.slot)
        told: set[tuple[int, str]] = set()
        for slot, layout in slots:
            if op is None or slot >= len(op.values):
                continue
            for dim, held in enumerate(layout.dims):
                for run in self._runs([p for p in held if p in pieces]):
                    value = self.explainer.record.value(op.values[slot])
                    key = value.number, f"{dim} {run}"
                    if key in told:
                        continue
                    told.add(key)
                    yield from self._why(value, dim, run)

    def _changed(self, start: Layout | None, goal: Layout | None) -> Pieces:
        """The pieces that lie elsewhere afterwards."""
        if start is None or goal is None:
            return ()
        pairs = zip(start.dims, goal.dims, strict=True)
        return tuple(dict.fromkeys(p for a, b in pairs if a != b for p in (*a, *b)))

    def _runs(self, pieces: Iterable[int]) -> list[tuple[int, str, int, int]]:
        """The sub-axes of pieces: mesh, axis, where it starts and its size."""
        held = tuple(pieces)
        return [(self.axes.pieces[held[0]].mesh, a.name, a.pre, a.size) for a in self.axes.sub_axes(held)]

    def _why(self, value: Any, dim: int, run: tuple[int, str, int, int]) -> Iterator[Explanation]:
        history, (mesh, name, pre, size) = self.explainer.history, run
        cell = history.cell(value.place)
        held = history.facts(history.content(cell, history.end)).get("sharded", ())
        wanted = [
            atom.id
            for atom in self.explainer.meshes.atoms
            if (atom.mesh, atom.axis) == (mesh, name) and pre <= atom.lo and atom.hi <= pre * size
        ]
        atoms = [x for d, _, x in held if d == dim and x in wanted]
        if atoms:
            yield self.explainer.explain(value, dim, atoms)
