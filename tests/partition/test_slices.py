"""Slices of dimensions that are in parts: each device gives what it has of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shardlog
from shardlog.explanations.partitioned import Partitioned

from .running import run_partitioned

HEAD = 'sdy.mesh @mesh = <["a"=2, "b"=4]>\n'
STATIC = """func.func @main(%x: tensor<22x6xTYPE> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"a"}]>})
    -> (tensor<NxMxTYPE> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.slice %x [ROWS, COLUMNS] : (tensor<22x6xTYPE>) -> tensor<NxMxTYPE>
  return %0 : tensor<NxMxTYPE>
}
"""
DYNAMIC = """func.func @main(%x: tensor<22x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"a"}]>}, %i: tensor<INDEX>,
    %j: tensor<INDEX>) -> (tensor<3x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dynamic_slice %x, %i, %j, sizes = [3, 2] : (tensor<22x6xf32>, tensor<INDEX>, tensor<INDEX>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}
"""  # noqa: E501


CACHE = """func.func @main(%x: tensor<6x8x5x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}, {"b"}]>},
    %layer: tensor<i32>, %rest: tensor<i32>)
    -> (tensor<1x8x5x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}, {}, {"b"}]>}) {
  %0 = stablehlo.dynamic_slice %x, %layer, %rest, %rest, %rest, sizes = [1, 8, 5, 4] :
    (tensor<6x8x5x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x5x4xf32>
  return %0 : tensor<1x8x5x4xf32>
}
"""


def kinds(program: Partitioned) -> set[str]:
    return {each.kind for each in program.collectives}


@pytest.mark.parametrize("type_", ["f32", "i1", "ui8"])
@pytest.mark.parametrize("rows", [(0, 1, 1), (21, 22, 1), (4, 9, 1), (3, 20, 7)])
@pytest.mark.parametrize("columns", [(0, 6, 1), (5, 6, 1)])
def test_what_is_cut_out_is_picked(
    type_: str, rows: tuple[int, int, int], columns: tuple[int, int, int]
) -> None:
    x = np.random.default_rng(0).integers(0, 200, (22, 6))
    given: Any = x > 100 if type_ == "i1" else x.astype({"f32": np.float32, "ui8": np.uint8}[type_])
    expected = given[slice(*rows), slice(*columns)]
    text = STATIC.replace("NxM", "x".join(map(str, expected.shape))).replace("TYPE", type_)
    for name, each in (("ROWS", rows), ("COLUMNS", columns)):
        text = text.replace(name, ":".join(map(str, each)))
    result = shardlog.run(HEAD + text)
    for keep in (True, False):
        (got,) = run_partitioned(result, result.partition("replica", keep_shardings=keep), [given])
        np.testing.assert_array_equal(got, expected)
    if rows[1] - rows[0] == 1:
        # The first row is the first part of the result as it is, which can be gathered for as much.
        assert rows[0] == 0 or "all-reduce" in kinds(result.partition())
        assert sum(each.total for each in result.partition().collectives) < 22 * 6


@pytest.mark.parametrize("index", ["i32", "ui8", "i64"])
@pytest.mark.parametrize(("i", "j"), [(0, 0), (5, 3), (4, 4), (19, 5), (100, 2), (-7, 1)])
def test_where_it_is_cut_out_may_be_known_at_run_time_only(index: str, i: int, j: int) -> None:
    x = np.arange(22 * 6, dtype=np.float32).reshape(22, 6)
    kind = {"i32": np.int32, "ui8": np.uint8, "i64": np.int64}[index]
    inputs: Any = [x, np.array(i).astype(kind), np.array(j).astype(kind)]
    row, column = (min(max(int(n), 0), most) for n, most in zip(inputs[1:], (19, 4), strict=True))
    result = shardlog.run(HEAD + DYNAMIC.replace("INDEX", index))
    program = result.partition("replica")
    (got,) = run_partitioned(result, program, inputs)
    assert got.tolist() == x[row : row + 3, column : column + 2].tolist()
    assert kinds(program) == {"all-reduce"}


def test_a_call_is_no_work() -> None:
    dot = "stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]"
    type_ = "(tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>"
    result = shardlog.run(f"""sdy.mesh @mesh = <["a"=2]>
    func.func @main(%x: tensor<8x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"a"}}]>}},
                    %w: tensor<16x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}]>}})
        -> (tensor<8x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}]>}}) {{
      %0 = call @inner(%x, %w) : {type_}
      return %0 : tensor<8x16xf32>
    }}
    func.func private @inner(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32> {{
      %0 = {dot} : {type_}
      return %0 : tensor<8x16xf32>
    }}""")
    (sent,) = result.partition().collectives
    assert (sent.kind, sent.bytes) == ("all-gather", 8 * 16 * 4 // 2)


@pytest.mark.parametrize("layer", [-3, 0, 4, 9])
@pytest.mark.parametrize("rest", [-5, 0, 7])
def test_a_part_of_what_is_looked_up_is_not_cut_out_of_all_first(layer: int, rest: int) -> None:
    """As keys of one layer, for a part of the batch: XLA may take both slices for one."""
    result = shardlog.run(f"{HEAD}{CACHE}")
    program = result.partition("replica")
    assert "optimization_barrier" not in program.text()
    assert program.text().count("stablehlo.dynamic_slice") == 2
    cache = np.arange(6 * 8 * 5 * 4, dtype=np.float32).reshape(6, 8, 5, 4)
    (got,) = run_partitioned(result, program, [cache, np.array(layer, np.int32), np.array(rest, np.int32)])
    place = min(max(layer, 0), 5)
    np.testing.assert_array_equal(got, cache[place : place + 1])
