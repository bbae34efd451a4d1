"""GSPMD's notation: the strings are XLA's and JAX's, the meshes are those of XLA's importer."""

from __future__ import annotations

import re
from math import prod
from typing import Any

import jax
import numpy as np
import pytest
import shardlog
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec
from jaxlib import xla_client
from shardlog.notations.gspmd.hlo_sharding import HloSharding, parse, tuple_text
from shardlog.notations.gspmd.tiles import (
    common_mesh,
    flat_devices,
    from_sharding,
    groups_along,
    subgroup_axes,
    to_sharding,
)
from shardlog.program.meshes import Mesh, SubAxis
from shardlog.program.shardings import Dimension, Sharding

from ..support.drawing import drawing

XLA: Any = xla_client.HloSharding
P: Any = PartitionSpec


# ---- Strings -----------------------------------------------------------------------------------------------

STRINGS = [
    "{replicated}",
    "{manual}",
    "{unknown}",
    "{unreduced}",
    "{maximal device=3}",
    "{devices=[2,4]<=[8]}",
    "{devices=[4,2]<=[2,4]T(1,0)}",
    "{devices=[2,4]0,1,2,3,7,6,5,4}",
    "{devices=[2,2,2]<=[8] last_tile_dim_replicate}",
    "{devices=[2,1,2,2]<=[8] last_tile_dims={manual, replicated}}",
    "{devices=[2,2,2]<=[2,4]T(1,0) last_tile_dims={unreduced}}",
    "{devices=[2,4]<=[8] shard_as 3}",
    "{unknown shard_like 0}",
    "{{replicated}, {maximal device=0}}",
    "{{manual}, {manual}, {manual}, {manual}, {manual}, /*index=5*/{manual}, {devices=[2]<=[2]}}",
    "{}",
]


def printed(text: str) -> str:
    found: Any = parse(text)
    return tuple_text(found) if isinstance(found, tuple) else str(found)


@pytest.mark.parametrize("text", STRINGS)
def test_strings_are_those_of_xla(text: str) -> None:
    assert printed(text) == text == str(XLA.from_string(text))


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (" {devices=[2, 4] <= [8]} ", "{devices=[2,4]<=[8]}"),
        ('{replicated metadata={op_name="a{" op_type="b"}}', "{replicated}"),
        ('{replicated metadata={{op_name="a"}, {op_name="b"}}}', "{replicated}"),
        ("{devices=[2,2]<=[4] last_tile_dims={replicated}}", "{devices=[2,2]<=[4] last_tile_dim_replicate}"),
    ],
)
def test_other_ways_to_write_a_string(text: str, same: str) -> None:
    assert printed(text) == same == str(XLA.from_string(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("replicated", "expected '{', found 'replicated'"),
        ("{replicatd}", "found 'replicatd'\n  hint: did you mean replicated?"),
        ("{devices=[2,4]<=[8]", "expected '}', found the end"),
        ("{devices=[2,4]<=[9]}", "2,4 tiles are 8, and there are 9 devices"),
        ("{devices=[2,2]0,1,2}", "2,2 tiles are 4, and there are 3 devices"),
        ("{devices=[2,2]0,1,1,2}", "a device is listed twice"),
        ("{devices=[2,2]<=[2,2]}", "expected 'T', found '}'"),
        ("{devices=[2,2]<=[2,2]T(1,1)}", "T(1,1) is not an order of 2 dimensions"),
        ("{devices=[2,2]<=[4] last_tile_dims={manul}}", "found 'manul'\n  hint: did you mean manual?"),
        ("{replicated} {", "expected the end, found '{'"),
        ("{replicated shard_as 3 shard_as 4}", "expected '}', found 'shard_as'"),
    ],
)
def test_what_is_no_sharding(text: str, message: str) -> None:
    with pytest.raises(shardlog.ShardlogError, match=re.escape(message)):
        parse(text)


# ---- Shardings ---------------------------------------------------------------------------------------------


@st.composite
def meshes(draw: st.DrawFn) -> Mesh:
    sizes = draw(st.lists(st.sampled_from([2, 4, 3, 6, 8, 12, 1]), min_size=1, max_size=4))
    while prod(sizes) > 256:
        sizes.pop()
    devices = tuple(draw(st.permutations(range(prod(sizes))))) if draw(st.booleans()) else ()
    iota = devices == tuple(range(prod(sizes)))
    return Mesh("mesh", tuple((f"a{i}", size) for i, size in enumerate(sizes)), () if iota else devices)


