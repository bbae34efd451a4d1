"""Reshards between all layouts: they give what they should, and move no more bytes than they must."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise, permutations, product
from math import inf, prod
from typing import Any

import numpy as np
import pytest
import shardlog
from jaxlib.mlir import ir
from shardlog.importers.sources.text import make_context
from shardlog.partition.choice.choosing import SUM
from shardlog.partition.layouts import Axes, Layout, Pieces, Shape, numbered
from shardlog.partition.reshards.moves import Moves, Route
from shardlog.partition.reshards.planning import Planner
from shardlog.partition.writing.building import Builder, Scope
from shardlog.partition.writing.steps import carry_out
from shardlog.program.meshes import Mesh, Meshes, SubAxis
from shardlog.program.mlir.modules import ops_in
from shardlog.program.shardings import Dimension, Sharding

from ..support.traits import TRAITS
from .running import execute, load, parts_of, whole_of


def axes_of(
    sizes: Sequence[int], cuts: Sequence[tuple[str, int, int]] = (), order: Sequence[int] = ()
) -> Axes:
    """The axes of a mesh a to h, of which shardings use sub-axes: (axis, pre, size)."""
    mesh = Mesh("mesh", tuple(zip("abcdefgh", sizes, strict=False)), tuple(order))
    used = [Sharding(0, (Dimension((SubAxis(*cut),)),)) for cut in cuts]
    return Axes(Meshes([mesh]), used)


CUBE = axes_of((2, 2, 2))
SUB_AXES = axes_of((4, 2), [("a", 1, 2)])


def meshes_of(*meshes: tuple[Sequence[int], Sequence[int]]) -> Axes:
    """The axes of meshes of some sizes, whose devices are in some orders."""
    made = [
        Mesh(name, tuple(zip((f"{name}{d}" for d in range(len(sizes))), sizes, strict=True)), tuple(order))
        for name, (sizes, order) in zip("mn", meshes, strict=False)
    ]
    return Axes(Meshes(made), [])


TWO_SHAPES = meshes_of(((2, 4), ()), ((4, 2), (0, 1, 2, 3, 4, 5, 7, 6)))
TWO_ORDERS = meshes_of(((2, 4), ()), ((8,), (1, 0, 3, 2, 7, 6, 5, 4)))


def on_one_mesh(axes: Axes, pieces: Sequence[int]) -> bool:
    return len({axes.pieces[p].mesh for p in pieces}) <= 1


def layouts(axes: Axes, rank: int) -> list[Layout]:
    """All of them: every way in which some pieces of a mesh are split among dimensions, in every order."""
    layouts = []
    for count in range(len(axes.pieces) + 1):
        for pieces in filter(partial(on_one_mesh, axes), permutations(axes.numbers, count)):
            for ends in product(range(count + 1), repeat=rank - 1):
                if list(ends) == sorted(ends):
                    places = [0, *ends, count]
                    layouts.append(Layout(tuple(pieces[a:b] for a, b in pairwise(places))))
    return sorted(set(layouts), key=str)


# ---- The least bytes: an exhaustive search ----------------------------------------------------------------


def steps(
    axes: Axes, shape: Shape, layout: Layout, among: Sequence[Layout]
) -> Iterator[tuple[Layout, float]]:
    """Every collective on a tensor that divides evenly, and the elements that a device sends for it."""
    dims, used = layout.dims, set(layout.pieces)
    size = prod(axes.local(shape, dims))

    def changed(parts: dict[int, Pieces]) -> Layout:
        return Layout(tuple(parts.get(d, held) for d, held in enumerate(dims)))

    for d, held in enumerate(dims):
        for piece in set(axes.numbers) - used:  # cut out
            if not on_one_mesh(axes, (*used, piece)):
                continue
            yield changed({d: (*held, piece)}), 0.0
        for keep in range(len(held)):
            kept, moved = held[:keep], held[keep:]
            n = axes.product(moved)
            yield changed({d: kept}), size * (n - 1)
            for other in set(range(len(dims))) - {d}:
                yield changed({d: kept, other: dims[other] + moved}), size * (n - 1) / n
    counts = [axes.product(held) for held in dims]
    for other_layout in among:
        if other_layout != layout and [axes.product(held) for held in other_layout.dims] == counts:
            pairs = zip(dims, other_layout.dims, strict=True)
            yield other_layout, 0 if all((axes.index(p) == axes.index(q)).all() for p, q in pairs) else size


def least(
    axes: Axes, shape: Shape, among: Sequence[Layout]
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The least that a device sends from each layout to each other one, in elements."""
    number = {layout: i for i, layout in enumerate(among)}
    cost = np.full((len(among), len(among)), inf)
    np.fill_diagonal(cost, 0)
    for layout, i in number.items():
        for after, price in steps(axes, shape, layout, among):
            cost[i, number[after]] = min(cost[i, number[after]], price)
    for k in range(len(among)):
        cost = np.minimum(cost, cost[:, k, None] + cost[None, k])
    return cost


