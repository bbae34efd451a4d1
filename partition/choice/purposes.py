"""The purposes of collectives, of which the device program itself says nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ..facts.knowledge import Knowledge
from ..layouts import Layout
from .choosing import Choice


@dataclass(slots=True, eq=False)
class Computed:
    """An op that is computed: what is known of it, how its slots lie, and the choice of several ways."""

    known: Knowledge
    held: tuple[Layout, ...]
    choice: Choice


class Use(NamedTuple):
    """A use of a value for which it may be resharded, by numbers: the op, the slot, and the value there; how
    the op is computed, if it is; and where it only hands the value on, the value that it becomes (``to``).
    ``chosen`` and ``beside`` are those of ``Purpose``; -1 stands for no value, and for no op."""

    op: int
    slot: int
    value: int
    computed: Computed | None = None
    to: int = -1
    chosen: bool = False
    beside: int = -1


@dataclass(slots=True, eq=False)
class Purpose:
    """The purpose of a collective: the op, the slot and the value; how the value was laid out and is to be;
    where there were several ways to compute the op, the choice; and where the op only hands the value on,
    the result that it becomes (``to``), and whether all ops together say how that lies (``chosen``).
    ``beside`` is an op that runs as often, where the op that hands it on does not; ``inside``: the collective
    is in the computation that something else than the rules says is the op's."""

    op: Any
    slot: int
    value: Any
    start: Layout | None = None
    goal: Layout | None = None
    computed: Computed | None = None
    to: Any = None
    chosen: bool = False
    beside: Any = None
    inside: bool = False

    @property
    def known(self) -> Knowledge | None:
        """The rules' knowledge of the op."""
        return self.computed.known if self.computed else None

    @property
    def held(self) -> tuple[Layout, ...]:
        """How the slots of the op lie."""
        return self.computed.held if self.computed else ()

    @property
    def choice(self) -> Choice | None:
        """The choice how to compute the op."""
        return self.computed.choice if self.computed else None


def purpose_of(op: Any, computed: Computed, slot: int, value: Any) -> Purpose:
    """The purpose of moving a value for a slot of an op that is computed."""
    return Purpose(op, slot, value, computed=computed)
