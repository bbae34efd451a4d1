"""Explanations as data. Text and JSON are views of them; ``cli/schemas.py`` has the schema of the JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from ..engine.provenance.proof import Proof
from ..program.ids import NO_CELL, Cell, Place
from ..runs.records.record import Annotation, Stage, rule_file


@dataclass(frozen=True)
class Site:
    """A dimension of a tensor. ``value`` is its name, ``where`` the place in the user's program and ``stack``
    the name stack there."""

    value: str
    type: str
    dim: int
    where: str
    stack: str = ""


@dataclass(frozen=True)
class Loss:
    """An axis that competed in the same turn with the one that a slot gained, and lost.

    ``source`` has the axis along ``factor``, ``site`` did not get it: another dimension of the slot that
    gained, or another slot. ``reason`` is the word of the rules, ``sentence`` spells it out.
    """

    axis: str
    site: Site
    source: Site
    factor: str
    reason: str
    sentence: str
    rule: str


@dataclass(frozen=True, eq=False)
class Step:
    """``site`` gained the axis from ``source`` by a turn of an op.

    ``kind`` is "propagation", or "priority": the priority of an annotated dimension came, and it got its
    axes back. ``change`` is the number of the change in the run's log, ``rule`` the place of the rule
    whose ``sentence`` says why, ``rests_on`` the other axes that the turn needed, ``says`` the sentence of a
    step of the ``proof``.
    """

    kind: str
    site: Site
    axis: str
    op: str
    where: str
    stack: str
    source: Site
    from_slot: str
    to_slot: str
    factor: str
    stage: Stage
    change: int
    sentence: str
    rule: str
    rests_on: tuple[str, ...]
    proof: Proof
    says: Callable[[Proof], str]
    losses: Callable[[], tuple[Loss, ...]]

    @cached_property
    def lost(self) -> tuple[Loss, ...]:
        """The other axes in the running, which lost."""
        return self.losses()


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why a dimension of a tensor is sharded on an axis.

    ``steps`` lead back from it to ``origin``, the annotation that the axis comes from. ``needs`` are all
    annotations that the steps rest on, ``origin`` first: with these alone the axis is derived again.
    """

    site: Site
    axis: str
    place: Place
    atoms: tuple[int, ...]
    steps: Sequence[Step]
    origin: Annotation
    needs: tuple[Annotation, ...]

    def as_json(self, *, proofs: bool = False) -> dict[str, Any]:
        """The explanation as JSON has it, with the proof of every step on demand."""
        return {
            "site": asdict(self.site),
            "axis": self.axis,
            "steps": [_step(step, proofs) for step in self.steps],
            "origin": _annotation(self.origin),
            "needs": [_annotation(annotation) for annotation in self.needs],
        }

    def __str__(self) -> str:
        from .answers.text import why_text

        return why_text(self)

    def __repr__(self) -> str:
        ops = dict.fromkeys(step.op for step in self.steps)
        by = f"by {', '.join(ops)} " if ops else ""
        return f'<why {self.site.value} dim {self.site.dim} "{self.axis}": {by}from {self.origin.value}>'

    def _repr_html_(self) -> str:
        from .answers.notebook import why_html

        return why_html(self)


@dataclass(frozen=True)
class Before:
    """The reason why an axis had not come before the one that is in its way now: at an op, in the stage in
    which that came."""

    stage: Stage
    op: str
    where: str
    stack: str
    site: Site
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Reason:
    """The reason why an op does not pass the axis on: ``reason`` is the word of the rules, ``sentence``
    spells it out.

    ``culprit`` is the origin of the sharding in the way, empty where there is none, and ``before`` the reason
    why the axis had not come before it.
    """

    reason: str
    sentence: str
    rule: str
    culprit: str
    cell: Cell = NO_CELL  # of the culprit
    before: Before | None = None


