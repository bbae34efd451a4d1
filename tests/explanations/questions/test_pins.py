"""Pins, and why the choice shards values otherwise than propagation said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import shardlog
from shardlog.cli import main
from shardlog.cost.machine import machine
from shardlog.errors import ShardlogError
from shardlog.explanations.answers.pins import Total
from shardlog.explanations.questions.pin_texts import op_result

from ...support import models
from ...support.mlp import MLP
from ...support.sums import SUMS

ONCE = 2 * 4 * 8 * 8 * 3 // 4  # bytes of an all-reduce
EACH = 128  # bytes that a collective counts for besides

# There are two values %1. What the loop takes as %arg0 is needed whole in each turn.
LOOP = """\
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%w: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>},
                %x: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> tensor<64x64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0:2 = stablehlo.while(%iterArg = %w, %iterArg_1 = %x) : tensor<64x64xf32>, tensor<64x64xf32>
  cond {
    %1 = stablehlo.reduce(%iterArg_1 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.compare GT, %1, %one : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %1 = stablehlo.dot_general %iterArg_1, %iterArg, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %2 = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<64x64xf32>
    %3 = stablehlo.multiply %1, %2 : tensor<64x64xf32>
    stablehlo.return %iterArg, %3 : tensor<64x64xf32>, tensor<64x64xf32>
  }
  return %0#1 : tensor<64x64xf32>
}
"""  # noqa: E501


def test_a_pin_costs_what_the_choice_had_saved() -> None:
    pinned = shardlog.run(SUMS).pin("%0=[{}, {}]", topology="v5e")
    (pin,) = pinned.pins
    assert (pin.value, pin.pinned, pin.chosen, pin.partial) == ("%0", ("", ""), ("", ""), "x")
    assert (pinned.change.before.bytes, pinned.change.after.bytes) == (ONCE, 2 * ONCE)
    assert pinned.change.before.seconds < pinned.change.after.seconds
    # The other product is summed as well, at once: its parts would be gathered later, which begins anew.
    assert {(m.collective, m.value, m.bytes) for m in pinned.change.new} == {
        ("all-reduce", "%0", ONCE),
        ("all-reduce", "%1", ONCE),
    }
    assert [(m.collective, m.op) for m in pinned.change.gone] == [("all-reduce", "stablehlo.subtract")]


def test_a_pin_holds_whatever_it_costs() -> None:
    result = shardlog.run(SUMS)
    pinned = result.pin('%2=[{"x"}, {}]')
    # The sum is scattered, and then gathered for the result.
    assert {m.collective for m in pinned.change.new} == {"reduce-scatter", "all-gather"}
    assert pinned.change.after.bytes == ONCE


def test_why_the_choice_took_another_sharding() -> None:
    result = shardlog.run(SUMS)
    (choice,) = result.chosen("%0")
    assert (choice.dims, choice.partial, choice.propagated) == (("", ""), "x", ("", ""))
    assert choice.otherwise.after.bytes - choice.otherwise.before.bytes == ONCE
    lost = {(other.dims, other.partial): other.more for other in choice.lost}
    # In parts it is summed by half of an all-reduce, and gathered later.
    parts = ONCE + EACH // 2
    whole = ONCE + EACH
    assert lost == pytest.approx({(("", ""), ""): whole, (("x", ""), ""): parts, (("", "x"), ""): parts})
    assert result.chosen("%2") == ()


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sums.mlir"
    file.write_text(SUMS)
    assert main(["what-if", str(file), "--pin", "%0=[{}, {}]"]) == 0
    said = capsys.readouterr().out
    assert "%0 pinned to [{}, {}], otherwise [{}, {}], partial sums over x\n" in said
    assert f"sent by each device: {ONCE} bytes, {2 * ONCE} with it: +{ONCE}" in said
    assert main(["why", str(file), "%0", "--no-keep-shardings"]) == 0
    said = capsys.readouterr().out
    assert "%0 is sharded [{}, {}], partial sums over x, and not [{}, {}] as propagation says" in said
    assert f"lost: [{{}}, {{}}]: +{ONCE + EACH:,} bytes, if it alone were so" in said
    for value, said in (
        ("%2", "the choice has it as propagation says"),
        ("%arg0", "the boundary of the program binds it"),
    ):
        assert main(["why", str(file), value, "--no-keep-shardings"]) == 0
        assert f"\n{value}: {said}" in capsys.readouterr().out
    assert main(["why", str(file), "%0", "--no-keep-shardings", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["chosen"][0]["partial"] == "x"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("%0", "not a value and a sharding"),
        ("%7=[{}, {}]", "there is no value %7"),
        ("%arg0=[{}, {}]", "%arg0 is not computed by an op"),
        ("%0=[{}]", "1 dimension for %0 : tensor<8x8xf32>"),
        ('%0=[{"y"}, {}]', 'unknown axis name: "y"'),
        ('%0=[{"x"}, {"x"}]', 'duplicate axis ref: "x"'),
        ('%0=[{"x":(1)3}, {}]', "sub-axis"),
        ("=[{}, {}]", "not a value and a sharding"),
        ('%0=[{}, {}], unreduced={"x"}', "a pin has no unreduced axes"),
        ('%0=[{}, {}], replicated={"x"}', "a pin has no replicated axes"),
        ('%0=[{"x"}p1, {}]', "a pin has no priorities"),
    ],
)
def test_pins_that_are_none(text: str, said: str) -> None:
    with pytest.raises(ShardlogError, match=said):
        shardlog.run(SUMS).pin(text)


def test_one_pin_may_be_given_alone() -> None:
    result, text = shardlog.run(SUMS), "%0=[{}, {}]"
    assert result.partition(pins=text).text() == result.partition(pins=[text]).text()
    with pytest.raises(ShardlogError, match="not a value and a sharding"):
        result.partition(pins=[3])  # type: ignore[list-item]


def test_what_is_made_anywhere_is_not_chosen() -> None:
    text = SUMS.replace(
        "  return %2",
        "  %3 = stablehlo.constant dense<1.0> : tensor<8x8xf32>\n"
        "  %4 = stablehlo.add %2, %3 : tensor<8x8xf32>\n  return %4",
    )
    with pytest.raises(ShardlogError, match=r"the result of stablehlo.constant is sharded is not chosen"):
        shardlog.run(text).pin("%cst=[{}, {}]")
    result = shardlog.run(models.text("vit"))
    copies = (each for each in result.record.values() if each.name.endswith("'1"))
    name = next(
        each.name for each in copies if op_result(result.result, each.number) is None
    )  # not in the module
    with pytest.raises(ShardlogError, match=f"{name} is made wherever it is needed"):
        result.pin(f"{name}=[{{}}, {{}}]")


def test_a_pin_holds_where_nothing_needs_it() -> None:
    # What is computed in parts, and used in parts, is gathered for the pin: seven of eight parts.
    pinned = shardlog.run(MLP).pin("%0=[{}, {}]")
    size = 4 * 8 * 32
    assert pinned.change.after.bytes - pinned.change.before.bytes == size * 7 // 8
    assert {(m.collective, m.value) for m in pinned.change.new} == {("all-gather", "%0")}


def test_two_pins_of_one_value() -> None:
    result = shardlog.run(SUMS)
    with pytest.raises(ShardlogError, match="%0 is pinned twice"):
        result.pin(['%0=[{"x"}, {}]', "%0=[{}, {}]"])
    once, twice = (result.pin(["%0=[{}, {}]"] * n) for n in (1, 2))
    assert once == twice


def test_axes_of_a_shard_map_are_not_pinned_inside() -> None:
    text = """\
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>]
      manual_axes={"x"} (%b: tensor<2x8xf32>) {
    %1 = stablehlo.tanh %b : tensor<2x8xf32>
    sdy.return %1 : tensor<2x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""
    result = shardlog.run(text)
    with pytest.raises(ShardlogError, match=r'%1 is a device\'s own part along "x" already'):
        result.pin('%1=[{}, {"x"}]')
    assert result.pin('%1=[{}, {"y"}]').change.after.bytes == 4 * 2 * 4  # half of the part


def test_pins_and_the_choice_are_about_the_same_program() -> None:
    result = shardlog.run(SUMS)
    for topology in (None, "v5e"):
        program = result.partition(topology=topology)
        pinned = result.pin("%0=[{}, {}]", topology=topology)
        assert pinned.change.before.bytes == sum(c.total for c in program.collectives)
        for found in result.chosen("%0", topology=topology):
            assert found.otherwise == pinned.change


def test_what_lost_by_time_has_a_time() -> None:
    (by_bytes,), (by_time,) = (
        shardlog.run(SUMS).chosen("%0", topology=topology) for topology in (None, "v5e")
    )
    assert (by_bytes.least, by_time.least) == ("bytes", "time")
    assert all(other.seconds is None for other in by_bytes.lost)
    for other in by_time.lost:
        assert other.seconds == pytest.approx(other.more / machine("v5e").link.bandwidth)
    assert "bytes, if it alone were so" in str(by_bytes)
    assert "us, if it alone were so" in str(by_time)


def test_what_does_not_cost_less_in_all_is_not_said_to() -> None:
    (choice,) = shardlog.run(SUMS).chosen("%0")
    assert "as propagation says: that costs less\n" in str(choice)
    change = choice.otherwise
    for after, said in ((change.before, "costs as much either way"), (Total(0, 0.0, 0), "would cost less")):
        other = replace(choice, otherwise=replace(change, after=after))
        assert said in " ".join(str(other).split())


def test_a_pin_alone(tmp_path: Path) -> None:
    file = tmp_path / "sums.mlir"
    file.write_text(SUMS)
    assert main(["what-if", str(file), "--pin", "%0=[{}, {}]", "--drop", "%a"]) == 2


def test_a_pin_is_of_the_values_of_a_name_that_it_fits() -> None:
    result = shardlog.run(LOOP)
    (pin,) = result.pin('%1=[{"data"}, {"model"}]').pins
    assert pin.propagated == pin.pinned == ("data", "model") != pin.chosen
    assert [pin.pinned for pin in result.pin("%1=[]").pins] == [()]
    with pytest.raises(ShardlogError) as error:
        result.pin("%1=[{}]")
    assert "1 dimension for %1 : tensor<f32> and %1 : tensor<64x64xf32>" in str(error.value)
    assert "FILE:LINE" in str(error.value)


def test_a_pin_passes_over_what_is_made_anywhere() -> None:
    text = """\
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8x8xf32>, %zero: tensor<f32>, %go: tensor<i1>) -> tensor<8x8xf32> {
  %0 = "stablehlo.if"(%go) ({
    %1 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
    stablehlo.return %1 : tensor<8x8xf32>
  }, {
    %1 = stablehlo.tanh %a : tensor<8x8xf32>
    stablehlo.return %1 : tensor<8x8xf32>
  }) : (tensor<i1>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""
    pinned = shardlog.run(text).pin('%1=[{"x"}, {}]')
    assert [pin.pinned for pin in pinned.pins] == [("x", "")]
    assert {(m.collective, m.value) for m in pinned.change.new} == {("all-gather", "%1")}


def test_why_a_loop_carries_it_otherwise() -> None:
    result = shardlog.run(LOOP)
    (behind,) = [c for c in result.partition().collectives if c.op == "stablehlo.while" and c.value == "%0#1"]
    for name in ("%0#1", "%iterArg_1"):
        (choice,) = result.chosen(name)
        assert (choice.value, choice.carried) == (name, True)
        assert (choice.dims, choice.propagated) == (("data,model", ""), ("data", "model"))
        said = f"the value that the loop carries for {name} is sharded [{{data,model}}, {{}}], and"
        assert str(choice).splitlines()[1].startswith(said)
        # As propagation says it needs not be sent behind the loop, but in each turn.
        assert {(m.op, m.value) for m in choice.otherwise.gone} >= {(behind.op, behind.value)}
        assert {(m.op, m.value) for m in choice.otherwise.new} == {("stablehlo.dot_general", "%1")}
        assert choice.lost