@pytest.mark.parametrize(
    ("axes", "count"),
    [(CUBE, 106), (SUB_AXES, 106), (TWO_SHAPES, 37), (TWO_ORDERS, 22)],
    ids=["2x2x2", "4x2", "2x4 and 4x2", "2x4 and 8 in another order"],
)
def test_no_reshard_moves_more_than_it_must(axes: Axes, count: int) -> None:
    shape, among, planner = (16, 16, 16), layouts(axes, 3), Planner(axes)
    cost = least(axes, shape, among)
    dear = [
        (start.dims, goal.dims, plan.price, cost[among.index(start), j], [s.kind for s in plan.steps])
        for start in classes(axes, among)
        for j, goal in enumerate(among)
        if (plan := planner.route(shape, start, goal)).price > cost[among.index(start), j] * (1 + 1e-9)
    ]
    assert len(among) == count
    assert dear == []


@pytest.mark.parametrize("sizes", [(4, 4, 4), (2, 2, 8, 8, 2)], ids=["4x4x4", "2x2x8x8x2"])
def test_prices_on_large_meshes_are_found_soon(sizes: Sequence[int]) -> None:
    """Few layouts are looked at, and what is written is no dearer than its price."""
    axes = axes_of(sizes)
    planner, shape = Planner(axes), (1024, 1024, 1024)
    ends = [layout for layout in layouts(axes, 3) if len(list(layout.pieces)) > 1]
    pairs = [(ends[n * 7 % len(ends)], ends[n * 11 % len(ends)]) for n in range(1, 21)]
    prices = [planner.rates(shape, *pair)[1] for pair in pairs]
    looked_at = sum(len(search._layouts) for search in planner.kept.searches.values())
    assert looked_at < 35 * len(pairs)
    for pair, price in zip(pairs, prices, strict=True):
        assert price >= planner.route(shape, *pair).price


def test_of_many_axes_not_all_orders_are_looked_at() -> None:
    axes, shape = axes_of((2,) * 8), (256, 256)
    start, goal = (
        Layout(tuple(map(numbered, dims)))
        for dims in (((0, 1, 2, 3), (4, 5, 6, 7)), ((7, 5, 3, 1), (6, 4, 2, 0)))
    )
    found = [step.after for step in Moves(axes, axes.numbers).permutes(shape, start, goal)]
    assert goal in found
    assert len(found) <= 3  # each of the dimensions, and both
    for plan in (Planner(axes).route(shape, start, goal), Planner(axes).likely(shape, start, goal)):
        assert (plan.price, plan.sends) == (256, 1)
    summed = Layout(((), ()), numbered(range(8)), SUM)
    scattered = Planner(axes).likely(shape, summed, Layout((numbered(range(8)), ())))
    assert (scattered.price, scattered.sends) == (256 * 255, 1)


