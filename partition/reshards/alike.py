"""Equivalent reshards: the search runs once for each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from typing import Any

from ..layouts import Axes, Layout, PieceId, Pieces, Shape
from .moves import Route, Sends, Step


@dataclass(eq=False)
class Alike:
    """An equivalent reshard, whose cost times ``times`` is that of the given one: of a tensor of smaller
    ``shape``, with dimensions in another ``order``, on other pieces. ``given`` are the original pieces by its
    own."""

    shape: Shape
    start: Layout
    goal: Layout
    times: float
    order: tuple[int, ...]
    given: dict[PieceId, PieceId]

    def route(self, own: Route, rank: int) -> Route:
        """The route of the given reshard, for a tensor of this rank, from the route of this one."""
        times = self.times
        return Route(
            own.price * times,
            own.sends if times else 0,
            lambda: tuple(self._given(step, rank) for step in own.steps),
            make_sent=lambda: self._sent(own) if times else (),
        )

    def _sent(self, own: Route) -> tuple[Sends, ...]:
        given, times = self.given, self.times
        return tuple([(kind, tuple([given[p] for p in on]), price * times) for kind, on, price in own.sent])

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
            along=tuple(given[p] for p in step.along),
            after=after,
            price=step.price * self.times,
            dim=order[step.dim] if step.dim >= 0 else -1,
            to=order[step.to] if step.to >= 0 else -1,
        )


class Likeness:
    """Finds equivalent reshards on a mesh of these pieces. Pieces of one of the ``kinds`` are
    interchangeable."""

    def __init__(self, axes: Axes, mesh: Pieces, kinds: Sequence[int]) -> None:
        self._count, self._mesh, self._kinds = axes.product(mesh), mesh, kinds
        self._of_kind = {kinds[p]: [q for q in mesh if kinds[q] == kinds[p]] for p in mesh}
        self._sizes = axes.sizes

    def least(self, shape: Shape, start: Layout, goal: Layout) -> Alike:
        """The smallest of the reshards that are equivalent to the given one.

        Without padding the sizes of dimensions do not matter. Their order, and the choice among
        interchangeable pieces, never matter.
        """
        sizes, count = self._sizes, self._count
        less = [size if size % count else count for size in shape]
        used, spare = list[tuple[Any, ...]](), dict[int, int]()
        for d, (held, wanted) in enumerate(zip(start.dims, goal.dims, strict=True)):
            if held or wanted:
                parts = [sizes[p] for p in held], [sizes[p] for p in wanted]
                used.append((less[d], parts, held, wanted, d))
            elif less[d] > 1:
                spare.setdefault(less[d], d)  # one stands for many
        used.sort(reverse=True)
        order = [d for *_, d in used]
        order += [spare[count]] if count in spare else [spare[size] for size in sorted(spare, reverse=True)]

        split = [pieces for *_, held, wanted, _ in used for pieces in (held, wanted)]
        free = {kind: iter(pieces) for kind, pieces in self._of_kind.items()}
        named: dict[PieceId, PieceId] = {}
        for piece in chain(*split, start.partial, goal.partial, self._mesh):  # all may be used on the way
            if piece not in named:
                named[piece] = next(free[self._kinds[piece]])

        def there(layout: Layout) -> Layout:
            dims = tuple([(held := layout.dims[d]) and tuple([named[p] for p in held]) for d in order])
            return Layout(dims, tuple(sorted([named[p] for p in layout.partial])), layout.combine)

        small, given = tuple([less[d] for d in order]), {new: old for old, new in named.items()}
        return Alike(small, there(start), there(goal), prod(shape) / prod(small), tuple(order), given)
