"""The plan of a device program: the layouts of values, the way to compute each op, and each reshard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from ..program.ids import Slot
from .choice.choosing import Way
from .layouts import Layout
from .reshards.moves import Step

Role = Literal["operand", "result", "handed on", "needed", "shared"]


@dataclass(frozen=True, slots=True)
class Reshard:
    """A reshard of a plan: a value goes from the layout ``start`` to ``goal`` in some steps.

    It serves a slot of an op (operands first, then results). Its ``role`` is one of:

    - "operand" or "result" of an op that is computed
    - "handed on": the op only passes the value to another one
    - "needed": the value is needed in this layout, as at the boundary
    - "shared": several uses share it, or a region takes the value whole. The op is then its maker

    If ``start`` is None, nothing is resharded. The op that makes the value repeats a smaller one, and is
    computed once more, in this ``way``.
    """

    op: int
    slot: Slot
    role: Role
    value: int
    start: Layout | None
    goal: Layout
    steps: tuple[Step, ...] = ()
    way: Way | None = None


@dataclass(frozen=True)
class Plan:
    """Where a device program differs from what propagation decided. Values are called by their numbers in the
    module's listing. Ops are called by theirs in ``reshards``, otherwise by the number of their first result.

    ``homes`` are the layouts of values that differ from the module's. ``ways`` are the ways to compute ops,
    if they were chosen together. ``copies`` are other layouts in which values are made first, for users that
    do not need the home. Users of ``pinned`` values start from the home. ``again``: gathered values are not
    kept for distant users, but gathered again. ``reshards`` are in the order of the program, and None until
    they are decided. Then ``ways`` has all ops.
    """

    homes: Mapping[int, Layout] = field(default_factory=dict)
    ways: Mapping[int, Way] = field(default_factory=dict)
    copies: Mapping[int, Layout] = field(default_factory=dict)
    pinned: frozenset[int] = frozenset()
    again: bool = False
    reshards: tuple[Reshard, ...] | None = None

    def changed_to(self, other: Plan, *, again: bool = False) -> Plan:
        """This plan with the changes of another one, except for pinned values. Its reshards are open."""
        pinned = {value: self.homes[value] for value in self.pinned}
        homes = {**self.homes, **other.homes, **pinned}
        return Plan(homes, other.ways, other.copies, self.pinned, again)

    def decided(self, reshards: tuple[Reshard, ...], ways: Mapping[int, Way]) -> Plan:
        """The plan with each of its reshards, and the way of each op."""
        return replace(self, reshards=reshards, ways=ways)


AS_DECIDED = Plan()  # by propagation
