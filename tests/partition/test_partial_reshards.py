"""Reshards between all states of a matrix, also those in which devices hold parts of a sum, a maximum or a
minimum: every device gets what it should, and receives no more than it must."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, permutations, product
from math import inf, prod

import numpy as np
import pytest
from shardlog.partition.layouts import Axes, Layout, Shape
from shardlog.partition.reshards.planning import Planner
from shardlog.program.reductions import COMBINED_BY

from ..support.drawing import by_day
from .running import Array, execute, parts_of, whole_of
from .test_reshards import CUBE, axes_of, layouts, loaded_reshards, steps

GRID = axes_of((2, 3))
COMBINE: dict[str, Callable[..., Array]] = {"sum": np.sum, "max": np.max, "min": np.min, "average": np.mean}


def states(axes: Axes, kind: str = "sum") -> list[Layout]:
    """All layouts of a matrix, each with all the axes along which it may be partial."""
    states = []
    for layout in layouts(axes, 2):
        free = [p for p in axes.numbers if p not in set(layout.pieces)]
        for count in range(len(free) + 1):
            for partial in combinations(free, count):
                states.append(Layout(layout.dims, partial, COMBINED_BY[kind] if partial else ""))
    return states


# ---- The least bytes: an exhaustive search ----------------------------------------------------------------


def collectives(
    axes: Axes, shape: Shape, state: Layout, among: Sequence[Layout]
) -> Iterator[tuple[Layout, float]]:
    """Every collective, and slice, with the elements that a device sends for it."""
    dims, partial, how = state.dims, state.partial, state.combine
    size = prod(axes.local(shape, dims))
    for after, price in steps(axes, shape, Layout(dims), [each for each in among if not each.partial]):
        if not set(after.pieces) & set(partial):
            yield Layout(after.dims, partial, how), price
    for count in range(1, len(partial) + 1):
        for some in combinations(partial, count):
            left, n = tuple(p for p in partial if p not in some), axes.product(some)
            yield Layout(dims, left, how if left else ""), 2 * size * (n - 1) / n
            for d, order in product(range(len(dims)), permutations(some)):
                changed = tuple(held + order if other == d else held for other, held in enumerate(dims))
                yield Layout(changed, left, how if left else ""), size * (n - 1) / n


def made_partial(axes: Axes, state: Layout, combine: str) -> Iterator[tuple[Layout, float]]:
    """What makes a value partial along one more axis: one device keeps what it has. It sends nothing."""
    for piece in set(axes.numbers) - set(state.pieces):
        yield Layout(state.dims, tuple(sorted((*state.partial, piece))), combine), 0.0


def closure(
    among: Sequence[Layout], moves: Callable[[Layout], Iterable[tuple[Layout, float]]]
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The least that moves send from each state to each other one, in elements."""
    number = {state: i for i, state in enumerate(among)}
    cost = np.full((len(among), len(among)), inf)
    np.fill_diagonal(cost, 0)
    for state, i in number.items():
        for after, price in moves(state):
            cost[i, number[after]] = min(cost[i, number[after]], price)
    for k in range(len(among)):
        cost = np.minimum(cost, cost[:, k, None] + cost[None, k])
    return cost


def least(
    axes: Axes, shape: Shape, among: Sequence[Layout]
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The least that is sent from each state to each other one. A value is made partial at the end, and what
    is partial in both states is so all the way."""
    free = closure(among, lambda state: made_partial(axes, state, COMBINED_BY["sum"]))
    loose = [frozenset(state.partial) for state in among]
    cost = np.full((len(among), len(among)), inf)
    for kept in {one & other for one, other in product(loose, loose)}:
        within = [i for i, held in enumerate(loose) if kept <= held]

        def moves(state: Layout, kept: frozenset[int] = kept) -> list[tuple[Layout, float]]:
            every = collectives(axes, shape, state, among)
            return [(after, price) for after, price in every if kept <= {*after.partial}]

        sent = closure([among[i] for i in within], moves)
        last = free[np.ix_(within, within)]
        for place, i in enumerate(within):
            for j, price in zip(within, (sent[place][:, None] + last).min(axis=0), strict=True):
                if loose[i] & loose[j] == kept:
                    cost[i, j] = price
    return cost


def is_reduced_at_once(start: Layout, goal: Layout) -> bool:
    """Whether it takes one all-reduce. Where devices along another axis hold the same, three collectives may
    send less: each reduces a slice, and these are gathered. One is not replaced by three for that."""
    return start.dims == goal.dims and not set(start.partial) <= set(goal.partial)


@pytest.mark.parametrize(("axes", "count"), [(GRID, 18), (CUBE, 92)], ids=["2x3", "2x2x2"])
def test_no_reshard_sends_more_than_it_must(axes: Axes, count: int) -> None:
    shape, among, planner = (24, 24), states(axes), Planner(axes)
    cost = least(axes, shape, among)
    dear = [
        (start, goal, route.price, cost[i, j], [step.kind for step in route.steps])
        for (i, start), (j, goal) in product(enumerate(among), enumerate(among))
        if not is_reduced_at_once(start, goal)
        and (route := planner.route(shape, start, goal)).price > cost[i, j] * (1 + 1e-9)
    ]
    assert len(among) == count
    assert dear == []


# ---- Running them ------------------------------------------------------------------------------------------


def held_by_devices(axes: Axes, shares: Sequence[Array], state: Layout) -> list[Array]:
    """What each device holds of the shares of a value: those along the axes along which it is partial."""
    each = [parts_of(axes, share, state) for share in shares]
    index = axes.index(state.partial)
    return [each[int(index[device])][device] for device in range(axes.count)]


def check_pairs(axes: Axes, shape: Shape, start: Layout, goals: Sequence[Layout], kind: str) -> None:
    """Asserts that a value gets from a state to others, exactly, on every device."""
    planner = Planner(axes)
    ways = [(goal, planner.route(shape, start, goal)) for goal in goals]
    loaded = loaded_reshards(axes, shape, start, ways)
    count = axes.product(start.partial)
    shares = np.random.default_rng(0).integers(-50, 50, (count, *shape)).astype(np.float32)
    shares *= 36  # so that means over 2, 3 and 6 devices are exact
    expected = COMBINE[kind](shares, axis=0)
    results = execute(loaded, [held_by_devices(axes, [*shares], start)])
    for parts, goal in zip(results, goals, strict=True):
        index = axes.index(goal.partial)
        got = []
        for share in range(axes.product(goal.partial)):
            mine = [d for d in range(axes.count) if index[d] == share]
            got.append(whole_of(axes, [parts[d] for d in mine], goal, shape, devices=mine))
        assert np.array_equal(COMBINE[kind](got, axis=0), expected), f"{start} to {goal}"


SHAPES = [(12, 12), (7, 5)]  # even, and padded
PADDED = [(kind, SHAPES[number % 2]) for number, kind in enumerate(COMBINE)]


@pytest.mark.parametrize(("kind", "shape"), by_day(PADDED, product(COMBINE, SHAPES)), ids=str)
def test_all_pairs_on_2x3(kind: str, shape: Shape) -> None:
    among = states(GRID, kind)
    for start in among:
        check_pairs(GRID, shape, start, among, kind)


EVERY = [(kind, number) for kind in COMBINE for number in range(92)]


@pytest.mark.parametrize(("kind", "number"), by_day([("sum", n) for n in range(0, 92, 13)], EVERY))
def test_all_pairs_on_2x2x2(kind: str, number: int) -> None:
    among = states(CUBE, kind)
    check_pairs(CUBE, (8, 8), among[number], among, kind)
