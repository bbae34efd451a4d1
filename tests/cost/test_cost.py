"""Costs: the roofline of ops, the links of collectives, redundant work, memory, layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import pytest
import shardlog
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from shardlog.cost.cost import Cost
from shardlog.cost.text import cost_text
from shardlog.explanations.report.cost import costs
from shardlog.program.mlir.origins import numberless
from shardlog.runs.choice import ProgramChoice

from ..support import models
from ..support.machines import MACHINE
from ..support.mlp import MLP


def cost(folder: Path, flops: float, bandwidth: float) -> Cost:
    """The cost of the MLP on a machine that is so fast."""
    file = folder / "machine.toml"
    file.write_text(MACHINE.format(flops=flops, bandwidth=bandwidth))
    costs = shardlog.run(MLP).partition().cost(str(file))
    assert isinstance(costs, Cost)
    return costs


def test_an_op_takes_as_long_as_what_limits_it(tmp_path: Path) -> None:
    # A device has 4 x 16 by 16 x 8, and 4 x 8 by 8 x 16.
    first = 4 * (4 * 16 + 16 * 8 + 4 * 8)
    for flops, bandwidth, what, seconds in ((1e3, 1e9, "compute", 1.024), (1e9, 1e3, "memory", first / 1e3)):
        items = {(i.op, i.where): i for i in cost(tmp_path, flops, bandwidth).items}
        dot = items["stablehlo.dot_general", "<text>:5"]
        assert (dot.flops, dot.limited) == (2 * 4 * 16 * 8, what)
        assert dot.seconds == pytest.approx(seconds)


def test_an_op_computes_at_the_peak_of_its_type(tmp_path: Path) -> None:
    # The machine has a peak of its own for f32; the program's values live where they would without it.
    file = tmp_path / "machine.toml"
    file.write_text(MACHINE.format(flops=1e3, bandwidth=1e9) + "[peaks]\nf32 = 1e2\n")
    for type_, seconds in (("f32", 10.24), ("bf16", 1.024)):
        result = shardlog.run(MLP.replace("f32", type_))
        for program in (result.partition(), result.partition(keep_shardings=False, topology=str(file))):
            items = {(i.op, i.where): i for i in program.cost(str(file)).items}
            assert items["stablehlo.dot_general", "<text>:5"].seconds == pytest.approx(seconds)


def test_a_sum_goes_around_the_ring_twice_on_the_links_of_its_axis(tmp_path: Path) -> None:
    (collective,) = cost(tmp_path, 1e9, 1e9).collectives()
    sent = 4 * 16 * 4 * 2 * 3 / 4
    assert (collective.op, collective.serves, collective.bytes) == (
        "all-reduce",
        "stablehlo.dot_general",
        sent,
    )
    assert collective.seconds == pytest.approx(sent / 10 + 2 * 3 * 0.5)


def test_collectives_of_which_one_is_made_begin_together(tmp_path: Path) -> None:
    # Two sums of one argument each, which do not need each other: of 14 steps of the second machine 7 are
    # those of each.
    program = shardlog.run(
        """
        sdy.mesh @mesh = <["model"=8]>
        func.func @main(%a: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>},
                        %b: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>})
            -> (tensor<16x16xf32>, tensor<32x32xf32>) {
          %0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0]
            : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<16x16xf32>
          %1 = stablehlo.dot_general %b, %b, contracting_dims = [0] x [0]
            : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
          return %0, %1 : tensor<16x16xf32>, tensor<32x32xf32>
        }"""
    ).partition(keep_shardings=True)
    assert [c.kind for c in program.collectives] == ["all-reduce", "all-reduce"]
    file = tmp_path / "machine.toml"
    for combines, part in (("[]", 1.0), ('["all-gather"]', 1.0), ('["all-reduce"]', 0.5)):
        file.write_text(f"combines = {combines}\n" + MACHINE.format(flops=1e9, bandwidth=1e9))
        for made in program.cost(str(file)).collectives():
            assert made.seconds == pytest.approx(made.bytes / 10 + 14 * 0.5 * part)


def test_collectives_that_are_alike_at_a_place_are_one() -> None:
    program = shardlog.run(models.lower("transformer", depth=4)).partition()
    costs = program.cost()
    rows = costs.collectives()
    kinds = {(row.op, row.serves, row.where, numberless(row.stack)) for row in rows}
    assert len(rows) == len(kinds) < len(program.collectives) / 2
    assert sum(row.bytes for row in rows) == costs.sent
    assert sorted(n for row in rows for n in row.numbers) == [c.number for c in program.collectives]
    for row in rows:
        served = {(c.kind, c.op) for c in program.collectives if c.number in row.numbers}
        assert served == {(row.op, row.serves)}
        causes = {cause for c in program.collectives if c.number in row.numbers for cause in c.causes}
        assert set(row.causes) == causes


@pytest.mark.parametrize("topology", [None, "h100"])
def test_the_report_has_the_cost_of_the_program_that_is_run(topology: str | None) -> None:
    result = shardlog.run(models.lower("transformer", depth=1))
    page = costs(result.programs, ProgramChoice(topology=topology))
    found = page["cost"]
    assert page["uncosted"] == ""
    assert found["seconds"] == result.partition(topology=topology).cost(topology or "v5e").seconds


def test_memory_is_that_of_what_lives_at_once(tmp_path: Path) -> None:
    arguments = 4 * (4 * 16 + 16 * 8 + 8 * 16)
    # The result's memory has the first product, and what becomes of it in its place, until the sum is made of
    # the second product.
    costs = cost(tmp_path, 1, 1)
    assert costs.peak == arguments + 2 * 4 * (4 * 16)
    assert [(held.what, held.bytes) for held in costs.held] == [
        ("arguments", arguments),
        ("results", 256),
        ("stablehlo.dot_general", 256),
    ]


def test_the_turns_of_a_loop_count() -> None:
    loop = """\
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %n = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %n, %y = %x) : tensor<i32>, tensor<8xf32>
  cond {
    %end = stablehlo.constant dense<5> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.tanh %y : tensor<8xf32>
    stablehlo.return %1, %2 : tensor<i32>, tensor<8xf32>
  }
  return %0#1 : tensor<8xf32>
}
"""
    items = {item.op: item for item in shardlog.run(loop).partition().cost("v5e").items}
    assert (items["stablehlo.tanh"].times, items["stablehlo.tanh"].flops) == (5, 40)


def test_what_other_devices_compute_too_is_redundant(tmp_path: Path) -> None:
    # The rows are divided among two of the eight devices only.
    rows = """\
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>})
    -> tensor<8x16xf32> {
  %0 = stablehlo.tanh %x : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
"""
    (item,) = shardlog.run(rows).partition().cost("v5e").items
    assert (item.flops, item.redundant) == (64, 64 - 8 * 16 / 8)
    assert shardlog.run(MLP).partition().cost("v5e").redundant == 0


def test_what_is_fused_is_neither_stored_nor_read() -> None:
    chain = """\
func.func @main(%x: tensor<1024xf32>, %y: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = stablehlo.multiply %x, %y : tensor<1024xf32>
  %1 = stablehlo.negate %0 : tensor<1024xf32>
  %2 = stablehlo.add %1, %x : tensor<1024xf32>
  return %2 : tensor<1024xf32>
}
"""
    costs = shardlog.run(chain).partition().cost("v5e")
    kilobytes = {item.op.removeprefix("stablehlo."): item.bytes / 4096 for item in costs.items}
    assert kilobytes == {"multiply": 2, "negate": 0, "add": 2}
    assert costs.peak == 3 * 4096


def test_what_costs_much_is_computed_once() -> None:
    twice = """\
func.func @main(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<f32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.{op} %x : tensor<1024xf32>
  %1 = stablehlo.negate %0 : tensor<1024xf32>
  %2 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0]
     : (tensor<1024xf32>, tensor<f32>) -> tensor<f32>
  return %1, %2 : tensor<1024xf32>, tensor<f32>
}
"""
    peaks = [shardlog.run(twice.replace("{op}", op)).partition().cost("h100").peak for op in ("abs", "tanh")]
    assert peaks == [2 * 4096 + 4, 3 * 4096 + 4]


def test_a_transpose_before_a_product_is_not_stored() -> None:
    product = """\
