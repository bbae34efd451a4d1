"""Gathers and scatters of tensors in parts."""

from __future__ import annotations

import numpy as np
import pytest
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


WINDOWS = """
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<16x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"a"}]>},
    %i: tensor<3x2xi32>, %u: tensor<ROWSx3x4xf32>)
    -> (tensor<16x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"a"}]>}) {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [0, 2], scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 1>
  }> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<16x6xf32>, tensor<3x2xi32>, tensor<ROWSx3x4xf32>) -> tensor<16x6xf32>
  return %0 : tensor<16x6xf32>
}
"""


@pytest.mark.parametrize("rows", [1, 3, 9])
def test_windows_over_several_parts_need_no_collective(rows: int) -> None:
    """Also windows longer than a part, and those that are partly outside of the tensor: XLA skips them."""
    text = WINDOWS.replace("ROWS", str(rows))
    result = shardlog.run(text)
    program = result.partition("replica", keep_shardings=True)
    assert not program.collectives
    rng = np.random.default_rng(0)
    x = rng.integers(0, 9, (16, 6)).astype(np.float32)
    updates = rng.integers(1, 9, (rows, 3, 4)).astype(np.float32)
    for columns, lines in (
        ((0, 1, 2), (2, 3, 4)),
        ((0, 2, 3), (5, 5, 5)),
        ((1, 1, -1), (16 - rows, 17 - rows, 0)),
    ):
        places = np.stack([columns, lines], 1).astype(np.int32)
        (got,) = run_partitioned(result, program, [x, places, updates])
        expected = x.copy()
        for n, (column, line) in enumerate(places.tolist()):
            if 0 <= column <= 2 and 0 <= line <= 16 - rows:
                expected[line : line + rows, column : column + 4] += updates[:, n]
        np.testing.assert_array_equal(got, expected)


LOOKED_UP = """
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<16x60xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"a"}]>},
    %i: tensor<5x2xi32>) -> tensor<ROWSx5x4xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<
    offset_dims = [0, 2], start_index_map = [1, 0], index_vector_dim = 1>, slice_sizes = array<i64: ROWS, 4>
  }> : (tensor<16x60xf32>, tensor<5x2xi32>) -> tensor<ROWSx5x4xf32>
  return %0 : tensor<ROWSx5x4xf32>
}
"""


@pytest.mark.parametrize("rows", [1, 2, 9])
def test_windows_over_several_parts_are_summed_where_they_lie(rows: int) -> None:
    """Windows that begin outside are moved inside, as in a gather of the whole tensor."""
    result = shardlog.run(LOOKED_UP.replace("ROWS", str(rows)))
    least = result.partition("replica")
    assert {collective.value for collective in least.collectives} == {"%0"}, (
        "the result is smaller than the operand"
    )
    x = np.random.default_rng(0).integers(1, 9, (16, 60)).astype(np.float32)
    places = np.array([(0, 2), (2, 5), (-3, 3), (1, 16 - rows), (99, 99)], np.int32)
    clipped = [(min(max(int(c), 0), 56), min(max(int(r), 0), 16 - rows)) for c, r in places]
    expected = np.stack([x[r : r + rows, c : c + 4] for c, r in clipped], 1)
    for program in (least, result.partition("replica", keep_shardings=True)):
        (got,) = run_partitioned(result, program, [x, places])
        np.testing.assert_array_equal(got, expected)
