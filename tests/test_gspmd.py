"""GSPMD's notation: the strings are XLA's, the meshes are those of XLA's importer, and modules say the same
in both notations."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from jax._src.config import use_shardy_partitioner
from jax.experimental.shard_alike import shard_alike
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec
from jaxlib import xla_client
from jaxlib.mlir import ir
from shardlog.cli import main
from shardlog.exporters.gspmd import to_gspmd
from shardlog.importers.gspmd import read_gspmd
from shardlog.importers.hlo_sharding import HloSharding, parse, tuple_text
from shardlog.importers.meshes import Mesh, SubAxis
from shardlog.importers.shardings import Dimension, Sharding
from shardlog.importers.source import parse_module, read_source
from shardlog.importers.tiles import common_mesh, flat_devices, from_sharding, subgroup_axes, to_sharding

from .random_modules import modules

XLA: Any = xla_client.HloSharding
P: Any = PartitionSpec
lax: Any = jax.lax
alike_pair: Any = shard_alike
Tensor: Any = jax.ShapeDtypeStruct


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
    found = parse(text)
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
        ("{devices=[2,2]0,1,1,2}", "a device stands there twice"),
        ("{devices=[2,2]<=[2,2]}", "expected 'T', found '}'"),
        ("{devices=[2,2]<=[2,2]T(1,1)}", "T(1,1) is no order of 2 dimensions"),
        ("{devices=[2,2]<=[4] last_tile_dims={manul}}", "found 'manul'\n  hint: did you mean manual?"),
        ("{replicated} {", "expected the end, found '{'"),
        ("{mesh['x'=2], [{'x'}]}", "hint: write a sharding with named axes as sdy.sharding"),
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
@settings(max_examples=300, deadline=None)
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
@settings(max_examples=100, deadline=None)
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
@settings(max_examples=100, deadline=None)
def test_the_mesh_of_one_sharding_is_the_one_that_xla_finds(data: st.DataObject) -> None:
    mesh = data.draw(meshes().filter(lambda mesh: not mesh.device_ids))
    sharding, manual = data.draw(shardings(mesh))
    written = from_sharding(sharding, mesh, manual)
    sizes = XLA.from_string(str(written)).get_axis_sizes() if written.kind == "tiled" else []
    assert [size for _, size in common_mesh({written: ""}).axes] == sizes


@given(st.data())
@settings(max_examples=100, deadline=None)
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


# ---- Modules -----------------------------------------------------------------------------------------------

MESH = AbstractMesh((2, 4), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
NESTED = AbstractMesh((2, 2, 2), ("a", "b", "c"), axis_types=(jax.sharding.AxisType.Auto,) * 3)


def over(mesh: Any, *spec: Any) -> NamedSharding:
    return NamedSharding(mesh, P(*spec))


def constrain(x: Any, *spec: Any) -> Any:
    return lax.with_sharding_constraint(x, over(MESH, *spec))


X = Tensor((8, 16), jnp.float32, sharding=over(MESH, "data", None))
W = Tensor((16, 16), jnp.float32, sharding=over(MESH, None, "model"))
FREE = Tensor((8, 16), jnp.float32)
Z = Tensor((8, 16), jnp.float32, sharding=over(NESTED, "a", None))


def loop(x: Any, w: Any) -> Any:
    def body(carry: Any, _: Any) -> Any:
        carry = constrain(jnp.tanh(carry @ w), "data", "model")
        return carry, carry.sum()

    return lax.scan(body, x, None, length=3)


def orders(x: Any, w: Any) -> Any:
    return constrain(x @ w, None, ("model", "data"))


def unconstrained(x: Any, w: Any) -> Any:
    return constrain(x @ w, P.UNCONSTRAINED, "model")


def manual(x: Any, w: Any) -> Any:
    product: Any = jax.shard_map(
        lambda a, b: lax.psum(a @ b, "model"),
        mesh=MESH,
        in_specs=(P("data", "model"), P("model")),
        out_specs=P("data"),
    )
    return product(x, w) + product(x * 2, w)


def partly_manual(x: Any, w: Any) -> Any:
    def body(a: Any) -> Any:
        return jax.jit(jnp.sin)(a) + lax.axis_index("model")

    return jax.shard_map(
        body, mesh=MESH, in_specs=P(None, "model"), out_specs=P(None, "model"), axis_names={"model"}
    )(jax.jit(jnp.sin)(x @ w))


def nested(z: Any) -> Any:
    def outer(a: Any) -> Any:
        a = a @ a.T
        return jax.shard_map(jnp.sin, in_specs=P("b"), out_specs=P("b"), axis_names={"b"})(a)

    return jax.shard_map(outer, mesh=NESTED, in_specs=P("a"), out_specs=P("a"), axis_names={"a"})(z)


def alike(x: Any, y: Any) -> Any:
    return alike_pair(y, jnp.sin(x))


def callback(x: Any, w: Any) -> Any:
    jax.debug.print("{}", x.sum())
    return x @ w


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (loop, (X, W)),
    (orders, (X, W)),
    (unconstrained, (FREE, W)),
    (manual, (X, W)),
    (partly_manual, (X, W)),
    (nested, (Z,)),
    (alike, (X, FREE)),
    (callback, (X, W)),
]


def lower(function: Callable[..., Any], arguments: tuple[Any, ...], *, shardy: bool) -> str:
    with use_shardy_partitioner(shardy):
        return str(jax.jit(function).trace(*arguments).lower(lowering_platforms=("cpu",)).as_text())


def axes_of(arguments: tuple[Any, ...]) -> str:
    mesh = arguments[-1].sharding.mesh if arguments[-1].sharding else MESH
    return ",".join(f"{name}={size}" for name, size in mesh.shape.items())


@pytest.mark.parametrize(("function", "arguments"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_jax_programs_are_the_same_in_both_notations(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    gspmd = lower(function, arguments, shardy=False)
    assert "mhlo.sharding" in gspmd
    assert "sdy." not in gspmd
    read = shardlog.run(gspmd, mesh=axes_of(arguments)).text()
    assert read == shardlog.run(lower(function, arguments, shardy=True)).text()


NOTHING = re.compile(r" ?\{sdy\.sharding = #sdy\.sharding_per_value<\[<@mesh, \[(\{\}(, )?)*\]>\]>\}")


@pytest.mark.parametrize(("function", "arguments"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_round_trip(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """What is written and read again is the same module; only ops in manual computations, all of which have
    to name their manual axes, come back with empty shardings."""
    result = shardlog.run(lower(function, arguments, shardy=True))
    gspmd = result.text("gspmd")
    assert "sdy.sharding" not in gspmd
    for text in re.findall(r'mhlo\.sharding = "([^"]*)"', gspmd):
        assert str(XLA.from_string(text)) == text
    again = shardlog.run(gspmd, mesh=axes_of(arguments)).text()
    assert NOTHING.sub("", again) == NOTHING.sub("", result.text())


def module(signature: str, *lines: str, top: str = "") -> str:
    body = "\n  ".join(lines)
    return f"{top}\nfunc.func @main({signature} {{\n  {body}\n}}\n"


def shown(text: str, **options: Any) -> str:
    return shardlog.run(text, **options).text()


def test_a_module_without_a_mesh_gets_one() -> None:
    text = shown(
        module(
            '%a: tensor<8x8xf32> {mhlo.sharding = "{devices=[4,8]<=[8,4]T(1,0)}"}, %b: tensor<8x8xf32> '
            '{mhlo.sharding = "{devices=[1,2,16]<=[32] last_tile_dim_replicate}"}) -> tensor<8x8xf32>',
            "%0 = stablehlo.add %a, %b : tensor<8x8xf32>",
            "return %0 : tensor<8x8xf32>",
        )
    )
    assert 'sdy.mesh @mesh = <["axis_0"=2, "axis_1"=4, "axis_2"=4]>' in text
    assert (
        '%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"axis_2"}, {"axis_0", "axis_1"}]>}'
        in text
    )
    assert '%arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"axis_0"}]>}' in text


def test_axes_of_the_users_mesh_are_cut_where_needed() -> None:
    argument = '%a: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) -> tensor<8x8xf32>'
    text = shown(module(argument, "return %a : tensor<8x8xf32>"), mesh="x=4,y=2", strategy="basic")
    assert '[{"x":(1)2}, {"x":(2)2, "y"}]' in text


def test_tuples_one_sharding_for_all_and_single_devices() -> None:
    text = shown(
        module(
            '%a: tensor<8xf32> {mhlo.sharding = "{unknown}"}, %b: tensor<8xf32>) -> tensor<8xf32>',
            "%0:2 = stablehlo.optimization_barrier "
            '{mhlo.sharding = "{{devices=[2]<=[2]}, {maximal device=1}}"} '
            "%a, %b : tensor<8xf32>, tensor<8xf32>",
            '%1:2 = stablehlo.optimization_barrier {mhlo.sharding = "{replicated}"} '
            "%a, %b : tensor<8xf32>, tensor<8xf32>",
            "%2 = stablehlo.add %0#0, %1#1 : tensor<8xf32>",
            "return %2 : tensor<8xf32>",
        )
    )
    assert "sdy.mesh @maximal_mesh_1 = <[], device_ids=[1]>" in text
    assert '[<@mesh, [{"axis_0"}]>, <@maximal_mesh_1, []>]' in text
    assert "[<@mesh, [{}]>, <@mesh, [{}]>]" in text


def test_shard_as_is_a_sharding_group() -> None:
    text = shown(
        module(
            '%a: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2] shard_as 7}"}, %b: tensor<8xf32>)'
            " -> tensor<8xf32>",
            '%0 = stablehlo.tanh %b {mhlo.sharding = "{unknown shard_as 7}"} : tensor<8xf32>',
            "return %0 : tensor<8xf32>",
        )
    )
    assert 'tanh %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"axis_0"}]>]>}' in text


ARGUMENT = '%a: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}"}) -> tensor<8x8xf32>'
RETURN = "return %a : tensor<8x8xf32>"
XY = 'sdy.mesh @mesh = <["x"=2, "y"=4]>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            module(ARGUMENT.replace("[2,4]", "[2,4"), RETURN),
            "2:1: argument 0 of @main: error: not a sharding: {devices=[2,4<=[8]}: expected ',', found '<='",
        ),
        (
            module(ARGUMENT.replace("[2,4]", "[8]"), RETURN),
            "{devices=[8]<=[8]} is for rank 1, the tensor has rank 2",
        ),
        (
            module(ARGUMENT, RETURN, top='sdy.mesh @mesh = <["x"=4]>'),
            "is on 8 devices, and the mesh x=4 has 4",
        ),
        (
            module(ARGUMENT, RETURN, top='sdy.mesh @mesh = <["x"=8]>\n' + XY.replace("@mesh", "@n")),
            "has 2 meshes",
        ),
        (
            module(
                '%a: tensor<6xf32> {mhlo.sharding = "{devices=[2,3]<=[6] last_tile_dim_replicate}"}) -> ()',
                "return",
                top='sdy.mesh @mesh = <["x"=3, "y"=2]>',
            ),
            "cannot be said by axes of the mesh x=3,y=2",
        ),
        (
            module(
                '%a: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,4]<=[8]}", '
                'sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> tensor<8x8xf32>',
                RETURN,
                top=XY,
            ),
            "sdy.sharding and mhlo.sharding contradict each other",
        ),
        (
            module(ARGUMENT.replace("<=[8]", "<=[8] shard_like 1"), RETURN),
            "shard_like 1: sdy has no groups of shardings that are only compatible",
        ),
        (
            module(
                ARGUMENT,
                '%0 = stablehlo.custom_call @SPMDFullToShardShape(%a) {mhlo.sharding = "{manual}"} '
                ": (tensor<8x8xf32>) -> tensor<4x2xf32>",
                RETURN,
            ),
            "@SPMDFullToShardShape does not enclose the call of a function",
        ),
        (
            module(
                ARGUMENT,
                '%0 = stablehlo.tanh %a {mhlo.sharding = "{{replicated}, {manual}}"} : tensor<8x8xf32>',
                RETURN,
            ),
            "a tuple of 2 shardings for 1 results",
        ),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(shardlog.ShardlogError, match=re.escape(message)):
        shardlog.run(text)


def test_both_notations_may_say_the_same() -> None:
    both = ARGUMENT.replace('}"', '}", sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>')
    assert "mhlo.sharding" not in shown(module(both, RETURN, top=XY))


def test_what_is_written_around_constraints() -> None:
    text = module(
        "%a: tensor<8x8xf32>) -> tensor<8x8xf32>",
        '%0 = sdy.sharding_constraint %a <@mesh, [{"x", ?}, {?}]> : tensor<8x8xf32>',
        "%1 = sdy.propagation_barrier %0 allowed_direction=NONE : tensor<8x8xf32>",
        "return %1 : tensor<8x8xf32>",
        top=XY,
    )
    written = shardlog.run(text, closed=False).text("gspmd")
    call = (
        '@Sharding(%arg0) {backend_config = "unspecified_dims=[0,1]", mhlo.sharding = "{devices=[2,1,4]<=[8]'
    )
    assert call in written
    assert "barrier" not in written
    assert '<@mesh, [{"x", ?}, {?}]>' in shown(written, mesh="x=2,y=4", closed=False)


@settings(max_examples=60, deadline=None, suppress_health_check=[*HealthCheck])
@given(modules())
def test_random_modules_are_written_as_they_are_read(text: str) -> None:
    try:
        written = shardlog.run(text).text("gspmd")
    except shardlog.ShardlogError:
        reject()  # a conflict in a sharding group
    module = parse_module(read_source(written))
    try:
        with module.context, ir.Location.unknown():
            read_gspmd(module)
    except shardlog.ShardlogError as error:
        assert "all shardings of a module" in str(error) or "no mesh has" in str(
            error
        )  # the module had several
        reject()
    assert str(to_gspmd(module)) == written


def test_what_gspmd_has_nothing_for() -> None:
    text = module(
        "%a: tensor<8xf32>) -> tensor<8xf32>",
        "%0 = sdy.data_flow_edge %a : tensor<8xf32>",
        "return %0 : tensor<8xf32>",
    )
    with pytest.raises(shardlog.ShardlogError, match="data_flow_edge cannot be said in GSPMD"):
        to_gspmd(parse_module(read_source(text)))


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(module(ARGUMENT, RETURN))
    assert main(["run", str(path), "--notation", "gspmd"]) == 0
    out = capsys.readouterr().out
    assert 'mhlo.sharding = "{devices=[2,4]<=[8]}"' in out
    assert "sdy" not in out
    path.write_text(module(ARGUMENT.replace("devices", "device"), RETURN))
    assert main(["run", str(path)]) == 2
    assert f"{path}:2:1: argument 0 of @main: error: not a sharding" in capsys.readouterr().err


def test_a_function_called_inside_and_outside_of_a_manual_computation() -> None:
    """Inside, its values have manual axes; so there are two functions."""
    text = (
        module(
            "%a: tensor<8xf32>) -> tensor<8xf32>",
            "%0 = call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>",
            '%1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{}], replicated={"y"}>] '
            'out_shardings=[<@mesh, [{}], replicated={"y"}>] manual_axes={"y"} (%b: tensor<8xf32>) {',
            "  %2 = func.call @f(%b) : (tensor<8xf32>) -> tensor<8xf32>",
            "  sdy.return %2 : tensor<8xf32>",
            "} : (tensor<8xf32>) -> tensor<8xf32>",
            "return %1 : tensor<8xf32>",
            top=XY,
        )
        + "func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {\n"
        "  %0 = stablehlo.tanh %a : tensor<8xf32>\n  return %0 : tensor<8xf32>\n}\n"
    )
    written = str(to_gspmd(parse_module(read_source(text))))
    manual_inside = '{mhlo.sharding = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dims={manual, replicated}}"}'
    assert "call @f(%arg0) : (tensor<8xf32>)" in written
    assert f"call @f_0(%arg0) {manual_inside} : (tensor<8xf32>)" in written
    assert "private @f(%arg0: tensor<8xf32>) -> tensor<8xf32>" in written
    assert f"private @f_0(%arg0: tensor<8xf32> {manual_inside})" in written
    assert "sdy.manual_computation" in shown(written, mesh="x=2,y=4")


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (orders, lambda x, w: x @ w),
        (manual, lambda x, w: 3 * x @ w),
        (partly_manual, lambda x, w: np.sin(np.sin(x @ w)) + np.arange(16) // 4),
    ],
)
def test_xla_computes_the_same(function: Callable[..., Any], expected: Callable[..., Any]) -> None:
    """XLA's GSPMD partitioner takes what we write, and the program computes what it did."""
    from jax._src import sharding_impls
    from jax._src.interpreters import mlir

    values = [
        np.random.default_rng(i).standard_normal(t.shape).astype("float32") for i, t in enumerate((X, W))
    ]
    text = shardlog.run(lower(function, (X, W), shardy=True)).text("gspmd")
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    options.num_replicas, options.num_partitions = build.num_replicas, build.num_partitions = 1, 8
    build.use_spmd_partitioning, build.use_shardy_partitioner = True, False
    build.device_assignment = xla_client.DeviceAssignment.create(np.arange(8).reshape(1, 8))
    devices = jax.devices()
    with mlir.make_ir_context():
        client: Any = devices[0].client
        program = client.compile_and_load(
            ir.Module.parse(text), xla_client.DeviceList(tuple(devices)), options
        )

    def placed(proto: Any) -> Any:
        return sharding_impls.GSPMDSharding(devices, XLA.from_proto(proto))

    operands = [
        jax.device_put(value, placed(proto))
        for value, proto in zip(values, program.get_parameter_shardings(), strict=True)
    ]
    parts = program.execute_sharded(operands).disassemble_into_single_device_arrays()[0]
    found = jax.make_array_from_single_device_arrays(
        (8, 16), placed(program.get_output_shardings()[0]), parts
    )
    np.testing.assert_allclose(np.asarray(found), expected(*values), atol=1e-4)
