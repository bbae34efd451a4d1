"""Programs of the RFC whose types say how tensors are sharded, with collectives of whole tensors."""

from __future__ import annotations

import re

import pytest
import shardlog
from shardlog.errors import ShardlogError

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
