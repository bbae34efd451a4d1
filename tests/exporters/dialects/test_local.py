"""Partitioned programs in MLIR's dialect shard."""

from __future__ import annotations

import re

import pytest
import shardlog
from shardlog.errors import ShardlogError

RESHARD = """
shard.grid @g(shape = 2x3)
func.func @main(%x: tensor<12x18xf32>) -> tensor<12x18xf32> {{
  %s = shard.sharding @g split_axes = {} : !shard.sharding
  %t = shard.sharding @g split_axes = {} : !shard.sharding
  %0 = shard.shard %x to %s : tensor<12x18xf32>
  %1 = shard.shard %0 to %t annotate_for_users : tensor<12x18xf32>
  return %1 : tensor<12x18xf32>
}}
"""
PRODUCT = """
shard.grid @g(shape = 2x2)
func.func @main(%x: tensor<4x8xf32>, %y: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %s = shard.sharding @g split_axes = [[], [1, 0]] : !shard.sharding
  %0 = shard.shard %x to %s : tensor<4x8xf32>
  %1 = shard.shard %0 to %s annotate_for_users : tensor<4x8xf32>
  %2 = stablehlo.dot_general %1, %y, contracting_dims = [1] x [0]
      : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  return %2 : tensor<4x6xf32>
}
"""


def local(text: str, **options: object) -> str:
    """The program of each device in the dialect."""
    run = shardlog.run(text, propagation="completion")
    return run.partition(form="shard", **options).text()  # type: ignore[arg-type]


def ops(text: str) -> list[str]:
    """The statements of the dialect after the grid, without their types."""
    matches = re.findall(r"(shard\.\w+ .*?) : ", text)
    return [re.sub(r"%\w+ ", "", op) for op in matches]


@pytest.mark.parametrize(
    "start, end, wanted",
    [
        ("[[0]]", "[[]]", ["shard.all_gather on @g grid_axes = [0] gather_axis = 0"]),
        ("[[0, 1]]", "[[0]]", ["shard.all_gather on @g grid_axes = [1] gather_axis = 0"]),
        ("[[], [1, 0]]", "[[]]", ["shard.all_gather on @g grid_axes = [1, 0] gather_axis = 1"]),
        ("[[]]", "[[], [1]]", ["shard.all_slice on @g grid_axes = [1] slice_axis = 1"]),
        ("[[0], []]", "[[0, 1]]", ["shard.all_slice on @g grid_axes = [1] slice_axis = 0"]),
        ("[[1]]", "[[], [1]]", ["shard.all_to_all on @g grid_axes = [1] split_axis = 1 concat_axis = 0"]),
    ],
)
def test_a_reshard_is_one_collective(start: str, end: str, wanted: list[str]) -> None:
    assert ops(local(RESHARD.format(start, end))) == wanted


def test_parts_in_another_order_are_sent_and_received() -> None:
    done = local(RESHARD.format("[[0, 1]]", "[[1, 0]]"))
    assert re.search(r"shard.send %arg0 on @g grid_axes = \[0, 1\] destination = \[%\w+, %\w+\]", done)
    assert re.search(r"shard.recv %arg0 on @g grid_axes = \[0, 1\] source = \[%\w+, %\w+\]", done)
    tables = re.findall(r"arith.constant dense<\[(.*)\]> : tensor<6xindex>", done)
    # Part 3 of 6 is that of device (1, 0) at first, and that of device (1, 1) then.
    target, source = (
        [tuple(map(int, row)) for row in zip(*(t.split(", ") for t in pair), strict=True)]
        for pair in (tables[:2], tables[2:])
    )
    assert target[3] == (1, 1) and source[4] == (1, 0)


def test_a_product_is_reduced_over_the_axes_of_its_contraction() -> None:
    done = local(PRODUCT)
    assert ops(done) == ["shard.all_reduce on @g grid_axes = [0, 1]"]
    assert "%arg0: tensor<4x2xf32>, %arg1: tensor<2x6xf32>" in done


