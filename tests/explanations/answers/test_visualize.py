"""Pictures of the devices that hold the parts of a tensor."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import jax
import numpy as np
import pytest
import shardlog
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec
from shardlog.errors import ShardlogError
from shardlog.explanations.answers.visualize import ranges, visualize


def named(*spec: Any) -> NamedSharding:
    return NamedSharding(AbstractMesh((2, 4), ("data", "model")), PartitionSpec(*spec))  # type: ignore[no-untyped-call]


def test_two_dimensions() -> None:
    assert str(visualize(named("data", None), (8, 4))) == (
        "[8/data, 4] on 8 devices (data=2, model=4)\n┌─────┐\n│ 0-3 │\n├─────┤\n│ 4-7 │\n└─────┘"
    )


def test_one_dimension() -> None:
    assert str(visualize('[{"model"}]', (8,), mesh="data=2,model=4")).splitlines()[1:] == [
        "┌─────┬─────┬─────┬─────┐",
        "│ 0,4 │ 1,5 │ 2,6 │ 3,7 │",
        "└─────┴─────┴─────┴─────┘",
    ]


def test_any_rank() -> None:
    shown = str(visualize('<@m, [{"data"}, {}, {"model":(1)2}]>', (8, 3, 5), {"data": 2, "model": 4}))
    assert shown.splitlines() == [
        "[8/data, 3, 5/model:(1)2] on 8 devices (data=2, model=4)",
        "dim 0  dim 1  dim 2  devices",
        "-----  -----  -----  -------",
        "0:4    0:3    0:3        0,1",
        "0:4    0:3    3:5        2,3",
        "4:8    0:3    0:3        4,5",
        "4:8    0:3    3:5        6,7",
    ]


def test_without_a_shape_parts_are_numbered() -> None:
    assert str(visualize(named(("data", "model"), None, None))).splitlines()[3] == (
        "1 of 8  1 of 1  1 of 1        0"
    )


def test_html() -> None:
    html = shardlog.visualize(named("data", "model"), (8, 4))._repr_html_()
    assert html.count("<tr>") == 2
    assert html.count("<td ") == 8
    assert 'title="dim 0: 4:8, dim 1: 3:4"' in html
    assert "[8/data, 4/model] on 8 devices" in html


@given(st.permutations(["a", "b", "c"]), st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_it_is_what_jax_says(order: list[str], dims: list[int]) -> None:
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2, 2)[:, ::-1], ("a", "b", "c"))
    spec = [tuple(n for n, d in zip(order, dims, strict=True) if d == dim) for dim in range(3)]
    shape = (8, 16, 24)
    sharding = NamedSharding(mesh, PartitionSpec(*spec))  # type: ignore[no-untyped-call]
    places: dict[Any, Any] = dict(sharding.devices_indices_map(shape))
    theirs = {
        device.id: tuple(s.indices(n)[:2] for s, n in zip(index, shape, strict=True))
        for device, index in places.items()
    }
    ours = {device: tile.slices for tile in visualize(sharding, shape).tiles for device in tile.devices}
    assert ours == theirs


@given(st.sampled_from([1, 2, 4]), st.sampled_from([2, 4]), st.integers(1, 20))
def test_parts_cover_a_dimension(pre: int, size: int, length: int) -> None:
    shown = visualize(f'[{{"x":({pre}){size}}}]', (length,), mesh={"x": 16, "y": 2})
    covered = [i for tile in shown.tiles for i in range(*tile.slices[0])]
    assert covered == list(range(length))
    assert sorted(d for tile in shown.tiles for d in tile.devices) == list(range(prod((16, 2))))


def test_ranges() -> None:
    assert ranges([0, 1, 2, 3, 5, 7, 8]) == "0-3,5,7,8"
    assert all(ranges([a, b]) == f"{a},{b}" for a, b in product(range(2), range(2, 4)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((named("data"), (8, 4, 2)), None),
        (('[{"data"}]',), "no mesh"),
        (('[{"data"}]', (8,), "data"), "not a mesh"),
        (('[{"dat"}]', (8,), "data=2"), 'unknown axis name: "dat"'),
        (('[{"data"}]', (8, 2), "data=2"), "the sharding has 1 dimensions, but the shape has 2"),
        ((3,), "cannot show a int"),
    ],
)
def test_bad_input(arguments: tuple[Any, ...], message: str | None) -> None:
    if message is None:
        assert visualize(*arguments).dims == ((("data", 1, 2),), (), ())
        return
    with pytest.raises(ShardlogError, match=message.replace("(", r"\(")):
        visualize(*arguments)
