"""Modules that MLIR's verifiers let pass, or refuse without a reason: one line with the place, what is wrong,
and what would be right."""

from __future__ import annotations

import pytest
import shardlog
from shardlog.errors import ShardlogError

T = "tensor<6x12xf32>"
SHARDINGS = {
    "split_axes = [[5]]": ("3:8: error: axis 5, and the grid has 2 axes", "the axes of @g are 0 to 1"),
    "split_axes = [[-1]]": ("3:8: error: axis -1, and the grid has 2 axes", "the axes of @g are 0 to 1"),
    "split_axes = [[0], [0]]": ("3:8: error: axis 0 is listed twice", "list every axis once"),
    "split_axes = [[0], [1], []]": ("4:8: error: 3 lists of axes for a tensor of 2 dimensions", "at most 2"),
    "split_axes = [[x]]": (
        "3:39: error: shard.sharding: expected a list of axes",
        "its form is: shard.sharding",
    ),
    "split_axes = [0]": ("3:39: error: shard.sharding: expected a list of axes", "split_axes = [[0], [1]]"),
    "split_axis = [[0]]": ("3:26: error: shard.sharding: expected `split_axes`", "its form is"),
    "split_axes = [[0]] halo_sizes = [1]": ("1 halo size for 1 sharded dimension", "two for each of them"),
    "split_axes = [[0]] halo_sizes = [1, 1, 1, 1]": ("4 halo sizes for 1 sharded dimension", "two for each"),
    "split_axes = [] halo_sizes = [1, 1]": ("2 halo sizes for 0 sharded dimensions", "leave them out"),
    "split_axes = [[0]] halo_sizes = [1, 99]": (
        "a halo of 99 rows of dimension 0, which has 6",
        "of other devices",
    ),
    "split_axes = [[0]] halo_sizes = [1, -1]": ("a halo of negative size", "0 or more"),
    "split_axes = [[0]] halo_sizes = [1, a]": ("expected numbers, values or ?, not a", "halo_sizes = [0, 1]"),
    "split_axes = [[0]] sharded_dims_offsets = [0, 3, 7]": (
        "end at 7, past the end: it has size 6",
        "from 0",
    ),
    "split_axes = [[0]] sharded_dims_offsets = [0, 3, 5]": ("end at 5, before the end", "from 0"),
    "split_axes = [[0]] sharded_dims_offsets = [1, 3, 6]": ("begin at 1", "from 0"),
    "split_axes = [[0]] sharded_dims_offsets = [0, 3]": ("2 offsets", "give 3: where each of 2 parts"),
    "split_axes = [[0]] sharded_dims_offsets = [0, 7, 6]": ("offsets must not fall: 6", "from 0"),
    "split_axes = [[0]] sharded_dims_offsets = [0, -3, 6]": ("a negative offset", "from 0"),
}
OPS = {
    f"shard.all_gather %x on @g grid_axes = [2] gather_axis = 0 : {T} -> {T}": ("axis 2, and", "0 to 1"),
    f"shard.all_gather %x on @g grid_axes = [0] gather_axis = 2 : {T} -> {T}": ("gather_axis 2", "0 to 1"),
    f"shard.all_gather %x on @g grid_axes = [0] gather_axis = 0 : {T} -> {T}": ("must be 12", "6x12"),
    f"shard.all_reduce %x on @g grid_axes = [0, 0] : {T} -> {T}": ("axis 0 is listed twice", "once"),
    f"shard.all_reduce %x on @g reduction = median : {T} -> {T}": ("no reduction is called median", "min"),
    f"shard.broadcast %x on @g grid_axes = [0] root = [2] : ({T}) -> {T}": ("coordinate 2 of 2", "0 to 1"),
    f"shard.broadcast %x on @g grid_axes = [0] root = [-1] : ({T}) -> {T}": ("coordinate -1 of 2", "0 to 1"),
    f"shard.broadcast %x on @g grid_axes = [0] root = [0, 1] : ({T}) -> {T}": (
        "2 coordinates for 1 axis",
        "one",
    ),
    f"shard.broadcast %x on @g grid_axes = [0] : ({T}) -> {T}": ("3:49: error", "root = [0, 1]"),
    f"shard.send %x on @g grid_axes = [0] destination = [3] : ({T}) -> {T}": ("coordinate 3 of 2", "0 to 1"),
    f"shard.shift %x on @g grid_axes = [0] shift_axis = 1 offset = 1 : {T} -> {T}": (
        "shift_axis 1",
        "one of",
    ),
    f"shard.shift %x on @g grid_axes = [0] shift_axis = 0 : {T} -> {T}": ("expected `offset`", "offset = 1"),
    f"shard.update_halo %x on @g split_axes = [[0]] halo_sizes = [1] : {T}": ("1 halo size", "two for each"),
    f"shard.update_halo %x on @g split_axes = [[4]] halo_sizes = [1, 1] : {T}": ("axis 4, and", "0 to 1"),
    f"shard.update_halo %x on @g split_axes = [[0]] halo_sizes = [1, 1] : {T} -> {T}": (
        "expected the end of the line",
        "halo_sizes = [0, 1])? : type",
    ),
}
MESH = """mesh.mesh @m(shape = 2)
func.func @f(%x: tensor<4xf32>) {{
  %0 = mesh.shard %x to <@m, {}> : tensor<4xf32>
  return
}}"""
MODULES = {
    "shard.grid @g(shape = 2x0)": ("1:1: error: axis 1 of grid @g has size 0", "1 or more, or ?"),
    "shard.grid @g(shape = -2x3)": ("1:1: error: axis 0 of grid @g has size -2", "1 or more, or ?"),
    "shard.grid @g(shape = )": ("expected the sizes of axes, as in 2x3", "shape = 2x3"),
    "mesh.cluster @g(rank = 1, dim_sizes = [2, 3])": ("2 sizes for a cluster of rank 1", "give 1"),
    "mesh.mesh @m(shape = 2)\n"
    + "func.func @f(%x: tensor<4xf32>) {\n"
    + '  %0 = "mesh.all_reduce"(%x) {mesh = [], mesh_axes = array<i16: 0>}'
    + " : (tensor<4xf32>) -> tensor<4xf32>\n"
    + "  return\n}": ("mesh.all_reduce has attributes, operands or results of other kinds", "its form is"),
    MESH.format("[[1]]"): ("axis 1, and the mesh has 1 axis", "the only axis of @m is 0"),
    MESH.format("[[]], partial = max[3]"): ("axis 3, and the mesh has 1 axis", "the only axis of @m is 0"),
    MESH.format("[[]], partial = mean[0]"): ("no reduction is called mean", "average, bitwise_and"),
}


