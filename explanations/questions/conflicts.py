"""Conflicts: the tensors that must move between devices, as the partitioned program moves them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ...program.ids import Item
from ...runs.collectives import Collective, collectives
from ...runs.partitioned import PartitionedRun
from ...runs.records.record import Annotation
from ..answers.conflicts import Conflict, Conflicts
from .collective import Asked
from .why import Explainer


def conflicts(explainer: Explainer, program: PartitionedRun) -> Conflicts:
    """The conflicts in a program of a run, most bytes first, and then in the order of the program.

    ``explainer`` is one of the run, which may know the derivations already.
    """
    asked = Asked(explainer, program)
    alike: dict[Any, list[int]] = {}  # several collectives may serve one purpose
    for number, moved in enumerate(program.movements):
        alike.setdefault(id(moved.purpose), []).append(number)
    every = collectives(program.names, program)  # without their causes, which are found per tensor here
    unordered = (_conflict(asked, [every[n] for n in numbers]) for numbers in alike.values())
    return Conflicts(sorted(unordered, key=lambda c: -c.bytes), program.choice)


def _conflict(asked: Asked, collectives: Sequence[Collective]) -> Conflict:
    numbers = [collective.number for collective in collectives]
    first, purpose = collectives[0], asked.program.movements[numbers[0]].purpose
    item, op = asked.program.names.item(purpose), asked.program.names.op(purpose)
    number = op.values[purpose.slot] if op is not None and purpose.slot < len(op.values) else -1
    before, summed, after = asked.layouts(purpose)
    if purpose.start is None:  # the op itself fetches elements of other parts
        before, summed = asked.held(purpose, number)
        after = before
    return Conflict(
        first.op,
        first.where,
        first.stack,
        first.value,
        asked.explainer.record.value(number).type if number >= 0 else asked.type_of(purpose),
        first.slot,
        before,
        after,
        summed,
        ", ".join(dict.fromkeys(collective.kind for collective in collectives)),
        sum(collective.total for collective in collectives),
        first.executions,
        number,
        Item(-1) if item is None else item,
        tuple(numbers),
        partial(_meeting, asked, numbers, number),
    )


def _meeting(
    asked: Asked, numbers: Sequence[int], number: int
) -> tuple[Annotation | None, Annotation | None]:
    """The annotations from which the axes of a tensor, and the axes of the other slots, come."""
    origin = against = None
    for collective in numbers:
        for site, annotation in asked.origins(collective):
            if site == number:
                origin = origin or annotation
            else:
                against = against or annotation
    return origin, against or asked.spec(asked.program.movements[numbers[0]].purpose)
