"""Conflicts: the tensors that must move for an op, by which collective, and how many bytes that is."""

from __future__ import annotations

import pytest
import shardlog
from shardlog.explanations.questions.conflicts import Conflict, conflicts


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


def test_what_is_less_moves() -> None:
    """To add up the partial sums over "b", a device would send 2 * 3/4 of 8 / 2 * 16 elements of four
    bytes."""
    moves = {c.tensor: (c.collective, c.bytes) for c in found('[{"a"}, {"b"}]', '[{"b"}, {}]')}
    assert moves == {"%arg0": ("all-gather", 3 * 4 * 1 * 4), "%arg1": ("all-gather", 3 * 16 * 2)}


@pytest.mark.parametrize(
    ("x", "w", "y", "tensor", "collective", "sent"),
    [
        # Each device has 4 * 16 / 4 elements of two bytes, a quarter of which is its own afterwards.
        ('[{"a"}, {}]', '[{"b"}, {}]', '[{"a"}, {"b"}]', "%arg1", "all-to-all", 32 - 8),
        ('[{"b"}, {}]', "[{}, {}]", '[{}, {"a"}]', "%arg0", "all-gather", 96),
        ('[{}, {"a"}]', '[{"b"}, {}]', "[{}, {}]", "%arg0", "all-gather", 64),
    ],
)
def test_cost(x: str, w: str, y: str, tensor: str, collective: str, sent: int) -> None:
    moves = {c.tensor: (c.collective, c.bytes) for c in found(x, w, y) if c.bytes}
    assert moves[tensor] == (collective, sent)


def test_what_is_there_is_cut_without_moving() -> None:
    assert found("[{}, {}]", "[{}, {}]", '[{"a"}, {"b"}]') == []


def test_where_influences_meet() -> None:
    (conflict,) = found('[{"a"}, {}]', '[{}, {"a"}]')
    assert (conflict.tensor, conflict.has, conflict.needs) == ("%arg0", ("a", ""), ("", ""))
    assert [given.value for given in conflict.given] == ["%arg0", "%arg1"]


def test_manual_axes_are_none_inside() -> None:
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
    assert conflict.origin is not None
    assert conflict.origin.by == "in_specs[0]"
