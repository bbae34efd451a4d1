"""What a partitioned program moves: how much, how often, and for what; and that it runs in every form."""

from __future__ import annotations

import re
from dataclasses import astuple
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from shardlog.cost.hlo import hlo_bytes
from shardlog.errors import ShardlogError
from shardlog.importers.sources.source import read_source
from shardlog.importers.sources.text import make_context, parse_module
from shardlog.partition.executions import Executions
from shardlog.partition.forms import FORMS
from shardlog.program.mlir.modules import ops_in
from shardlog.runs.collectives import Collective

from ..support.drawing import in_turn
from ..support.programs import PROGRAMS, array, lowered
from ..support.traits import TRAITS

MLP = """\
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(
    %x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("model.py":3:1),
    %up: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
    %down: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>})
    -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot %x, %up : (tensor<8x16xf32>, tensor<16x64xf32>) -> tensor<8x64xf32>
  %1 = stablehlo.tanh %0 : tensor<8x64xf32>
  %2 = stablehlo.dot %1, %down : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32> loc("model.py":7:9)
  return %2 : tensor<8x16xf32> loc("model.py":8:1)
}
"""


def test_collectives_say_what_they_are_for() -> None:
    reduced, gathered = shardlog.run(MLP).partition().collectives
    # Of 4 x 16 elements each of four devices sends 2 * 3/4, and of a half of 8 x 16 each of two sends all.
    at = "stablehlo.dot", "result", "%2", "model.py:7"
    weights = "the annotation of %arg1 at <text>:4", "the annotation of %arg2 at <text>:5"
    assert reduced == Collective(0, "all-reduce", ("model",), 4, 384, 1, *at, weights)
    at = "func.return", "operand 0", "%2", "model.py:8"
    inputs = ("the annotation of %arg0 at model.py:3",)
    assert gathered == Collective(1, "all-gather", ("data",), 2, 256, 1, *at, inputs)


def test_sub_axes_are_named() -> None:
    module = """\
sdy.mesh @mesh = <["x"=8]>
func.func @main(%a: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reshape %a : (tensor<8x64xf32>) -> tensor<4x2x64xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1]
     : (tensor<4x2x64xf32>, tensor<f32>) -> tensor<4x64xf32>
  return %1 : tensor<4x64xf32>
}
"""
    collectives = shardlog.run(module).partition().collectives
    assert [(c.kind, c.axes, c.group) for c in collectives][:1] == [("all-reduce", ("x:(4)2",), 2)]


def test_loops_and_calls_count() -> None:
    result = shardlog.run(lowered("gradient of a scan", 2))
    found = dict[tuple[str, str], list[int | None]]()
    for c in result.partition(keep_shardings=True).collectives:
        found.setdefault((c.op, c.value), []).append(c.executions)
    products = [each for (op, _), each in found.items() if op == "stablehlo.dot_general"]
    assert len(products) >= 3 and all(set(each) == {3} for each in products)  # a scan over three layers
    calls = result.text().count("call @dynamic_update_index_in_dim_0(")  # of the second version, in the scan
    assert calls > 1
    assert found["stablehlo.broadcast_in_dim", "@dynamic_update_index_in_dim#2:%0"] == [3] * calls


def test_collectives_of_a_shard_map_are_listed() -> None:
    (collective,) = shardlog.run(lowered("shard_map", 3)).partition().collectives
    assert astuple(collective)[1:6] == ("all-reduce", ("model",), 4, 192, 1)
    assert collective.op == "stablehlo.all_reduce"


@pytest.mark.parametrize("form", FORMS)
def test_a_collective_stays_if_only_its_second_result_is_used(form: Any) -> None:
    module = """\
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0:2 = "stablehlo.all_reduce"(%a, %b) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#1 : tensor<4xf32>
}
"""
    program = shardlog.run(module).partition(form)
    assert [c.kind for c in program.collectives] == ["all-reduce"]
    assert "stablehlo.all_reduce" in program.text()


