"""Whose turn comes first when a value changes: our module is Shardy's."""

from __future__ import annotations

import pytest
import shardlog

from ..support.compare import differences
from ..support.oracle import PROPAGATE, propagate

# %x gets "b" last. It goes into the loop as two values, and comes round as the first. Its use at the end of
# the body is newer than those by the loop around it, so the edge of the second takes its turn first, and "b"
# gets to the second dimension of the product.
CAPTURED = """
sdy.mesh @mesh = <["b"=2]>
func.func @main(%i: tensor<i1>, %x: tensor<4x8xf32>) -> tensor<8x8xf32> {
  %l:2 = stablehlo.while(%a = %x, %b = %x) : tensor<4x8xf32>, tensor<4x8xf32>
  cond {
    stablehlo.return %i : tensor<i1>
  } do {
    stablehlo.return %x, %b : tensor<4x8xf32>, tensor<4x8xf32>
  }
  %p = stablehlo.dot_general %l#0, %l#1, contracting_dims = [0] x [0]
      : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %t = stablehlo.custom_call @f(%x) {has_side_effect = true,
      sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"b"}]>]>,
      sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=8}, custom>}
      : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %p : tensor<8x8xf32>
}
"""


@pytest.mark.parametrize("strategy", PROPAGATE)
def test_an_op_uses_its_operands_before_those_in_its_regions_do(strategy: str) -> None:
    ours = shardlog.run(CAPTURED, strategy=strategy).text()
    assert differences(ours, propagate(CAPTURED, strategy=strategy)) == []
    assert '-> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>})' in ours


# The first copy of the constant gets the sharding of %y, and so does the last, which takes the op of the
# constant: the two that are left stand in the order in which they were made.
COPIED = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %c = stablehlo.constant dense<0.0> : tensor<8x8xf32>
  %i = stablehlo.constant dense<true> : tensor<i1>
  %v:2 = stablehlo.while(%p = %c, %q = %c) : tensor<8x8xf32>, tensor<8x8xf32>
  cond {
    stablehlo.return %i : tensor<i1>
  } do {
    %n = stablehlo.add %p, %y : tensor<8x8xf32>
    stablehlo.return %n, %q : tensor<8x8xf32>, tensor<8x8xf32>
  }
  %w:2 = stablehlo.while(%p = %c, %q = %c) : tensor<8x8xf32>, tensor<8x8xf32>
  cond {
    stablehlo.return %i : tensor<i1>
  } do {
    %n = stablehlo.add %q, %y : tensor<8x8xf32>
    stablehlo.return %p, %n : tensor<8x8xf32>, tensor<8x8xf32>
  }
  return %v#0, %v#1, %w#0, %w#1 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
"""


def test_copies_that_are_left_stand_in_the_order_in_which_they_were_made() -> None:
    assert differences(shardlog.run(COPIED).text(), propagate(COPIED)) == []
