"""Ops whose regions call functions, or use values from outside."""

from __future__ import annotations

import numpy as np
import pytest
import shardlog

from .running import run_partitioned

pytestmark = pytest.mark.versions

CALLS = """
sdy.mesh @mesh = <["a"=2]>
func.func private @pick(%p: tensor<i1>, %a: tensor<i32>, %b: tensor<i32>) -> tensor<i32> {
  %0 = func.call @choose(%p, %a, %b) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
  return %0 : tensor<i32>
}
func.func private @choose(%p: tensor<i1>, %a: tensor<i32>, %b: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.select %p, %a, %b : tensor<i1>, tensor<i32>
  return %0 : tensor<i32>
}
func.func @main(%x: tensor<4x6xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}, %p: tensor<i1>, %c: tensor<i32>) -> tensor<4xi32> {
  %low = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.reduce(%x init: %low) across dimensions = [1] : (tensor<4x6xi32>, tensor<i32>) -> tensor<4xi32>
    reducer(%a: tensor<i32>, %b: tensor<i32>) {
    %more = stablehlo.compare GE, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %1 = func.call @pick(%more, %a, %b) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }
  AFTER
}
"""  # noqa: E501
OUTSIDE = """%1 = func.call @choose(%p, %c, %low) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i32>) -> tensor<4xi32>
  %3 = stablehlo.add %0, %2 : tensor<4xi32>
  return %3 : tensor<4xi32>"""


@pytest.mark.parametrize("after", ["return %0 : tensor<4xi32>", OUTSIDE], ids=["alone", "and-outside"])
def test_functions_that_regions_call_are_there(after: str) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (4, 6)).astype(np.int32)
    result = shardlog.run(CALLS.replace("AFTER", after))
    inputs = [x, np.array(True), np.array(7, np.int32)]
    for keep in (True, False):
        (got,) = run_partitioned(result, result.partition("replica", keep_shardings=keep), inputs)
        wanted = np.maximum(x.max(1), 0) + (7 if after is OUTSIDE else 0)
        assert got.tolist() == wanted.tolist()


CAPTURES = """
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<4x6xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<4x6xi32> {
  %z = stablehlo.constant dense<3> : tensor<i32>
  OP
  return %0 : tensor<4x6xi32>
}
"""
SORT = """%0 = "stablehlo.sort"(%x) <{dimension = 1 : i64}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.maximum %a, %z : tensor<i32>
    %2 = stablehlo.maximum %b, %z : tensor<i32>
    %3 = stablehlo.compare GT, %1, %2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }) : (tensor<4x6xi32>) -> tensor<4x6xi32>"""
REDUCE = """%low = stablehlo.constant dense<-100> : tensor<i32>
  %r = stablehlo.reduce(%x init: %low) across dimensions = [1] : (tensor<4x6xi32>, tensor<i32>) -> tensor<4xi32>
    reducer(%a: tensor<i32>, %b: tensor<i32>) {
    %1 = stablehlo.maximum %a, %b : tensor<i32>
    %2 = stablehlo.maximum %1, %z : tensor<i32>
    stablehlo.return %2 : tensor<i32>
  }
  %0 = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<4xi32>) -> tensor<4x6xi32>"""  # noqa: E501
WINDOW = """%low = stablehlo.constant dense<-100> : tensor<i32>
  %0 = "stablehlo.reduce_window"(%x, %low) <{window_dimensions = array<i64: 1, 6>,
      padding = dense<[[0, 0], [5, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.maximum %a, %b : tensor<i32>
    %2 = stablehlo.maximum %1, %z : tensor<i32>
    stablehlo.return %2 : tensor<i32>
  }) : (tensor<4x6xi32>, tensor<i32>) -> tensor<4x6xi32>"""


@pytest.mark.parametrize("op", [SORT, REDUCE, WINDOW], ids=["sort", "reduce", "window"])
def test_what_regions_use_from_outside_is_there_before(op: str) -> None:
    """Also where nothing else uses it, as where MLIR has moved constants out of regions."""
    x = np.random.default_rng(0).integers(-9, 9, (4, 6)).astype(np.int32)
    above = np.maximum(x, 3)
    wanted = {
        SORT: -np.sort(-above, 1),
        REDUCE: np.broadcast_to(above.max(1, keepdims=True), x.shape),
        WINDOW: np.maximum.accumulate(above, 1),
    }[op]
    result = shardlog.run(CAPTURES.replace("OP", op))
    for keep in (True, False):
        program = result.partition("replica", keep_shardings=keep)
        (got,) = run_partitioned(result, program, [x])
        np.testing.assert_array_equal(np.maximum(got, 3) if op is SORT else got, wanted)
