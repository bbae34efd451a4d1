"""`keep_rules` leaves the rules that Shardy leaves; `conservative` takes no part of an axis."""

from __future__ import annotations

import shardlog

from ..support.compare import differences
from ..support.oracle import AFTER, BEFORE, CLOSE, PROPAGATE, reprinted, run_passes, with_constants

MODULE = """
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
                %w: tensor<12x6xf32>) -> tensor<4x2x6xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x12xf32>, tensor<12x6xf32>) -> tensor<8x6xf32>
  %1 = stablehlo.add %0, %0 {sdy.sharding_rule = #sdy.op_sharding_rule<([ij, k], [ij, k])->([ij, k]) {i=4, j=2, k=6}>} : tensor<8x6xf32>
  %2 = stablehlo.reshape %1 : (tensor<8x6xf32>) -> tensor<4x2x6xf32>
  return %2 : tensor<4x2x6xf32>
}
"""  # noqa: E501


def test_keep_rules() -> None:
    passes = (*BEFORE, PROPAGATE["user-priority"], *AFTER[: AFTER.index(CLOSE) + 1])
    expected = reprinted(with_constants(run_passes(MODULE, *passes)))
    got = shardlog.run(MODULE, keep_rules=True).text()
    assert got.count("sdy.sharding_rule") == 3
    assert differences(got, expected) == []


def test_conservative() -> None:
    text = """
    sdy.mesh @mesh = <["a"=4]>
    func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<2x4xf32> {
      %0 = stablehlo.reshape %x : (tensor<8xf32>) -> tensor<2x4xf32>
      return %0 : tensor<2x4xf32>
    }
    """
    option = PROPAGATE["user-priority"].replace("{", "{conservative-propagation=true ")
    expected = reprinted(run_passes(text, *BEFORE, option, *AFTER))
    assert differences(shardlog.run(text, conservative=True).text(), expected) == []
    assert differences(shardlog.run(text).text(), expected) != []
