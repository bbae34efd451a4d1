"""Programs of the RFC whose types say how tensors are sharded, with collectives of whole tensors."""

from __future__ import annotations

import re

import pytest
import shardlog
from shardlog.errors import ShardlogError
from shardlog.importers.sources.text import Text, parse_module

PARTS, ROWS, WHOLE = (
    "tensor<6x8xf32, #mesh.shard<[[0], [1]]>>",
    "tensor<6x8xf32, #mesh.shard<[[0]]>>",
    "tensor<6x8xf32>",
)
SUMS = "tensor<6x8xf32, #mesh.shard<[[0], [], [1]]>>"
FORM = """
mesh.cluster @d(rank = 2, dim_sizes = [3, 2])
func.func @f(%x: {before}) -> {after} attributes {{mesh_cluster = @d}} {{
  %0 = mesh.{op} : {before} -> {after}
  return %0 : {after}
}}
"""


def text(op: str, before: str, after: str) -> str:
    """A program of a collective."""
    return FORM.format(op=op, before=before, after=after)


@pytest.mark.parametrize(
    ("op", "before", "after", "made"),
    [
        (
            "all_gather %x {mesh_axis = [[1]], tensor_axis = [1]}",
            PARTS,
            ROWS,
            'sdy.all_gather [{}, {"1"}] %arg0 out_sharding=<@d, [{"0"}, {}]>',
        ),
        (
            "local_split %x {mesh_axis = [1], tensor_axis = 1 : i64}",
            ROWS,
            PARTS,
            'sdy.all_slice [{}, {"1"}] %arg0 out_sharding=<@d, [{"0"}, {"1"}]>',
        ),
        (
            'all_reduce %x {mesh_axis = [1], reduction = "sum"}',
            SUMS,
            ROWS,
            'sdy.all_reduce {"1"} %arg0 out_sharding=<@d, [{"0"}, {}]>',
        ),
        (
            'reduce_scatter %x {mesh_axis = [[1]], tensor_axis = [1], reduction = "sum"}',
            SUMS,
            PARTS,
            'sdy.reduce_scatter [{}, {"1"}] %arg0 out_sharding=<@d, [{"0"}, {"1"}]>',
        ),
        (
            "local_split %x {mesh_axis = [[0]], tensor_axis = [0]}",
            WHOLE,
            ROWS,
            'sdy.all_slice [{"0"}, {}] %arg0 out_sharding=<@d, [{"0"}, {}]>',
        ),
    ],
)
def test_collectives_are_those_of_sdy(op: str, before: str, after: str, made: str) -> None:
    assert made in shardlog.run(text(op, before, after)).text()


def test_lists_of_axes_without_dimensions_are_those_of_the_first_dimensions() -> None:
    with pytest.warns(UserWarning, match="names no tensor_axis: .* dimensions 0, 1"):
        found = shardlog.run(text("all_gather %x {mesh_axis = [[0], [1]]}", PARTS, WHOLE)).text()
    assert 'sdy.all_gather [{"0"}, {"1"}] %arg0 out_sharding=<@d, [{}, {}]>' in found


@pytest.mark.parametrize(
    ("op", "before", "after", "said"),
    [
        (
            "all_gather %x {mesh_axis = [[0]], tensor_axis = [1]}",
            PARTS,
            ROWS,
            "dimension 1 is sharded on [1], and it gathers [0]",
        ),
        (
            "all_gather %x {mesh_axis = [[1]], tensor_axis = [1]}",
            PARTS,
            WHOLE.replace("32>", "32, #mesh.shard<[[], [0]]>>"),
            "gives [[0], []], not [[], [0]] as its type says",
        ),
        ("all_reduce %x {mesh_axis = [1]}", ROWS, ROWS, "the operand is partial on [], and it reduces [1]"),
        (
            "all_gather %x {mesh_axis = [[2]], tensor_axis = [1]}",
            PARTS,
            ROWS,
            "axis 2, and the cluster has 2 axes",
        ),
        (
            "all_gather %x {mesh_axis = [[1]], tensor_axis = [2]}",
            PARTS,
            ROWS,
            "tensor_axis 2 of a tensor of 2",
        ),
        ("all_gather %x {mesh_axis = [[1]], tensor_axis = [0, 1]}", PARTS, ROWS, "1 lists of axes for 2"),
    ],
)
def test_collectives_that_contradict_their_types(op: str, before: str, after: str, said: str) -> None:
    with pytest.raises(ShardlogError, match=re.escape(said)):
        shardlog.run(text(op, before, after))


def test_the_program_of_each_device_has_the_collective() -> None:
    program = shardlog.run(
        text("all_gather %x {mesh_axis = [[1]], tensor_axis = [1]}", PARTS, ROWS)
    ).partition()
    assert "all_gather_dim = 1" in program.text()
    assert "tensor<2x4xf32>) -> tensor<2x8xf32>" in program.text()


