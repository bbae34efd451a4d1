"""Reshards that are alike: of each kind only one is searched for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from ..layouts import Axes, Layout, Shape
from .moves import Plan, Step


@dataclass(frozen=True)
class Alike:
    """A reshard that costs as much as the given one but for a factor, ``times``: of a tensor of less
    ``shape``, with the dimensions in another ``order``, on other pieces. ``given`` are the pieces that were
    given, by those that it has."""

    shape: Shape
    start: Layout
    goal: Layout
    times: float
    order: tuple[int, ...]
    given: dict[int, int]

    def plan(self, found: Plan, rank: int) -> Plan:
        """The plan of the given reshard, of a tensor of this rank, from that of this one."""
        times = self.times
        return Plan(
            found.price * times,
            found.sends if times else 0,
            lambda: tuple(self._given(step, rank) for step in found.steps),
        )

    def _given(self, step: Step, rank: int) -> Step:
        order, given = self.order, self.given
        dims = dict(zip(order, step.after.dims, strict=True))
        after = Layout(
            tuple(tuple(given[p] for p in dims.get(d, ())) for d in range(rank)),
            tuple(sorted(given[p] for p in step.after.partial)),
            step.after.combine,
        )
        return replace(
            step,
            pieces=tuple(given[p] for p in step.pieces),
            after=after,
            price=step.price * self.times,
            dim=order[step.dim] if step.dim >= 0 else -1,
            to=order[step.to] if step.to >= 0 else -1,
        )


def alike(
    axes: Axes, kinds: Sequence[int], mesh: Sequence[int], shape: Shape, start: Layout, goal: Layout
) -> Alike:
    """The least of the reshards that are alike, on these pieces of a mesh, of which those of one of the
    ``kinds`` are alike.

    Where nothing is padded, the sizes of dimensions do not matter, and nowhere does their order, or which
    pieces they are split on.
    """
    n, sizes = axes.product(mesh), axes.sizes
    pairs = list(zip(start.dims, goal.dims, strict=True))
    less = [n if size % n == 0 else size for size in shape]
    order, spare = list[int](), dict[int, int]()
    for d, (held, wanted) in enumerate(pairs):
        if held or wanted:
            order.append(d)
        elif less[d] > 1:
            spare.setdefault(less[d], d)  # one is as good as many
    order.sort(
        key=lambda d: (less[d], *(tuple(sizes[p] for p in pieces) for pieces in pairs[d]), *pairs[d]),
        reverse=True,
    )
    order += [spare[n]] if n in spare else [spare[size] for size in sorted(spare, reverse=True)]
    met = dict.fromkeys(p for d in order for pieces in pairs[d] for p in pieces)
    met |= dict.fromkeys((*start.partial, *goal.partial, *mesh))  # all are of use on the way
    free, named = list(mesh), dict[int, int]()
    for piece in met:
        named[piece] = next(p for p in free if kinds[p] == kinds[piece])
        free.remove(named[piece])

    def there(layout: Layout) -> Layout:
        dims = tuple(tuple(named[p] for p in layout.dims[d]) for d in order)
        return Layout(dims, tuple(sorted(named[p] for p in layout.partial)), layout.combine)

    small = tuple(less[d] for d in order)
    given = {new: old for old, new in named.items()}
    return Alike(small, there(start), there(goal), prod(shape) / prod(small), tuple(order), given)
