"""Windows whose parts read stretches of others."""

from __future__ import annotations

import numpy as np
import pytest
import shardlog

from .running import run_partitioned

DILATED = """
sdy.mesh @mesh = <["a"=8]>
func.func @main(%x: tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [SHARDED]>})
    -> (tensor<13xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = "stablehlo.reduce_window"(%x, %0) <{
    window_dimensions = array<i64: 1>, base_dilations = array<i64: 2>
  }> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<7xf32>, tensor<f32>) -> tensor<13xf32>
  return %1 : tensor<13xf32>
}
"""


@pytest.mark.parametrize("sharded", ["{}", '{"a"}'])
def test_windows_of_one_element_between_which_there_is_nothing(sharded: str) -> None:
    result = shardlog.run(DILATED.replace("SHARDED", sharded))
    (got,) = run_partitioned(result, result.partition("replica"), [np.arange(1, 8, dtype=np.float32)])
    assert got.tolist() == [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7]
