"""The cheapest steps between layouts of tensors of one shape: shortest paths, found by A*."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from itertools import chain, combinations
from math import inf, prod

from ..layouts import Axes, Dims, Layout, PieceId, Pieces, Shape
from .moves import Amount, Moves, Route, Step, straight, with_pieces

Edge = tuple[int, float, float, Step]  # the next layout; the cost of any such step; the elements sent

_GIVING = ("all_gather", "reduce_scatter", "all_to_all", "collective_permute")
SENDING = (*_GIVING, "all_reduce")
_STEP = 1e-6  # of two routes that send the same, the one with fewer collectives
_ONE: Amount = 1
_ALL_WAYS, _DIRECT_WAYS = 5, 4  # pieces of a mesh up to which all permutes are tried; ... on the direct way
_SPREAD = 3000  # layouts reached from one start
_VISITED = (300, 3000)  # layouts visited: of all, and on the direct way; then dimensions are gathered


class _Spread:
    """The layouts that were reached from a start: the least price of each, the layout and the step before it,
    the queue of those to go on from, and those that are ``done``."""

    def __init__(self, start: int) -> None:
        self.best = {start: 0.0}
        self.came: dict[int, tuple[int, Step]] = {}
        self.queue = [(0.0, 0, start)]
        self.done: set[int] = set()
        self.permuted: set[int] = set()

    def reach(self, number: int, price: float, came: tuple[int, Step]) -> None:
        """Notes a path to a layout, if it is the cheapest so far."""
        if price < self.best.get(number, inf):
            self.best[number], self.came[number] = price, came
            heapq.heappush(self.queue, (price, len(self.came), number))


class RouteSearch:
    """Finds routes for tensors of one shape, and remembers them. Layouts are numbered as they are met,
    because hashing nested values is slow. ``rate`` is the price of an element that a kind of step sends along
    pieces."""

    def __init__(self, moves: Moves, shape: Shape, rate: Callable[[str, Pieces], float]) -> None:
        self._moves, self._shape, self._rate = moves, shape, rate
        axes = moves.axes
        self._lowest = self._least_rate()
        self._elements = prod(shape)
        self._evenly: dict[Dims, bool] = {}
        self._even = all(size % axes.count == 0 for size in shape)
        self._numbers: dict[Layout, int] = {}
        self._layouts: list[Layout] = []
        self._edges: dict[tuple[int, Pieces, str, int], list[Edge]] = {}
        self._permuting: dict[int, list[Edge]] = {}
        self._towards: dict[tuple[int, int], list[Edge]] = {}
        self._permutes: dict[tuple[tuple[int, ...], Dims, Pieces, str, int], list[Edge]] = {}
        permuting = {rate("collective_permute", along) for along in ((), *self._groups())}
        self._links_differ = len(permuting) > 1
        self._to_come: dict[tuple[int, bool], dict[int, float]] = {}  # by goal, and whether direct
        self._lacking: dict[Dims, dict[Dims, int]] = {}  # by goal
        self._routes: dict[tuple[int, int], Route] = {}
        self._priced: dict[tuple[int, int], Route] = {}
        self._spreads: dict[tuple[int, Pieces, str, int], _Spread] = {}
        self._straight: dict[tuple[int, int], Route] = {}
        self._better: dict[tuple[int, int, float], Route | None] = {}
        self._at_once: dict[tuple[int, int], Route | None] = {}

    def route(self, start: Layout, goal: Layout) -> Route:
        """The cheapest route."""
        ends = self._number(start), self._number(goal)
        if ends not in self._routes:
            self._routes[ends] = self._search(*ends) or self.straight(start, goal)
        return self._routes[ends]

    def priced(self, start: Layout, goal: Layout) -> Route:
        """A route that is as cheap as any, found together with those from the same start to other goals."""
        ends = self._number(start), self._number(goal)
        if ends not in self._priced:
            self._priced[ends] = self._reached(*ends) or self.route(start, goal)
        return self._priced[ends]

    def straight(self, start: Layout, goal: Layout) -> Route:
        """The cheapest route of steps that bring pieces to their goal."""
        ends = self._number(start), self._number(goal)
        if ends not in self._straight:
            route = self._search(*ends, direct=True)
            self._straight[ends] = route or by_the_whole(self._moves.axes, self._shape, start, goal)
        return self._straight[ends]

    def cheaper(self, start: Layout, goal: Layout, price: float, sends: int) -> Route | None:
        """The cheapest route, if it costs less than this price with this number of collectives."""
        ends = self._number(start), self._number(goal)
        below = price + _STEP * sends
        key = *ends, round(below, 9)
        if key not in self._better:
            self._better[key] = self._search(*ends, below=below)
        return self._better[key]

    def at_once(self, start: Layout, goal: Layout) -> Route | None:
        """The cheapest route of one collective followed by slices; None if there is none."""
        ends = number, last = self._number(start), self._number(goal)
        if ends not in self._at_once:
            edges = chain(self._onwards(number, last), self._permuted(number, last, _ALL_WAYS))
            ways = [
                (sent, after, step)
                for after, _, sent, step in edges
                if step.price and self._cuts(after, goal)
            ]
            self._at_once[ends] = None
            if ways:
                _, after, step = min(ways, key=lambda way: way[:2])
                self._at_once[ends] = Route.of((step, *_slices(self._layouts[after], goal)))
        return self._at_once[ends]

    def _cuts(self, number: int, goal: Layout) -> bool:
        """Whether devices can slice a goal out of their parts in a layout."""
        held, fits = self._layouts[number], self._moves.fits
        return held.partial == goal.partial and all(
            there[: len(here)] == here and fits(size, there, here)
            for size, here, there in zip(self._shape, held.dims, goal.dims, strict=True)
        )

    def lacking(self, start: Layout, goal: Layout) -> float:
        """The number of elements that some device must receive at least."""
        if not self._lowest:  # beside the price of a step elements have none
            return 0.0
        return self._at_least(self._number(start), self._number(goal)) / self._lowest

    def _search(self, start: int, goal: int, *, direct: bool = False, below: float = inf) -> Route | None:
        """A* search, guided by a bound on the rest.

        ``direct``: only steps that bring pieces to their goal, and with many pieces a route that is found
        soon. None if it takes too long, or if no route costs less than ``below``.
        """
        best = {start: 0.0}
        came: dict[int, tuple[int, Step]] = {}
        queue = [(0.0, 0, start)]
        to_come = self._to_come.setdefault((goal, direct), {})
        done: set[int] = set()
        permuted: dict[int, float] = {}  # the least cost to reach each layout
        count, least = 0, below  # of paths known to reach the goal
        hurry = max(2.0 * (self._moves.most - _ALL_WAYS), 1.0) if direct else 1.0
        while queue and len(done) < _VISITED[direct]:
            number = heapq.heappop(queue)[-1]
            if number == goal:
                return self._plan(came, start, goal)
            if number in done:
                continue
            done.add(number)
            price = best[number]
            if direct:
                edges: Iterable[Edge] = self._direct(number, goal)
            else:
                edges, others = self._onwards(number, goal), self._permuted(number, goal, _ALL_WAYS)
                if price < permuted.get(id(others), inf):
                    permuted[id(others)] = price
                    edges = chain(edges, others)
            for after, once, sent, step in edges:
                total = price + once + sent
                if total < best.get(after, least):
                    if after not in to_come:
                        to_come[after] = self._at_least(after, goal, likely=direct)
                    bound = total + to_come[after] * hurry
                    if bound < least:
                        count += 1
                        best[after], came[after] = total, (number, step)
                        heapq.heappush(queue, (bound, count, after))
                        if after == goal:
                            least = total
        return None

    def _reached(self, start: int, goal: int) -> Route | None:
        """A cheapest route by Dijkstra's algorithm, which goes on from where the search for another goal
        ended. None if steps depend on the goal, or if it is far."""
        wanted, moves = self._layouts[goal], self._moves
        at_once = not self._even and any(
            len(held) > 1 and size % moves.axes.product(held)
            for size, held in zip(self._shape, wanted.dims, strict=True)
        )
        if at_once or moves.most > _ALL_WAYS:
            return None
        key = start, wanted.partial, wanted.combine, moves.mesh_of(self._layouts[start], wanted)
        spread = self._spreads.setdefault(key, _Spread(start))
        while goal not in spread.done:
            if not spread.queue or len(spread.done) >= _SPREAD:
                return None
            price, _, number = heapq.heappop(spread.queue)
            if number in spread.done:
                continue
            spread.done.add(number)
            # No steps slice several pieces at once: the goal has none that are not nested.
            edges: Iterable[Edge] = self._steps(number, goal)
            others = self._permuted(number, goal, _ALL_WAYS)
            if id(others) not in spread.permuted:  # else they were reached at no higher price
                spread.permuted.add(id(others))
                edges = chain(edges, others)
            for after, once, sent, step in edges:
                spread.reach(after, price + once + sent, (number, step))
        return self._plan(spread.came, start, goal)

    @staticmethod
    def _plan(came: dict[int, tuple[int, Step]], start: int, goal: int) -> Route:
        steps, number = list[Step](), goal
        while number != start:
            number, step = came[number]
            steps.append(step)
        return Route.of(reversed(steps))

    # ---- Steps ------------------------------------------------------------------------------------------

    def _onwards(self, number: int, goal: int) -> Iterable[Edge]:
        """The steps from a layout towards a goal. Most are the same for many goals."""
        layout, wanted = self._layouts[number], self._layouts[goal]
        edges = self._steps(number, goal)
        at_once = () if self._even else self._moves.cuts_at_once(self._shape, layout, wanted)
        return chain(edges, self._edges_of(at_once)) if at_once else edges

    def _steps(self, number: int, goal: int) -> list[Edge]:
        """The steps from a layout that are the same for many goals."""
        layout, wanted = self._layouts[number], self._layouts[goal]
        key = number, wanted.partial, wanted.combine, self._moves.mesh_of(layout, wanted)
        if key not in self._edges:
            self._edges[key] = self._edges_of(self._moves.steps(self._shape, layout, wanted))
        return self._edges[key]

    def _permuted(self, number: int, goal: int, most: int) -> list[Edge]:
        """The steps to layouts with the same numbers of parts; shared by all of these layouts, unless some
        links are slower. With many pieces, only steps towards a goal are tried."""
        if self._moves.most > most:
            key = number, goal
            if key not in self._towards:
                ends = self._layouts[number], self._layouts[goal]
                self._towards[key] = self._edges_of(self._moves.permutes(self._shape, *ends))
            return self._towards[key]
        if number not in self._permuting:
            layout = self._layouts[number]
            counts = tuple(map(self._moves.axes.product, layout.dims))
            own = layout.dims if self._links_differ else ()
            alike = counts, own, layout.partial, layout.combine, self._moves.mesh_of(layout)
            if alike not in self._permutes:
                self._permutes[alike] = self._edges_of(self._moves.permutes(self._shape, layout))
            self._permuting[number] = self._permutes[alike]
        return self._permuting[number]

    def _direct(self, number: int, goal: int) -> list[Edge]:
        """The steps that bring pieces to their places in the goal."""
        held, wanted, layouts = self._layouts[number].dims, self._layouts[goal].dims, self._layouts
        edges = chain(self._onwards(number, goal), self._permuted(number, goal, _DIRECT_WAYS))
        return [edge for edge in edges if straight(layouts[edge[0]].dims, held, wanted)]

    def _edges_of(self, steps: Iterable[Step]) -> list[Edge]:
        return [
            (
                self._number(step.after),
                _STEP if step.price else _STEP / 1000,
                step.price * self._rate(step.kind, step.sends_along),
                step,
            )
            for step in steps
        ]

    # ---- Layouts ----------------------------------------------------------------------------------------

    def _number(self, layout: Layout) -> int:
        number = self._numbers.setdefault(layout, len(self._layouts))
        if number == len(self._layouts):
            self._layouts.append(layout)
        return number

    def _least_rate(self) -> float:
        """A lower bound of the price of an element that a device receives."""
        groups = self._groups()
        rates = [self._rate(kind, on) for kind in _GIVING for on in groups]
        # In an all-reduce a device sends more than it gets: all but its part, twice.
        rates += [self._rate("all_reduce", on) * 2 * (1 - 1 / self._moves.axes.product(on)) for on in groups]
        return min(rates, default=1.0)

    def _groups(self) -> list[Pieces]:
        """The pieces along which devices may send: with many pieces only each alone."""
        groups = list[Pieces]()
        for every in self._moves.meshes:
            pieces = [p for p in every if self._moves.axes.sizes[p] > 1]
            most = len(pieces) if len(pieces) <= _ALL_WAYS else 1
            groups += chain.from_iterable(combinations(pieces, length) for length in range(1, most + 1))
        return groups

    def _at_least(self, number: int, goal: int, *, likely: bool = False) -> float:
        """A lower bound of the price from a layout to a goal. It falls by no more than a step costs, so the
        first path by which A* goes on from a layout is a cheapest one. A ``likely`` one may fall by more:
        slices make sums cheaper, and values are then gathered."""
        layout, wanted = self._layouts[number], self._layouts[goal]
        if loose := set(layout.partial).difference(wanted.partial):  # no device has any element of the sum
            part = prod(self._moves.axes.local(self._shape, wanted.dims))
            return self._lowest * (max(part, self._unsummed(layout, wanted, loose)) if likely else part)
        lacking = self._lacking.setdefault(wanted.dims, {})
        if layout.dims not in lacking:
            lacking[layout.dims] = self._lacks(layout.dims, wanted.dims)
        return self._lowest * lacking[layout.dims]

    def _unsummed(self, layout: Layout, wanted: Layout, loose: set[PieceId]) -> float:
        """The elements that a device sends for sums along loose pieces: all but one of the devices along
        these send each element that one of them wants."""
        axes = self._moves.axes
        part, n = prod(axes.local(self._shape, wanted.dims)), axes.product(loose)
        among = axes.product(p for held in wanted.dims for p in held if p in loose)
        return min(part * among, prod(axes.local(self._shape, layout.dims))) * (n - 1) / n

    def _lacks(self, dims: Dims, wanted: Dims) -> int:
        """The most that any device lacks of its new part, in elements."""
        if self._divided(dims) and self._divided(wanted) and not self._moves.several:
            return self._lacks_evenly(dims, wanted)
        whole, part, common = 1, _ONE, _ONE
        for size, held, new in zip(self._shape, dims, wanted, strict=True):
            if held or new:
                mine, shared = self._moves.overlap(size, held, new)
                part, common = part * mine, common * shared
            else:
                whole *= size
        lacking = part - common
        return whole * (lacking if isinstance(lacking, int) else int(lacking.max()))

    def _divided(self, dims: Dims) -> bool:
        """Whether all parts have one size."""
        if dims not in self._evenly:
            product = self._moves.axes.product
            pairs = zip(self._shape, dims, strict=True)
            self._evenly[dims] = self._even or all(size % product(held) == 0 for size, held in pairs)
        return self._evenly[dims]

    def _lacks_evenly(self, dims: Dims, wanted: Dims) -> int:
        """The same for parts of one size. If a dimension is split on pieces that do not contain each other,
        some device has the first part and needs the last."""
        sizes = self._moves.axes.sizes
        part = common = self._elements
        for held, new in zip(dims, wanted, strict=True):
            for p in new:
                part //= sizes[p]
            if common:
                finer = new if held == new[: len(held)] else held if new == held[: len(new)] else None
                if finer is None:
                    common = 0
                else:
                    for p in finer:
                        common //= sizes[p]
        return part - common


def by_the_whole(axes: Axes, shape: Shape, start: Layout, goal: Layout) -> Route:
    """The plain way: the tensor is gathered, dimension by dimension, and sliced."""
    steps, layout = list[Step](), start
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
    return Route.of((*steps, *_slices(layout, goal)))


def _slices(layout: Layout, goal: Layout) -> Iterable[Step]:
    """The steps that slice a goal out of a layout."""
    for d, (here, there) in enumerate(zip(layout.dims, goal.dims, strict=True)):
        if here != there:
            layout = layout._replace(dims=with_pieces(layout.dims, d, there))
            yield Step("slice", there[len(here) :], layout, 0.0, d)