def test_the_program_of_each_device_takes_its_partial_result() -> None:
    run = shardlog.run(text("all_reduce %x {mesh_axis = [1]}", SUMS, ROWS))
    found = run.partition(form="shard").text()
    assert "(%arg0: tensor<2x8xf32>) -> tensor<2x8xf32>" in found
    assert "shard.all_reduce %arg0 on @d grid_axes = [1]" in found


def test_no_part_of_a_whole_argument_is_a_partial_result() -> None:
    run = shardlog.run(text("all_reduce %x {mesh_axis = [1]}", SUMS, ROWS))
    with pytest.raises(ShardlogError, match="argument 0 is a partial result"):
        run.partition(form="shard", whole_arguments=True).text()


def test_encodings_are_one_type_however_they_are_spaced() -> None:
    found = text("local_split %x {mesh_axis = [[1]], tensor_axis = [1]}", ROWS, PARTS)
    spaced = found.replace("return %0 : tensor<6x8xf32, #mesh.shard<[[0], [1]]>>", "return %0 : " + TIGHT)
    assert TIGHT in spaced
    assert 'sdy.all_slice [{}, {"1"}] %arg0' in shardlog.run(spaced).text()


TIGHT = "tensor<6x8xf32, #mesh.shard<[[0],[1]]>>"


@pytest.mark.parametrize(
    ("op", "before", "after", "made"),
    [
        (
            "local_split %x {sharding = [[0], [1]]}",
            ROWS,
            PARTS,
            'sdy.all_slice [{}, {"1"}] %arg0 out_sharding=<@d, [{"0"}, {"1"}]>',
        ),
        ("all_gather %x {sharding = [[0]]}", PARTS, ROWS, 'sdy.all_gather [{}, {"1"}] %arg0'),
        ("local_split %x {sharding = [[]]}", WHOLE, WHOLE, "return %arg0"),
    ],
)
def test_a_collective_may_say_the_sharding_of_its_result(op: str, before: str, after: str, made: str) -> None:
    assert made in shardlog.run(text(op, before, after)).text()


def test_a_split_that_does_more_than_to_split_is_refused() -> None:
    with pytest.raises(ShardlogError, match=re.escape("mesh.local_split from [[0], [1]] to [[0], []]")):
        shardlog.run(text("local_split %x {sharding = [[0]]}", PARTS, ROWS))


SIZE = """
mesh.cluster @d(rank = 2, dim_sizes = [3])
func.func @f() -> index {{
  %0 = mesh.size {{axis = {} : index}} : index
  return %0 : index
}}
"""


def test_the_size_of_an_axis_is_a_constant_where_it_is_known() -> None:
    assert "arith.constant 3 : index" in str(parse_module(Text(SIZE.format(0).encode(), "t.mlir")))
    assert "shard.grid_shape" in str(parse_module(Text(SIZE.format(1).encode(), "t.mlir")))
    with pytest.raises(ShardlogError, match="axis 2, and the cluster has 2 axes"):
        parse_module(Text(SIZE.format(2).encode(), "t.mlir"))


def test_a_module_without_a_cluster_has_one_of_unknown_sizes() -> None:
    alone = text("all_gather %x {mesh_axis = [[1]], tensor_axis = [1]}", PARTS, ROWS).partition("\n")[2]
    alone = alone.partition("\n")[2].replace(" attributes {mesh_cluster = @d}", "")
    with pytest.warns(UserWarning, match="no cluster is declared: one of 2 axes is assumed"):
        found = str(parse_module(Text(alone.encode(), "t.mlir")))
    assert "shard.unknown = array<i64: 0, 1>" in found


OPTION = """
mesh.cluster @d(rank = 1, dim_sizes = [2])
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>) -> tensor<4x6xf32> attributes {{mesh_cluster = @d}} {{
  %0 = "mhlo.dot_general"(%x, %w) {{dot_dimension_numbers = #mhlo.dot<lhs_contracting_dimensions = [1],
      rhs_contracting_dimensions = [0]>, sharding = {}}}
      : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}}
"""


def test_an_op_has_the_sharding_option_that_it_says() -> None:
    text = shardlog.run(OPTION.format("[[], [], [0]]"), propagation="completion").text("mesh")
    assert "mesh.shard %arg0 to <@d, [[], [0]]>" in text and "partial = sum[0]" in text
    again = shardlog.run(OPTION.format("[[0]]"), propagation="completion", sharding_option=["%0=[[], [0]]"])
    assert "mesh.shard %arg1 to <@d, [[], [0]]>" in again.text("mesh")
    with pytest.raises(ShardlogError, match="axis 1, and the cluster has 1 axis"):
        shardlog.run(OPTION.format("[[1]]"))


def test_an_unknown_op_with_an_option_is_read() -> None:
    """MLIR ends the process where a property of such an op is removed, and then written."""
    text = (
        OPTION.partition("%0")[0].format()
        + """%0 = "foo.bar"(%x, %w) <{sharding = [[0]]}>
      : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
"""
    )
    assert "foo.bar" in shardlog.run(text).text()