NET = """
mesh.cluster @m(rank = 3, dim_sizes = [2, 2, 2])
func.func @main(%x: tensor<2x6x8xf32>, %w: tensor<8x16xf32>, %v: tensor<16x8xf32>) -> tensor<2x6x8xf32>
    attributes {mesh_cluster = @m} {
  %0 = mesh.annotate %x {required = true, sharding = [[0], [], [1, 2]]}
      : tensor<2x6x8xf32> -> tensor<2x6x8xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [2] x [0]
      : (tensor<2x6x8xf32>, tensor<8x16xf32>) -> tensor<2x6x16xf32>
  %2 = stablehlo.tanh %1 : tensor<2x6x16xf32>
  %3 = stablehlo.dot_general %2, %v, contracting_dims = [2] x [0]
      : (tensor<2x6x16xf32>, tensor<16x8xf32>) -> tensor<2x6x8xf32>
  %4 = mesh.annotate %3 {required = true, sharding = [[], [], [], [0, 1, 2]]}
      : tensor<2x6x8xf32> -> tensor<2x6x8xf32>
  %5 = mesh.annotate %4 {as_result = false, required = true, sharding = [[], [], [1, 2]]}
      : tensor<2x6x8xf32> -> tensor<2x6x8xf32>
  return %5 : tensor<2x6x8xf32>
}
"""


def test_the_order_of_the_rfc_reduces_gathers_and_splits() -> None:
    assert ops(local(NET, order="rfc"))[-2:] == [
        "shard.all_reduce on @m grid_axes = [0]",
        "shard.reduce_scatter on @m grid_axes = [1, 2] scatter_dim = 2",
    ]
    assert ops(local(RESHARD.format("[[1]]", "[[], [1]]"), order="rfc")) == [
        "shard.all_gather on @g grid_axes = [1] gather_axis = 0",
        "shard.all_slice on @g grid_axes = [1] slice_axis = 1",
    ]


def test_whole_arguments_are_cut_by_each_device() -> None:
    done = local(PRODUCT, whole_arguments=True)
    assert "%arg0: tensor<4x8xf32>, %arg1: tensor<8x6xf32>" in done
    assert ops(done)[:2] == [
        "shard.all_slice on @g grid_axes = [1, 0] slice_axis = 1",
        "shard.all_slice on @g grid_axes = [1, 0] slice_axis = 0",
    ]


def test_axes_of_size_1_stay_in_annotations_and_in_the_grid() -> None:
    text = RESHARD.format("[[0, 1]]", "[[1], [0]]").replace("2x3", "2x1")
    annotated = shardlog.run(text, propagation="completion").text(notation="shard")
    assert "shape = 2x1" in annotated
    assert "[[0, 1]]" in annotated and "[[1], [0]]" in annotated
    program = local(text)
    assert "shard.grid @g(shape = 2x1)" in program
    assert ops(program) == ["shard.all_to_all on @g grid_axes = [0] split_axis = 1 concat_axis = 0"]
    alone = local(text.replace("2x1", "1x1"))
    assert "(shape = 1x1)" in alone and "shard.entries" not in alone


def test_a_version_names_the_scattered_dimension() -> None:
    scattered = PRODUCT.replace(
        "  return %2",
        "  %t = shard.sharding @g split_axes = [[1, 0]] : !shard.sharding\n"
        "  %3 = shard.shard %2 to %t annotate_for_users : tensor<4x6xf32>\n  return %3",
    )
    assert ops(local(scattered)) == ["shard.reduce_scatter on @g grid_axes = [1, 0] scatter_dim = 0"]
    assert "scatter_axis = 0" in local(scattered, dialect_version="22")


def test_whole_arguments_are_of_dialects_alone() -> None:
    with pytest.raises(ShardlogError, match="only shard and mpi have whole arguments"):
        shardlog.run(PRODUCT).partition(whole_arguments=True)