func.func @main(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.transpose %y, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0]
     : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
"""
    assert shardlog.run(product).partition().cost("h100").peak == 4 * (2 * 8 * 16 + 8 * 8)


def test_a_convolution_multiplies_by_its_window() -> None:
    convolution = """\
func.func @main(%x: tensor<8x16x16x4xf32>, %k: tensor<3x3x4x8xf32>) -> tensor<8x16x16x8xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<8x16x16x4xf32>, tensor<3x3x4x8xf32>) -> tensor<8x16x16x8xf32>
  return %0 : tensor<8x16x16x8xf32>
}
"""
    assert shardlog.run(convolution).partition().cost("v5e").flops == 2 * (8 * 16 * 16 * 8) * (3 * 3 * 4)


OPERATIONS = {
    "complex product": (
        "(%x: tensor<8x16xcomplex<f32>>, %y: tensor<16x4xcomplex<f32>>) -> tensor<8x4xcomplex<f32>>",
        "stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] "
        ": (tensor<8x16xcomplex<f32>>, tensor<16x4xcomplex<f32>>) -> tensor<8x4xcomplex<f32>>",
        8 * (8 * 16 * 4),
    ),
    "complex elements": (
        "(%x: tensor<8x16xcomplex<f32>>) -> tensor<8x16xcomplex<f32>>",
        "stablehlo.multiply %x, %x : tensor<8x16xcomplex<f32>>",
        6 * (8 * 16),
    ),
    "complex sums": (
        "(%x: tensor<8x16xcomplex<f32>>) -> tensor<8x16xcomplex<f32>>",
        "stablehlo.add %x, %x : tensor<8x16xcomplex<f32>>",
        2 * (8 * 16),
    ),
    "Fourier transform": (
        "(%x: tensor<2x8x60xcomplex<f32>>) -> tensor<2x8x60xcomplex<f32>>",
        "stablehlo.fft %x, type = FFT, length = [8, 60] "
        ": (tensor<2x8x60xcomplex<f32>>) -> tensor<2x8x60xcomplex<f32>>",
        8 * (2 * 8 * 60) * 3 * 5,
    ),
    "triangular system": (
        "(%x: tensor<3x16x16xf32>, %y: tensor<3x16x4xf32>) -> tensor<3x16x4xf32>",
        '"stablehlo.triangular_solve"(%x, %y) {left_side = true, lower = true, unit_diagonal = false, '
        "transpose_a = #stablehlo<transpose NO_TRANSPOSE>} "
        ": (tensor<3x16x16xf32>, tensor<3x16x4xf32>) -> tensor<3x16x4xf32>",
        2 * 16 * (3 * 16 * 4),
    ),
    "Cholesky's decomposition": (
        "(%x: tensor<3x16x16xf32>) -> tensor<3x16x16xf32>",
        "stablehlo.cholesky %x, lower = true : tensor<3x16x16xf32>",
        16 * (3 * 16 * 16) / 3,
    ),
    "sort": (
        "(%x: tensor<8x100xf32>) -> tensor<8x100xf32>",
        """"stablehlo.sort"(%x) ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %1 = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
  }) {dimension = 1 : i64, is_stable = true} : (tensor<8x100xf32>) -> tensor<8x100xf32>""",
        (8 * 100) * 7,
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_operations_of_ops(name: str) -> None:
    ends, op, expected = OPERATIONS[name]
    result = ends.split("-> ")[1]
    module = f"func.func @main{ends} {{\n  %0 = {op}\n  return %0 : {result}\n}}"
    assert shardlog.run(module).partition().cost("v5e").flops == expected


@pytest.mark.parametrize("platform, dims, times", [("", 2, 1), ("cpu", 1, 4), ("cpu", 2, 4), ("cpu", 3, 30)])
def test_cpus_compute_convolutions_slower(tmp_path: Path, platform: str, dims: int, times: int) -> None:
    file = tmp_path / "machine.toml"
    text = MACHINE.format(flops=1e3, bandwidth=1e9).partition("[links.model]")[0]
    allocation = f'[allocation]\nplatform = "{platform}"\nalignment = 1\naddress = 0\n'
    file.write_text(text + allocation)
    numbers = ", ".join("012"[:dims])
    sizes = "x8" * dims
    result = shardlog.run(
        f"""
        sdy.mesh @mesh = <["x"=2]>
        func.func @main(%a: tensor<2{sizes}x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {"{}, " * dims}{{}}]>}},
                        %k: tensor<{"1x" * dims}4x4xf32>) -> tensor<2{sizes}x4xf32> {{
          %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, {numbers}, f]x[{numbers}, i, o]->[b, {numbers}, f],
            window = {{}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
            : (tensor<2{sizes}x4xf32>, tensor<{"1x" * dims}4x4xf32>) -> tensor<2{sizes}x4xf32>
          return %0 : tensor<2{sizes}x4xf32>
        }}"""  # noqa: E501
    )
    (item,) = [i for i in result.partition().cost(str(file)).items if "convolution" in i.op]
    assert item.seconds == pytest.approx(item.flops / 1e3 * times)
    assert item.flops == 2 * 8**dims * 4 * 4


def test_donated_arguments_have_the_results() -> None:
    plain = """\
