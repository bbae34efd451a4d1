"""Prices of reshards as tables: what a planner says of each pair, whichever that are alike were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from shardlog.partition.layouts import Axes, Layout, Shape, numbered
from shardlog.partition.reshards import planning
from shardlog.partition.reshards.moves import Moves
from shardlog.partition.reshards.planning import Planner
from shardlog.partition.reshards.prices import Price, Prices
from shardlog.partition.reshards.rates import Rates
from shardlog.partition.reshards.search import RouteSearch

from .test_reshards import CUBE, SUB_AXES, TWO_SHAPES, axes_of, layouts


def some(axes: Axes, rank: int) -> list[Layout]:
    """Layouts of a rank, some of them sums of two kinds."""
    found = layouts(axes, rank)[::3]
    sums = [
        Layout(layout.dims, (p,), combine)
        for layout, combine in zip(found, ["stablehlo.add", "stablehlo.maximum"] * len(found), strict=False)
        for p in axes.numbers
        if p not in layout.pieces and len({axes.pieces[q].mesh for q in (p, *layout.pieces)}) == 1
    ]
    return [*found, *sums[::2]]


@pytest.mark.parametrize(
    "axes", [CUBE, SUB_AXES, axes_of((2, 4)), axes_of((3, 2)), TWO_SHAPES], ids=lambda a: str(a.sizes)
)
@pytest.mark.parametrize("shape", [(8, 8), (16, 6), (5, 24)], ids=str)
def test_tables_have_what_the_planner_says(axes: Axes, shape: Shape) -> None:
    known = some(axes, len(shape))
    rates = Rates(Planner(axes))
    numbers = [rates.layouts.number(layout) for layout in known]
    for once in (100.0, 700.0):
        table, planner = rates.between(shape, 2, numbers, numbers, once), Planner(axes, Prices(once=once))
        planner.weigh_collectives(once)
        for start, row in zip(known, table.tolist(), strict=True):
            for goal, price in zip(known, row, strict=True):
                if start.partial and goal.partial and start.combine != goal.combine:
                    assert price == float("inf")
                else:
                    plan = planner.best(planner.likely(shape, start, goal), 2)
                    assert price == pytest.approx(planner.with_steps(plan, 2)), (start, goal)


@pytest.mark.parametrize("axes", [CUBE, axes_of((4, 2, 3))], ids=lambda a: str(a.sizes))
@pytest.mark.parametrize("shape", [(8, 8), (24, 6), (5, 24)], ids=str)
def test_routes_found_together_are_as_cheap_as_each_alone(axes: Axes, shape: Shape) -> None:
    search = RouteSearch(Moves(axes, axes.numbers), shape, lambda kind, pieces: 1.0)
    for start in some(axes, len(shape))[::2]:
        for goal in layouts(axes, len(shape)):
            together, alone = search.priced(start, goal), search.route(start, goal)
            assert (together.price, together.sends) == (alone.price, alone.sends), (start, goal)


def test_on_many_pieces_more_elements_cost_as_much_each() -> None:
    axes = axes_of((4, 4, 2))
    planner, known = Planner(axes), layouts(axes, 2)[::9]
    assert planner.many
    for start in known:
        for goal in known:
            few, more = (planner.rates(shape, start, goal) for shape in ((32, 32), (128, 64)))
            assert more == tuple(8 * each if n % 3 < 2 else each for n, each in enumerate(few)), (start, goal)


def test_pieces_that_differ_in_price_do_not_change_names() -> None:
    def collective(kind: str, group: int, along: tuple[str, ...], groups: object) -> Price:
        return Price(10.0 if along == ("a",) else 1.0)

    axes = axes_of((2, 2, 2))
    rates = Rates(Planner(axes, Prices(collective=collective)))
    whole, a, b = (rates.layouts.number(Layout((numbered(held), ()))) for held in ((), (0,), (1,)))
    assert rates.between((8, 8), 4, [a, b], [whole], 128.0)[:, 0].tolist() == [1280.0 + 128, 128.0 + 128]


def test_what_a_process_keeps_for_axes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[Any, Any] = {}
    monkeypatch.setattr(planning, "_KEPT", kept)
    monkeypatch.setattr(planning, "_MESHES", 8)
    first = planning.kept_for("first")
    assert planning.kept_for("first") is first
    for number in range(20):
        planning.kept_for(number)
    assert "first" not in kept
    assert len(kept) == 8
    monkeypatch.setattr(planning, "_MOST_KEPT", 2)
    planning.kept_for(19).ways.update({key: [] for key in range(3)})
    assert planning.kept_for(19).size == 0


def test_a_permutation_between_nodes_costs_as_on_their_network() -> None:
    inner, beyond = 1.0, 9.0

    def collective(kind: str, group: int, along: tuple[str, ...], groups: Sequence[Sequence[int]]) -> Price:
        apart = any(len({device // 2 for device in each}) > 1 for each in groups)
        return Price(beyond if apart else inner)

    axes = axes_of((2, 2, 2))  # nodes of two devices: along the last axis
    planner = Planner(axes, Prices(collective=collective))
    held = [Layout((numbered(pieces), (), ())) for pieces in ((0,), (1,), (2,))]
    plan = planner.route((8, 8, 8), held[0], held[1])
    assert [step.kind for step in plan.steps] == ["slice", "collective_permute", "all_gather"]
    assert planner.total(plan, 1) == 8 * 8 * 2 * (beyond + inner)  # a half goes beyond


def test_all_permutations_cost_as_on_the_network_where_each_axis_spans_nodes() -> None:
    def collective(kind: str, group: int, along: tuple[str, ...], groups: Sequence[Sequence[int]]) -> Price:
        apart = any(len({device // 2 for device in each}) > 1 for each in groups)
        return Price(1.0 if not apart else 9.0 if kind == "collective-permute" or along == ("b",) else 10.0)

    axes = axes_of((4, 4))  # nodes of two devices
    planner = Planner(axes, Prices(collective=collective))
    one, other = (Layout((numbered(pieces), ())) for pieces in ((0,), (1,)))
    for start, goal in ((one, other), (other, one)):
        plan = planner.likely((16, 16), start, goal)
        assert all(step.along for step in plan.steps if step.kind == "collective_permute")
        assert planner.total(plan, 1) == 9 * 16 * 16 / 4


def test_pieces_change_names_only_if_no_group_costs_more() -> None:
    def in_two_rows(kind: str, group: int, along: tuple[str, ...], groups: object) -> Price:
        """Two axes in different rows have twice the links."""
        return Price(0.5 if {*along} & {"a", "b"} and {*along} & {"c", "d"} else 1.0)

    axes = axes_of((2, 2, 2, 2))
    planner = Planner(axes, Prices(collective=in_two_rows))
    whole = Layout(((), ()))
    within, across = (Layout((numbered(held), ())) for held in ((0, 1), (0, 2)))
    alone = {held: planner.rates((16, 16), held, whole)[1] for held in (within, across)}
    assert alone[within] == 2 * alone[across]
    searches = [planner._alike(axes.numbers, (16, 16), held, whole)[1].start for held in (within, across)]
    assert searches[0] != searches[1]
