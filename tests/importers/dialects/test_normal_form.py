"""MLIR's sharding dialects in all their spellings are read as shardings of sdy."""

from __future__ import annotations

import re

import pytest
import shardlog
from shardlog.errors import ShardlogError
from shardlog.importers.sources.text import Text, parse_module


def read(text: str) -> str:
    """The module of a text, in the normal form."""
    return str(parse_module(Text(text.encode(), "t.mlir")))


def fails(text: str) -> str:
    """What is said of a text that is refused."""
    with pytest.raises(ShardlogError) as caught:
        read(text)
    return str(caught.value)


IDENTITY = """
func.func @f(%x: tensor<20x9xf32>) -> tensor<20x9xf32> {{
  {}
  return %0 : tensor<20x9xf32>
}}
"""
SPELLINGS = {
    "rfc": (
        "mesh.cluster @d(rank = 2, dim_sizes = [5, 3])",
        "%0 = mesh.annotate %x {sharding = [[0], [1]], required = true} "
        ": tensor<20x9xf32> -> tensor<20x9xf32>",
    ),
    "mesh19": (
        "mesh.mesh @d(shape = 5x3)",
        "%0 = mesh.shard %x to <@d, [[0], [1]]> : tensor<20x9xf32>",
    ),
    "mesh21": (
        "mesh.mesh @d(shape = 5x3)",
        "%s = mesh.sharding @d split_axes = [[0], [1]] : !mesh.sharding\n"
        "%0 = mesh.shard %x to %s : tensor<20x9xf32>",
    ),
    "shard": (
        "shard.grid @d(shape = 5x3)",
        "%s = shard.sharding @d split_axes = [[0], [1]] : !shard.sharding\n"
        "%0 = shard.shard %x to %s : tensor<20x9xf32>",
    ),
    "generic": (
        '"shard.grid"() <{shape = array<i64: 5, 3>, sym_name = "d"}> : () -> ()',
        '%s = "shard.sharding"() <{grid = @d, operandSegmentSizes = array<i32: 0, 0>, '
        "split_axes = #shard<axisarray[[0], [1]]>, static_halo_sizes = array<i64>, "
        "static_sharded_dims_offsets = array<i64>}> : () -> !shard.sharding\n"
        '%0 = "shard.shard"(%x, %s) : (tensor<20x9xf32>, !shard.sharding) -> tensor<20x9xf32>',
    ),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_says_the_same(spelling: str) -> None:
    grid, annotation = SPELLINGS[spelling]
    spec = read(grid + IDENTITY.format(annotation))
    assert 'sdy.mesh @d = <["0"=5, "1"=3]>' in spec
    assert '%arg0: tensor<20x9xf32> {sdy.sharding = #sdy.sharding<@d, [{"0"}, {"1"}]>}' in spec
    assert "return %arg0" in spec


def test_what_is_said_for_users_is_a_constraint() -> None:
    spec = read(
        "mesh.mesh @d(shape = 5)"
        + IDENTITY.format("%0 = mesh.shard %x to <@d, [[0]]> annotate_for_users : tensor<20x9xf32>")
    )
    assert (
        '%0 = sdy.sharding_constraint %arg0 <@d, [{"0"}, {}]> {shard.entries = 1 : i64, shard.for_users}'
        in spec
    )


@pytest.mark.parametrize(
    ("op", "said"),
    [
        (
            "mesh.shard %x to <@d, [[0]], partial = sum> : tensor<20x9xf32>",
            "no sharding: <@d, [[0]], partial",
        ),
        ("mesh.shard %x to <@d, [0]> : tensor<20x9xf32>", "no sharding: <@d, [0]>"),
        (
            "mesh.annotate %x {sharding = [0]} : tensor<20x9xf32> -> tensor<20x9xf32>",
            "no list of axes for each",
        ),
        ("mesh.annotate %x {} : tensor<20x9xf32> -> tensor<20x9xf32>", "no list of axes for each"),
    ],
)
def test_annotations_that_are_none(op: str, said: str) -> None:
    message = fails("mesh.mesh @d(shape = 5x3)" + IDENTITY.format(f"%0 = {op}"))
    assert message.startswith("t.mlir:3:8: error: ") and said in message


def test_a_value_may_have_the_sharding_of_another_one() -> None:
    text = """%s = shard.sharding @d split_axes = [[1]] : !shard.sharding
      %1 = shard.shard %x to %s : tensor<20x9xf32>
      %t = shard.get_sharding %1 : tensor<20x9xf32> -> !shard.sharding
      %2 = tosa.exp %1 : (tensor<20x9xf32>) -> tensor<20x9xf32>
      %0 = shard.shard %2 to %t : tensor<20x9xf32>"""
    assert read("shard.grid @d(shape = 4x5)" + IDENTITY.format(text)).count('<@d, [{"1"}, {}]>') == 2
    unknown = text.replace("shard.shard %x to %s :", "tosa.abs %x : (tensor<20x9xf32>) ->")
    assert "the sharding is not known here" in fails("shard.grid @d(shape = 4x5)" + IDENTITY.format(unknown))


def test_partial_sums_are_unreduced() -> None:
    text = "%0 = mesh.annotate %x {sharding = [[], [1], [0]]} : tensor<20x9xf32> -> tensor<20x9xf32>"
    spec = read("mesh.cluster @d(rank = 2, dim_sizes = [5, 3])" + IDENTITY.format(text))
    assert '[{}, {"1"}], unreduced={"0"}>' in spec


def test_sizes_of_a_cluster_may_be_dense() -> None:
    held = 'dim_sizes = dense<[7, 3]> : tensor<2xi64>, rank = 2 : i64, sym_name = "d"'
    assert 'sdy.mesh @d = <["0"=7, "1"=3]>' in read(f'"mesh.cluster"() <{{{held}}}> : () -> ()')


def test_sizes_that_are_not_known() -> None:
    assert 'sdy.mesh @d = <["0"=2, "1"=4]> {shard.unknown = array<i64: 0>}' in read(
        "shard.grid @d(shape = ?x4)"
    )
    assert "shard.unknown = array<i64: 1>" in read("mesh.cluster @d(rank = 2, dim_sizes = [7])")


def test_halos_and_offsets_ride_along() -> None:
    sharding = "shard.sharding @d split_axes = [[], [0]] {} : !shard.sharding"
    shard = "\n%0 = shard.shard %x to %s : tensor<20x9xf32>"
    grid = "shard.grid @d(shape = 2)"
    halo = read(grid + IDENTITY.format(f"%s = {sharding.format('halo_sizes = [3, 1]')}" + shard))
    assert "shard.halo = array<i64: 3, 1>" in halo
    uneven = read(
        grid + IDENTITY.format(f"%s = {sharding.format('sharded_dims_offsets = [0, 2, 9]')}" + shard)
    )
    assert "shard.offsets = array<i64: 0, 2, 9>" in uneven


@pytest.mark.parametrize(
    ("sharding", "said"),
    [
        ("split_axes = [[4]]", "axis 4, and the grid has 2 axes"),
        ("split_axes = [[0, 0]]", "axis 0 is listed twice"),
        ("split_axes = [[0], [], [1]]", "3 lists of axes for a tensor of 2 dimensions"),
        ("split_axes = [[0], [1]] halo_sizes = [1]", "1 halo size for 2 sharded dimensions"),
        ("split_axes = [[], [1]] sharded_dims_offsets = [0, 3, 7, 12]", "offsets of dimension 1 end at 12"),
        ("split_axes = [[], [1]] sharded_dims_offsets = [0, 3, 9]", "3 offsets"),
        ("split_axes = [[], [1]] sharded_dims_offsets = [2, 3, 7, 9]", "offsets of dimension 1 begin at 2"),
    ],
)
def test_shardings_that_are_none(sharding: str, said: str) -> None:
    text = (
        f"%s = shard.sharding @d {sharding} : !shard.sharding\n%0 = shard.shard %x to %s : tensor<20x9xf32>"
    )
    message = fails("shard.grid @d(shape = 5x3)" + IDENTITY.format(text))
    assert message.startswith(("t.mlir:3:8: error: ", "t.mlir:4:6: error: "))
    assert said in message


@pytest.mark.parametrize(
    ("collective", "said"),
    [
        (
            "all_gather %x on @d grid_axes = [0] gather_axis = 1 : tensor<6x4xf32> -> tensor<6x8xf32>",
            "must be 20",
        ),
        (
            "all_slice %x on @d grid_axes = [0] slice_axis = 0 : tensor<6x4xf32> -> tensor<6x4xf32>",
            "cannot be split",
        ),
        (
            "all_reduce %x on @d grid_axes = [0, 0] : tensor<6x4xf32> -> tensor<6x4xf32>",
            "axis 0 is listed twice",
        ),
        ("all_reduce %x on @e grid_axes = [0] : tensor<6x4xf32> -> tensor<6x4xf32>", "no grid @e"),
        (
            "shift %x on @d grid_axes = [1] shift_axis = 0 offset = 1 : tensor<6x4xf32> -> tensor<6x4xf32>",
            "not one of",
        ),
        (
            "broadcast %x on @d grid_axes = [1] root = [-1] : (tensor<6x4xf32>) -> tensor<6x4xf32>",
            "coordinate -1",
        ),
        (
            "broadcast %x on @d grid_axes = [1] root = [0, 0] : (tensor<6x4xf32>) -> tensor<6x4xf32>",
            "2 coordinates",
        ),
        (
            "all_gather %x on @d gather_axis = 2 : tensor<6x4xf32> -> tensor<6x4xf32>",
            "gather_axis 2 of a tensor of 2",
        ),
        (
            "update_halo %x on @d split_axes = [[0], [1]] halo_sizes = [2, 1] : tensor<6x4xf32>",
            "2 halo sizes for 2 sharded dimensions",
        ),
        (
            "update_halo %x on @d split_axes = [[0], [], [1]] halo_sizes = [2, 1, 1, 1] : tensor<6x4xf32>",
            "3 lists of axes for a tensor of 2 dimensions",
        ),
    ],
)
def test_collectives_that_do_not_fit(collective: str, said: str) -> None:
    function = f"func.func @f(%x: tensor<6x4xf32>) {{\n  %0 = shard.{collective}\n  return\n}}"
    message = fails(f"shard.grid @d(shape = 5x3)\n{function}")
    assert message.startswith("t.mlir:3:8: error: ")
    assert said in message


def test_a_statement_that_is_not_one_says_its_form() -> None:
    message = fails("shard.grid @d(shape 5x3)")
    assert message.startswith("t.mlir:1:21: error: shard.grid: expected `=`")
    assert "@name(shape = 2x3)" in message
    scatter = "shard.reduce_scatter %x on @d grid_axes = [0] : tensor<6xf32> -> tensor<6xf32>"
    assert "expected `scatter_dim`" in fails(f"func.func @f(%x: tensor<6xf32>) {{\n  %0 = {scatter}\n}}")


def test_lines_stay_where_they_are() -> None:
    text = """
#id = affine_map<(i, j) -> (i, j)>
func.func @f(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #id],
                       iterator_types = ["parallel",
                                         "parallel"]}
    ins(%x : tensor<4x6xf32>) outs(%x : tensor<4x6xf32>) {
  ^bb0(%a: f32, %b: f32):  // an element
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<4x6xf32>
  %2 = stablehlo.add %0, %unknown : tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
"""
    assert fails(text).startswith("t.mlir:12:26: error: use of undeclared SSA value name")


UNKNOWN = """
shard.grid @d(shape = ?x3)
func.func @f(%x: tensor<6x9xf32>) -> tensor<6x9xf32> {
  %s = shard.sharding @d split_axes = [[0]] : !shard.sharding
  %0 = shard.shard %x to %s : tensor<6x9xf32>
  %1 = stablehlo.tanh %0 : tensor<6x9xf32>
  return %1 : tensor<6x9xf32>
}
"""


def test_axes_of_unknown_size_propagate_but_are_not_cut() -> None:
    result = shardlog.run(UNKNOWN)
    written = result.text("shard")
    assert "shape = ?x3" in written
    (made,) = re.findall(r'(%\d+) = "stablehlo.tanh"', written)
    ((sharding,),) = [re.findall(rf"shard.shard {made} to (%\w+) :", written)]
    assert re.search(rf"{sharding} = shard.sharding @d split_axes = \[\[0\], \[\]\]", written)
    with pytest.raises(ShardlogError, match="axis 0 of @d has no size, which sdy needs"):
        result.text()
    with pytest.raises(ShardlogError, match="axis 0 of @d has no size, which partitioning needs"):
        result.partition()


def test_a_grid_that_nothing_is_on_needs_no_sizes() -> None:
    text = f"shard.grid @other(shape = ?){UNKNOWN}".replace("?x3", "2x3")
    assert "tensor<3x9xf32>" in shardlog.run(text).partition().text()


@pytest.mark.parametrize("mesh", ["d=2x3", "0=2,1=3"])
def test_sizes_may_be_given(mesh: str) -> None:
    assert "stablehlo.tanh %arg1 : tensor<3x9xf32>" in shardlog.run(UNKNOWN, mesh=mesh).partition().text()


def test_one_size_for_each_axis() -> None:
    with pytest.raises(ShardlogError, match="3 sizes for a grid of 2 axes"):
        shardlog.run(UNKNOWN, mesh="d=2x3x4")


IN_GENERIC_FORM = """
shard.grid @d(shape = 2)
func.func @f(%x: tensor<6x9xf32>) {{
  %0 = {}
  return
}}
"""


@pytest.mark.parametrize(
    ("op", "said"),
    [
        (
            '"shard.all_gather"(%x) {grid = @d} : (tensor<6x9xf32>) -> tensor<12x9xf32>',
            "has no attribute gather_axis",
        ),
        (
            '"shard.all_gather"() {grid = @d, gather_axis = 0 : index} : () -> tensor<12x9xf32>',
            "has 0 of at least 1 operands",
        ),
        (
            '"shard.all_gather"(%x) {grid = 2, gather_axis = 0 : index} : (tensor<6x9xf32>) -> index',
            "has attributes, operands or results of other kinds",
        ),
        (
            "shard.all_reduce %x on @d reduction = maxx : tensor<6x9xf32> -> tensor<6x9xf32>",
            "no reduction is called maxx\n  hint: did you mean max?",
        ),
    ],
)
def test_what_mlir_does_not_look_at(op: str, said: str) -> None:
    message = fails(IN_GENERIC_FORM.format(op))
    assert message.startswith("t.mlir:4:8: error: ")
    assert said in message


def test_regions_that_nest_too_deeply() -> None:
    op = "%q = linalg.generic {a} ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) {\n"
    text = f"func.func @f(%x: tensor<4xf32>) {{\n{op * 300}{'} -> tensor<4xf32>' * 300}}}"
    assert "regions or types nest too deeply" in fails(text)


def test_a_grid_may_be_private() -> None:
    assert 'sym_visibility = "private"' in read('shard.grid "private" @d(shape = 2)')


def test_a_definition_behind_a_use_is_a_constraint_of_its_own() -> None:
    lines = ["%s = shard.sharding @d split_axes = [[0]] : !shard.sharding"]
    lines += ["%w = shard.sharding @d split_axes = [[]] : !shard.sharding"]
    value = "%x"
    for i in range(20):  # ops that are erased leave their addresses to others
        lines += [f"%u{i} = shard.shard {value} to %s annotate_for_users : tensor<20x9xf32>"]
        lines += [f"%d{i} = shard.shard %u{i} to %w : tensor<20x9xf32>"]
        value = f"%d{i}"
    spec = read("shard.grid @d(shape = 5)" + IDENTITY.format("\n".join(lines)).replace("%0", value))
    assert spec.count('<@d, [{"0"}, {}]> {shard.entries = 1 : i64, shard.for_users}') == 20
    assert spec.count("<@d, [{}, {}]> {shard.entries = 1 : i64} :") == 20


def test_a_sharding_that_is_asked_for_is_no_collective() -> None:
    lines = ["%s = shard.sharding @d split_axes = [[0]] : !shard.sharding"]
    lines += ["%0 = shard.shard %x to %s : tensor<20x9xf32>"]
    lines += ["%r = shard.get_sharding %0 : tensor<20x9xf32> -> !shard.sharding"]
    text = shardlog.run("shard.grid @d(shape = 5)" + IDENTITY.format("\n".join(lines))).text()
    assert "return %arg0" in text and "manual_computation" not in text


def test_a_module_that_only_declares_grids_does_nothing() -> None:
    text = shardlog.run("mesh.cluster @d(rank = 2, dim_sizes = [7])\n").text("mesh")
    assert "mesh.mesh @d(shape = 7x?)" in text
    assert "func.func @main() {" in text


def test_the_coordinates_of_a_device_are_as_many_as_the_axes() -> None:
    function = "func.func @f(%i: index) {\n  %0:2 = shard.neighbors_linear_indices on @d[%i] split_axes = [1]"
    message = fails(f"shard.grid @d(shape = 5x3)\n{function} : index, index\n  return\n}}")
    assert message.startswith("t.mlir:3:10: error: ")
    assert "1 coordinate of a device" in message


def test_constants_are_known_where_sizes_are_operands() -> None:
    lines = ["%three = arith.constant 3 : i64"]
    lines += ["%s = shard.sharding @d split_axes = [[], [0]] halo_sizes = [%three, 1] : !shard.sharding"]
    lines += ["%0 = shard.shard %x to %s : tensor<20x9xf32>"]
    assert "shard.halo = array<i64: 3, 1>" in read(
        "shard.grid @d(shape = 5)" + IDENTITY.format("\n".join(lines))
    )


def test_each_of_several_results_has_what_is_said_of_it() -> None:
    text = """
shard.grid @d(shape = 5x3)
func.func @f(%x: tensor<20x9xf32>) -> (tensor<20x9xf32>, tensor<20x9xf32>) {
  %s = shard.sharding @d split_axes = [[0], []] : !shard.sharding
  %t = shard.sharding @d split_axes = [[], [1]] : !shard.sharding
  %q:2 = stablehlo.optimization_barrier %x, %x : tensor<20x9xf32>, tensor<20x9xf32>
  %a = shard.shard %q#1 to %s : tensor<20x9xf32>
  %b = shard.shard %q#0 to %t : tensor<20x9xf32>
  %c = shard.shard %b to %s : tensor<20x9xf32>
  return %c, %a : tensor<20x9xf32>, tensor<20x9xf32>
}
"""
    spec = read(text)
    assert '#sdy.sharding_per_value<[<@d, [{}, {"1"}]>, <@d, [{"0"}, {}]>]>' in spec
    assert 'sdy.sharding_constraint %0#0 <@d, [{"0"}, {}]>' in spec
