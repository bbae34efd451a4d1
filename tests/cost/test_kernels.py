"""The kernels of GPUs: which ops are one, and what they take beside what was measured."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import shardlog
from shardlog.cost.cost import kernels
from shardlog.cost.machine import KERNELS, MACHINES, machine
from shardlog.cost.text import cost_text
from shardlog.errors import ShardlogError
from shardlog.measuring.data import read_rows
from shardlog.measuring.judging import estimated, judged

DATA = Path(__file__).parents[1] / "data" / "h100_kernels.json.gz"


def forms(text: str) -> list[str]:
    """How the kernels of a program are computed, in order."""
    program = shardlog.run(text).partition()
    return [facts["form"][0][0] for facts, _ in kernels(program, machine("h100"))]


SOFTMAX = """
func.func @main(%x: tensor<256x{size}xf32>) -> tensor<256x{size}xf32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.exponential %x : tensor<256x{size}xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<256x{size}xf32>, tensor<f32>) -> tensor<256xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<256xf32>) -> tensor<256x{size}xf32>
  %3 = stablehlo.divide %0, %2 : tensor<256x{size}xf32>
  return %3 : tensor<256x{size}xf32>
}}"""


def test_a_row_that_is_normalised_is_read_once_unless_it_is_long() -> None:
    assert forms(SOFTMAX.format(size=512)) == ["rows"]
    assert forms(SOFTMAX.format(size=65536)) == ["reduction", "loop"]


def test_what_computes_element_by_element_is_computed_where_it_is_used() -> None:
    program = """
    func.func @main(%x: tensor<4096xf32>, %y: tensor<4096xf32>) -> (tensor<4096xf32>, tensor<4096xf32>) {
      %0 = stablehlo.tanh %x : tensor<4096xf32>
      %1 = stablehlo.add %0, %y : tensor<4096xf32>
      %2 = stablehlo.multiply %1, %y : tensor<4096xf32>
      return %1, %2 : tensor<4096xf32>, tensor<4096xf32>
    }"""
    ((facts, often),) = kernels(shardlog.run(program).partition(), machine("h100"))
    assert often == 1
    # One kernel gives both: it reads %x and %y, and writes two results.
    assert [size for _, size in facts["reads"]] == [16384.0] * 2
    assert [size for _, size in facts["writes"]] == [16384.0] * 2


def test_an_argument_that_is_not_given_away_is_copied_before_it_is_updated() -> None:
    text = """
    func.func @main(%x: tensor<1024x64xf32>{}, %u: tensor<1x64xf32>, %i: tensor<i32>)
        -> tensor<1024x64xf32> {{
      %0 = stablehlo.dynamic_update_slice %x, %u, %i, %i
        : (tensor<1024x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1024x64xf32>
      return %0 : tensor<1024x64xf32>
    }}"""
    for attribute, copies in (("", 1), (" {tf.aliasing_output = 0 : i32}", 0)):
        ((facts, _),) = kernels(shardlog.run(text.format(attribute)).partition(), machine("h100"))
        assert len(facts["copies"]) == copies


def test_so_it_is_in_a_program_of_each_device() -> None:
    sharding = '#sdy.sharding<@mesh, [{"x"}, {}]>'
    text = f"""
    sdy.mesh @mesh = <["x"=4]>
    func.func @main(%x: tensor<1024x64xf32> {{sdy.sharding = {sharding}}}, %u: tensor<1024x1xf32>,
                    %i: tensor<i32>) -> (tensor<1024x64xf32> {{sdy.sharding = {sharding}}}) {{
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %0 = stablehlo.dynamic_update_slice %x, %u, %zero, %i
        : (tensor<1024x64xf32>, tensor<1024x1xf32>, tensor<i32>, tensor<i32>) -> tensor<1024x64xf32>
      return %0 : tensor<1024x64xf32>
    }}"""
    updates = [
        facts for facts, _ in kernels(shardlog.run(text).partition(), machine("h100")) if facts["copies"]
    ]
    assert [facts["copies"] for facts in updates] == [((0, 256 * 64 * 4.0),)]


def test_eigenvalues_take_operations_that_nobody_measured() -> None:
    text = """
    func.func @main(%x: tensor<{0}x{0}xf32>) -> tensor<{0}x{0}xf32> {{
      %0:3 = stablehlo.custom_call @cusolver_syevd_ffi(%x) {{api_version = 4 : i32}}
        : (tensor<{0}x{0}xf32>) -> (tensor<{0}x{0}xf32>, tensor<{0}xf32>, tensor<i32>)
      return %0#0 : tensor<{0}x{0}xf32>
    }}"""
    (few,), (many,) = (shardlog.run(text.format(n)).cost(topology="h100").items for n in (512, 4096))
    assert many.seconds > 100 * few.seconds
    assert many.sure == "data sheet"


LOOP = """
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %many = stablehlo.constant dense<100> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<64xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %many : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.sine %y : tensor<64xf32>
    %2 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %2, %1 : tensor<i32>, tensor<64xf32>
  }
  return %0#1 : tensor<64xf32>
}"""


def test_small_kernels_take_the_least_and_those_of_loops_wait_for_the_host() -> None:
    numbers, costs = machine("h100").kernels, shardlog.run(LOOP).partition().cost("h100")
    assert costs.launches == 200  # the sine, and what counts the turns
    assert costs.seconds == pytest.approx(200 * numbers["least"], rel=0.01)
    assert costs.limits()["stablehlo.sine"] == "launch"
    assert costs.waits + costs.seconds == pytest.approx(200 * numbers["host"])
    json = costs.as_json()
    assert json["launches"] == 200
    assert json["sure"] == {"measured": pytest.approx(costs.seconds)}
    assert "200 kernels; the host adds" in cost_text(costs)


def test_the_host_is_late_for_steps_of_few_small_kernels_alone() -> None:
    text = """
    func.func @main(%x: tensor<{0}xf32>) -> tensor<{0}xf32> {{
      %0 = stablehlo.sine %x : tensor<{0}xf32>
      return %0 : tensor<{0}xf32>
    }}"""
    small, large = (shardlog.run(text.format(n)).partition().cost("h100") for n in (64, 1 << 28))
    numbers = machine("h100").kernels
    assert small.waits == small.late == pytest.approx(numbers["call"] + numbers["host"] - small.seconds)
    assert f"{small.waits / (small.waits + small.seconds):.0%}".replace("%", " % of a step") in cost_text(
        small
    )
    assert large.waits == 0
    assert "the host adds" not in cost_text(large)


def test_where_numbers_are_those_of_another_machine_it_is_said() -> None:
    program = shardlog.run(LOOP).partition()
    assert list(program.cost("a100").sure()) == ["carried over"]
    assert list(program.cost("v5e").sure()) == ["estimated"]
    assert list(program.cost("v6e").sure()) == ["carried over"]
    assert program.cost("v5e").launches == 0


def test_what_is_said_is_near_what_is_measured() -> None:
    rows = read_rows([str(DATA)])[::6]
    (_, found) = judged([(row, estimated(row.text, "h100")) for row in rows])[-1]
    assert found.all.error < 1.35
    assert found.long.error < 1.25


def test_a_file_of_a_machine_lacks_no_number_of_kernels_and_none_is_absurd(tmp_path: Path) -> None:
    text = (MACHINES / "h100.toml").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("lanes ="))
    file = tmp_path / "mine.toml"
    for changed, said_of_it in (
        ("", "there is no kernels.lanes"),
        ("lanes = -1", "kernels.lanes is -1"),
        ("lanes = 3", "kernels.lanes is 3"),
        (f"{line}\nlane = 3", "a machine has no kernels.lane"),
    ):
        file.write_text(text.replace(line, changed), encoding="utf-8")
        with pytest.raises(ShardlogError, match=said_of_it) as error:
            machine(str(file))
        assert error.value.hint
    for right, wrong, said_of_it in (
        ("flops = 9.89e+14", "flops = 989", "flops is 989"),
        ("memory_bandwidth = 3.35e+12", "memory_bandwidth = 3350", "memory_bandwidth is 3350"),
        ("bandwidth = 3.7e+11", "bandwidth = 370", "links.bandwidth is 370"),
        ("memory = 80 ", "memory = 8e10 ", "memory is 80000000000.0"),
    ):
        file.write_text(text.replace(right, wrong, 1), encoding="utf-8")
        with pytest.raises(ShardlogError, match=said_of_it) as error:
            machine(str(file))
        assert "expected a number from" in error.value.hint
    file.write_text(text.replace('"measured"', '"guessed"'), encoding="utf-8")
    with pytest.raises(ShardlogError, match="sure is 'guessed'"):
        machine(str(file))


def test_a_gpu_that_is_not_known_is_told_which_are_and_how_to_measure_it() -> None:
    with pytest.raises(ShardlogError, match="there is no topology h101") as error:
        machine("h101")
    assert "did you mean h100? There are a100, b200" in error.value.hint
    assert "how to measure a GPU" in error.value.hint


@pytest.mark.parametrize("name", ["a100", "b200", "h100", "h200"])
def test_gpus_have_all_numbers_of_kernels(name: str) -> None:
    target: Any = machine(name)
    assert set(target.kernels) == set(KERNELS)
    assert target.kernels["memory_bandwidth"] < target.memory_bandwidth


UNARY = """
func.func @main(%x: tensor<{0}x{1}>) -> tensor<{0}x{1}> {{
  %0 = stablehlo.{2} %x : tensor<{0}x{1}>
  return %0 : tensor<{0}x{1}>
}}"""
PRODUCT = """
func.func @main(%x: tensor<{0}x{1}x{3}>, %y: tensor<{1}x{2}x{3}>) -> tensor<{0}x{2}x{3}> {{
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
    : (tensor<{0}x{1}x{3}>, tensor<{1}x{2}x{3}>) -> tensor<{0}x{2}x{3}>
  return %0 : tensor<{0}x{2}x{3}>
}}"""
CUMULATIVE = """
func.func @main(%x: tensor<64x{0}xf32>) -> tensor<64x{0}xf32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero)
      <{{padding = dense<[[0, 0], [{1}, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, {0}>}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }}) : (tensor<64x{0}xf32>, tensor<f32>) -> tensor<64x{0}xf32>
  return %0 : tensor<64x{0}xf32>
}}"""
SORT = """
func.func @main(%x: tensor<64x{0}x{1}>) -> tensor<64x{0}x{1}> {{
  %0 = "stablehlo.sort"(%x) <{{dimension = 1 : i64}}> ({{
  ^bb0(%a: tensor<{1}>, %b: tensor<{1}>):
    %1 = stablehlo.compare LT, %a, %b : (tensor<{1}>, tensor<{1}>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }}) : (tensor<64x{0}x{1}>) -> tensor<64x{0}x{1}>
  return %0 : tensor<64x{0}x{1}>
}}"""
FAMILIES = {
    "sine": lambda n: UNARY.format(n * n, "bf16", "sine"),
    "negate": lambda n: UNARY.format(n * n, "f32", "negate"),
    "softmax": lambda n: SOFTMAX.format(size=n),
    "square bf16": lambda n: PRODUCT.format(n, n, n, "bf16"),
    "square f32": lambda n: PRODUCT.format(n, n, n, "f32"),
    "one row": lambda n: PRODUCT.format(1, n, n, "bf16"),
    "skinny": lambda n: PRODUCT.format(64, n, n, "bf16"),
    "long": lambda n: PRODUCT.format(256, 4 * n, 256, "f32"),
    "outer": lambda n: PRODUCT.format(n, 1, n, "f32"),
    "cumulative": lambda n: CUMULATIVE.format(n, n - 1),
    "sort": lambda n: SORT.format(n, "bf16"),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_times_grow_with_sizes_and_have_no_cliffs(family: str) -> None:
    sizes = [size for n in range(6, 13) for size in (1 << n, 5 << (n - 2))]
    times = [estimated(FAMILIES[family](size), "h100") for size in sizes]
    for n, (less, more) in enumerate(pairwise(times)):
        grown = (sizes[n + 1] / sizes[n]) ** 3  # of a product, the most
        assert 0.5 < more / less < 2.0 * grown, (family, sizes[n], sizes[n + 1], less, more)
    assert times[0] < times[-1]