# Collectives of a manual computation as JAX 0.12 writes them.
OVER_AXES = """\
sdy.mesh @mesh = <["a"=2, "b"=4]>
sdy.mesh @same = <["a"=2, "b"=4]>
sdy.mesh @turned = <["c"=4, "d"=2], device_ids=[0, 4, 1, 5, 2, 6, 3, 7]>
func.func @main(%x: tensor<64x8xf32>) -> tensor<64x8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"b"}, {"a"}]>]
      out_shardings=[<@mesh, [{"b"}, {"a"}]>] manual_axes={"a", "b"} (%s: tensor<16x4xf32>) {
    %1 = "stablehlo.all_reduce"(%s) <{
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids,
      replica_groups = #stablehlo.replica_group_mesh_axes<GROUPS>
    }> ({
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %2 = stablehlo.maximum %l, %r : tensor<f32>
        stablehlo.return %2 : tensor<f32>
    }) : (tensor<16x4xf32>) -> tensor<16x4xf32>
    sdy.return %1 : tensor<16x4xf32>
  } : (tensor<64x8xf32>) -> tensor<64x8xf32>
  return %0 : tensor<64x8xf32>
}
"""
_INLINED = '#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "n", size = 8>]>'


def _over(mesh: str, *axes: str) -> str:
    refs = ", ".join(f"#stablehlo.axis_ref<name = {axis}>" for axis in axes)
    return OVER_AXES.replace("GROUPS", f"mesh = {mesh}, axes = [{refs}]")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("mesh", "axes", "groups"),
    [
        ("@mesh", ['"a"'], [[0, 4], [1, 5], [2, 6], [3, 7]]),
        ("@same", ['"b"'], [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ("@same", ['"b", sub_axis_info = (2)2'], [[0, 1], [2, 3], [4, 5], [6, 7]]),
        ("@same", ['"b", sub_axis_info = (1)2', '"a"'], [[0, 4, 2, 6], [1, 5, 3, 7]]),
        ("@same", [], [[0], [1], [2], [3], [4], [5], [6], [7]]),
        ("@turned", ['"c"'], [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ("@turned", ['"d"'], [[0, 4], [1, 5], [2, 6], [3, 7]]),
        (_INLINED, ['"n", sub_axis_info = (2)4'], [[0, 1, 2, 3], [4, 5, 6, 7]]),
    ],
)
def test_groups_over_axes_of_a_mesh_are_those_devices(
    mesh: str, axes: list[str], groups: list[list[int]], form: Any
) -> None:
    program = shardlog.run(_over(mesh, *axes)).partition(form)
    (collective,) = (op for op in ops_in(program.module) if op.operation.name == "stablehlo.all_reduce")
    found = np.asarray(collective.attributes["replica_groups"]).tolist()
    assert sorted(map(sorted, found)) == sorted(map(sorted, groups))
    whole = np.random.default_rng(0).random((64, 8), np.float32)
    parts = whole.reshape(4, 16, 2, 4)  # of the device a * 4 + b at [b, :, a]
    expected = parts.copy()
    for group in groups:
        most = np.max([parts[n % 4, :, n // 4] for n in group], axis=0)
        for n in group:
            expected[n % 4, :, n // 4] = most
    (result,) = program.compile()(whole)
    np.testing.assert_array_equal(result, expected.reshape(64, 8))


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ('"c"', 'unknown axis "c" in mesh @mesh'),
        ('"b", sub_axis_info = (3)2', 'no sub-axis: "b":(3)2'),
    ],
)
def test_groups_over_what_is_no_axis_are_an_error(axis: str, message: str) -> None:
    with pytest.raises(ShardlogError, match=re.escape(message)):
        shardlog.run(_over("@mesh", axis)).partition()


LOOP = """\
func.func @main(%n: tensor<i32>) -> tensor<i32> {{
  %start = stablehlo.constant dense<{start}> : tensor<i32>
  %end = stablehlo.constant dense<{end}> : tensor<i32>
  %r:2 = stablehlo.while(%i = %start, %e = {bound}) : tensor<i32>, tensor<i32>
  cond {{
    %c = stablehlo.compare {compare} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %step = stablehlo.constant dense<{step}> : tensor<i32>
    %next = stablehlo.add {add} : tensor<i32>
    stablehlo.return %next, %e : tensor<i32>, tensor<i32>
  }}
  return %r#0 : tensor<i32>
}}
"""


@pytest.mark.parametrize(
    ("start", "end", "compare", "step", "turns"),
    [
        (0, 10, "LT, %i, %end", 1, 10),
        (0, 10, "LT, %i, %end", 3, 4),
        (0, 10, "LE, %i, %end", 5, 3),
        (10, 0, "GT, %i, %end", -3, 4),
        (10, 0, "GE, %i, %end", -5, 3),
        (0, 10, "GT, %end, %i", 1, 10),
        (0, 10, "NE, %i, %end", 5, 2),
        (0, 10, "NE, %i, %end", 3, None),
        (0, 10, "LT, %i, %end", -1, None),
        (5, 5, "LT, %i, %end", 1, 0),
        (0, 10, "LT, %i, %e", 2, 5),
        (0, 10, "LT, %i, %n", 2, None),
    ],
)
def test_turns_of_loops(start: int, end: int, compare: str, step: int, turns: int | None) -> None:
    for add in ("%i, %step", "%step, %i"):
        text = LOOP.format(start=start, end=end, compare=compare, step=step, add=add, bound="%end")
        with make_context():
            module = parse_module(read_source(text))
            (loop,) = (op for op in ops_in(module) if op.operation.name == "stablehlo.while")
            assert Executions(module, TRAITS).turns(loop.operation) == turns
            constant, *_, last = loop.regions[1].blocks[0].operations
            assert (Executions(module, TRAITS).of(constant), Executions(module, TRAITS).of(last)) == (
                1,
                turns,
            )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["scan", "cond", "shard_map", "train step", "inner jit", "gather"])
def test_all_forms_run(name: str, form: Any) -> None:
    rng = np.random.default_rng(0)
    inputs = [rng.random(shape, np.float32) for shape in PROGRAMS[name][1]]
    got = shardlog.run(lowered(name, 2)).partition(form).compile()(*inputs)
    expected = jax.jit(PROGRAMS[name][0])(*inputs)
    for mine, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", in_turn(1, PROGRAMS))
def test_bytes_are_those_of_the_compiled_program(name: str) -> None:
    partitioned = shardlog.run(lowered(name, 3)).partition()
    counted = sum(collective.total for collective in partitioned.collectives)
    assert hlo_bytes(partitioned.compile().hlo) == pytest.approx(counted, abs=2)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(
    ("spec", "kinds"), [((), ["all-reduce"] * 2), (("data",), ["reduce-scatter"] * 2 + ["all-gather"] * 2)]
)
def test_gradients_are_summed_where_the_state_of_the_optimizer_is(
    spec: tuple[str, ...], kinds: list[str], keep: bool
) -> None:
    """Parameters are whole on each device, and the batch is sharded; nothing is said of gradients."""

    def loss(params: list[jax.Array], x: jax.Array) -> jax.Array:
        return jnp.mean(jnp.tanh(x @ params[0]) @ params[1])

    def step(params: list[jax.Array], moments: list[jax.Array], x: jax.Array) -> Any:
        gradients = jax.grad(loss)(params, x)
        moments = [0.9 * m + 0.1 * g for m, g in zip(moments, gradients, strict=True)]
        return [p - 0.01 * m for p, m in zip(params, moments, strict=True)], moments

    mesh = AbstractMesh((4,), ("data",), axis_types=(AxisType.Auto,))

    def sharded(*spec: str) -> NamedSharding:
        return NamedSharding(mesh, PartitionSpec(*spec))  # type: ignore[no-untyped-call]

    def array(shape: tuple[int, int], *spec: str) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharded(*spec))  # type: ignore[no-untyped-call]

    shapes = [(64, 128), (128, 64)]
    arguments = [array(s) for s in shapes], [array(s, *spec) for s in shapes], array((4096, 64), "data")
    jitted = jax.jit(step, out_shardings=([sharded()] * 2, [sharded(*spec)] * 2))
    program = shardlog.run(jitted.trace(*arguments).lower(lowering_platforms=("cpu",)))
    collectives = program.partition(keep_shardings=keep).collectives
    assert [made.kind for made in collectives] == kinds
    assert sum(made.total for made in collectives) == 2 * 2 * 3 / 4 * 4 * 64 * 128


@pytest.mark.parametrize("groups", ["[4,2]<=[8]", "{{0,1},{2,3},{4,5},{6,7}}", "mesh['a'=4,'b'=2] {'b'}"])
def test_bytes_are_counted_however_groups_are_written(groups: str) -> None:
    line = f"  %r = f32[8]{{0}} all-reduce(%p), channel_id=1, replica_groups={groups}, to_apply=%add"
    assert hlo_bytes("ENTRY %main () -> f32[8] {\n" + line + "\n}\n") == 32


def test_a_named_computation_need_not_say_how_its_boundary_is_sharded() -> None:
    module = """\
sdy.mesh @mesh = <["x"=4]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = sdy.named_computation<"named">(%x) (%a: tensor<8xf32>) {
    %1 = stablehlo.tanh %a : tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
    assert "stablehlo.tanh" in shardlog.run(module).partition().text()


def _begins_alike(x: Any, w: Any, v: Any) -> Any:
    return jax.lax.fori_loop(0, 10, lambda _, v: jnp.sin(v) + jnp.tanh(x @ w), v)


def _alike_and_not(x: Any, w: Any, v: Any) -> Any:
    return jax.lax.fori_loop(0, 5, lambda _, v: v + x.T @ (jax.nn.sigmoid(x @ w) * (x @ v)), v)


@pytest.mark.parametrize(
    ("function", "turns"),
    [(_begins_alike, {1}), (_alike_and_not, {1, 5})],  # the product of x and w is the same in all turns
)
@pytest.mark.parametrize("keep", [False, True])
def test_what_is_alike_in_all_turns_is_sent_once(function: Any, turns: set[int], keep: bool) -> None:
    arguments = array((64, 64), None, "model"), array((64, 16), "model", None), array((64, 16))
    program = shardlog.run(jax.jit(function).lower(*arguments)).partition(keep_shardings=keep)
    assert {c.executions for c in program.collectives} == turns
    sent = sum(c.total for c in program.collectives)
    assert sent == program.cost().sent == hlo_bytes(program.compile().hlo)


@pytest.mark.parametrize(
    ("groups", "kind", "message"),
    [
        ("[[0, 1, 2, 3, 4, 5, 6, 7, 8]]", "1x9", "replica_groups of stablehlo.all_reduce has device 8"),
        ("[[0, 1, 2], [3, 4, -1]]", "2x3", "replica_groups of stablehlo.all_reduce leaves out device 5"),
        ("[[0, 1, 2, 3, 4], [5, 6, 7, -1, -1]]", "2x5", None),
    ],
)
def test_groups_are_of_the_devices_that_there_are(groups: str, kind: str, message: str | None) -> None:
    axes = "#stablehlo.replica_group_mesh_axes<GROUPS>"
    result = shardlog.run(OVER_AXES.replace(axes, f"dense<{groups}> : tensor<{kind}xi64>"))
    if message is None:
        assert len(result.partition().collectives) == 1
    else:
        with pytest.raises(ShardlogError, match=message):
            result.partition()


PAIRS_OF = """"stablehlo.collective_permute"(%s) <{
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
      source_target_pairs = dense<[[0, 1], [2, 9]]> : tensor<2x2xi64>
    }> : (tensor<16x4xf32>) -> tensor<16x4xf32>
"""


def test_pairs_are_of_the_devices_that_there_are() -> None:
    before, _, rest = OVER_AXES.partition('"stablehlo.all_reduce"')
    text = before + PAIRS_OF + rest[rest.index("    sdy.return") :]
    with pytest.raises(ShardlogError, match=r"source_target_pairs .* device 9"):
        shardlog.run(text).partition()