def test_a_program_of_one_device_is_written_as_it_came() -> None:
    text = """\
module {
  shard.grid @g(shape = 2x3)
  func.func @main(%arg0: tensor<6x4xf32>, %arg1: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<6x4xf32>) {
    %0 = shard.reduce_scatter %arg0 on @g grid_axes = [1] scatter_dim = 0 : tensor<6x4xf32> -> tensor<2x4xf32>
    %1 = "stablehlo.add"(%0, %arg1) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %2 = shard.all_slice %arg0 on @g grid_axes = [1, 0] slice_axis = 0 : tensor<6x4xf32> -> tensor<1x4xf32>
    %3 = shard.all_gather %2 on @g grid_axes = [0, 1] gather_axis = 0 : tensor<1x4xf32> -> tensor<6x4xf32>
    return %1, %3 : tensor<2x4xf32>, tensor<6x4xf32>
  }
}"""
    assert shardlog.run(text).partition("shard").text().strip() == text


def test_what_is_shifted_in_from_nowhere_is_zero() -> None:
    text = """
    shard.grid @g(shape = 2x3)
    func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {
      %0 = shard.shift %x on @g grid_axes = [1] shift_axis = 1 offset = 1 : tensor<6xf32> -> tensor<6xf32>
      return %0 : tensor<6xf32>
    }
    """
    done = shardlog.run(text).partition("shard").text()
    assert ops(done)[0] == "shard.shift on @g grid_axes = [1] shift_axis = 1 offset = 1 rotate"
    assert "dense<[0, 1, 1, 0, 1, 1]> : tensor<6xindex>" in done and "arith.select" in done


def test_ops_of_linalg_with_one_output_have_regions() -> None:
    text = """
func.func @main(%x: tensor<4x8xf32>, %y: tensor<8x4xf32>, %z: tensor<2x8x4xf32>) -> tensor<2x8x4xf32> {
  %0 = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%y : tensor<8x4xf32>) permutation = [1, 0]
  %1 = linalg.broadcast ins(%0 : tensor<8x4xf32>) outs(%z : tensor<2x8x4xf32>) dimensions = [0]
  return %1 : tensor<2x8x4xf32>
}
"""
    written = shardlog.run(text).text("shard")
    assert len(re.findall(r'"linalg.\w+"\(.*\) \(\{\n *\^bb0\(%\w+: f32, %\w+: f32\):', written)) == 2


def test_ops_of_linalg_have_regions() -> None:
    """LLVM reads none without, in generic form."""
    text = """
    shard.grid @g(shape = 2)
    func.func @main(%x: tensor<4x8xf32>, %y: tensor<8x6xf32>, %z: tensor<4x6xf32>) -> tensor<4x6xf32> {
      %s = shard.sharding @g split_axes = [[0]] : !shard.sharding
      %0 = shard.shard %x to %s : tensor<4x8xf32>
      %1 = shard.shard %0 to %s annotate_for_users : tensor<4x8xf32>
      %2 = linalg.matmul ins(%1, %y : tensor<4x8xf32>, tensor<8x6xf32>) outs(%z : tensor<4x6xf32>)
          -> tensor<4x6xf32>
      return %2 : tensor<4x6xf32>
    }
    """
    run = shardlog.run(text, propagation="completion")
    for done in (run.text("shard"), run.partition("shard").text()):
        assert re.search(r'"linalg.matmul"\(.*\) \(\{\n.*\n.*arith.mulf', done)


def test_dialects_are_text() -> None:
    with pytest.raises(ShardlogError, match="a program in shard is written as text"):
        shardlog.run(PRODUCT).partition("shard").bytecode()
    with pytest.raises(ShardlogError, match="shard is written as text"):
        shardlog.run(PRODUCT).bytecode("shard")


def test_the_collectives_of_llvm_19_are_those_of_mesh() -> None:
    text = local(PRODUCT, dialect_version="19")
    assert "shard." not in text
    assert "mesh.mesh @g(shape = 2x2)" in text
    assert "mesh.all_reduce %0 on @g mesh_axes = [0, 1]" in text
    assert shardlog.run(text).partition().sent
