"""Statements of dialects that jaxlib lacks are written in generic form."""

from __future__ import annotations

import re

import pytest
from shardlog.errors import ShardlogError
from shardlog.importers.dialects.statements import in_generic_form
from shardlog.importers.sources.text import Text, parse_module

STATEMENTS = (
    (
        "shard.grid @d(shape = 3x?)",
        '"shard.grid"() {sym_name = "d", shape = array<i64: 3, -9223372036854775808>} : () -> ()',
    ),
    (
        "shard.shift %x on @d grid_axes = [1] shift_axis = 1 offset = -3 rotate "
        ": tensor<5xi8> -> tensor<5xi8>",
        '"shard.shift"(%x) {grid = @d, grid_axes = array<i16: 1>, shift_axis = 1 : index, '
        "offset = -3 : i64, rotate} : (tensor<5xi8>) -> tensor<5xi8>",
    ),
    (
        "mesh.all_reduce %x on @d mesh_axes = [1, 0] reduction = <max> : tensor<5xf32> -> tensor<5xf64>",
        '"mesh.all_reduce"(%x) {mesh = @d, mesh_axes = array<i16: 1, 0>, '
        "reduction = #mesh.partial<max>} : (tensor<5xf32>) -> tensor<5xf64>",
    ),
    (
        "shard.scatter %x on @d scatter_dim = 0 root = [%i] : (tensor<6xi8>, index) -> tensor<3xi8>",
        '"shard.scatter"(%x, %i) {grid = @d, scatter_dim = 0 : index, '
        "root = array<i64: -9223372036854775808>, grid_axes = array<i16>} "
        ": (tensor<6xi8>, index) -> tensor<3xi8>",
    ),
    (
        "shard.shard_shape dims = [%n, 9] sharding = %s device = [%i] : index, index  // of a device",
        '"shard.shard_shape"(%n, %s, %i) {dims = array<i64: -9223372036854775808, 9>, '
        "device = array<i64: -9223372036854775808>, operandSegmentSizes = array<i32: 1, 1, 1>} : "
        "(index, !shard.sharding, index) -> (index, index)  // of a device",
    ),
    (
        "tosa.maximum %x, %y {nan_mode = IGNORE} : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32> loc(#l)",
        '"tosa.maximum"(%x, %y) {nan_mode = #tosa.nan_mode<IGNORE>} : '
        "(tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32> loc(#l)",
    ),
    (
        "linalg.fill ins(%c : f32) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>",
        '"linalg.fill"(%c, %e) {operandSegmentSizes = array<i32: 1, 1>} : '
        "(f32, tensor<5x7xf32>) -> tensor<5x7xf32>",
    ),
    (
        "linalg.transpose ins(%x : tensor<5x7xf32>) outs(%e : tensor<7x5xf32>) permutation = [1, 0]",
        '"linalg.transpose"(%x, %e) {permutation = array<i64: 1, 0>} : '
        "(tensor<5x7xf32>, tensor<7x5xf32>) -> tensor<7x5xf32>",
    ),
    (
        "linalg.fill ins(%c : f32) outs(%e : tensor<5x7xf32>)  // and so on\n  -> tensor<5x7xf32>",
        '"linalg.fill"(%c, %e) {operandSegmentSizes = array<i32: 1, 1>} : '
        "(f32, tensor<5x7xf32>) -> tensor<5x7xf32>\n",
    ),
    (
        "mpi.allreduce(%b, %a, MPI_MAX, %c) : memref<5xf32>, memref<5xf32> -> !mpi.retval",
        '"mpi.allreduce"(%b, %a, %c) {op = #mpi.opclass<MPI_MAX>} : '
        "(memref<5xf32>, memref<5xf32>, !mpi.comm) -> !mpi.retval",
    ),
    (
        "linalg.yield %a : f32\n// from %b: (x, y) -> [1] = {a}",
        '"linalg.yield"(%a) : (f32) -> ()\n// from %b: (x, y) -> [1] = {a}',
    ),
    (
        "mpi.comm_split(%w, %color, %key) : !mpi.comm",
        '"mpi.comm_split"(%w, %color, %key) : (!mpi.comm, i32, i32) -> !mpi.comm',
    ),
    ("linalg.yield %a, %b : f32, i1", '"linalg.yield"(%a, %b) : (f32, i1) -> ()'),
    (
        '"tosa.cast"(%x) <{to = "say \\"}>\\""}> {note} : (tensor<5xf32>) -> tensor<5xi8>',
        '"tosa.cast"(%x) {to = "say \\"}>\\"", note} : (tensor<5xf32>) -> tensor<5xi8>',
    ),
)
AS_THEY_ARE = (
    '"stablehlo.add"(%x, %y) <{a = 1}> : (f32, f32) -> f32 // tosa.add here',
    "func.func @f() attributes {shard.for_users, mesh.note = 1, tosa.x} {",
    'module attributes {mpi.dlti = #dlti.map<"rank" = 1>} {',
    "%0 = shard.unheard_of %x : tensor<5xf32>",
)