@dataclass(frozen=True)
class Stop:
    """An op at which the axis stopped: it is on ``near``, and does not get to ``far``."""

    op: str
    where: str
    stack: str
    near: Site
    far: Site
    factor: str
    distance: int
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, eq=False, repr=False)
class WhyNot:
    """Why a dimension of a tensor is not sharded on an axis.

    ``here`` says what in the tensor itself is in the way. ``stops`` are the ops at which the axis stopped
    on its way, nearest first (``distance`` ops away), ``visited`` the number of dimensions that it could
    have come through.
    """

    site: Site
    axis: str
    here: tuple[Reason, ...]
    stops: tuple[Stop, ...]
    visited: int

    def as_json(self) -> dict[str, Any]:
        """The explanation as JSON has it."""
        return {
            "site": asdict(self.site),
            "axis": self.axis,
            "here": [_reason(reason) for reason in self.here],
            "stops": [
                {**asdict(stop), "reasons": [_reason(reason) for reason in stop.reasons]}
                for stop in self.stops
            ],
            "visited": self.visited,
        }

    def __str__(self) -> str:
        from .answers.text import why_not_text

        return why_not_text(self)

    def __repr__(self) -> str:
        found = (*self.here, *(reason for stop in self.stops for reason in stop.reasons))
        reasons = ", ".join(dict.fromkeys(reason.reason for reason in found)) or "nothing to come"
        return f'<why not {self.site.value} dim {self.site.dim} "{self.axis}": {reasons}>'

    def _repr_html_(self) -> str:
        from .answers.notebook import text_html

        return text_html(str(self))


@dataclass(frozen=True, eq=False)
class Tree:
    """A proof as a table: each step once, premises by their numbers."""

    proof: Proof
    says: Callable[[Proof], str]

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The steps, the conclusion first."""
        steps = list(self.proof.steps())
        numbers = {id(step): i for i, step in enumerate(steps)}
        return [
            {
                "tuple": tuple_text(step),
                "rule": rule_place(step),
                "sentence": self.says(step),
                "premises": [numbers[id(p)] for p in step.premises],
                "counted": [numbers[id(p)] for p in step.counted],
            }
            for step in steps
        ]


def tuple_text(proof: Proof) -> str:
    """A tuple as Datalog has it, without its key."""
    values = ", ".join(f'"{v}"' if isinstance(v, str) else str(v) for v in proof.row)
    return f"{proof.relation}({values})"


def rule_place(proof: Proof) -> str:
    """File and line of a proof's rule, from ``rules/`` on where it is there; empty for what is given."""
    return "" if proof.source is None else f"{rule_file(proof.source)}:{proof.source.line}"


def _step(step: Step, proofs: bool) -> dict[str, Any]:
    names = (
        "kind",
        "axis",
        "op",
        "where",
        "stack",
        "from_slot",
        "to_slot",
        "factor",
        "change",
        "sentence",
        "rule",
    )
    found: dict[str, Any] = {name: getattr(step, name) for name in names}
    found |= {name: asdict(getattr(step, name)) for name in ("site", "source", "stage")}
    found["rests_on"] = list(step.rests_on)
    found["lost"] = [asdict(loss) for loss in step.lost]
    return found | ({"proof": Tree(step.proof, step.says).rows} if proofs else {})


def _reason(reason: Reason) -> dict[str, Any]:
    return {**_words(reason), "before": reason.before and _before(reason.before)}


def _before(before: Before) -> dict[str, Any]:
    names = ("op", "where", "stack")
    found: dict[str, Any] = {name: getattr(before, name) for name in names}
    found |= {"stage": asdict(before.stage), "site": asdict(before.site)}
    return found | {"reasons": [_words(reason) for reason in before.reasons]}


def _words(reason: Reason) -> dict[str, str]:
    names = ("reason", "sentence", "rule", "culprit")
    return {name: getattr(reason, name) for name in names}


def _annotation(annotation: Annotation) -> dict[str, Any]:
    place = {"where": annotation.where, "stack": annotation.stack}
    return {"value": annotation.value, **place, "sharding": annotation.text, "by": annotation.by}