def test_little_is_resharded_at_once() -> None:
    """A collective costs something, whatever it carries: of what is small all is sent in one."""
    axes = axes_of((2, 4))
    small, large, among = (8, 8), (1024, 1024), layouts(axes, 2)
    at_once = 0
    for start, goal in product(among, among):
        plans = [Planner(axes).route(shape, start, goal) for shape in (small, large)]
        for plan in plans:
            if (other := plan.at_once) is not None:
                assert (plan.sends > 1, other.sends) == (True, 1)
                assert other.price >= plan.price
                assert other.steps[-1].after == plan.steps[-1].after == goal
        if plans[0].at_once is not None:
            at_once += 1
            planner = Planner(axes)
            assert planner.best(plans[0], 1) is plans[0]
            planner.weigh_collectives(0.0)
            assert planner.best(plans[0], 1) is plans[0].at_once
            assert planner.best(plans[1], 1) is plans[1]
    assert at_once > 10


def test_what_is_decided_sends_as_little_as_may_be_however_little_that_is() -> None:
    """A part is permuted, and gathered along the one axis that goes; to gather along both sends half more."""
    text = """
        sdy.mesh @mesh = <["a"=2, "b"=2]>
        #both = #sdy.sharding<@mesh, [{"b", "a"}, {}]>
        #one = #sdy.sharding<@mesh, [{"a"}, {}]>
        func.func @main(%x: tensor<12x10xf32> {sdy.sharding = #both})
            -> (tensor<12x10xf32> {sdy.sharding = #one}) {
          %0 = stablehlo.negate %x : tensor<12x10xf32>
          return %0 : tensor<12x10xf32>
        }"""
    for keep in (True, False):
        sent = shardlog.run(text).partition(keep_shardings=keep).collectives
        assert sorted((each.kind, each.total) for each in sent) == [
            ("all-gather", 120),
            ("collective-permute", 120),
        ]


def test_reshards_go_by_way_of_parts_of_axes() -> None:
    """Among layouts on whole axes, no more is sent than where their parts are axes, too: 4 parts become 2 by
    way of 2 x 2."""
    shape, coarse = (32, 32, 32), axes_of((4, 2))
    fine = layouts(SUB_AXES, 3)
    planner, cost, number = (
        Planner(coarse),
        least(SUB_AXES, shape, fine),
        {each: i for i, each in enumerate(fine)},
    )
    parts = {0: numbered((0, 1)), 1: numbered((2,))}

    def in_parts(layout: Layout) -> int:
        return number[Layout(tuple(tuple(q for p in dim for q in parts[p]) for dim in layout.dims))]

    whole = layouts(coarse, 3)
    for start, goal in product(whole, whole):
        assert planner.route(shape, start, goal).price == cost[in_parts(start), in_parts(goal)], (start, goal)


# ---- Running them ------------------------------------------------------------------------------------------


def loaded_reshards(axes: Axes, shape: Shape, start: Layout, ways: Sequence[tuple[Layout, Route]]) -> Any:
    """A program that brings a tensor from a layout to others, each by a route."""
    with make_context(), ir.Location.unknown():
        builder = Builder(axes, "replica", 0, TRAITS)
        f32 = ir.F32Type.get()
        source = builder.tensor(axes.local(shape, start.dims), f32)
        types = [builder.tensor(axes.local(shape, goal.dims), f32) for goal, _ in ways]
        module = ir.Module.create()
        attributes = {
            "sym_name": ir.StringAttr.get("main"),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get([source], types)),
        }
        point = ir.InsertionPoint(module.body)
        func = ir.Operation.create("func.func", attributes=attributes, regions=1, ip=point)
        block = func.regions[0].blocks.append(source, arg_locs=[ir.Location.unknown()])
        builder.scope = Scope(block)
        value = block.arguments[0]
        found = [carry_out(builder, value, shape, start, route.steps) for _, route in ways]
        builder.op("func.return", found, [])
        module.operation.verify()
        return load(module, axes.count)


