"""Manual computations in a whole run: our module is Shardy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import shardlog
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from ..support.compare import differences
from ..support.oracle import forked, propagate

pytestmark = pytest.mark.versions

MESH = AbstractMesh((2, 2, 2), ("a", "b", "c"), axis_types=(AxisType.Auto,) * 3)
P: Any = PartitionSpec  # jax has no types for it
Tensor: Any = jax.ShapeDtypeStruct


def manual(function: Callable[..., Any], *axes: str) -> Callable[..., Any]:
    """`function` on shards along "a" of its first operand, with these manual axes."""
    return jax.shard_map(
        function, mesh=MESH, in_specs=P("a"), out_specs=P("a"), axis_names={*axes}, check_vma=False
    )


def after_matmul(x: Any, w: Any) -> Any:
    return jnp.tanh(manual(jnp.sin, "a")(x @ w)) + 1


def in_loop(x: Any, w: Any) -> Any:
    step = manual(lambda t: t * 2, "a", "b")
    return jax.lax.scan(lambda c, _: (jnp.tanh(step(c) @ w), c.sum()), x, None, length=4)


def after_loop(x: Any, w: Any) -> Any:
    looped, _ = jax.lax.scan(lambda c, _: (c @ w, None), x, None, length=3)
    return manual(lambda t: t * 2, "a", "b", "c")(looped).sum(0)


def in_call(x: Any, w: Any) -> Any:
    called = jax.jit(manual(jnp.sin, "a"))
    return called(x @ w) + called(w)


def in_branch(x: Any, w: Any) -> Any:
    return jax.lax.cond(x[0, 0] > 0, lambda: manual(lambda t: t + 1, "a")(x), lambda: x @ w)


@pytest.mark.parametrize("function", [after_matmul, in_loop, after_loop, in_call, in_branch])
def test_shard_map(function: Callable[..., Any]) -> None:
    shardings = NamedSharding(MESH, P("a", "b")), NamedSharding(MESH, P(None, "c"))
    tensor = Tensor((16, 16), jnp.float32)
    traced = jax.jit(function, in_shardings=shardings).trace(tensor, tensor)
    text = traced.lower(lowering_platforms=("cpu",)).as_text()
    assert "sdy.manual_computation" in text
    assert differences(shardlog.run(text).text(), forked(propagate, text)) == []


# The data-flow edge of a block argument takes its turn before the ops of the body: "data" gets to the second
# dimension of %r by it before the body wants it in the first.
ARGUMENT_FIRST = """
sdy.mesh @mesh = <["m"=2, "data"=4]>
func.func @main(%p: T, %w: T {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"data"}]>},
                %x: T {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {?}]>}) -> T {
  %r = stablehlo.dot_general %p, %w, contracting_dims = [1] x [0] : (T, T) -> T
  %q = sdy.manual_computation(%r) in_shardings=[<@mesh, [{?}, {?}]>]
      out_shardings=[<@mesh, [{?}, {?}]>] manual_axes={"m"} (%s: T) {
    %e = stablehlo.dot_general %s, %s, contracting_dims = [1] x [0] : (T, T) -> T
    sdy.return %e : T
  } : (T) -> T
  %u = stablehlo.add %q, %x : T
  return %u : T
}
"""
# A change of an operand does not push that edge: %r gets "data" late, in its first dimension, and the body
# from behind, in its second.
OPERAND_LATE = """
sdy.mesh @mesh = <["m"=2, "data"=4]>
func.func @main(%a: tensor<2x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {"data"}]>},
                %x: T {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {?}]>}, %w: T,
                %i: T) -> (tensor<2x8x8xf32>, T) {
  %r = stablehlo.tanh %i : T
  %q = sdy.manual_computation(%r) in_shardings=[<@mesh, [{?}, {?}]>]
      out_shardings=[<@mesh, [{?}, {?}]>] manual_axes={"m"} (%s: T) {
    %e = stablehlo.tanh %s : T
    sdy.return %e : T
  } : (T) -> T
  %y = stablehlo.dot_general %r, %w, contracting_dims = [1] x [0] : (T, T) -> T
  %h = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (T, T) -> T
  %u = stablehlo.add %h, %x : T
  %b = stablehlo.broadcast_in_dim %q, dims = [1, 2] : (T) -> tensor<2x8x8xf32>
  %t = stablehlo.add %b, %a : tensor<2x8x8xf32>
  return %t, %u : tensor<2x8x8xf32>, T
}
"""
# Shardy keeps manual axes of size 1, and says of a value without them that it is replicated on them.
SIZE_ONE = """
sdy.mesh @mesh = <["m"=1, "data"=4]>
func.func @main(%r: tensor<8xf32>, %s: tensor<f32>) -> (tensor<8xf32>, tensor<f32>) {
  %q:2 = sdy.manual_computation(%r, %s) in_shardings=[<@mesh, [{"m", ?}]>, <@mesh, []>]
      out_shardings=[<@mesh, [{"m", "data"}]>, <@mesh, []>] manual_axes={"m"}
      (%t: tensor<8xf32>, %u: tensor<f32>) {
    sdy.return %t, %u : tensor<8xf32>, tensor<f32>
  } : (tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<f32>)
  return %q#0, %q#1 : tensor<8xf32>, tensor<f32>
}
"""
# "m" waits for its priority with its dimension, but is back as soon as "data" flows out of the computation.
PRIORITY = """
sdy.mesh @mesh = <["m"=2, "data"=2]>
func.func @main(%x: T {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"data", ?}]>},
                %y: T {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"m", ?}]>}) -> tensor<16x8xf32> {
  %q = sdy.manual_computation(%x) in_shardings=[<@mesh, [{?}, {?}]>]
      out_shardings=[<@mesh, [{"m", ?}p1, {?}]>] manual_axes={"m"} (%s: T) {
    sdy.return %s : T
  } : (T) -> tensor<16x8xf32>
  %u = stablehlo.dot_general %q, %y, contracting_dims = [1] x [0] : (tensor<16x8xf32>, T) -> tensor<16x8xf32>
  return %u : tensor<16x8xf32>
}
"""
# The group brings %s what %e says of "c", but the boundary does not say so: "c" comes in.
GROUP = """
sdy.mesh @mesh = <["m"=2, "b"=2, "c"=2]>
func.func @main(%x: T {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"c", ?}]>}) -> T {
  %q = sdy.manual_computation(%x) in_shardings=[<@mesh, [{?}, {?}]>]
      out_shardings=[<@mesh, [{?}, {?}]>] manual_axes={"m"} (%s: T) {
    %e = stablehlo.tanh %s
        {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b", ?}, {?}], replicated={"c"}>]>} : T
    sdy.sharding_group %s group_id=0 : T
    sdy.sharding_group %e group_id=0 : T
    sdy.return %e : T
  } : (T) -> T
  return %q : T
}
"""
# Nothing flows in, and the boundary says nothing of "c" in the end either.
CLOSED_GROUP = GROUP.replace('[{"b", ?}, {?}]', '[{"b"}, {}]').replace('{"c", ?}', "{?}")
# Without results it stays for what enters it; what has neither results nor effects goes.
NO_RESULTS = """
sdy.mesh @mesh = <["m"=2, "c"=2]>
func.func @main(%x: T {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"c", ?}]>}) -> T {
  %y = stablehlo.tanh %x : T
  sdy.manual_computation(%y) in_shardings=[<@mesh, [{?}, {?}]>] out_shardings=[] manual_axes={"m"} (%s: T) {
    %e = stablehlo.tanh %s : T
    sdy.return
  } : (T) -> ()
  sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {
    sdy.return
  } : () -> ()
  stablehlo.custom_call @f(%x) : (T) -> ()
  stablehlo.custom_call @g(%x) {has_side_effect = true} : (T) -> ()
  return %x : T
}
"""
# As JAX 0.12 writes collectives, each shard_map with a mesh of its own. Those that are alike become one.
OVER_AXES = """
sdy.mesh @mesh = <["m"=2, "data"=4]>
sdy.mesh @mesh_0 = <["m"=2, "data"=4]>
sdy.mesh @mesh_1 = <["data"=8]>
func.func @main(%r: T {sdy.sharding = #sdy.sharding<@mesh, [{"data", ?}, {?}]>}) -> T {
  %q = sdy.manual_computation(%r) in_shardings=[<@mesh, [{}, {"m"}]>] out_shardings=[<@mesh, [{}, {"m"}]>]
      manual_axes={"m", "data"} (%s: tensor<8x4xf32>) {
    %g = "stablehlo.all_to_all"(%s) <{
      split_count = 4 : i64, split_dimension = 0 : i64, concat_dimension = 0 : i64,
      replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh_0, axes = [#stablehlo.axis_ref<name = "data">]>
    }> : (tensor<8x4xf32>) -> tensor<8x4xf32>
    sdy.return %g : tensor<8x4xf32>
  } : (T) -> T
  return %q : T
}
"""  # noqa: E501


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize(
    "text",
    [ARGUMENT_FIRST, OPERAND_LATE, SIZE_ONE, PRIORITY, CLOSED_GROUP, NO_RESULTS, OVER_AXES],
    ids=[
        "argument first",
        "operand late",
        "axis of size one",
        "priority",
        "closed group",
        "no results",
        "over axes",
    ],
)
def test_as_shardy_has_it(text: str, closed: bool) -> None:
    text = text.replace("T", "tensor<8x8xf32>")
    ours = shardlog.run(text, closed=closed).text()
    assert differences(ours, forked(propagate, text, closed=closed)) == []


def test_what_a_group_brings() -> None:
    text = GROUP.replace("T", "tensor<8x8xf32>")
    assert differences(shardlog.run(text).text(), forked(propagate, text)) == []
