"""Shardy's collectives in a module: they change no whole tensor, and say how their results are sharded."""

from __future__ import annotations

import numpy as np
import shardlog

from ..partition.running import run_partitioned
from ..support.compare import differences
from ..support.oracle import forked, propagate

CHAIN = """
!t = tensor<8x8xf32>
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: !t) -> !t {
  %slice = sdy.all_slice [{"x"}, {}] %a out_sharding=<@mesh, [{"x"}, {}]> : !t
  %0 = stablehlo.negate %slice {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : !t
  %exchange = sdy.all_to_all [{"x"}: 0->1] %0 out_sharding=<@mesh, [{}, {"x"}]> : !t
  %permute = sdy.collective_permute %exchange out_sharding=<@mesh, [{}, {"y"}]> : !t
  %1 = stablehlo.negate %permute {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>} : !t
  %gather = sdy.all_gather [{}, {"y"}] %1 out_sharding=<@mesh, [{}, {}]> : !t
  %partial = sdy.replicated_to_unreduced {"x"} %gather out_sharding=<@mesh, [{}, {}], unreduced={"x"}> : !t
  %reduce = sdy.all_reduce {"x"} %partial out_sharding=<@mesh, [{}, {}]> : !t
  %again = sdy.all_slice [{"x"}, {}] %reduce out_sharding=<@mesh, [{"x"}, {}]> : !t
  %sums = sdy.sharded_to_unreduced [{"x"}, {}] %again out_sharding=<@mesh, [{}, {}], unreduced={"x"}> : !t
  %scatter = sdy.reduce_scatter [{}, {"x"}] %sums out_sharding=<@mesh, [{}, {"x"}]> : !t
  %2 = stablehlo.negate %scatter : !t
  return %2 : !t
}
"""
PARTIAL = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], unreduced={"x"}>]>}
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.reduce_scatter [{"x"}, {}] %0 out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %2 = stablehlo.negate %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
"""
EDGE = """
!t = tensor<8x8xf32>
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: !t {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}) -> !t {
  %0 = sdy.func_data_flow_edge %a : !t
  %1 = call @f(%0) : (!t) -> !t
  %2 = sdy.func_data_flow_edge %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"y", ?}]>]>} : !t
  %3 = stablehlo.negate %2 : !t
  return %3 : !t
}
func.func private @f(%a: !t) -> !t {
  %0 = sdy.func_data_flow_edge %a : !t
  %1 = stablehlo.negate %0 : !t
  return %1 : !t
}
"""


def test_they_are_as_shardy_leaves_them() -> None:
    result = shardlog.run(CHAIN)
    assert differences(result.text(), forked(propagate, CHAIN)) == []
    assert result.unknown_ops == ()


def test_results_have_the_shardings_that_are_named() -> None:
    why = str(shardlog.run(CHAIN).why("%2", axis="x"))
    assert 'annotated %2 <@mesh, [{}, {"x"}]>' in why


def test_they_move_what_they_say_and_results_are_right() -> None:
    result = shardlog.run(CHAIN)
    program = result.partition(keep_shardings=True)
    given = np.arange(64, dtype=np.float32).reshape(8, 8)
    (found,) = run_partitioned(result, program, [given])
    np.testing.assert_array_equal(found, -given)
    assert [(c.kind, c.op) for c in program.collectives] == [
        ("all-to-all", "sdy.all_to_all"),
        ("collective-permute", "sdy.collective_permute"),
        ("all-gather", "sdy.all_gather"),
        ("all-reduce", "sdy.all_reduce"),
        ("all-gather", "sdy.sharded_to_unreduced"),
        ("reduce-scatter", "sdy.reduce_scatter"),
    ]


def test_partial_sums_are_added_where_it_is_said() -> None:
    result = shardlog.run(PARTIAL)
    assert differences(result.text(), forked(propagate, PARTIAL)) == []
    program = result.partition()
    assert [(c.kind, c.op) for c in program.collectives] == [("reduce-scatter", "sdy.reduce_scatter")]
    one, other = np.arange(128, dtype=np.float32).reshape(2, 8, 8)
    (found,) = run_partitioned(result, program, [one, other])
    np.testing.assert_array_equal(found, -(one @ other))


def test_an_edge_of_a_call_says_what_its_value_has() -> None:
    """Where it says nothing, all is open: the argument's own sharding counts no more."""
    text = shardlog.run(EDGE).text()
    assert "func_data_flow_edge" not in text
    assert text.count('[{}, {"y"}]') == 7 and '"x"}' not in text.partition("func.func")[2]
