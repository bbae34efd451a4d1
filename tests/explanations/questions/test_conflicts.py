"""Conflicts: the tensors that must move at an op, by which collective, and how many bytes that is."""

from __future__ import annotations

import pytest
import shardlog
from shardlog.explanations.answers.conflicts import Conflict
from shardlog.session import Session


def conflicts(run: Session) -> list[Conflict]:
    """What moves if all values are sharded as decided."""
    return list(run.conflicts(keep_shardings=True))


def found(x: str, w: str, y: str = "[{?}, {?}]") -> list[Conflict]:
    return conflicts(
        shardlog.run(f"""
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, {x}>}},
                %w: tensor<4x16xbf16> {{sdy.sharding = #sdy.sharding<@mesh, {w}>}}) -> tensor<8x16xf32> {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
     {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, {y}>]>}}
     : (tensor<8x4xf32>, tensor<4x16xbf16>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}}
""")
    )


def test_agreement() -> None:
    assert found('[{"a"}, {}]', '[{}, {"b"}]') == []


def test_partial_sums_are_combined() -> None:
    """Of 8 x 16 floats in two parts, a device sends three quarters twice."""
    (conflict,) = conflicts(
        shardlog.run("""
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
                %w: tensor<1024x16xf32>) -> tensor<8x16xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
     : (tensor<8x1024xf32>, tensor<1024x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
""")
    )
    assert (conflict.tensor, conflict.slot, conflict.collective) == ("%0", "result", "all-reduce")
    assert (conflict.has, conflict.partial, conflict.needs) == (("a", ""), "b", ("a", ""))
    assert conflict.bytes == 4 * 16 * 4 * 2 * 3 // 4
    assert [given.value for given in conflict.given] == ["%arg0"]


def test_loops_count() -> None:
    (conflict,) = conflicts(
        shardlog.run("""
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<8x4xf32>
  cond {
    %end = stablehlo.constant dense<5> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.reverse %y, dims = [0] : tensor<8x4xf32>
    %3 = stablehlo.add %2, %y : tensor<8x4xf32>
    stablehlo.return %1, %3 : tensor<i32>, tensor<8x4xf32>
  }
  return %0#1 : tensor<8x4xf32>
}
""")
    )
    assert conflict.bytes == 5 * 4 * 4 * 4


@pytest.mark.parametrize(
    ("x", "w", "y", "tensor", "collective", "received"),
    [
        # Each device has 4 * 16 / 4 elements of two bytes, a quarter of which is its own afterwards.
        ('[{"a"}, {}]', '[{"b"}, {}]', '[{"a"}, {"b"}]', "%arg1", "all-to-all", 32 - 8),
        ('[{"b"}, {}]', "[{}, {}]", '[{}, {"a"}]', "%arg0", "all-gather", 96),
        ('[{}, {"a"}]', '[{"b"}, {}]', "[{}, {}]", "%arg0", "all-gather", 64),
    ],
)
def test_cost(x: str, w: str, y: str, tensor: str, collective: str, received: int) -> None:
    moves = {c.tensor: (c.collective, c.bytes) for c in found(x, w, y) if c.bytes}
    assert moves[tensor] == (collective, received)


def test_what_is_there_is_cut_without_moving() -> None:
    assert found("[{}, {}]", "[{}, {}]", '[{"a"}, {}]') == []


def test_where_influences_meet() -> None:
    (conflict,) = found('[{"a"}, {}]', '[{}, {"a"}]')
    assert (conflict.tensor, conflict.has, conflict.needs) == ("%arg0", ("a", ""), ("", ""))
    assert [given.value for given in conflict.given] == ["%arg0", "%arg1"]


def test_specs_are_behind_what_is_inside() -> None:
    (conflict,) = conflicts(
        shardlog.run("""
sdy.mesh @mesh = <["b"=6, "c"=2]>
func.func @main(%x: tensor<6xf32>) -> tensor<12xf32> {
  %0:2 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"b"}], replicated={"c"}>]
      out_shardings=[<@mesh, [{"c", "b"}]>, <@mesh, [{"c"}]>] manual_axes={"c"} (%y: tensor<6xf32>) {
    %1 = stablehlo.abs %y : tensor<6xf32>
    sdy.return %1, %1 : tensor<6xf32>, tensor<6xf32>
  } : (tensor<6xf32>) -> (tensor<12xf32>, tensor<12xf32>)
  return %0#1 : tensor<12xf32>
}
""")
    )
    assert (conflict.has, conflict.needs) == (("b",), ("",))
    assert str(conflict.origin).startswith("in_specs[0]")