def check_reshards(axes: Axes, shape: Shape, start: Layout, goals: Sequence[Layout]) -> None:
    """Asserts that a tensor gets from a layout to others, on eight devices, also by one collective."""
    planner, ways = Planner(axes), list[tuple[Layout, Route]]()
    for goal in goals:
        plan = planner.route(shape, start, goal)
        ways += [(goal, each) for each in (plan, plan.at_once) if each is not None]
    loaded = loaded_reshards(axes, shape, start, ways)
    array = np.arange(prod(shape), dtype=np.float32).reshape(shape)
    whole = start.complete
    results = execute(loaded, [parts_of(axes, array, whole)])
    expected = array * axes.product(start.partial)
    for parts, (goal, plan) in zip(results, ways, strict=True):
        if goal.partial:
            continue
        got = whole_of(axes, parts, goal, shape)
        assert np.array_equal(got, expected), f"{start} to {goal}: {plan.steps}"


def classes(axes: Axes, among: Sequence[Layout]) -> list[Layout]:
    """A layout of each class of those that are alike but for the order of dimensions and of pieces."""
    classes: dict[object, Layout] = {}
    for layout in among:
        kinds = [(piece.mesh, piece.size) for piece in axes.pieces]
        every = permutations(range(len(axes.pieces)))
        orders = [order for order in every if [kinds[p] for p in order] == kinds]
        names = [sorted(tuple(order[p] for p in dim) for dim in layout.dims) for order in orders]
        classes.setdefault(str(min(names)), layout)
    return list(classes.values())


@pytest.mark.parametrize(
    ("axes", "shape"), [(CUBE, (8, 8, 8)), (SUB_AXES, (5, 7, 3))], ids=["2x2x2", "4x2, padded"]
)
def test_all_reshards(axes: Axes, shape: Shape) -> None:
    among = layouts(axes, 3)
    for start in classes(axes, among):
        check_reshards(axes, shape, start, among)


SIX = axes_of((6,), [("a", 1, 2)])
OTHER_SIX = axes_of((6,), [("a", 1, 3)], order=(3, 1, 5, 0, 4, 2))
THREE = axes_of((3, 2))


@pytest.mark.parametrize("axes", [SIX, OTHER_SIX, THREE], ids=["2 of 6", "3 of 6", "3x2"])
@pytest.mark.parametrize("shape", [(7, 5), (0, 5)], ids=str)
def test_parts_of_different_sizes(axes: Axes, shape: Shape) -> None:
    among = layouts(axes, 2)
    for start in among:
        check_reshards(axes, shape, start, among)


@pytest.mark.parametrize("shape", [(8, 4), (5, 7)], ids=str)
def test_devices_in_another_order(shape: Shape) -> None:
    axes = axes_of((2, 4), order=(3, 7, 4, 0, 6, 1, 5, 2))
    among = layouts(axes, 2)
    for start in among:
        check_reshards(axes, shape, start, among)


@pytest.mark.parametrize("shape", [(8, 4), (5, 7)], ids=str)
def test_another_mesh(shape: Shape) -> None:
    meshes = [
        Mesh("one", (("a", 2), ("b", 4))),
        Mesh("other", (("c", 4), ("d", 2)), (5, 2, 7, 0, 1, 6, 3, 4)),
    ]
    axes = Axes(Meshes(meshes), [])
    one, other = ([layout for layout in layouts(axes, 2) if _on(axes, layout, mesh)] for mesh in (0, 1))
    for start in one:
        check_reshards(axes, shape, start, other)
    for start in other:
        check_reshards(axes, shape, start, one)


def _on(axes: Axes, layout: Layout, mesh: int) -> bool:
    return all(axes.pieces[p].mesh == mesh for p in layout.pieces)