def generic(text: str, *, bodies: bool = False) -> str:
    """A text in generic form."""
    return in_generic_form(text.encode(), bodies=bodies).decode()


@pytest.mark.parametrize(("statement", "expected"), STATEMENTS)
def test_generic_form(statement: str, expected: str) -> None:
    assert generic(f"  %0 = {statement}") == f"  %0 = {expected}"


@pytest.mark.parametrize("text", AS_THEY_ARE)
def test_other_text_stays(text: str) -> None:
    assert generic(text) == text


def test_text_without_such_statements_is_the_same_object() -> None:
    data = b'func.func @f(%x: tensor<2xf32>) { "stablehlo.custom"(%x) <{a}> : (tensor<2xf32>) -> () return }'
    assert in_generic_form(data) is data


def test_regions_and_lines() -> None:
    text = """%0 = linalg.reduce ins(%x : tensor<5x7xf32>)
  outs(%e : tensor<5xf32>)
  dimensions = [1]
  (%in: f32, %out: f32) {
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  }
"""
    statement = generic(text)
    assert statement.count("\n") == text.count("\n")
    assert statement.splitlines()[5] == '    "linalg.yield"(%s) : (f32) -> ()'
    assert "^bb0(%in: f32, %out: f32):" in statement
    assert statement.splitlines()[6] == (
        "  }) {dimensions = array<i64: 1>} : (tensor<5x7xf32>, tensor<5xf32>) -> tensor<5xf32>"
    )


def test_tiles() -> None:
    text = (
        "%0 = linalg.pack %x padding_value(%c : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] "
        "inner_tiles = [6, %n] into %e : tensor<12x12xf32> -> tensor<2x?x6x?xf32>"
    )
    assert generic(text).startswith('%0 = "linalg.pack"(%x, %e, %c, %n) {')
    assert "operandSegmentSizes = array<i32: 1, 1, 1, 1>" in generic(text)
    text = "%0 = linalg.unpack %x inner_dims_pos = [0] inner_tiles = [4] into %e : "
    text += "tensor<2x4xi8> -> tensor<8xi8>"
    assert generic(text).endswith(": (tensor<2x4xi8>, tensor<8xi8>) -> tensor<8xi8>")


def test_an_op_in_place_of_a_region_takes_what_is_reduced_into_first() -> None:
    text = "%0 = linalg.reduce { arith.subi } ins(%x : tensor<5xi8>) outs(%e : tensor<i8>) dimensions = [0]"
    assert '"arith.subi"(%short_1, %short_0)' in generic(text)


BODIES = {
    "matmul ins(%a, %b : tensor<2x3xi8>, tensor<3x4xi32>) outs(%c : tensor<2x4xi32>) -> tensor<2x4xi32>": (
        "arith.extsi %i0_ : i8 to i32; arith.muli %v0_, %i1_ : i32; arith.addi %o0_, %v1_ : i32"
    ),
    "elementwise kind=#linalg.elementwise_kind<exp> ins(%a : tensor<2xf32>) outs(%c : tensor<2xf32>)"
    " -> tensor<2xf32>": "math.exp %i0_ : f32",
    "pooling_nhwc_min ins(%a, %b : tensor<1x4x4x1xf32>, tensor<2x2xf32>) outs(%c : tensor<1x3x3x1xf32>)"
    " -> tensor<1x3x3x1xf32>": "arith.minimumf %o0_, %i0_ : f32",
    "reciprocal ins(%a : tensor<2xf16>) outs(%c : tensor<2xf16>) -> tensor<2xf16>": (
        "arith.constant 1.0 : f16; arith.divf %v0_, %i0_ : f16"
    ),
}


