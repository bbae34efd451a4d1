"""Manual computations over some axes: along these devices have values of their own, and share no work."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from jax.sharding import PartitionSpec
from shardlog.cost.hlo import hlo_collectives
from shardlog.partition.layouts import Axes, Layout
from shardlog.partition.reshards.planning import Planner
from shardlog.program.meshes import Mesh, Meshes
from shardlog.tests.support.programs import array, mesh

from .running import run_partitioned

pytestmark = pytest.mark.versions

PRODUCT = """
sdy.mesh @mesh = <["x"=2, "d"=4]>
func.func @main(%v: tensor<128x64xf32>, %w: tensor<64x64xf32>) -> tensor<128x64xf32> {
  %0 = sdy.manual_computation(%v, %w)
    in_shardings=[<@mesh, [{"x", "d"}, {}]>, <@mesh, [{"d"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"}
    (%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) {
      %1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %2 = stablehlo.tanh %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : tensor<64x64xf32>
      sdy.return %2 : tensor<64x64xf32>
    } : (tensor<128x64xf32>, tensor<64x64xf32>) -> tensor<128x64xf32>
  return %0 : tensor<128x64xf32>
}
"""  # noqa: E501


CALLED = """
sdy.mesh @mesh = <["x"=2, "d"=4]>
func.func private @twice(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = func.call @once(%a, %b) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.dot_general %0, %b, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}
func.func private @once(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.tanh %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}
func.func @main(%u: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}, %v: tensor<128x64xf32>, %w: tensor<64x64xf32>)
    -> (tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, tensor<128x64xf32>) {
  %0 = func.call @twice(%u, %w) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = sdy.manual_computation(%v, %w)
    in_shardings=[<@mesh, [{"x", "d"}, {}]>, <@mesh, [{"d"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"}
    (%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) {
      %2 = func.call @twice(%a, %b) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      sdy.return %2 : tensor<64x64xf32>
    } : (tensor<128x64xf32>, tensor<64x64xf32>) -> tensor<128x64xf32>
  return %0, %1 : tensor<64x64xf32>, tensor<128x64xf32>
}
"""  # noqa: E501


@pytest.mark.parametrize("keep", [True, False])
def test_work_in_a_body_is_not_divided_among_devices_with_other_values(keep: bool) -> None:
    draw = np.random.default_rng(0)
    v, w = (draw.standard_normal(shape).astype(np.float32) for shape in ((128, 64), (64, 64)))
    result = shardlog.run(PRODUCT)
    (got,) = run_partitioned(result, result.partition("replica", keep_shardings=keep), [v, w])
    assert np.allclose(got, np.tanh(v @ w), atol=1e-5)


@pytest.mark.parametrize("keep", [True, False])
def test_functions_that_are_called_in_bodies_and_outside_are_right_in_both(keep: bool) -> None:
    draw = np.random.default_rng(0)
    u, v, w = (draw.standard_normal((n, 64)).astype(np.float32) / 8 for n in (64, 128, 64))
    result = shardlog.run(CALLED)
    program = result.partition("replica", keep_shardings=keep)
    for got, given in zip(run_partitioned(result, program, [u, v, w]), (u, v), strict=True):
        assert np.allclose(got, np.tanh(given @ w) @ w, atol=1e-5)


def test_reshards_in_a_body_do_not_go_along_its_axes() -> None:
    """Parts of other devices come from those that have the same values."""
    axes = Axes(Meshes([Mesh("mesh", (("x", 2), ("d", 4), ("e", 2)), ())]), [])
    x, d, e = axes.numbers
    ends, planner = (Layout(((d,), ())), Layout(((e,), ()))), Planner(axes)
    free, inside = planner.route((64, 16), *ends), planner.route((64, 16), *ends, frozenset({x}))
    assert any(x in step.after.pieces for step in free.steps)
    assert not any(x in (*step.after.pieces, *step.pieces) for step in inside.steps)


def test_collectives_of_the_user_are_listed_each() -> None:
    """Though they become one op: keys and values go around a ring together, and are added up at the end."""
    ring = [(i, (i + 1) % 4) for i in range(4)]

    def around(k: Any, v: Any) -> Any:
        def turn(both: Any, _: None) -> Any:
            further = [jax.lax.ppermute(each, "model", ring) for each in both]  # type: ignore[no-untyped-call]
            return (*further,), both[0] * both[1]

        (k, v), products = jax.lax.scan(turn, (k, v), None, length=5)
        sums = [jax.lax.psum(each, "data") for each in (k, v)]  # type: ignore[no-untyped-call]
        return products.sum(0) + sums[0] * jnp.sin(sums[1])

    spec = PartitionSpec("model")  # type: ignore[no-untyped-call]
    function = jax.shard_map(around, mesh=mesh(), in_specs=spec, out_specs=spec, check_vma=False)
    program = shardlog.run(jax.jit(function).lower(*[array((16, 32), "model")] * 2)).partition()
    one = 4 * 32 * 4  # bytes of a part
    assert [(c.kind, c.axes, c.bytes, c.executions) for c in program.collectives] == [
        *[("collective-permute", ("model",), one, 5)] * 2,
        *[("all-reduce", ("data",), one, 1)] * 2,
    ]
    sent = sum(size for _, size in hlo_collectives(program.compile().hlo).values())
    assert program.cost("v5e").sent == sent == 12 * one
