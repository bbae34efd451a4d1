"""Values of a text in MLIR's sharding dialects are called as the text calls them."""

from __future__ import annotations

import pytest
import shardlog

TEXT = """
shard.grid @d(shape = 3x2)
func.func @f(%x: tensor<6x8xf32>, %w: tensor<8x8xf32>) -> tensor<6x8xf32> {
  %s = shard.sharding @d split_axes = [[0]] : !shard.sharding
  %here = shard.shard %x to %s : tensor<6x8xf32>
  %p = stablehlo.dot_general %here, %w, contracting_dims = [1] x [0]
    : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  %u = shard.shard %p to %s annotate_for_users : tensor<6x8xf32>
  %q:2 = stablehlo.optimization_barrier %u, %w : tensor<6x8xf32>, tensor<8x8xf32>
  return %q#0 : tensor<6x8xf32>
}
"""


@pytest.fixture(scope="module")
def result() -> shardlog.Session:
    return shardlog.run(TEXT)


@pytest.mark.parametrize("name", ["%p", "%u", "%q#0"])
def test_the_text_has_the_names(name: str, result: shardlog.Session) -> None:
    assert str(result.why(name, dim=0)).startswith(f"{name} : tensor<6x8xf32>")


@pytest.mark.parametrize("name", ["%x", "%here", "%arg0"])
def test_an_annotation_is_a_further_name_for_its_value(name: str, result: shardlog.Session) -> None:
    assert str(result.why(name, dim=0)).startswith("%x : tensor<6x8xf32>")


def test_annotations_that_are_given_use_the_names() -> None:
    text = shardlog.run(TEXT, annotate=['%w=[{}, {"1"}]']).text()
    assert '%arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@d, [{}, {"1"}]>}' in text