def check_refused(text: str, said: str, advice: str) -> None:
    with pytest.raises(ShardlogError) as caught:
        shardlog.run(text)
    lines = str(caught.value).splitlines()
    assert said in lines[0] and advice in caught.value.hint, lines
    assert len(lines) == 2


@pytest.mark.parametrize("sharding", SHARDINGS)
def test_shardings(sharding: str) -> None:
    text = f"shard.grid @g(shape = 2x3)\nfunc.func @f(%x: {T}) -> {T} {{\n"
    text += f"  %s = shard.sharding @g {sharding} : !shard.sharding\n"
    check_refused(text + f"  %0 = shard.shard %x to %s : {T}\n  return %0 : {T}\n}}\n", *SHARDINGS[sharding])


@pytest.mark.parametrize("op", OPS)
def test_ops(op: str) -> None:
    text = f"shard.grid @g(shape = 2x3)\nfunc.func @f(%x: {T}) -> {T} {{\n  %0 = {op}\n"
    check_refused(f"{text}  return %0 : {T}\n}}\n", *OPS[op])


@pytest.mark.parametrize("module", MODULES)
def test_modules(module: str) -> None:
    check_refused(module + "\n", *MODULES[module])


def _op(op: str, operands: str, result: str) -> str:
    head = f"shard.grid @g(shape = 2)\nfunc.func @main({operands}) -> {result} {{"
    return f"{head}\n  %0 = {op}\n  return %0 : {result}\n}}\n"


MISFITS = {
    "tosa.add %x, %y : (tensor<8x6xf32>, tensor<7x6xf32>) -> tensor<8x6xf32>": (
        "%x: tensor<8x6xf32>, %y: tensor<7x6xf32>",
        "dimension 0 of operand 1 has size 7",
    ),
    "linalg.matmul ins(%x, %y : tensor<8x6xf32>, tensor<5x4xf32>) outs(%z : tensor<8x4xf32>) "
    "-> tensor<8x4xf32>": (
        "%x: tensor<8x6xf32>, %y: tensor<5x4xf32>, %z: tensor<8x4xf32>",
        "dimension 0 of operand 1 has size 5, but loop 2 along it has 6 iterations",
    ),
    "linalg.generic {indexing_maps = [affine_map<(d0) -> (d0 + 2)>, affine_map<(d0) -> (d0)>], "
    'iterator_types = ["parallel"]} ins(%x : tensor<9xf32>) outs(%y : tensor<8xf32>) {'
    "^bb0(%a: f32, %b: f32): linalg.yield %a : f32} -> tensor<8xf32>": (
        "%x: tensor<9xf32>, %y: tensor<8xf32>",
        "dimension 0 of operand 0 has size 9, but the loops along it read element 9",
    ),
    "tosa.add %x : (tensor<8xf32>) -> tensor<8xf32>": ("%x: tensor<8xf32>", "it takes 2 operands, and has 1"),
    "tosa.exp %x, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>": (
        "%x: tensor<8xf32>",
        "it takes one operand, and has 2",
    ),
    "tosa.negate %x, %x, %x, %x : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) "
    "-> tensor<8xf32>": ("%x: tensor<8xf32>", "it takes 1 to 3 operands, and has 4"),
    "tosa.sub %x, %y : (tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>": (
        "%x: tensor<8xf32>, %y: tensor<8xi32>",
        "elements of two types, f32 and i32",
    ),
    "linalg.matmul ins(%x : tensor<8x8xf32>) outs(%x : tensor<8x8xf32>) -> tensor<8x8xf32>": (
        "%x: tensor<8x8xf32>",
        "it takes 3 operands, and has 2",
    ),
    '"tosa.max_pool2d"(%x) {kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, '
    "stride = array<i64: 1, 1>} : (tensor<1x8x8x4xf32>) -> tensor<1x7x7x3xf32>": (
        "%x: tensor<1x8x8x4xf32>",
        "dimension 3 of result 0 has size 3",
    ),
}


@pytest.mark.parametrize("op", MISFITS)
def test_ops_that_this_mlir_does_not_check(op: str) -> None:
    operands, said = MISFITS[op]
    result = op.rpartition("-> ")[2]
    with pytest.raises(ShardlogError) as caught:
        shardlog.run(_op(op, operands, result))
    assert str(caught.value).startswith("<text>:3:8: ")
    assert said in str(caught.value)


def test_a_grid_in_a_function() -> None:
    head, ends = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {", "  return %x : tensor<2xf32>\n}"
    with pytest.raises(ShardlogError, match=r"grid @g stands in func\.func") as caught:
        shardlog.run(f"{head}\n  shard.grid @g(shape = 2)\n{ends}")
    assert "beside the functions" in caught.value.hint