@st.composite
def shardings(draw: st.DrawFn, mesh: Mesh) -> tuple[Sharding, tuple[str, ...]]:
    """A closed sharding, and the manual axes around it."""
    parts: list[SubAxis] = []
    for name, size in mesh.axes:
        cut = draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
        parts += [SubAxis(name, pre, n) for pre, n in ((1, cut), (cut, size // cut)) if n > 1]
    dimensions: list[list[SubAxis]] = [[] for _ in range(draw(st.integers(0, 4)))]
    unreduced: list[SubAxis] = []
    manual: list[str] = []
    for part in draw(st.permutations(parts)):
        place = draw(st.integers(-3, len(dimensions) - 1))
        if place >= 0 and not (dimensions[place] and _follows(dimensions[place][-1], part)):
            dimensions[place].append(part)
        elif place == -2 and not any(axis.name == part.name for axis in unreduced):
            unreduced.append(part)
        elif place == -3 and part.size == mesh.sizes[part.name]:
            manual.append(part.name)
    order = list(mesh.sizes)
    unreduced.sort(key=lambda axis: order.index(axis.name))
    manual.sort(key=order.index)
    closed = tuple(Dimension(tuple(axes), closed=True) for axes in dimensions)
    return Sharding(0, closed, (), tuple(unreduced)), tuple(manual)


def _follows(before: SubAxis, after: SubAxis) -> bool:
    return before.name == after.name and before.pre * before.size == after.pre


def named(sharding: Sharding, mesh: Mesh, manual: tuple[str, ...]) -> str:
    """A sharding in XLA's notation with named axes, which it turns into the other one."""

    def axes(several: tuple[SubAxis, ...]) -> str:
        texts = (
            f"'{a.name}'" + ("" if a.size == mesh.sizes[a.name] else f":({a.pre}){a.size}") for a in several
        )
        return "{" + ", ".join(texts) + "}"

    text = "mesh[" + ",".join(f"'{name}'={size}" for name, size in mesh.axes) + "]"
    if mesh.device_ids:
        text += f", device_ids=({','.join(map(str, mesh.device_ids))})"
    text += ", [" + ", ".join(axes(d.axes) for d in sharding.dimensions) + "]"
    for what, found in (
        ("unreduced", sharding.unreduced),
        ("manual", tuple(SubAxis(n, 1, mesh.sizes[n]) for n in manual)),
    ):
        text += f", {what}={axes(found)}" if found else ""
    return "{" + text + "}"


@given(st.data())
@drawing(120)
def test_shardings_are_written_as_xla_does_and_read_back(data: st.DataObject) -> None:
    mesh = data.draw(meshes())
    sharding, manual = data.draw(shardings(mesh))
    written = from_sharding(sharding, mesh, manual)
    assert str(written) == str(XLA.v3_to_v2_sharding(XLA.from_string(named(sharding, mesh, manual))))
    assert parse(str(written)) == written
    assert subgroup_axes(written, "manual", mesh) == tuple(SubAxis(n, 1, mesh.sizes[n]) for n in manual)
    if written.kind != "manual":  # which leaves nothing to say of dimensions
        assert to_sharding(written, 0, mesh, len(sharding.dimensions)) == sharding
    if written.kind == "tiled":
        assert list(flat_devices(written)) == XLA.from_string(str(written)).tile_assignment_devices()


@given(st.data())
@drawing(40)
def test_shardings_are_written_as_jax_does(data: st.DataObject) -> None:
    mesh = data.draw(meshes())
    axes = data.draw(st.permutations([name for name, size in mesh.axes if size > 1]))
    rank = data.draw(st.integers(1, 3))
    places = [data.draw(st.integers(-1, rank)) for _ in axes]
    spec = [tuple(a for a, place in zip(axes, places, strict=True) if place == d) for d in range(rank)]
    unreduced = {a for a, place in zip(axes, places, strict=True) if place == rank}
    explicit = (jax.sharding.AxisType.Explicit,) * len(mesh.axes)
    abstract: Any = AbstractMesh(tuple(mesh.sizes.values()), tuple(mesh.sizes), axis_types=explicit)
    jax_says = NamedSharding(
        abstract, P(*spec, unreduced=unreduced), _logical_device_ids=mesh.device_ids or None
    )

    def whole(names: tuple[str, ...]) -> tuple[SubAxis, ...]:
        return tuple(SubAxis(name, 1, mesh.sizes[name]) for name in names)

    in_order = tuple(name for name in mesh.sizes if name in unreduced)
    sharding = Sharding(0, tuple(Dimension(whole(names)) for names in spec), (), whole(in_order))
    assert str(from_sharding(sharding, mesh)) == str(jax_says._to_xla_hlo_sharding(rank))


# ---- Meshes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "sizes"),
    [
        (["{devices=[16,1]<=[16]}"], [16]),
        (["{devices=[4,8]<=[8,4]T(1,0)}", "{replicated}"], [8, 4]),
        (["{devices=[6,35]<=[7,10,3]T(2,1,0)}"], [7, 2, 5, 3]),
        (["{devices=[8,4]<=[32]}", "{devices=[1,2,16]<=[32] last_tile_dim_replicate}"], [2, 4, 4]),
        (
            ["{devices=[2,3]<=[6]}", "{devices=[3,2]<=[6]}"],
            [6],
        ),  # one is "axis_0":(1)2, the other "axis_0":(1)3
        (["{devices=[2,4]0,1,2,3,4,5,6,7}"], [2, 4]),
        (["{devices=[2,4]0,2,4,6,1,3,5,7}"], [4, 2]),
        (["{replicated}"], []),
        (["{devices=[1,1]<=[1]}"], []),
    ],
)
def test_the_mesh_of_shardings(texts: list[str], sizes: list[int]) -> None:
    assert mesh_of(*texts) == Mesh("mesh", tuple((f"axis_{i}", size) for i, size in enumerate(sizes)))


@given(st.data())
@drawing(40)
def test_the_mesh_of_one_sharding_is_the_one_that_xla_finds(data: st.DataObject) -> None:
    mesh = data.draw(meshes().filter(lambda mesh: not mesh.device_ids))
    sharding, manual = data.draw(shardings(mesh))
    written = from_sharding(sharding, mesh, manual)
    sizes = XLA.from_string(str(written)).get_axis_sizes() if written.kind == "tiled" else []
    assert [size for _, size in common_mesh({written: ""}).axes] == sizes


@given(st.data())
@drawing(40)
def test_a_sharding_keeps_its_devices_on_the_mesh_made_for_it(data: st.DataObject) -> None:
    mesh = data.draw(meshes())
    sharding, manual = data.draw(shardings(mesh))
    written = from_sharding(sharding, mesh, manual)
    found = common_mesh({written: ""})
    if written.kind == "tiled":
        axes = [axis.name for axis in subgroup_axes(written, "manual", found)]
        read = to_sharding(written, 0, found, len(sharding.dimensions))
        assert np.array_equal(flat_devices(from_sharding(read, found, axes)), flat_devices(written))


def mesh_of(*texts: str) -> Mesh:
    return common_mesh({sharding: "" for sharding in map(parse, texts) if isinstance(sharding, HloSharding)})


def test_devices_in_another_order() -> None:
    """The order that one sharding gives serves for the other, whose replicas have none."""
    tiled = "{devices=[2,2]0,3,1,2}"
    assert mesh_of("{devices=[2,2]0,3,1,2 last_tile_dim_replicate}", tiled).device_ids == (0, 3, 1, 2)
    assert mesh_of("{devices=[2,3]<=[2,3]T(1,0)}").device_ids == (0, 3, 1, 4, 2, 5)  # no axes give this order
    with pytest.raises(shardlog.ShardlogError, match="no mesh has its devices in an order that suits"):
        mesh_of("{devices=[2,4]0,1,2,3,4,5,7,6}", "{devices=[2,4]<=[8]}")
    with pytest.raises(shardlog.ShardlogError, match="are not the numbers from 0 to 3"):
        mesh_of("{devices=[2,2]1,2,3,4}")


def test_the_devices_along_axes_of_a_mesh() -> None:
    mesh = Mesh("mesh", (("a", 2), ("b", 4)))
    b, minor = SubAxis("b", 1, 4), SubAxis("b", 2, 2)
    assert groups_along(mesh, [b]).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert groups_along(mesh, [minor, SubAxis("a", 1, 2)]).tolist() == [[0, 4, 1, 5], [2, 6, 3, 7]]
    ordered = Mesh("mesh", mesh.axes, (7, 6, 5, 4, 3, 2, 1, 0))
    assert groups_along(ordered, [b]).tolist() == [[7, 6, 5, 4], [3, 2, 1, 0]]
