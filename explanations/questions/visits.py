"""The visits of completion by which a value came to its annotation, back to one of the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakValueDictionary

from ...engine.provenance.proof import Derivations, Proof
from ...engine.provenance.proof_check import Checker
from ...program.factors import loop_name
from ...program.ids import Cell, Place
from ...program.mlir.origins import at
from ...rulebook.columns import Sharded
from ...rulebook.shipped import shipped
from ...runs.records.record import Facts, RunRecord, Stage, Visited
from ..steps import OPTION, PARTIAL, Site, WhyStep, rule_place

_PROGRAM = "propagation/completion"
_ASKED = ("becomes", "becomes_partial", "chosen", "resharding", "reshards")
_KINDS = {"pass_through": "parallel"}  # MLIR's words for kinds of loops
_DIRECTIONS = {1: "forward", -1: "backward"}


@dataclass(frozen=True)
class VisitSource:
    """The source of a visit's axis: the slot and dimension on which it saw the axis (``PARTIAL``: it is a
    partial sum), and the value there. Also the visit that annotated the value, or the cell that the program
    annotates.
    """

    proof: Proof
    option: Proof  # the part of it that says where the axis of the loop is from
    slot: int
    dim: int
    value: int
    by: Visited | Cell


class Words(Protocol):
    """How explanations call dimensions, axes and conclusions of rules."""

    def site(self, place: Place, dim: int, name: str = "") -> Site: ...

    def axes(self, atoms: Sequence[int]) -> str: ...

    def sentence(self, proof: Proof, slots: Sequence[str], axes: Mapping[int, str] | None = None) -> str: ...


class Visits:
    """The visits of a run. Each question passes ``words``: the explainer owns this object, not the
    reverse."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self._derived: dict[int, Derivations] = {}
        # Steps refer to the words. Those that nobody holds any more are freed.
        self._steps: WeakValueDictionary[tuple[int, int, Site, tuple[int, ...]], WhyStep] = (
            WeakValueDictionary()
        )
        self._facts: dict[int, Facts] = {}  # of the visits that were looked at

    def chain(
        self, words: Words, cell: Cell, at: Callable[[], Site], atoms: tuple[int, ...]
    ) -> tuple[tuple[WhyStep, ...], Cell]:
        """The visits that gave atoms of an axis to a dimension, the latest first, and the cell of the
        program's annotation that they begin at. ``at`` gives the dimension, which is of the cell's value."""
        steps, by = list[WhyStep](), self._record.visited(cell) or cell
        if not isinstance(by, Visited):
            return (), by
        site = at()
        dim = site.dim
        while isinstance(by, Visited):
            given = self.given(by, dim, atoms[0])
            source = words.site(self._record.value(given.value).place, given.dim)
            key = by.number, by.slot, site, atoms
            step = self._steps.get(key)
            if step is None:
                self._steps[key] = step = self._step(words, by, given, site, source, atoms)
            steps.append(step)
            by, dim, site = given.by, given.dim, source
        return tuple(steps), by

    def given(self, visited: Visited, dim: int, atom: int) -> VisitSource:
        """Where a visit has an axis from that it gave a dimension, or for which a result is a partial sum."""
        proof = self._proof(visited, dim, atom)
        self._facts[visited.number] = visited.facts
        option = _premise(proof, "gives", "gives_partial", "option")
        seen = _premise(option, "splits", "sharded", "partial")
        if seen.relation not in ("sharded", "partial"):  # the user gives the op this option
            value = self._record.op(visited.item).values[visited.slot]
            cell = self._record.cell(self._record.value(value).place)
            return VisitSource(proof, option, visited.slot, dim, value, cell)
        slot = seen.row[0]
        from_dim = PARTIAL if seen.relation == "partial" else Sharded(*seen.row).dim
        return VisitSource(proof, option, slot, from_dim, *self._record.saw(visited, slot))

    def annotated(self, words: Words, cell: Cell) -> str:
        """How a cell came to its annotation, where it has one; else empty."""
        text, visited = self._record.annotation(cell).text, self._record.visited(cell)
        if visited is None:
            return f"annotated {text}" if text else ""
        op = self._record.op(visited.item)
        by = f"visit {visited.number} of {op.name}{at(op.where, op.stack)}"
        return f"annotated by completion {text}, {by}; {self._candidate(words, visited)}"

    def check(self, step: WhyStep) -> int:
        """Checks the proof of a visit; returns the number of its steps. Raises ProofError."""
        return Checker(shipped(_PROGRAM).plan, self._facts[step.change]).check(step.proof)

    def _derivations(self, visited: Visited) -> Derivations:
        key = id(visited.facts)  # which live as long as the run
        if key not in self._derived:
            self._derived[key] = Derivations(shipped(_PROGRAM), visited.facts, _ASKED)
        return self._derived[key]

    def _proof(self, visited: Visited, dim: int, atom: int) -> Proof:
        derived = self._derivations(visited)
        name = "becomes_partial" if dim == PARTIAL else "becomes"
        rows = derived.rows(name)
        wanted = (visited.slot,) if dim == PARTIAL else (visited.slot, dim)
        row = next(r for r in rows if r[: len(wanted)] == wanted and r[3] == atom)
        proof = derived.proof(name, row)
        assert proof is not None
        return proof

    def _step(
        self,
        words: Words,
        visited: Visited,
        given: VisitSource,
        site: Site,
        source: Site,
        atoms: tuple[int, ...],
    ) -> WhyStep:
        op, proof = self._record.op(visited.item), given.proof
        axis = words.axes(atoms)
        names = dict.fromkeys(atoms, axis)
        option, loop = given.option, int(given.option.row[1])
        by_user = any(premise.relation == "user_splits" for premise in option.premises)
        kind = next(str(kind) for number, kind in visited.facts["kind"] if number == loop)
        return WhyStep(
            "visit",
            site,
            axis,
            op.name,
            op.where,
            op.stack,
            source,
            OPTION if by_user else f"{op.roles[given.slot]} {self._map(visited, given.slot)}",
            f"{op.roles[visited.slot]} {self._map(visited, visited.slot)}",
            f"{loop_name(loop)} ({_KINDS.get(kind, kind)})",
            Stage(0, None, f"completion, visit {visited.number} ({_DIRECTIONS[visited.direction]})"),
            visited.number,
            words.sentence(option, op.slots, names),
            rule_place(option),
            (),
            proof,
            lambda step: words.sentence(step, op.slots),
            lambda: (),
            self._candidate(words, visited),
        )

    @staticmethod
    def _map(visited: Visited, slot: int) -> str:
        """The loops along which the dimensions of a slot run, as an affine map has them."""
        rank = next(rank for t, _, _, rank in visited.facts["slot"] if t == slot)
        loops: dict[int, list[str]] = {}
        for t, d, _, loop in sorted(visited.facts["maps"]):
            if t == slot:
                loops.setdefault(d, []).append(loop_name(loop))
        return f"({', '.join(' '.join(loops.get(d, ['0'])) for d in range(rank))})"

    def _candidate(self, words: Words, visited: Visited) -> str:
        """The chosen candidate, the number of candidates, and its reshards."""
        derived, op = self._derivations(visited), self._record.op(visited.item)
        ((chosen,),) = derived.rows("chosen")
        row = next(row for row in derived.rows("resharding") if row[0] == chosen)
        level = derived.proof("resharding", row)
        assert level is not None
        sentences = [f"candidate {chosen} of {len(visited.facts['candidate'])}: {level.sentence}"]
        for each in derived.rows("reshards"):
            if each[0] == chosen:
                proof = derived.proof("reshards", each)
                assert proof is not None
                sentences.append(words.sentence(proof, op.slots))
        return " ".join(sentences)


def _premise(proof: Proof, *relations: str) -> Proof:
    """The step behind a proof that premises of these relations lead to, each in its turn or left out."""
    for relation in relations:
        proof = next((premise for premise in proof.premises if premise.relation == relation), proof)
    return proof
