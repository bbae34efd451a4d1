"""The boundary of manual computations.

Inside of a manual computation every value is a shard along the manual axes, which therefore are no part of
its sharding; outside they come first in each dimension. So where data flows in or out, one end of the edge
lacks them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from ..errors import ShardlogError
from .shardings import Sharding
from .signature import StaticFacts


@dataclass(frozen=True)
class Manual:
    """The manual axes of an operand or result of a manual computation.

    ``sharding`` is the sharding at the boundary, without the free axes of its dimensions. ``facts`` are the
    facts about an edge across it for ``rules/propagation/turn/manual.dl``, without the slot.
    """

    sharding: Sharding
    facts: StaticFacts

    def facts_of(self, slot: int) -> StaticFacts:
        """The facts for the turns of an edge whose end ``slot`` lies inside."""
        return tuple((name, tuple((slot, *row) for row in rows)) for name, rows in self.facts)

    def check(self, outer: Sharding, names: Collection[str], where: str) -> None:
        """Raises ShardlogError where a sharding outside has more of the manual axes called ``names`` than the
        boundary: inside, every value is a shard along them."""
        for dimension, manual in zip(outer.dimensions, self.sharding.dimensions, strict=True):
            for axis in dimension.axes:
                if axis.name in names and axis not in manual.axes:
                    message = f'a result of the manual computation gets its manual axis "{axis.name}"'
                    hint = "a sharding group passes it on: take the result or the tensor with that axis out"
                    raise ShardlogError(message, where=where, hint=hint)

    def around(self, inner: Sharding) -> Sharding:
        """The sharding outside of the computation of a value whose sharding inside is ``inner``."""
        dimensions = tuple(
            replace(free, axes=manual.axes + free.axes)
            for manual, free in zip(self.sharding.dimensions, inner.dimensions, strict=True)
        )
        return replace(self.sharding, mesh=inner.mesh, dimensions=dimensions)
