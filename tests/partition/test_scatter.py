"""Scatters whose parts are padded."""

from __future__ import annotations

import numpy as np
import shardlog

from .running import run_partitioned

POINTLESS = """
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<1x2xf32>, %i: tensor<7x0xi32>, %c: tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
    -> tensor<1x2xf32> {
  %u = stablehlo.slice %c [0:7, 0:2] : (tensor<8x2xf32>) -> tensor<7x2xf32>
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [1], inserted_window_dims = [0], index_vector_dim = 1>
  }> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<1x2xf32>, tensor<7x0xi32>, tensor<7x2xf32>) -> tensor<1x2xf32>
  return %0 : tensor<1x2xf32>
}
"""  # noqa: E501


def test_padding_is_left_out_where_no_index_can_point_away() -> None:
    result = shardlog.run(POINTLESS)
    updates = -np.arange(16, 0, -1, dtype=np.float32).reshape(8, 2)
    inputs = [np.full((1, 2), -99, np.float32), np.zeros((7, 0), np.int32), updates]
    for keep in (True, False):
        (got,) = run_partitioned(result, result.partition("replica", keep_shardings=keep), inputs)
        assert got.tolist() == [[-4, -3]]
