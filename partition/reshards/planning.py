"""The cheapest collectives from one layout to another, within a mesh and between meshes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, combinations, product
from math import inf, prod
from typing import Any

from ..layouts import Axes, Layout, PieceId, Pieces, PieceSet, Shape, numbered
from .alike import Alike, Likeness
from .moves import Moves, Route, Step, with_pieces
from .prices import PLAIN, Price, Prices
from .search import SENDING, RouteSearch

Rate = tuple[float, float, int, float, float, int]

_PRIMES = 6  # pieces of prime size up to which reshards may use them; more take too long
_FEW = 4  # pieces up to which all ways are searched for each price
_WIDTH = 4  # bytes of a usual element
_ALL_GROUPS, _MANY_GROUPS = 5, 2  # pieces up to which all groups are compared; of more, groups of so many
_ALIKE = 300  # layouts that are tried between two meshes
_CROSSINGS = 1000  # ways to split dimensions there
_MESHES = 12  # axes for which a process keeps decisions
_MOST_KEPT = 200_000  # decisions for one of them: a program has a few thousand


@dataclass
class Kept:
    """Decisions for some axes and prices: routes, and how ops are computed."""

    routes: dict[tuple[Shape, Layout, Layout, PieceSet], Route] = field(default_factory=dict)
    likely: dict[tuple[Shape, Layout, Layout, PieceSet], Route] = field(default_factory=dict)
    searches: dict[tuple[Shape, Pieces], RouteSearch] = field(default_factory=dict)
    choices: dict[Hashable, dict[Any, Any]] = field(default_factory=dict)  # by all that prices depend on
    ways: dict[Any, Any] = field(default_factory=dict)
    parts_if_stays: dict[Any, int] = field(default_factory=dict)
    alike: dict[Any, int] = field(default_factory=dict)
    rates: dict[Hashable, Any] = field(default_factory=dict)  # of rates.py, by what is combined
    prices: dict[tuple[str, Pieces], Price] = field(default_factory=dict)
    kinds: list[int] = field(default_factory=list)  # of pieces

    @property
    def size(self) -> int:
        """The number of decisions."""
        routes = len(self.routes) + len(self.likely) + len(self.searches)
        ways = len(self.ways) + len(self.parts_if_stays) + len(self.alike)
        return routes + ways + sum(map(len, self.choices.values()))


_KEPT: dict[Hashable, Kept] = {}  # by axes, most recently used last


def kept_for(axes: Hashable) -> Kept:
    """The decisions of this process for some axes and prices. Only the last few are kept, and none if there
    are too many."""
    kept = _KEPT.pop(axes, None)
    if kept is None or kept.size > _MOST_KEPT:
        kept = Kept()
    _KEPT[axes] = kept
    if len(_KEPT) > _MESHES:
        del _KEPT[next(iter(_KEPT))]
    return kept


class Planner:
    """Finds routes, and remembers them."""

    def __init__(self, axes: Axes, prices: Prices | None = None, order: str = "") -> None:
        self.axes, self.prices = axes, prices or Prices()
        self.moves = Moves(axes, axes.numbers)
        self._among: dict[tuple[int, Pieces], tuple[Moves, Likeness]] = {}
        self._free: dict[
            PieceSet, tuple[Pieces, Pieces]
        ] = {}  # outside of manual computations; of prime sizes
        self.many = len(self._left(frozenset())[1]) > _FEW  # pieces of prime size
        self.counts = self.prices.collective is not None  # whether fewer collectives may be worth more bytes
        self._begun: Mapping[str, float] = {}  # with a machine, the number of a kind that are combined
        self.kept = kept = kept_for((axes.key, self.prices.collective, order))
        self.evenly = kept_for(axes.named)  # what depends on no sizes
        self._routes, self._searches, self._known_prices = kept.routes, kept.searches, kept.prices
        self.weighed_by = self._weighed_by()

    def route(self, shape: Shape, start: Layout, goal: Layout, taken: PieceSet = frozenset()) -> Route:
        """The cheapest route for a tensor of this shape, inside of manual computations over the ``taken``
        pieces."""
        key = shape, start, goal, taken
        if (route := self._routes.get(key)) is None:
            route = self._routes[key] = self._found(shape, start, goal, taken, True)
        return route

    def likely(self, shape: Shape, start: Layout, goal: Layout, taken: PieceSet = frozenset()) -> Route:
        """The route that prices a reshard while a program is chosen: that of ``route``, or on a mesh of many
        pieces one that is found sooner and costs no less."""
        if not self.many:
            return self.route(shape, start, goal, taken)
        key = shape, start, goal, taken
        if (route := self.kept.likely.get(key)) is None:
            route = self.kept.likely[key] = self._found(shape, start, goal, taken, False)
        return route

    def _found(self, shape: Shape, start: Layout, goal: Layout, taken: PieceSet, every: bool) -> Route:
        route = self._masked(shape, start, goal, taken, every) or self._same(shape, start, goal)
        route = route or self._straight(shape, start, goal)
        return route or self._searched(shape, start, goal, taken, every)

    def weigh_collectives(self, price: float) -> None:
        """Sets the fixed cost of each collective in bytes, if it is higher than before, and no machine gives
        one."""
        if self.prices.collective is None:
            self.counts, self.prices = True, replace(self.prices, once=max(self.prices.once, price))
            self.weighed_by = self._weighed_by()

    def weigh_combined(self, begun: Mapping[str, float]) -> None:
        """Reduces the fixed cost of collectives of each kind, as a machine gives it, because its compiler
        combines several."""
        if self.prices.collective is not None:
            self._weigh_begun(begun)

    def _weigh_begun(self, begun: Mapping[str, float]) -> None:
        if begun != self._begun:
            self.kept.rates.pop(self.combined, None)  # which ask this planner
            self._begun, self.weighed_by = begun, self._weighed_by()

    @property
    def combined(self) -> Hashable:
        """Equal for planners of equal prices for which the same share of collectives is combined."""
        return tuple(sorted(self._begun.items()))

    def _weighed_by(self) -> Hashable:
        """Equal for planners by which everything has the same price."""
        return replace(self.prices, combined=()), self.counts, self.combined

    def total(self, route: Route, width: int) -> float:
        """The price of a route in bytes: the sum of the prices of its collectives."""
        once, byte = self._rates(route, self.weighed)
        return once + byte * width

    def with_steps(self, route: Route, width: int) -> float:
        """The price of a route with the fixed cost of each collective."""
        return self.total(route, width) + self.prices.once * route.sends

    def best(self, route: Route, width: int) -> Route:
        """The cheaper of a route and a single collective in its place, for elements of this many bytes, with
        fixed costs. For propagation's own decisions, the one that sends less."""
        if route.at_once is None or not self.counts:
            return route
        return min((route, route.at_once), key=lambda p: self.with_steps(p, width))

    def _rates(self, route: Route, price: Callable[[str, Pieces], Price]) -> tuple[float, float]:
        """The price of a route, by those of collectives: the fixed part, and the part for each byte of an
        element."""
        if self.prices.collective is None:
            return 0.0, route.price
        once = byte = 0.0
        for kind, pieces, elements in route.sent:
            each = price(kind, pieces)
            once += each.once
            byte += each.byte * elements
        return once, byte

    def rates(self, shape: Shape, start: Layout, goal: Layout) -> Rate:
        """The price in bytes of the route that sends least: the fixed part, the part for each byte of an
        element, and the number of collectives. Then the same for the route with the fewest collectives; it
        may be the same route."""

        def of(route: Route) -> tuple[float, float, int]:
            return *self._rates(route, self.weighed), route.sends

        route = self.likely(shape, start, goal)
        least = of(route)
        return *least, *(of(route.at_once) if route.at_once else least)

    def named(self, pieces: Iterable[PieceId]) -> Pieces:
        """All pieces under names in which these come first, in this order. Only interchangeable pieces swap
        names: those of one kind, within one mesh, without a machine."""
        names = list(numbered(range(len(self.axes.every))))
        if self.moves.several or self.prices.collective is not None:
            return tuple(names)
        for kind in set(self._kinds):
            every = [p for p in self.axes.numbers if self._kinds[p] == kind]
            first = [p for p in dict.fromkeys(pieces) if self._kinds[p] == kind]
            for name, piece in zip(every, [*first, *(p for p in every if p not in first)], strict=True):
                names[piece] = name
        return tuple(names)

    def like(self, shape: Shape) -> tuple[Shape, float]:
        """The smallest equivalent shape, and the number of elements that one of its elements stands for."""
        if not self._scales or not all(shape):  # the bytes sent depend on the pieces
            return shape, 1.0
        count = self.axes.count
        least = tuple([size if size % count else count for size in shape])
        return least, prod(shape) / prod(least)

    def price(self, kind: str, pieces: Pieces) -> Price:
        """The price of a collective over groups along pieces, or of a permutation of parts along pieces."""
        if self.prices.collective is None:
            return PLAIN
        key = kind, pieces
        if key not in self._known_prices:
            name, group, names = kind.replace("_", "-"), self.axes.product(pieces), self.axes.names(pieces)
            groups = self.axes.groups(pieces).tolist() if pieces else []
            if kind == "collective_permute":  # each device sends to one other
                names, groups = (), [[first, other] for first, *rest in groups for other in rest]
            self._known_prices[key] = self.prices.collective(name, group, names, groups)
        return self._known_prices[key]

    def weighed(self, kind: str, pieces: Pieces) -> Price:
        """The price of one collective over groups along pieces, if some are combined."""
        price = self.price(kind, pieces)
        return Price(price.byte, price.once * self._begun[kind]) if kind in self._begun else price

    def _searched(self, shape: Shape, start: Layout, goal: Layout, taken: PieceSet, every: bool) -> Route:
        """The route that a search finds: along the pieces of layouts, and if it sends more than devices lack,
        also along those of prime sizes, if that is cheaper. Unless ``every`` way is wanted, a search for a
        price skips some if there are many."""
        axes, (pieces, primes) = self.axes, self._left(taken)
        search, least = self._alike(pieces, shape, start, goal)
        find = search.route if every else search.priced if len(pieces) <= _FEW else search.straight
        route = least.route(find(least.start, least.goal), len(shape))
        if route.sends > 1 and (other := search.at_once(least.start, least.goal)):
            route.at_once = least.route(other, len(shape))
        if start.partial or primes == pieces or not every or len(primes) > _PRIMES:
            return route
        if route.sends < 2 and route.price <= search.lacking(least.start, least.goal) * least.times:
            return route
        fine = [
            Layout(tuple(map(axes.finely, dims)), tuple(sorted(axes.finely(partial))), combine)
            for dims, partial, combine in (start, goal)
        ]
        search, least = self._alike(primes, shape, *fine)
        byte = self._rates(route, self.price)[1]
        other = search.cheaper(least.start, least.goal, byte / least.times, route.sends)
        if other is None:
            return route
        finer = least.route(other, len(shape))
        finer.at_once = route.at_once if finer.sends > 1 else None

        def price(route: Route) -> float:
            """The default price, whatever the fixed cost of a collective: routes are kept."""
            once, byte = self._rates(route, self.price)
            return once + byte * _WIDTH + Prices.once * route.sends

        return min((route, finer), key=price)

    def _left(self, taken: PieceSet) -> tuple[Pieces, Pieces]:
        """The pieces outside of manual computations, and their parts of prime size."""
        if taken not in self._free:
            free = tuple([p for p in self.axes.numbers if p not in taken])
            self._free[taken] = free, self.axes.finely(free)
        return self._free[taken]

    def _alike(self, pieces: Pieces, shape: Shape, start: Layout, goal: Layout) -> tuple[RouteSearch, Alike]:
        """The search along some pieces, and the smallest equivalent reshard, for which it runs once."""
        mesh = self.moves.mesh_of(start, goal)
        if (mesh, pieces) not in self._among:
            moves = Moves(self.axes, pieces)
            self._among[mesh, pieces] = moves, Likeness(self.axes, moves.pieces_of(mesh), self._kinds)
        moves, likeness = self._among[mesh, pieces]
        least = likeness.least(shape, start, goal)
        key = least.shape, pieces
        if key not in self._searches:
            search = RouteSearch(moves, least.shape, lambda kind, on: self.price(kind, on).byte)
            self._searches[key] = search
        return self._searches[key], least

    @cached_property
    def _scales(self) -> bool:
        """Whether the route that prices a reshard also prices that of more elements: if it is searched for
        along pieces of prime sizes, too, fixed costs decide."""
        pieces, primes = self._left(frozenset())
        return pieces == primes or self.many

    @cached_property
    def _kinds(self) -> list[int]:
        """The kind of each piece. Pieces of one kind are interchangeable: whichever two of them change
        places, collectives along any pieces cost the same."""
        kinds = self.kept.kinds
        for p in numbered(range(len(kinds), len(self.axes.sizes))):
            kinds.append(next((q for q in numbered(sorted({*kinds})) if self._interchange(p, q)), p))
        return kinds

    def _interchange(self, p: PieceId, q: PieceId) -> bool:
        """Whether two pieces may change places. Links of groups differ even where those along single pieces
        do not: two axes in one row of a torus have half the links of two in different rows."""
        if self.axes.sizes[p] != self.axes.sizes[q]:
            return False
        if self.prices.collective is None:
            return True
        numbers, other = self.moves.pieces_of(self.axes.every[p].mesh), {p: q, q: p}
        along = next((each for each in (numbers, self.axes.finely(numbers)) if {p, q} <= {*each}), ())
        most = len(along) if len(along) <= _ALL_GROUPS else _MANY_GROUPS
        groups = chain.from_iterable(combinations(along, length) for length in range(1, most + 1))
        return bool(along) and all(
            self.price(kind, group) == self.price(kind, tuple(sorted(other.get(n, n) for n in group)))
            for group in groups
            if (p in group) != (q in group)
            for kind in SENDING
        )

    def _masked(
        self, shape: Shape, start: Layout, goal: Layout, taken: PieceSet, every: bool
    ) -> Route | None:
        """The route to a partial sum, if devices have the same data. All but the first replace it by the
        neutral element. This sends nothing, and comes last."""
        summed = start.partial if start.combine == goal.combine else ()
        masked = tuple(p for p in goal.partial if p not in summed)
        if not masked:
            return None
        rest = tuple(p for p in goal.partial if p in summed)
        before = Layout(goal.dims, rest, goal.combine if rest else "")
        route = (self.route if every else self.likely)(shape, start, before, taken)
        return _joined(route, Route.of((Step("mask", masked, goal, 0.0),)))

    def _same(self, shape: Shape, start: Layout, goal: Layout) -> Route | None:
        if start.dims == goal.dims and start.partial == goal.partial:
            return Route.of(())
        pieces = self.axes.pieces
        if self.moves.several and len({pieces[p].mesh for p in (*start.pieces, *goal.pieces)}) > 1:
            return self._between_meshes(shape, start, goal)
        return None

    def _straight(self, shape: Shape, start: Layout, goal: Layout) -> Route | None:
        """The route, if it takes only combining partial values, gathering, or slicing. Gathering
        also sends padding. If that is more than half, as of a single row on several devices, a search may
        find less."""
        axes, pairs = self.axes, list(zip(start.dims, goal.dims, strict=True))
        if start.dims == goal.dims and not goal.partial:
            n, size = axes.product(start.partial), prod(axes.local(shape, start.dims))
            step = Step("all_reduce", start.partial, goal, 2 * size * (n - 1) / n)
            return Route.of((step,))
        if start.partial or goal.partial:
            return None
        gathers = all(held[: len(wanted)] == wanted for held, wanted in pairs)
        if not gathers and any(wanted[: len(held)] != held for held, wanted in pairs):
            return None
        steps, layout = list[Step](), start
        changed = [d for d, (held, wanted) in enumerate(pairs) if held != wanted]
        if gathers and len(changed) > 1:
            changed.sort(key=lambda d: self._growing(shape[d], *pairs[d]))
        for d in changed:
            held, wanted = pairs[d]
            more, fewer = (held, wanted) if gathers else (wanted, held)
            if not self.moves.fits(shape[d], more, fewer) or (gathers and self._is_padding(shape[d], held)):
                return None
            moved = more[len(fewer) :]
            price = prod(axes.local(shape, layout.dims)) * (axes.product(moved) - 1) if gathers else 0
            layout = Layout(with_pieces(layout.dims, d, wanted))
            steps.append(Step("all_gather" if gathers else "slice", moved, layout, float(price), d))
        return Route.of(steps)

    def _is_padding(self, size: int, held: Pieces) -> bool:
        """Whether most rows of the parts of a dimension are padding."""
        return 0 < 2 * size < self.axes.tile(size, held) * self.axes.product(held)

    def _growing(self, size: int, held: Pieces, wanted: Pieces) -> float:
        """The bytes of a gather relative to the growth of a part. The growth is smaller if padding goes.
        Gathering the dimensions with the lowest value first sends least."""
        axes = self.axes
        grown = axes.tile(size, wanted) / axes.tile(size, held) - 1 if size else 0.0
        return (axes.product(held[len(wanted) :]) - 1) / grown if grown else inf

    def _between_meshes(self, shape: Shape, start: Layout, goal: Layout) -> Route:
        """Steps on one mesh, a permutation of parts to the other one if both have the same number of parts of
        each dimension, and steps there: the cheapest of these ways, or through the whole tensor."""
        middle = Layout(((),) * len(shape))
        best = _joined(self.route(shape, start, middle), self.route(shape, middle, goal))
        left = _ALIKE
        for counts in self._crossings(shape, start, goal):
            held, wanted = self._in_parts(start, counts), self._in_parts(goal, counts)
            left -= len(held) + len(wanted)
            if left < 0:
                break
            before = [(self.route(shape, start, layout), layout) for layout in held]
            after = [(self.route(shape, layout, goal), layout) for layout in wanted]
            for (first, here), (last, there) in product(before, after):
                price = prod(self.axes.local(shape, there.dims)) if self._displaced(here, there) else 0
                if first.price + price + last.price < best.price:
                    step = Step("collective_permute", (), there, float(price))
                    best = _joined(first, Route.of((step,)), last)
        return best

    def _crossings(self, shape: Shape, start: Layout, goal: Layout) -> Iterator[tuple[int, ...]]:
        """The numbers of parts of each dimension at which a tensor may change meshes, likeliest first."""
        counts = [tuple(self.axes.product(held) for held in layout.dims) for layout in (start, goal)]
        divisors = [n for n in range(1, self.axes.count + 1) if self.axes.count % n == 0]
        fitting = [[n for n in divisors if n <= size] for size in shape]
        yield from dict.fromkeys(counts)
        if prod(map(len, fitting)) > _CROSSINGS:
            return
        others = [c for c in product(*fitting) if self.axes.count % prod(c) == 0 and c not in counts]
        yield from sorted(others, key=lambda c: (-prod(c), c))

    def _in_parts(self, layout: Layout, counts: tuple[int, ...]) -> list[Layout]:
        """The layouts on the mesh of ``layout`` with these numbers of parts."""
        pieces = self.moves.pieces_of(self.moves.mesh_of(layout))
        return [Layout(dims) for dims in self.moves.arranged(pieces, counts)]

    def _displaced(self, start: Layout, goal: Layout) -> bool:
        """Whether any device has another part in ``goal``, which has the same numbers of parts."""
        pairs = zip(start.dims, goal.dims, strict=True)
        return any((self.axes.index(held) != self.axes.index(wanted)).any() for held, wanted in pairs)


def _joined(*routes: Route) -> Route:
    """One route after the other."""
    return Route(
        sum(route.price for route in routes),
        sum(route.sends for route in routes),
        lambda: tuple(step for route in routes for step in route.steps),
        _joined(*(route.at_once or route for route in routes))
        if any(route.at_once for route in routes)
        else None,
    )