func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = stablehlo.tanh %x : tensor<1024xf32>
  return %0 : tensor<1024xf32>
}
"""
    donated = plain.replace("xf32>)", "xf32> {tf.aliasing_output = 0 : i32})", 1)
    peaks = [shardlog.run(text).partition().cost("v5e").peak for text in (plain, donated)]
    assert peaks == [2 * 4096, 4096]


def test_a_donated_argument_of_another_size_than_the_result_is_not_shared() -> None:
    plain = """\
sdy.mesh @mesh = <["x"=4]>
func.func @main(%x: tensor<1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  %0 = stablehlo.tanh %x : tensor<1024xf32>
  return %0 : tensor<1024xf32>
}
"""
    donated = plain.replace('[{"x"}]>}', '[{"x"}]>, tf.aliasing_output = 0 : i32}', 1)
    peaks = [shardlog.run(text).partition().cost("v5e").peak for text in (plain, donated)]
    assert peaks[0] == peaks[1] >= 1024 + 4096


def test_ops_at_one_place_are_limited_by_what_each_is() -> None:
    product = "stablehlo.dot_general %{0}, %{0}, contracting_dims = [1] x [0]"
    module = f"""
        sdy.mesh @mesh = <["x"=1]>
        func.func @main(%large: tensor<8192x8192xf32>, %small: tensor<8x8xf32>)
            -> (tensor<8192x8192xf32>, tensor<8x8xf32>) {{
          %0 = {product.format("large")} : (tensor<8192x8192xf32>, tensor<8192x8192xf32>) -> tensor<8192x8192xf32> loc("m.py":3:1)
          %1 = {product.format("small")} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("m.py":3:1)
          return %0, %1 : tensor<8192x8192xf32>, tensor<8x8xf32>
        }}
    """  # noqa: E501
    costs = shardlog.run(module).partition().cost("v5e")
    assert [(item.limited, item.times) for item in costs.items] == [("compute", 1), ("launch", 1)]
    moved = 3 * 8 * 8 * 4 / costs.machine.ops["memory"]
    assert costs.limited()["launch"] == pytest.approx(costs.machine.ops["least"] + moved)
    assert not costs.open


def test_loops_of_unknown_turns_are_said_to_count_one() -> None:
    def repeated(x: Any, turns: Any) -> Any:
        return jax.lax.fori_loop(0, turns, lambda i, x: jax.numpy.sin(x), x)

    x = jax.ShapeDtypeStruct((64, 64), "float32")  # type: ignore[no-untyped-call]
    turns = jax.ShapeDtypeStruct((), "int32")  # type: ignore[no-untyped-call]
    costs = shardlog.run(jax.jit(repeated).lower(x, turns)).partition().cost("v5e")
    assert costs.open
    assert "one iteration" in cost_text(costs)


def test_a_program_of_which_nothing_is_needed_has_no_layers() -> None:
    module = """
        func.func @f(%0: tensor<4xf32>) {
          %1 = "mine.op"(%0) : (tensor<4xf32>) -> tensor<4xf32>
          return
        }
    """
    assert shardlog.run(module).partition().cost("v5e").layers == ()


def test_layers_that_repeat_are_one() -> None:
    layers = 6

    def step(ws: list[Any], x: Any) -> Any:
        for w in ws:
            with jax.named_scope("layer"):
                with jax.named_scope("mlp"):
                    y = jax.numpy.tanh(x @ w) @ w
                x = jax.numpy.sin(y) @ w + x
        return x

    w = jax.ShapeDtypeStruct((64, 64), "float32")  # type: ignore[no-untyped-call]
    lowered = jax.jit(step).lower([w] * layers, w)
    costs = shardlog.run(lowered).partition().cost("v5e")
    (layer,) = costs.layers
    assert (layer.label, layer.times) == ("layer", layers)
    assert layer.seconds == pytest.approx(costs.seconds)
    (part,) = (part for part in layer.parts if part.label == "mlp")
    # Of sixteen tensors that a layer reads and writes it has eight; in all layers.
    assert part.seconds == pytest.approx(layer.seconds / 2, rel=0.01)


def test_parts_of_a_few_layers_add_up() -> None:
    """Three layers, of which the first takes what is sharded otherwise; and a scope of one op."""

    def step(ws: list[tuple[Any, Any]], x: Any) -> Any:
        for number, (up, down) in enumerate(ws):
            with jax.named_scope(f"layer_{number}"):
                with jax.named_scope("attention"):
                    x = x + jax.numpy.sin(x @ up) @ down
                with jax.named_scope("mlp"):
                    x = x + jax.numpy.tanh(x @ up) @ down
        with jax.named_scope("head"):
            return x.sum()

    def over(*axes: str | None) -> NamedSharding:
        spec = PartitionSpec(*axes)  # type: ignore[no-untyped-call]
        return NamedSharding(AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2), spec)

    up, down = over(None, "model"), over("model", None)
    x, wide, narrow = (
        jax.ShapeDtypeStruct(shape, "float32")  # type: ignore[no-untyped-call]
        for shape in ((64, 128), (128, 512), (512, 128))
    )
    jitted = jax.jit(step, in_shardings=([(up, down)] * 3, over("data", None)))
    traced = jitted.trace([(wide, narrow)] * 3, x)
    costs = shardlog.run(traced.lower(lowering_platforms=("cpu",))).partition().cost("v5e")
    layer, head = costs.layers
    assert (layer.label, layer.times, head.label) == ("layer", 3, "head")
    assert [part.label for part in layer.parts] == ["attention", "mlp"]
    assert sum(part.seconds for part in layer.parts) == pytest.approx(layer.seconds)
    assert layer.seconds + head.seconds == pytest.approx(costs.seconds)


def test_layers_without_names_are_called_like_their_function() -> None:
    def layer(x: Any, w: Any) -> Any:
        return jax.numpy.sin(jax.numpy.tanh(x @ w) @ w) @ w + x

    def step(ws: list[Any], x: Any) -> Any:
        for w in ws:
            x = layer(x, w)
        return x

    w = jax.ShapeDtypeStruct((64, 64), "float32")  # type: ignore[no-untyped-call]
    costs = shardlog.run(jax.jit(step).lower([w] * 6, w)).partition().cost("v5e")
    assert [(each.label, each.times) for each in costs.layers] == [("layer", 6)]


def test_neighbours_that_send_to_each_other_do_so_at_once() -> None:
    neighbours = """\
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.slice %x [1:8, 0:64] : (tensor<8x64xf32>) -> tensor<7x64xf32>
  %1 = stablehlo.slice %x [0:1, 0:64] : (tensor<8x64xf32>) -> tensor<1x64xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<7x64xf32>, tensor<1x64xf32>) -> tensor<8x64xf32>
  %3 = stablehlo.slice %x [7:8, 0:64] : (tensor<8x64xf32>) -> tensor<1x64xf32>
  %4 = stablehlo.slice %x [0:7, 0:64] : (tensor<8x64xf32>) -> tensor<7x64xf32>
  %5 = stablehlo.concatenate %3, %4, dim = 0 : (tensor<1x64xf32>, tensor<7x64xf32>) -> tensor<8x64xf32>
  %6 = stablehlo.add %2, %5 : tensor<8x64xf32>
  return %6 : tensor<8x64xf32>
}
"""  # noqa: E501
    program = shardlog.run(neighbours).partition(keep_shardings=True)
    row = 64 * 4
    assert [(c.kind, c.bytes) for c in program.collectives] == [("collective-permute", row)] * 2
    assert program.cost().sent == 2 * row


def test_what_every_turn_of_a_loop_needs_is_computed_and_sent_once() -> None:
    loop = """\
