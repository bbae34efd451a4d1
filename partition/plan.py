"""The plan of a device program: where values live, and in which way each op is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .choice.choosing import Way
from .layouts import Layout


@dataclass(frozen=True)
class Plan:
    """Where a device program differs from what propagation decided. Values are called by their numbers in the
    listing of the module, and ops by the number of their first result.

    ``homes`` are the layouts of values that live elsewhere than the module says, ``ways`` how ops are
    computed, and ``copies`` other layouts that values are made in first, where they are needed otherwise than
    at home. Values that are ``pinned`` are used as they are at home. ``again``: what was gathered is gathered
    again where it is used much later, and not kept in between.
    """

    homes: Mapping[int, Layout] = field(default_factory=dict)
    ways: Mapping[int, Way] = field(default_factory=dict)
    copies: Mapping[int, Layout] = field(default_factory=dict)
    pinned: frozenset[int] = frozenset()
    again: bool = False

    def changed_to(self, other: Plan, *, again: bool = False) -> Plan:
        """The plan that another one makes of this one, but for values that are pinned."""
        pinned = {value: self.homes[value] for value in self.pinned}
        homes = {**self.homes, **other.homes, **pinned}
        return Plan(homes, other.ways, other.copies, self.pinned, again)


AS_DECIDED = Plan()  # by propagation
