"""The parts of explanations: sites, the steps by which axes came, and reasons why they did not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..engine.provenance.proof import Proof
from ..program.ids import NO_CELL, Cell
from ..runs.records.record import Stage, rule_file

PARTIAL = -1  # in place of a dimension: the tensor is a partial sum
OPTION = "sharding option"  # in place of a slot: the user gives the op this option


@dataclass(frozen=True)
class Site:
    """A dimension of a tensor; ``PARTIAL``: the axes along which it is a partial sum. ``value`` is its
    name, ``where`` the place in the user's program and ``stack`` the name stack there."""

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
class WhyStep:
    """``site`` gained the axis from ``source`` by a turn of an op.

    ``kind`` is "propagation", or "priority": the priority of an annotated dimension came, and it got its
    axes back; or "visit", by which completion annotated the op: ``change`` is the number of the visit then,
    ``factor`` the loop, and ``candidate`` the choice and its reshards. Otherwise ``change`` is the number
    of the change in the run's log. ``rule`` is the place of the rule whose ``sentence`` says why,
    ``rests_on`` the other axes that the turn needed, ``says`` the sentence of a step of the ``proof``.
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
    candidate: str = ""

    @cached_property
    def lost(self) -> tuple[Loss, ...]:
        """The other axes in the running, which lost."""
        return self.losses()


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
    """File and line of a proof's rule, relative to ``rules/`` if it is there; empty for given facts."""
    return "" if proof.source is None else f"{rule_file(proof.source)}:{proof.source.line}"
