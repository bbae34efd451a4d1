"""Updates of tensors in parts: each device writes what belongs to its part, in place."""

from __future__ import annotations

import numpy as np
import pytest
import shardlog

from .running import load, run_partitioned

HEAD = 'sdy.mesh @mesh = <["a"=2, "b"=4]>\n'
CUT = """func.func @main(%x: tensor<10x13xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
    %u: tensor<ROWSxCOLUMNSxf32>, %i: tensor<INDEX>, %j: tensor<INDEX>)
    -> (tensor<10x13xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
  %0 = stablehlo.dynamic_update_slice %x, %u, %i, %j :
    (tensor<10x13xf32>, tensor<ROWSxCOLUMNSxf32>, tensor<INDEX>, tensor<INDEX>) -> tensor<10x13xf32>
  return %0 : tensor<10x13xf32>
}
"""
CACHES = """func.func @main(
    %x: tensor<4x1024x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}, {}]>, tf.aliasing_output = 0 : i32},
    %i: tensor<4x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
    %u: tensor<4x1x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}, {}]>})
    -> (tensor<4x1024x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}, {}]>}) {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [1, 2], input_batching_dims = [0], scatter_indices_batching_dims = [0],
    scatter_dims_to_operand_dims = [1], index_vector_dim = 1>
  }> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<4x1024x16xf32>, tensor<4x1xi32>, tensor<4x1x16xf32>) -> tensor<4x1024x16xf32>
  return %0 : tensor<4x1024x16xf32>
}
"""  # noqa: E501
CACHE = """func.func @main(
    %x: tensor<4x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>, tf.aliasing_output = 0 : i32},
    %u: tensor<4xROWSxf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %j: tensor<i32>)
    -> (tensor<4x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
  %i = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %u, %i, %j :
    (tensor<4x1024xf32>, tensor<4xROWSxf32>, tensor<i32>, tensor<i32>) -> tensor<4x1024xf32>
  return %0 : tensor<4x1024xf32>
}
"""  # noqa: E501


@pytest.mark.parametrize("index", ["i32", "ui8", "i64"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 13), (3, 2), (2, 5), (7, 13)])
def test_rows_are_written_where_they_belong(index: str, shape: tuple[int, int]) -> None:
    """Also into parts that are shorter than the update, and the last of which is filled up."""
    rng = np.random.default_rng(0)
    x, update = (rng.normal(size=size).astype(np.float32) for size in ((10, 13), shape))
    text = CUT.replace("ROWS", str(shape[0])).replace("COLUMNS", str(shape[1])).replace("INDEX", index)
    result = shardlog.run(HEAD + text)
    program = result.partition("replica", keep_shardings=True)
    kind = {"i32": np.int32, "ui8": np.uint8, "i64": np.int64}[index]
    for i, j in ((0, 0), (4, 3), (5, 2), (9, 12), (100, 7), (-3, 4)):
        places = [np.array(i).astype(kind), np.array(j).astype(kind)]
        (got,) = run_partitioned(result, program, [x, update, *places])
        expected = x.copy()
        row, column = (min(max(int(at), 0), n - m) for at, n, m in zip(places, x.shape, shape, strict=True))
        expected[row : row + shape[0], column : column + shape[1]] = update
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("rows", [1, 5])
def test_a_cache_in_parts_of_its_length_is_updated_in_place(rows: int) -> None:
    program = shardlog.run(HEAD + CACHE.replace("ROWS", str(rows))).partition("replica")
    held = load(program.module, 8).get_compiled_memory_stats()
    assert held.alias_size_in_bytes == 2 * 256 * 4
    assert held.temp_size_in_bytes < 2 * 256 * 4 / 4


def test_each_sequence_has_a_place_of_its_own_in_the_cache() -> None:
    """As ``jax.vmap`` of ``dynamic_update_slice``: a window of one element along what is in parts."""
    result = shardlog.run(HEAD + CACHES)
    rng = np.random.default_rng(0)
    x, update = (rng.normal(size=size).astype(np.float32) for size in ((4, 1024, 16), (4, 1, 16)))
    places = np.array([[0], [255], [256], [1024]], np.int32)  # the last is outside, and left out
    for keep in (True, False):
        program = result.partition("replica", keep_shardings=keep)
        assert not program.collectives
        (got,) = run_partitioned(result, program, [x, places, update])
        expected = x.copy()
        for sequence, (place,) in enumerate(places[:3]):
            expected[sequence, place] = update[sequence, 0]
        np.testing.assert_array_equal(got, expected)