@pytest.mark.parametrize("shape", [(8, 8), (5, 7)], ids=str)
def test_partial_values(shape: Shape) -> None:
    among = layouts(CUBE, 2)
    for loose in map(numbered, [(0, 2), (0, 1, 2)]):
        for start in among:
            if not set(loose) & set(start.pieces):
                check_reshards(CUBE, shape, Layout(start.dims, loose, "stablehlo.add"), among)


EXCHANGED = """
sdy.mesh @mesh = <["a"=7]>
func.func @main(%x: tensor<{rows}x21xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"a"}}]>}}) -> tensor<{rows}x21xf32> {{
  %0 = sdy.sharding_constraint %x <@mesh, [{{"a"}}, {{}}]> : tensor<{rows}x21xf32>
  %1 = stablehlo.sine %0 : tensor<{rows}x21xf32>
  return %1 : tensor<{rows}x21xf32>
}}
"""  # noqa: E501


@pytest.mark.parametrize(("rows", "fenced"), [(10, True), (12, True), (13, False)])
def test_parts_that_are_all_padding_are_no_zeros_to_xla(rows: int, fenced: bool) -> None:
    """Of seven parts of two rows five have all of ten. XLA takes the zeros of the others for any of that
    shape in the program, and refuses the exchange where these are in another order of dimensions."""
    program = shardlog.run(EXCHANGED.format(rows=rows)).partition(keep_shardings=True)
    (exchange,) = (op for op in ops_in(program.module) if op.operation.name == "stablehlo.all_to_all")
    assert (exchange.operands[0].owner.operation.name == "stablehlo.optimization_barrier") == fenced
    x = np.random.default_rng(0).normal(size=(rows, 21)).astype(np.float32)
    (got,) = program.compile()(x)
    np.testing.assert_allclose(got, np.sin(x), rtol=1e-6)


FIRST = """
sdy.mesh @mesh = <["a"=8]>
func.func @main(%x: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>})
    -> (tensor<16x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.slice %x [0:16, 0:1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
     : (tensor<16x64xf32>) -> tensor<16x1xf32>
  return %0 : tensor<16x1xf32>
}
"""


def test_a_column_on_the_first_device_is_not_gathered_with_the_padding_of_others() -> None:
    """All others have a column of padding: an eighth of each is exchanged, and the rows are gathered."""
    program = shardlog.run(FIRST).partition(keep_shardings=True)
    assert sorted(c.kind for c in program.collectives) == ["all-gather", "all-to-all"]
    assert sum(c.bytes for c in program.collectives) == 2 * 16 * 4 * 7 // 8
    x = np.random.default_rng(0).normal(size=(16, 64)).astype(np.float32)
    (got,) = program.compile()(x)
    np.testing.assert_array_equal(got, x[:, :1])


if __name__ == "__main__":  # all of them, not one of each class
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    for axes, shape in product((CUBE, SUB_AXES), [(8, 8, 8), (5, 7, 3)]):
        every = layouts(axes, 3)
        for number, start in enumerate(every):
            check_reshards(axes, shape, start, every)
            print(f"{shape}: {number + 1} of {len(every)}", flush=True)


CUTS = """
sdy.mesh @mesh = <["a"=6, "b"=2]>
func.func @main(%x: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)2}]>},
                %y: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", "a":(1)3}]>})
    -> (tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)2}]>},
        tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", "a":(1)3}]>}) {
  %0 = stablehlo.negate %x : tensor<6xf32>
  %1 = stablehlo.negate %y : tensor<6xf32>
  return %0, %1 : tensor<6xf32>, tensor<6xf32>
}
"""


def test_the_boundary_is_sharded_as_far_as_layouts_follow() -> None:
    text = shardlog.run(CUTS).partition().text()
    assert 'in_shardings=[<@mesh, [{"a":(1)2}]>, <@mesh, [{"b"}]>]' in text
    assert 'out_shardings=[<@mesh, [{"a":(1)2}]>, <@mesh, [{"b"}]>]' in text
    assert "(1)3" not in text
