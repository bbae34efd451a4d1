"""Scatters whose parts are padded."""

from __future__ import annotations

import numpy as np
import shardlog

from .running import run_partitioned

POINTLESS = """
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<1x2xf32>, %i: tensor<3x0xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
                %u: tensor<3x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<1x2xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [1], inserted_window_dims = [0], index_vector_dim = 1>
  }> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<1x2xf32>, tensor<3x0xi32>, tensor<3x2xf32>) -> tensor<1x2xf32>
  return %0 : tensor<1x2xf32>
}
"""


def test_padding_is_left_out_where_no_index_can_point_away() -> None:
    result = shardlog.run(POINTLESS)
    updates = np.asarray([[-4, -7], [-5, -3], [-6, -8]], np.float32)
    inputs = [np.full((1, 2), -9, np.float32), np.zeros((3, 0), np.int32), updates]
    for keep in (True, False):
        (got,) = run_partitioned(result, result.partition("replica", keep_shardings=keep), inputs)
        assert got.tolist() == [[-4, -3]]
