"""The purposes of collectives, which the device program itself does not tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ...program.ids import Slot
from ...program.mlir.types import Operation
from ..facts.knowledge import Knowledge
from ..layouts import Layout
from .choosing import Choice


@dataclass(slots=True, eq=False)
class Computed:
    """An op that is computed: the rules' knowledge, the layouts of its slots, and the choice among its
    ways."""

    knowledge: Knowledge
    held: tuple[Layout, ...]
    choice: Choice


class Use(NamedTuple):
    """A use for which a value may be resharded, by numbers: the op, the slot, and the value there; how the op
    is computed, if it is; and if it only passes the value on, the value that it becomes (``to``). ``chosen``
    and ``beside`` are those of ``Purpose``. -1 stands for no value, and for no op."""

    op: int
    slot: Slot
    value: int
    computed: Computed | None = None
    to: int = -1
    chosen: bool = False
    beside: int = -1


@dataclass(slots=True, eq=False)
class Purpose:
    """The purpose of a collective: the op, the slot and the value; the layout of the value before and after;
    and the choice among several ways to compute the op. If the op only passes the value on, ``to`` is the
    result that it becomes, and ``chosen`` says whether its layout was chosen with all ops together.
    ``beside`` is an op that runs as often, if the op that passes it on does not. ``inside``: the collective
    is inside of a user's computation of the op."""

    op: Any
    slot: Slot
    value: Any
    start: Layout | None = None
    goal: Layout | None = None
    computed: Computed | None = None
    to: Any = None
    chosen: bool = False
    beside: Any = None
    inside: bool = False

    @property
    def knowledge(self) -> Knowledge | None:
        """The rules' knowledge of the op."""
        return self.computed.knowledge if self.computed else None

    @property
    def held(self) -> tuple[Layout, ...]:
        """The layouts of the op's slots."""
        return self.computed.held if self.computed else ()

    @property
    def choice(self) -> Choice | None:
        """How the op is computed."""
        return self.computed.choice if self.computed else None


def purpose_of(op: Operation, computed: Computed, slot: Slot) -> Purpose:
    """The purpose of resharding the value in a slot of an op that is computed, None for a result."""
    value = op.operands[slot] if slot < len(op.operands) else None
    return Purpose(op, slot, value, computed=computed)
