"""Explanations as data. Text and JSON are views of them; ``SCHEMA`` is the JSON's schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from ..engine.plan import Source
from ..engine.proof import Proof


@dataclass(frozen=True)
class Site:
    """A dimension of a tensor. ``value`` is its name, ``where`` the place in the user's program."""

    value: str
    type: str
    dim: int
    where: str


@dataclass(frozen=True)
class Stage:
    """When a turn was taken: user priority, op-priority level (None: no op priorities), strategy."""

    priority: int
    level: int | None
    strategy: str


@dataclass(frozen=True)
class Loss:
    """An axis that was in the running in the same turn as the one that a slot gained, and lost.

    ``source`` has the axis along ``factor``, ``site`` did not get it: another dimension of the slot that
    gained, or another slot. ``reason`` is the rules' word, ``sentence`` what it means here.
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
    whose ``sentence`` says why, ``rests_on`` the other axes that the turn needed.
    """

    kind: str
    site: Site
    axis: str
    op: str
    where: str
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
    losses: Callable[[], tuple[Loss, ...]]

    @cached_property
    def lost(self) -> tuple[Loss, ...]:
        """What else was in the running, and lost."""
        return self.losses()


@dataclass(frozen=True)
class Annotation:
    """A sharding that was given: the name of the value, where it was given, the cell that holds it, its text.

    ``by`` is "user", or a spec of a ``shard_map`` ("in_specs[0]", and ``where`` is the ``shard_map``'s), or
    "import" for an open sharding that a result has since another result of its op has one.
    """

    value: str
    where: str
    cell: int
    text: str
    by: str = "user"

    @property
    def spec(self) -> bool:
        """Whether it is a spec of a ``shard_map``."""
        return self.by not in ("user", "import")

    def __str__(self) -> str:
        at = f" at {self.where}" if self.where else ""
        return f"{self.by} of the shard_map{at}" if self.spec else f"the annotation of {self.value}{at}"


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why a dimension of a tensor is sharded on an axis.

    ``steps`` lead back from it to ``origin``, the annotation that the axis comes from. ``needs`` are all
    annotations that the steps rest on, ``origin`` first: with these alone the axis is derived again.
    """

    site: Site
    axis: str
    place: int
    atoms: tuple[int, ...]
    steps: tuple[Step, ...]
    origin: Annotation
    needs: tuple[Annotation, ...]

    def as_json(self, *, proofs: bool = False) -> dict[str, Any]:
        """The explanation as ``SCHEMA`` has it, with the proof of every step on demand."""
        return {
            "site": asdict(self.site),
            "axis": self.axis,
            "steps": [_step(step, proofs) for step in self.steps],
            "origin": _annotation(self.origin),
            "needs": [_annotation(annotation) for annotation in self.needs],
        }

    def __str__(self) -> str:
        from .text import why_text

        return why_text(self)

    def __repr__(self) -> str:
        ops = dict.fromkeys(step.op for step in self.steps)
        by = f"by {', '.join(ops)} " if ops else ""
        return f'<why {self.site.value} dim {self.site.dim} "{self.axis}": {by}from {self.origin.value}>'

    def _repr_html_(self) -> str:
        from .notebook import why_html

        return why_html(self)


@dataclass(frozen=True)
class Before:
    """Why an axis had not come before what is in its way now: at an op, in the stage in which that came."""

    stage: Stage
    op: str
    where: str
    site: Site
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Reason:
    """Why an op does not pass the axis on: ``reason`` is the rules' word, ``sentence`` what it means here.

    ``culprit`` is where the sharding in the way comes from, empty where none is, and ``before`` why the axis
    had not come before it.
    """

    reason: str
    sentence: str
    rule: str
    culprit: str
    cell: int = -1  # of the culprit
    before: Before | None = None


@dataclass(frozen=True)
class Stop:
    """An op at which the axis stopped: it is on ``near``, and does not get to ``far``."""

    op: str
    where: str
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
        """The explanation as ``SCHEMA`` has it."""
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
        from .text import why_not_text

        return why_not_text(self)

    def __repr__(self) -> str:
        found = (*self.here, *(reason for stop in self.stops for reason in stop.reasons))
        reasons = ", ".join(dict.fromkeys(reason.reason for reason in found)) or "nothing to come"
        return f'<why not {self.site.value} dim {self.site.dim} "{self.axis}": {reasons}>'

    def _repr_html_(self) -> str:
        from .notebook import text_html

        return text_html(str(self))


@dataclass(frozen=True, eq=False)
class Tree:
    """A proof as a table: each step once, premises by their numbers."""

    proof: Proof

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The steps, the conclusion first."""
        steps = list(self.proof.steps())
        numbers = {id(step): i for i, step in enumerate(steps)}
        return [
            {
                "tuple": tuple_text(step),
                "rule": rule_place(step),
                "sentence": step.sentence,
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


def rule_file(source: Source) -> str:
    """The file of a rule, from ``rules/`` on where it is there."""
    file = source.file.replace("\\", "/")
    at = file.rfind("/rules/")
    return file[at + 1 :] if at >= 0 else file


def _step(step: Step, proofs: bool) -> dict[str, Any]:
    names = ("kind", "axis", "op", "where", "from_slot", "to_slot", "factor", "change", "sentence", "rule")
    found: dict[str, Any] = {name: getattr(step, name) for name in names}
    found |= {name: asdict(getattr(step, name)) for name in ("site", "source", "stage")}
    found["rests_on"] = list(step.rests_on)
    found["lost"] = [asdict(loss) for loss in step.lost]
    return found | ({"proof": Tree(step.proof).rows} if proofs else {})


def _reason(reason: Reason) -> dict[str, Any]:
    return {**_words(reason), "before": reason.before and _before(reason.before)}


def _before(before: Before) -> dict[str, Any]:
    names = ("op", "where")
    found: dict[str, Any] = {name: getattr(before, name) for name in names}
    found |= {"stage": asdict(before.stage), "site": asdict(before.site)}
    return found | {"reasons": [_words(reason) for reason in before.reasons]}


def _words(reason: Reason) -> dict[str, str]:
    names = ("reason", "sentence", "rule", "culprit")
    return {name: getattr(reason, name) for name in names}


def _annotation(annotation: Annotation) -> dict[str, Any]:
    names = {"value": annotation.value, "where": annotation.where, "sharding": annotation.text}
    return {**names, "by": annotation.by}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _optional(value: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [value, {"type": "null"}]}


_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}
_SITE = _object(value=_TEXT, type=_TEXT, dim=_NUMBER, where=_TEXT)
_GIVEN = _object(value=_TEXT, where=_TEXT, sharding=_TEXT, by=_TEXT)
_STAGE = _object(priority=_NUMBER, level={"type": ["integer", "null"]}, strategy=_TEXT)
_WORDS = {"reason": _TEXT, "sentence": _TEXT, "rule": _TEXT, "culprit": _TEXT}
_BEFORE = _object(stage=_STAGE, op=_TEXT, where=_TEXT, site=_SITE, reasons=_array(_object(**_WORDS)))
_REASON = _object(**_WORDS, before=_optional(_BEFORE))
_LOSS = _object(axis=_TEXT, site=_SITE, source=_SITE, factor=_TEXT, reason=_TEXT, sentence=_TEXT, rule=_TEXT)
_PROOF = _object(tuple=_TEXT, rule=_TEXT, sentence=_TEXT, premises=_array(_NUMBER), counted=_array(_NUMBER))
_STEP = _object(
    kind={"enum": ["propagation", "priority"]},
    site=_SITE,
    axis=_TEXT,
    op=_TEXT,
    where=_TEXT,
    source=_SITE,
    from_slot=_TEXT,
    to_slot=_TEXT,
    factor=_TEXT,
    stage=_STAGE,
    change=_NUMBER,
    sentence=_TEXT,
    rule=_TEXT,
    rests_on=_array(_TEXT),
    lost=_array(_LOSS),
)
_STEP["properties"]["proof"] = _array(_PROOF)  # with --full
_STOP = _object(
    op=_TEXT, where=_TEXT, near=_SITE, far=_SITE, factor=_TEXT, distance=_NUMBER, reasons=_array(_REASON)
)
_WHY = _object(site=_SITE, axis=_TEXT, steps=_array(_STEP), origin=_GIVEN, needs=_array(_GIVEN))
_WHY_NOT = _object(site=_SITE, axis=_TEXT, here=_array(_REASON), stops=_array(_STOP), visited=_NUMBER)
# With --verify.
_WHY["properties"]["verified"] = _object(
    proof_steps=_NUMBER, derived_again={"type": "boolean"}, also_needed=_array(_TEXT)
)
_WHY_NOT["properties"]["verified"] = _object(without=_TEXT, then=_TEXT)
_CONFLICT = _object(
    op=_TEXT,
    where=_TEXT,
    tensor=_TEXT,
    type=_TEXT,
    slot=_TEXT,
    has=_array(_TEXT),
    needs=_array(_TEXT),
    collective=_TEXT,
    bytes=_NUMBER,
    origin=_TEXT,
    against=_TEXT,
)
_CAUSE = _object(
    dim=_NUMBER,
    axis=_TEXT,
    missing={"type": "boolean"},
    sentence=_TEXT,
    explanation={"anyOf": [_WHY, _WHY_NOT, {"type": "null"}]},
)
_DIFFERENCE = _object(
    where=_TEXT,
    key=_TEXT,
    value=_TEXT,
    type=_TEXT,
    place=_TEXT,
    expected=_TEXT,
    found={"type": ["string", "null"]},
    causes=_array(_CAUSE),
)
_FINDING = _object(lint=_TEXT, what=_TEXT, where=_TEXT, bytes=_NUMBER, sentence=_TEXT, because=_array(_TEXT))
_TENSOR = _object(
    value=_TEXT, other=_TEXT, type=_TEXT, where=_TEXT, first=_array(_TEXT), second=_array(_TEXT)
)
_PARTING = _object(
    has={"enum": [1, 2]},
    axis=_TEXT,
    site=_SITE,
    op=_TEXT,
    where=_TEXT,
    why=_TEXT,
    why_not=_TEXT,
    dims=_array(_object(value=_TEXT, dim=_NUMBER)),
)
_DIFF = _object(
    runs=_array(_TEXT),
    compared=_NUMBER,
    alone=_array(_NUMBER),
    tensors=_array(_TENSOR),
    partings=_array(_PARTING),
)
_WHAT_IF = _object(bytes=_object(before=_NUMBER, after=_NUMBER), diff=_DIFF)
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "shardlog explanations: an entry of what why, why-not, conflicts and expect print as JSON, "
    "and all of what diff and what-if do",
    "anyOf": [_WHY, _WHY_NOT, _CONFLICT, _DIFFERENCE, _FINDING, _DIFF, _WHAT_IF],
}
