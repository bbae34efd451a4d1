"""Named computations in the input stay what they are, with the shardings at their boundary."""

from __future__ import annotations

import pytest
import shardlog

from ..support.compare import differences
from ..support.oracle import AFTER, PROPAGATE, reprinted, run_passes

MODULE = """
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func public @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"a"}]>},
                       %arg1: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<8x16xf32>
  %1:2 = sdy.named_computation<"layer">(%0, %arg1) BOUNDARY
    (%arg2: tensor<8x16xf32>, %arg3: tensor<8x16xf32>) {
    %2 = stablehlo.tanh %arg2 : tensor<8x16xf32>
    %3 = stablehlo.multiply %2, %arg3 : tensor<8x16xf32>
    sdy.return %2, %3 : tensor<8x16xf32>, tensor<8x16xf32>
  } : (tensor<8x16xf32>, tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>)
  return %1#1 : tensor<8x16xf32>
}
"""
# The reference pipeline is for calls: to computations in the input it adds edges twice, and crashes.
PASSES = (
    "sdy-lift-inlined-meshes",
    "sdy-add-data-flow-edges",
    "sdy-apply-sharding-constraints",
    PROPAGATE["user-priority"],
    *(p for p in AFTER if not any(word in p for word in ("named", "graph", "func-results", "func-call"))),
)


@pytest.mark.parametrize(
    "boundary",
    [
        "",
        "in_shardings=[<@mesh, [{?}, {}]>, <@mesh, [{?}, {?}]>]",
        "out_shardings=[<@mesh, [{?}, {?}]>, <@mesh, [{}, {?}]>]",
    ],
)
def test_named_computation(boundary: str) -> None:
    text = MODULE.replace("BOUNDARY", boundary)
    got = shardlog.run(text).text()
    assert "in_shardings" in got and "out_shardings" in got
    assert differences(got, reprinted(run_passes(text, *PASSES))) == []
