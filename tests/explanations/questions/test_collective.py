"""Why a partitioned program has a collective: the op, the ways to compute it, and the annotations."""

from __future__ import annotations

import pytest
import shardlog
from shardlog.errors import ShardlogError

from ...support.mlp import MLP


def test_a_sum_is_followed_back_to_the_annotation_of_a_weight() -> None:
    moved = shardlog.run(MLP).partition().why(0)
    assert (moved.collective.kind, moved.collective.op) == ("all-reduce", "stablehlo.dot_general")
    assert (moved.before, moved.partial, moved.after) == (("data", ""), "model", ("data", ""))
    taken, *others = moved.ways
    assert taken.factors == (("i", "data"), ("k", "model"))
    assert taken.bytes == 4 * 16 * 4 * 2 * 3 // 4  # of a part of the result: twice three quarters
    assert all(way.bytes >= taken.bytes and way.lost for way in others)
    assert [(b.factor, b.sentence) for b in moved.because] == [
        ("i", "What is computed of a part of factor i is the part of the result."),
        ("k", "What is computed of a part of factor k is a partial result."),
    ]
    assert [(cause.site.value, cause.origin.value) for cause in moved.causes] == [
        ("%1", "%arg1"),
        ("%arg2", "%arg1"),
    ]


GATHERED = """\
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.tanh %a : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""


def test_a_gather_at_the_end_names_the_tensor_that_is_gathered() -> None:
    moved = shardlog.run(GATHERED).partition().why(0)
    assert moved.collective.kind == "all-gather"
    assert (moved.before, moved.after) == (("x", ""), ("", ""))
    assert [(cause.site.value, cause.axis, cause.origin.value) for cause in moved.causes] == [
        ("%0", "x", "%arg0")
    ]
    assert str(moved).startswith('all-gather 0 over "x": 192 bytes from each of 4 devices, once')


def test_a_number_that_is_none() -> None:
    with pytest.raises(ShardlogError, match="there is no collective 7") as error:
        shardlog.run(MLP).partition().why(7)
    assert error.value.hint == "they are numbered from 0 to 0"


def test_collectives_name_the_annotations_that_caused_them() -> None:
    (made,) = shardlog.run(MLP).partition().collectives
    assert made.causes == ("the annotation of %arg1 at <text>:3",)
