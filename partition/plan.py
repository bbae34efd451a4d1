"""The plan of a device program: where values live, in which way each op is computed, and each reshard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from .choice.choosing import Way
from .layouts import Layout
from .reshards.moves import Step

Role = Literal["operand", "result", "handed on", "needed", "shared"]


@dataclass(frozen=True, slots=True)
class Reshard:
    """A reshard of a plan: a value goes from the layout ``start`` to ``goal`` in some steps.

    It serves a slot of an op (operands first, then results). Its ``role`` there: an "operand" or a "result"
    of an op that is computed; a value that the op only "handed on" to another; a value that is "needed" in
    this layout, as at the boundary; or, for no slot in particular, one that is "shared" by several uses or
    that a region takes whole. The op of a shared one is the op that makes the value. Where ``start`` is None,
    nothing is resharded: the op that makes the value repeats a smaller one, and is computed once more, in
    this ``way``.
    """

    op: int
    slot: int
    role: Role
    value: int
    start: Layout | None
    goal: Layout
    steps: tuple[Step, ...] = ()
    way: Way | None = None


@dataclass(frozen=True)
class Plan:
    """Where a device program differs from what propagation decided. Values are called by their numbers in the
    listing of the module, ops by theirs in ``reshards``, and else by that of their first result.

    ``homes`` are the layouts of values that live elsewhere than the module says. ``ways`` are those in which
    ops are computed, where they were chosen together. ``copies`` are other layouts that values are made in
    first, where they are needed otherwise than at home. Values that are ``pinned`` are used as they are at
    home. ``again``: what was gathered is gathered again where it is used much later, and not kept in between.
    ``reshards`` are in the order of the program; None as long as they are not decided. Once they are,
    ``ways`` has all ops.
    """

    homes: Mapping[int, Layout] = field(default_factory=dict)
    ways: Mapping[int, Way] = field(default_factory=dict)
    copies: Mapping[int, Layout] = field(default_factory=dict)
    pinned: frozenset[int] = frozenset()
    again: bool = False
    reshards: tuple[Reshard, ...] | None = None

    def changed_to(self, other: Plan, *, again: bool = False) -> Plan:
        """The plan that another one makes of this one, but for values that are pinned; reshards are open."""
        pinned = {value: self.homes[value] for value in self.pinned}
        homes = {**self.homes, **other.homes, **pinned}
        return Plan(homes, other.ways, other.copies, self.pinned, again)

    def decided(self, reshards: tuple[Reshard, ...], ways: Mapping[int, Way]) -> Plan:
        """The plan with each of its reshards, and the way of each op."""
        return replace(self, reshards=reshards, ways=ways)


AS_DECIDED = Plan()  # by propagation
