"""The cheapest collectives from one layout to another: a shortest path over steps."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import product
from math import inf, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..layouts import Axes, Dims, Layout, Pieces, Shape
from .moves import Moves, Step, with_pieces
from .prices import PLAIN, Price, Prices

Places = npt.NDArray[np.int64]
_STEP = 1e-6  # of two plans that move as much, the one with fewer collectives
_ALIKE = 300  # layouts that are tried for the way from one mesh to another
_CROSSINGS = 1000  # ways to split dimensions there
_MOST = (300, 3000)  # layouts looked at, of all and of those on the direct way; then dimensions are gathered


@dataclass(frozen=True, eq=False)
class Plan:
    """Steps from one layout to another, and what they cost together, in elements that a device sends."""

    steps: tuple[Step, ...]
    price: float

    @cached_property
    def sends(self) -> int:
        """How many of the steps are collectives."""
        return sum(step.price > 0 for step in self.steps)


@dataclass
class Kept:
    """What has been decided for some axes: plans, and how ops are computed."""

    plans: dict[tuple[Shape, Layout, Layout], Plan] = field(default_factory=dict)
    searches: dict[tuple[Shape, Layout, Layout], Plan] = field(default_factory=dict)
    choices: dict[Any, Any] = field(default_factory=dict)
    ways: dict[Any, Any] = field(default_factory=dict)


@lru_cache(maxsize=8)
def kept_for(axes: Hashable) -> Kept:
    """What this process has decided for axes, by the usual prices."""
    return Kept()


class Planner:
    """Finds plans, and remembers them."""

    def __init__(self, axes: Axes, prices: Prices | None = None) -> None:
        self.axes, self.prices = axes, prices or Prices()
        self.moves = Moves(axes)
        self._known_prices: dict[tuple[str, Pieces], Price] = {}
        kept = kept_for(axes.key) if self.prices == Prices() else Kept()
        self.kept, self._plans, self._searches = kept, kept.plans, kept.searches
        self._overlaps: dict[tuple[int, Pieces, Pieces], tuple[Places, Places]] = {}
        self._lacking: dict[tuple[Shape, Dims, Dims], float] = {}

    def plan(self, shape: Shape, start: Layout, goal: Layout) -> Plan:
        """The cheapest plan for a tensor of this shape."""
        key = shape, start, goal
        if key not in self._plans:
            plan = self._same(shape, start, goal) or self._straight(shape, start, goal)
            self._plans[key] = plan or self._alike(shape, start, goal) or self._searched(shape, start, goal)
        return self._plans[key]

    def _searched(self, shape: Shape, start: Layout, goal: Layout) -> Plan:
        key = shape, start, goal
        if key not in self._searches:
            self._searches[key] = (
                self._search(shape, start, goal)
                or self._search(shape, start, goal, direct=True)
                or self._by_the_whole(shape, start, goal)
            )
        return self._searches[key]

    def cost(self, shape: Shape, start: Layout, goal: Layout, width: int) -> float:
        """The price of the cheapest plan, in bytes, for elements of so many."""
        plan = self.plan(shape, start, goal)
        return self.total(plan, width) + self.prices.once * plan.sends

    def total(self, plan: Plan, width: int) -> float:
        """The price of a plan in bytes, by the prices of each collective."""
        if self.prices.collective is None:
            return plan.price * width
        found = 0.0
        for step in plan.steps:
            if step.price:
                price = self.price(step.kind, step.pieces)
                found += price.once + price.byte * step.price * width
        return found

    def price(self, kind: str, pieces: Pieces) -> Price:
        """The price of a collective over groups along pieces."""
        if self.prices.collective is None:
            return PLAIN
        key = kind, pieces
        if key not in self._known_prices:
            name, group = kind.replace("_", "-"), self.axes.product(pieces)
            groups = self.axes.groups(pieces).tolist() if pieces else []
            self._known_prices[key] = self.prices.collective(name, group, self.axes.names(pieces), groups)
        return self._known_prices[key]

    def _rate(self, piece: int) -> float:
        """The price of a byte along a piece."""
        return self.price("all_gather", (piece,)).byte

    def _alike(self, shape: Shape, start: Layout, goal: Layout) -> Plan | None:
        """The plan of a smaller tensor, with other pieces of the same sizes: where nothing is padded,
        neither the sizes of dimensions nor their order matter, nor which pieces they are. None where
        something is padded."""
        sizes, used = self.axes.sizes, {*start.pieces, *goal.pieces}
        mesh = {self.axes.pieces[p].mesh for p in used}
        free = [p for p in range(len(sizes)) if self.axes.pieces[p].mesh in mesh]
        n = self.axes.product(free)
        pairs = list(zip(start.dims, goal.dims, strict=True))
        even = [d for d, size in enumerate(shape) if size % n == 0]
        if any(any(pair) for d, pair in enumerate(pairs) if d not in even):
            return None
        order = sorted(
            even,
            key=lambda d: (*(tuple(sizes[p] for p in held) for held in pairs[d]), *pairs[d]),
            reverse=True,
        )
        spare = [d for d in order if not any(pairs[d])]  # one is as good as many
        order = [d for d in order if d not in spare[1:]]
        first = dict.fromkeys(p for d in order for held in pairs[d] for p in held)
        first |= dict.fromkeys((*start.partial, *goal.partial))
        first |= dict.fromkeys(free)  # of use on the way
        named: dict[int, int] = {}
        for piece in first:
            rate = self._rate(piece)
            named[piece] = next(p for p in free if sizes[p] == sizes[piece] and self._rate(p) == rate)
            free.remove(named[piece])
        given = {new: old for old, new in named.items()}

        def there(layout: Layout) -> Layout:
            dims = tuple(tuple(named[p] for p in layout.dims[d]) for d in order)
            return Layout(dims, tuple(sorted(named[p] for p in layout.partial)), layout.combine)

        def back(layout: Layout) -> Layout:
            dims: list[Pieces] = [()] * len(shape)
            for d, pieces in zip(order, layout.dims, strict=True):
                dims[d] = tuple(given[p] for p in pieces)
            return Layout(tuple(dims), tuple(sorted(given[p] for p in layout.partial)), layout.combine)

        small = (n,) * len(order)
        found, larger = self._searched(small, there(start), there(goal)), prod(shape) / prod(small)
        steps = tuple(
            replace(
                step,
                pieces=tuple(given[p] for p in step.pieces),
                after=back(step.after),
                price=step.price * larger,
                dim=order[step.dim] if step.dim >= 0 else -1,
                to=order[step.to] if step.to >= 0 else -1,
            )
            for step in found.steps
        )
        return Plan(steps, found.price * larger)

    def _same(self, shape: Shape, start: Layout, goal: Layout) -> Plan | None:
        if start == goal or (start.dims == goal.dims and not goal.partial and not start.partial):
            return Plan((), 0.0)
        pieces = self.axes.pieces
        if len({pieces[p].mesh for p in (*start.pieces, *goal.pieces)}) > 1:
            return self._between_meshes(shape, start, goal)
        return None

    def _straight(self, shape: Shape, start: Layout, goal: Layout) -> Plan | None:
        """The plan where it takes only combining partial values, gathering, or slicing."""
        axes, pairs = self.axes, list(zip(start.dims, goal.dims, strict=True))
        if start.dims == goal.dims and not goal.partial:
            n, size = axes.product(start.partial), prod(axes.local(shape, start.dims))
            step = Step("all_reduce", start.partial, goal, 2 * size * (n - 1) / n)
            return Plan((step,), step.price)
        if start.partial or goal.partial:
            return None
        gathers = all(held[: len(wanted)] == wanted for held, wanted in pairs)
        if not gathers and any(wanted[: len(held)] != held for held, wanted in pairs):
            return None
        steps, layout = list[Step](), start
        for d, (held, wanted) in enumerate(pairs):
            if held == wanted:
                continue
            more, fewer = (held, wanted) if gathers else (wanted, held)
            if not self.moves.fits(shape[d], more, fewer):
                return None
            moved = more[len(fewer) :]
            price = prod(axes.local(shape, layout.dims)) * (axes.product(moved) - 1) if gathers else 0
            layout = Layout(with_pieces(layout.dims, d, wanted))
            steps.append(Step("all_gather" if gathers else "slice", moved, layout, float(price), d))
        return Plan(tuple(steps), sum(step.price for step in steps))

    def _between_meshes(self, shape: Shape, start: Layout, goal: Layout) -> Plan:
        """Steps on the one mesh, parts permuted to the other where both have as many of each dimension, and
        steps there: the cheapest of these ways, or by the whole."""
        middle = Layout(((),) * len(shape))
        best = _joined(self.plan(shape, start, middle), self.plan(shape, middle, goal))
        if goal.partial:
            return best
        left = _ALIKE
        for counts in self._crossings(shape, start, goal):
            held, wanted = self._in_parts(start, counts), self._in_parts(goal, counts)
            left -= len(held) + len(wanted)
            if left < 0:
                break
            before = [(self.plan(shape, start, layout), layout) for layout in held]
            after = [(self.plan(shape, layout, goal), layout) for layout in wanted]
            for (first, here), (last, there) in product(before, after):
                price = prod(self.axes.local(shape, there.dims)) if self._displaced(here, there) else 0
                if first.price + price + last.price < best.price:
                    step = Step("collective_permute", (), there, float(price))
                    best = _joined(first, Plan((step,), step.price), last)
        return best

    def _crossings(self, shape: Shape, start: Layout, goal: Layout) -> Iterator[tuple[int, ...]]:
        """In how many parts each dimension may be where a tensor changes meshes, the likeliest first."""
        counts = [tuple(self.axes.product(held) for held in layout.dims) for layout in (start, goal)]
        divisors = [n for n in range(1, self.axes.count + 1) if self.axes.count % n == 0]
        fitting = [[n for n in divisors if n <= size] for size in shape]
        yield from dict.fromkeys(counts)
        if prod(map(len, fitting)) > _CROSSINGS:
            return
        others = [c for c in product(*fitting) if self.axes.count % prod(c) == 0 and c not in counts]
        yield from sorted(others, key=lambda c: (-prod(c), c))

    def _in_parts(self, layout: Layout, counts: tuple[int, ...]) -> list[Layout]:
        """The layouts on the mesh of ``layout`` with so many parts of each dimension."""
        pieces = tuple(self.moves.same_mesh(layout, layout))
        return [Layout(dims) for dims in self.moves.arranged(pieces, counts)]

    def _displaced(self, start: Layout, goal: Layout) -> bool:
        """Whether any device has another part in ``goal``, which has as many parts of each dimension."""
        pairs = zip(start.dims, goal.dims, strict=True)
        return any((self.axes.index(held) != self.axes.index(wanted)).any() for held, wanted in pairs)

    def _search(self, shape: Shape, start: Layout, goal: Layout, *, direct: bool = False) -> Plan | None:
        """A* search: a bound on the rest guides it.

        ``direct``: only by steps that bring pieces to where they should be. None: it takes too long.
        """
        best: dict[Layout, float] = {start: 0.0}
        came: dict[Layout, tuple[Layout, Step]] = {}
        queue: list[tuple[float, int, Layout]] = [(0.0, 0, start)]
        to_come: dict[Layout, float] = {}
        done: set[Layout] = set()
        lowest = min((self._rate(p) for p in range(len(self.axes.pieces))), default=1.0)
        count = 0
        while queue and len(done) < _MOST[direct]:
            _, _, layout = heapq.heappop(queue)
            if layout == goal:
                return self._plan(came, start, goal)
            if layout in done:
                continue
            done.add(layout)
            price = best[layout]
            for step in self.moves.steps(shape, layout, goal, direct=direct):
                after = step.after
                total = price + (_STEP if step.price else _STEP / 1000)
                total += step.price * self.price(step.kind, step.pieces).byte
                if total < best.get(after, inf):
                    if after not in to_come:
                        to_come[after] = self._least(shape, after, goal) * lowest
                    count += 1
                    best[after], came[after] = total, (layout, step)
                    heapq.heappush(queue, (total + to_come[after], count, after))
        return None

    def _by_the_whole(self, shape: Shape, start: Layout, goal: Layout) -> Plan:
        """The plain way: the tensor becomes whole, dimension by dimension, and is cut."""
        axes, steps, layout = self.axes, list[Step](), start
        if loose := tuple(p for p in start.partial if p not in goal.partial):
            rest = tuple(p for p in start.partial if p in goal.partial)
            layout = Layout(start.dims, rest, start.combine if rest else "")
            n, size = axes.product(loose), prod(axes.local(shape, start.dims))
            steps.append(Step("all_reduce", loose, layout, 2 * size * (n - 1) / n))
        for d, held in enumerate(start.dims):
            if held != goal.dims[d] or set(held) & set(goal.partial):
                price = prod(axes.local(shape, layout.dims)) * (axes.product(held) - 1)
                layout = layout._replace(dims=with_pieces(layout.dims, d, ()))
                steps += [Step("all_gather", held, layout, float(price), d)] if held else []
        for d, wanted in enumerate(goal.dims):
            if wanted != layout.dims[d]:
                layout = layout._replace(dims=with_pieces(layout.dims, d, wanted))
                steps.append(Step("slice", wanted, layout, 0.0, d))
        if layout != goal:
            masked = tuple(p for p in goal.partial if p not in layout.partial)
            steps.append(Step("mask", masked, goal, 0.0))
        return Plan(tuple(steps), sum(step.price for step in steps))

    def _least(self, shape: Shape, layout: Layout, goal: Layout) -> float:
        """A lower bound of the price: the most that any device lacks of its new part."""
        if any(p not in goal.partial for p in layout.partial):
            return float(prod(self.axes.local(shape, goal.dims)))
        key = shape, layout.dims, goal.dims
        if key not in self._lacking:
            wanted = common = np.ones(1, dtype=np.int64)
            for size, held, new in zip(shape, layout.dims, goal.dims, strict=True):
                whole, shared = self._overlap(size, held, new)
                wanted, common = wanted * whole, common * shared
            self._lacking[key] = float((wanted - common).max())
        return self._lacking[key]

    def _overlap(self, size: int, held: Pieces, new: Pieces) -> tuple[Places, Places]:
        """How much of a dimension each device is to have, and how much of that it has."""
        key = size, held, new
        if key not in self._overlaps:
            (low, high), (first, last) = self._range(size, held), self._range(size, new)
            shared = np.maximum(np.minimum(high, last) - np.maximum(low, first), 0)
            self._overlaps[key] = last - first, shared
        return self._overlaps[key]

    def _range(self, size: int, pieces: Pieces) -> tuple[Places, Places]:
        """Where the parts of a dimension begin and end, by device."""
        tile = self.axes.tile(size, pieces)
        low = np.minimum(self.axes.index(pieces) * tile, size)
        return low, np.minimum(low + tile, size)

    @staticmethod
    def _plan(came: dict[Layout, tuple[Layout, Step]], start: Layout, goal: Layout) -> Plan:
        steps, layout = list[Step](), goal
        while layout != start:
            layout, step = came[layout]
            steps.append(step)
        return Plan(tuple(reversed(steps)), sum(step.price for step in steps))


def _joined(*plans: Plan) -> Plan:
    """One plan after the other."""
    return Plan(tuple(step for plan in plans for step in plan.steps), sum(plan.price for plan in plans))
