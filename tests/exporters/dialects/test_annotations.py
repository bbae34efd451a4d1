"""Annotated modules in MLIR's dialects shard and mesh."""

from __future__ import annotations

import re
from typing import Literal

import pytest
import shardlog
from shardlog.errors import ShardlogError

NET = """
mesh.cluster @c(rank = 1, dim_sizes = [2])
func.func @main(%x: tensor<3x8xf32>, %w: tensor<8x10xf32>) -> tensor<3x10xf32>
    attributes {mesh_cluster = @c} {
  %0 = mesh.annotate %x {required = true, sharding = [[], [0]]} : tensor<3x8xf32> -> tensor<3x8xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0]
      : (tensor<3x8xf32>, tensor<8x10xf32>) -> tensor<3x10xf32>
  %2 = mesh.annotate %1 {required = true, sharding = [[], [], [0]]} : tensor<3x10xf32> -> tensor<3x10xf32>
  %3 = mesh.annotate %2 {as_result = false, required = true, sharding = [[], [0]]}
      : tensor<3x10xf32> -> tensor<3x10xf32>
  return %3 : tensor<3x10xf32>
}
"""
NAMED = """
sdy.mesh @mesh = <["data"=2, "model"=6]>
func.func @main(%x: tensor<12x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>})
    -> tensor<12x12xf32> {
  %0 = stablehlo.tanh %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model":(1)2, ?}]>]>}
      : tensor<12x12xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"model":(2)3, "data"}, {}]> : tensor<12x12xf32>
  return %1 : tensor<12x12xf32>
}
"""
GATHERED = """
sdy.mesh @m = <["x"=2]>
func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<4xf32> {
  %0 = sdy.all_gather [{"x"}] %x out_sharding=<@m, [{}]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def written(text: str, dialect: str, **options: str) -> str:
    return shardlog.run(text, propagation="completion").text(dialect, **options)  # type: ignore[arg-type]


def statements(text: str) -> list[str]:
    """The statements of a text in any order, whatever its values are called."""
    return sorted(re.sub(r"%\w+", "%", line) for line in text.splitlines())


def test_a_module_of_the_rfc_in_shard_as_llvm_reads_it() -> None:
    done = written(NET, "shard")
    assert "shard.grid @c(shape = 2)" in done
    for operand, axes in (("%arg0", "[[], [0]]"), ("%arg1", "[[0], []]")):
        (sharding,) = re.findall(rf"shard.shard {operand} to (%\d+) : ", done)
        assert f"{sharding} = shard.sharding @c split_axes = {axes} : !shard.sharding" in done
    assert "mesh." not in done and "sdy.mesh" not in done
    said = re.findall(r"shard.said = \"(.*)\"}", done)  # shard has no partial sums
    assert len(said) == 1 and "unreduced" in said[0]


def test_mesh_says_partial_sums() -> None:
    done = written(NET, "mesh")
    assert "mesh.mesh @c(shape = 2)" in done
    assert "to <@c, [[], []], partial = sum[0]> : tensor<3x10xf32>" in done
    assert "to <@c, [[], [0]]> annotate_for_users : tensor<3x10xf32>" in done


@pytest.mark.parametrize("dialect", ["shard", "mesh"])
def test_what_only_sdy_says_of_a_result_stands_beside_what_the_op_says(
    dialect: Literal["shard", "mesh"],
) -> None:
    text = """
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}) {
      %0 = sdy.reshard %x <@mesh, [{}]> : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    """
    done = shardlog.run(text, strategy="none", closed=False).text(dialect)
    assert done.count('shard.said = "#sdy.sharding<@mesh, [{?}]>"') == 1
    back = shardlog.run(done, strategy="none", closed=False).text()
    assert "sdy.sharding_constraint %arg0 <@mesh, [{}]>" in back
    assert "sdy.sharding_constraint %0 <@mesh, [{?}]>" in back


def test_a_scalar_has_one_list_without_axes() -> None:
    """LLVM reads no empty list of lists."""
    text = """
    module attributes {dlti = #dlti.map<"MPI:comm_world_rank" = 1>} {
      shard.grid @g(shape = 2)
      func.func @main(%x: tensor<f32>) -> tensor<f32> {
        %s = shard.sharding @g split_axes = [[]] : !shard.sharding
        %0 = shard.shard %x to %s : tensor<f32>
        return %0 : tensor<f32>
      }
    }
    """
    assert "split_axes = [[]]" in written(text, "shard")
    assert "<@g, [[]]>" in written(text, "mesh")
    assert "split_axes = [[]]" in written(written(text, "shard"), "shard")


@pytest.mark.parametrize("dialect", ["shard", "mesh"])
@pytest.mark.parametrize("text", [NET, NAMED])
def test_it_is_read_back_as_it_was(text: str, dialect: str) -> None:
    first = shardlog.run(text, propagation="completion")
    again = shardlog.run(first.text(dialect), propagation="completion")  # type: ignore[arg-type]
    assert statements(again.text(dialect)) == statements(first.text(dialect))  # type: ignore[arg-type]


def test_parts_of_axes_are_axes_of_the_grid_that_keep_their_names() -> None:
    done = shardlog.run(NAMED, strategy="none", closed=False).text("shard")
    assert 'shard.grid @mesh(shape = 2x2x3) {shard.axes = ["data", "model:(1)2", "model:(2)3"]}' in done
    assert "split_axes = [[0], [1]]" in done and "split_axes = [[2, 0], []]" in done
    back = shardlog.run(done, strategy="none", closed=False).text()
    assert '<["data"=2, "model"=6]>' in back and '[{"data"}, {"model":(1)2, ?}]' in back


@pytest.mark.parametrize(
    "text, message",
    [
        (NAMED.replace('"model"=6]', '"model"=6], device_ids=[11,10,9,8,7,6,5,4,3,2,1,0]'), "device_ids"),
        (NAMED.replace('"model":(2)3', '"model":(1)3'), "overlap"),
        (
            GATHERED,
            "no op for sdy.all_gather",
        ),
    ],
)
def test_what_a_grid_cannot_say_is_refused(text: str, message: str) -> None:
    with pytest.raises(ShardlogError, match=message):
        shardlog.run(text, strategy="none").text("shard")


def test_each_version_has_one_dialect() -> None:
    with pytest.raises(ShardlogError, match="LLVM 19 has no dialect shard") as caught:
        written(NET, "shard", dialect_version="19")
    assert "mesh" in caught.value.hint
    with pytest.raises(ShardlogError, match="no version '18'"):
        written(NET, "shard", dialect_version="18")


UNEVEN = """
mesh.mesh @m(shape = 2x4)
func.func @main(%x: tensor<6x4xf32>) -> tensor<6x4xf32> {
  %0 = mesh.shard %x to <@m, [[0, 1]]> : tensor<6x4xf32>
  %1 = tosa.tanh %0 : (tensor<6x4xf32>) -> tensor<6x4xf32>
  return %1 : tensor<6x4xf32>
}
"""


@pytest.mark.parametrize("propagation", ["completion", "shardy"])
def test_arguments_keep_axes_that_do_not_divide_them(propagation: Literal["completion", "shardy"]) -> None:
    run = shardlog.run(UNEVEN, propagation=propagation)
    assert 'sdy.sharding = #sdy.sharding<@m, [{"0"}, {}]>' in run.text()  # what a device has
    for again in (run, shardlog.run(run.text())):
        done = again.text("mesh")
        assert "mesh.mesh @m(shape = 2x4)" in done
        assert "mesh.shard %arg0 to <@m, [[0, 1]]>" in done
        assert not re.findall(r"\[\[0\](?:, \[\])?\]", done)  # nowhere less


def test_an_offset_that_is_not_known_is_written_as_it_was() -> None:
    text = """
shard.grid @g(shape = 2)
func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {
  %s = shard.sharding @g split_axes = [[0]] sharded_dims_offsets = [0, ?, 6] : !shard.sharding
  %0 = shard.shard %x to %s : tensor<6xf32>
  return %0 : tensor<6xf32>
}
"""
    done = written(text, "shard")
    assert "sharded_dims_offsets = [0, ?, 6]" in done
    assert written(done, "shard") == done
