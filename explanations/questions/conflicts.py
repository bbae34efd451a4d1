"""Conflicts: the tensors that must move between devices, as the partitioned program moves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import ShardlogError
from ...program.ids import Item
from ...runs.choice import ProgramChoice
from ...runs.records.record import Annotation, Run, in_memory
from .collective import Asked
from .why import Explainer


@dataclass(frozen=True)
class Conflict:
    """A tensor that must move for a slot of an op: how it lies and how it is needed (a text per
    dimension), the axes over which it is partial before, and by which collectives. What lies as it is needed
    is of an op that takes some of it from other devices, as one does that slides a window. Both are empty for
    scalars.

    ``bytes`` is what a device sends in all, ``executions`` of them; None where a loop does not say how
    many turns it takes, of which one is counted. ``origin`` is the annotation that the tensor's axes come
    from and ``against`` the one that the op's come from; None where no axis is behind it. ``number`` is
    the tensor's and ``item`` the op's, -1 of what was not in the program as it was read. ``numbers`` are
    those of the collectives in the program.
    """

    op: str
    where: str
    stack: str
    tensor: str
    type: str
    slot: str
    has: tuple[str, ...]
    needs: tuple[str, ...]
    partial: str
    collective: str
    bytes: int
    executions: int | None
    origin: Annotation | None
    against: Annotation | None
    number: int
    item: Item
    numbers: tuple[int, ...]

    @property
    def given(self) -> tuple[Annotation, ...]:
        """The annotations that meet."""
        return tuple(dict.fromkeys(given for given in (self.origin, self.against) if given))

    def as_json(self) -> dict[str, Any]:
        """The conflict as JSON has it."""
        names = (
            "op",
            "where",
            "stack",
            "tensor",
            "type",
            "slot",
            "partial",
            "collective",
            "bytes",
            "executions",
        )
        found = {name: getattr(self, name) for name in names}
        found |= {"numbers": list(self.numbers), "has": list(self.has), "needs": list(self.needs)}
        return found | {name: str(getattr(self, name) or "") for name in ("origin", "against")}


def conflicts(run: Run, explainer: Explainer, choice: ProgramChoice) -> list[Conflict]:
    """The conflicts in a program of a run, most bytes first, and then in the order of the program.

    ``run.conflicts()`` keeps them. ``explainer`` is one of the run, which may know the derivations already.
    Raises ShardlogError where the program cannot be partitioned.
    """
    asked = Asked(explainer, in_memory(run).asked(choice))
    alike: dict[Any, list[int]] = {}  # several collectives may serve one purpose
    for number, sent in enumerate(asked.program.sent):
        alike.setdefault(id(sent.purpose), []).append(number)
    return sorted((_conflict(asked, numbers) for numbers in alike.values()), key=lambda c: -c.bytes)


def conflicts_or_error(run: Run, choice: ProgramChoice) -> tuple[tuple[Conflict, ...], ShardlogError | None]:
    """The conflicts in a program of a run, or none and the error where it cannot be partitioned.

    Raises ShardlogError for a saved run that cannot be run again.
    """
    in_memory(run)
    try:
        return run.conflicts(**choice.options), None
    except ShardlogError as error:
        return (), error


def _conflict(asked: Asked, numbers: list[int]) -> Conflict:
    made = [asked.program.collectives[number] for number in numbers]
    first, purpose = made[0], asked.program.sent[numbers[0]].purpose
    item, op = asked.program.names.item(purpose), asked.program.names.op(purpose)
    number = op.values[purpose.slot] if op is not None and purpose.slot < len(op.values) else -1
    before, partial, after = asked.layouts(purpose)
    if purpose.start is None:  # the op takes what it needs of other parts
        before, partial = asked.held(purpose, number)
        after = before
    origin, against = _meeting(asked, numbers, number)
    return Conflict(
        first.op,
        first.where,
        first.stack,
        first.value,
        asked.explainer.record.value(number).type if number >= 0 else asked.type_of(purpose),
        first.slot,
        before,
        after,
        partial,
        ", ".join(dict.fromkeys(collective.kind for collective in made)),
        sum(collective.total for collective in made),
        first.executions,
        origin,
        against,
        number,
        Item(-1) if item is None else item,
        tuple(numbers),
    )


def _meeting(
    asked: Asked, numbers: Sequence[int], number: int
) -> tuple[Annotation | None, Annotation | None]:
    """The annotations that the axes of a tensor and those of the other slots come from."""
    origin = against = None
    for collective in numbers:
        for site, annotation in asked.origins(collective):
            if site == number:
                origin = origin or annotation
            else:
                against = against or annotation
    return origin, against or asked.spec(asked.program.sent[numbers[0]].purpose)
