"""The columns of rules in Python: rows of relations by the names of their columns, and types that have names.

A row is a tuple as the engine returns it, without the key: ``Maps(*row)``.
``tests/rulebook/test_columns.py`` holds this to the declarations.
"""

from __future__ import annotations

from typing import NamedTuple

# Types of ``rules/types.dl`` whose values users know by other names than their numbers.
SLOT = "slot_id"
FACTOR = "factor_id"
AXIS = "axis_id"
LOOP = "loop"  # of ``rules/propagation/completion.dl``: a factor


class Maps(NamedTuple):
    """A factor of a dimension of a slot."""

    slot: int
    dim: int
    position: int
    factor: int


class Sharded(NamedTuple):
    """An axis of a dimension of a slot: rows of ``sharded``, ``puts`` and ``becomes_sharded``."""

    slot: int
    dim: int
    position: int
    axis: int


class Gains(NamedTuple):
    """An axis that a slot gains along a factor."""

    slot: int
    factor: int
    position: int
    axis: int


class Compatible(NamedTuple):
    """An axis that a factor may grow by."""

    factor: int
    position: int
    axis: int


class Denied(NamedTuple):
    """An axis that a slot does not get, because of slot ``where`` and factor ``by``."""

    slot: int
    factor: int
    position: int
    axis: int
    reason: str
    where: int
    by: int


class Loses(NamedTuple):
    """A loser, when a slot gained along a factor: ``loser`` did not get an axis that ``holder`` has along
    ``losing``."""

    slot: int
    factor: int
    loser: int
    losing: int
    position: int
    axis: int
    holder: int
    reason: str
    where: int
    by: int

    @property
    def denied(self) -> Denied:
        """The obstacle to the axis."""
        return Denied(self.loser, self.losing, self.position, self.axis, self.reason, self.where, self.by)


class AnnotationWaits(NamedTuple):
    """An axis of an annotation whose priority is still to come."""

    dim: int
    axis: int
    priority: int