@pytest.mark.parametrize("op", BODIES)
def test_bodies_of_named_ops(op: str) -> None:
    statement = generic(f"%0 = linalg.{op}", bodies=True)
    assert "; ".join(re.findall(r"%v\d_ = (.*?)(?= %v\d_ =| \"linalg)", statement)) == BODIES[op]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("shard.grid @d(shape = 2y3)", "-:1:24: error: shard.grid: expected `)`"),
        ("%0 = tosa.exp %x : tensor<5xf32>", "-:1:20: error: tosa.exp: expected `(`"),
        (
            "%0 = shard.all_gather %x on @d gather_axis = one",
            "-:1:46: error: shard.all_gather: expected a number",
        ),
        (
            "%0 = linalg.fill ins(%c : f32) outs(%e : tensor<2xf32>",
            "-:1:55: error: linalg.fill: expected `)`",
        ),
        (
            "%0 = linalg.fill #none ins(%c : f32) outs(%e : tensor<2xf32>)",
            "expected an alias that is defined",
        ),
        (
            "%0 = shard.all_gather %x on @d grid_axes = [0",
            "-:1:44: error: shard.all_gather: expected `]` for this",
        ),
    ],
)
def test_what_is_wrong_with_a_statement(statement: str, said: str) -> None:
    with pytest.raises(ShardlogError) as caught:
        generic(statement)
    assert said in str(caught.value)
    assert "its form is: " in str(caught.value)


SHARDED = """shard.grid @g(shape = 2)
func.func @f(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %s = shard.sharding @g split_axes = [[0]] : !shard.sharding
  %0 = shard.shard %x to %s : tensor<4xf32>
  %t = shard.sharding @g split_axes = [[0]] : !shard.sharding  // the same
  %u = shard.sharding @g split_axes = [[0]] : !shard.sharding
  %1 = shard.shard %0 to %u annotate_for_users : tensor<4xf32>
  %2 = scf.if %c -> tensor<4xf32> {
    %u = shard.sharding @g split_axes = [[]] : !shard.sharding
    %v = shard.sharding @g split_axes = [[]] : !shard.sharding
    %3 = shard.shard %1 to %v annotate_for_users : tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  } else {
    %v = shard.sharding @g split_axes = [[0]] : !shard.sharding
    %3 = shard.shard %1 to %v annotate_for_users : tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  }
  return %2 : tensor<4xf32>
}
"""


def test_equal_shardings_are_read_once() -> None:
    lines = in_generic_form(SHARDED.replace("    %u", "    %w").encode(), one_each=True).decode().splitlines()
    assert [i for i, line in enumerate(lines) if '"shard.sharding"' in line] == [2, 4, 8]
    names = [line.split("(")[1].split(")")[0] for line in lines if '"shard.shard"' in line]
    assert names == ["%x, %s", "%0, %s", "%1, %w", "%1, %s"]


@pytest.mark.parametrize("use", ["", '"test.use"(%u) : (!shard.sharding) -> ()'])
def test_a_sharding_that_other_ops_use_stays(use: str) -> None:
    text = SHARDED.replace("    %u", "    %w").replace("  return", f"  {use}\n  return")
    module = str(parse_module(Text(text.encode(), "t.mlir")))
    assert module.count("sdy.sharding_constraint") == 3
    assert ("test.use" in module) == bool(use)


def test_names_of_two_shardings_are_refused_at_their_place() -> None:
    text = SHARDED.replace("    %u", "    %s")
    with pytest.raises(ShardlogError, match=r"t\.mlir:9:"):
        parse_module(Text(text.encode(), "t.mlir"))