sdy.mesh @mesh = <["x"=2]>
func.func @main(%w: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<5> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %a = %x, %b = %w) : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
    cond {
      %c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %s = stablehlo.dot_general %b, %b, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %p = stablehlo.dot_general %a, %s, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      stablehlo.return %j, %p, %b : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
    }
  return %0#1 : tensor<8x8xf32>
}
"""  # noqa: E501
    program = shardlog.run(loop).partition(keep_shardings=True)
    found = {item.op: item for item in program.cost().items}
    assert [each.executions for each in program.collectives if each.kind == "all-gather"] == [1]
    assert (found["all-gather"].times, found["all-gather"].bytes) == (1, 4 * 8 * 4)
    assert found["reduce-scatter"].times == 5
    behind = """\
  %1 = stablehlo.dot_general %w, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.add %0#1, %1 : tensor<8x8xf32>
  return %2"""  # noqa: E501
    program = shardlog.run(loop.replace("  return %0#1", behind)).partition(keep_shardings=True)
    assert program.cost().sent == sum(each.total for each in program.collectives)


def test_a_loop_may_hand_on_all_as_it_is() -> None:
    loop = """\
func.func @main(%x: tensor<8xf32>, %n: tensor<i32>) -> tensor<8xf32> {
  %0:2 = stablehlo.while(%i = %n, %a = %x) : tensor<i32>, tensor<8xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      stablehlo.return %i, %a : tensor<i32>, tensor<8xf32>
    }
  return %0#1 : tensor<8xf32>
}
"""
    costs = shardlog.run(loop).partition().cost("cpu")
    assert (costs.sent, costs.flops) == (0, 1)  # the comparison
    assert costs.open


@pytest.mark.parametrize(
    ("element", "narrow", "wide"), [("bf16", 2, 4), ("f16", 2, 2), ("f8E4M3FN", 1, 2), ("f8E5M2", 1, 2)]
)
def test_a_cpu_sends_some_floats_in_more_bits(element: str, narrow: int, wide: int) -> None:
    rows, whole = (f"#sdy.sharding<@mesh, [{held}, {{}}]>" for held in ('{"x"}', "{}"))
    gathered = f"""\
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8x8x{element}> {{sdy.sharding = {rows}}}) -> (tensor<8x8x{element}> {{sdy.sharding = {whole}}}) {{
  return %x : tensor<8x8x{element}>
}}
"""  # noqa: E501
    program = shardlog.run(gathered).partition()
    assert (program.cost().sent, program.cost("cpu").sent) == (4 * 8 * narrow, 4 * 8 * wide)
