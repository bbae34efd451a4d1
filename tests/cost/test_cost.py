"""Costs: the roofline of ops, the links of collectives, memory, and the descriptions of machines."""

from __future__ import annotations

from pathlib import Path

import pytest
import shardlog
from shardlog.cost.cost import Cost
from shardlog.cost.machine import machine, names
from shardlog.errors import ShardlogError

from ..support.mlp import MLP

MACHINE = """\
name = "test"
flops = {flops}
memory_bandwidth = {bandwidth}
memory = 1
[links]
bandwidth = 1000
latency = 0.5
[links.model]
bandwidth = 10
"""


def cost(folder: Path, flops: float, bandwidth: float) -> Cost:
    """The cost of the MLP on a machine that is so fast."""
    file = folder / "machine.toml"
    file.write_text(MACHINE.format(flops=flops, bandwidth=bandwidth))
    found = shardlog.run(MLP).partition().cost(str(file))
    assert isinstance(found, Cost)
    return found


def test_an_op_takes_as_long_as_what_limits_it(tmp_path: Path) -> None:
    # A device has 4 x 16 by 16 x 8, and 4 x 8 by 8 x 16.
    first = 4 * (4 * 16 + 16 * 8 + 4 * 8)
    for flops, bandwidth, what, seconds in ((1e3, 1e9, "compute", 1.024), (1e9, 1e3, "memory", first / 1e3)):
        items = {(i.op, i.where): i for i in cost(tmp_path, flops, bandwidth).items}
        dot = items["stablehlo.dot_general", "<text>:5"]
        assert (dot.flops, dot.limited) == (2 * 4 * 16 * 8, what)
        assert dot.seconds == pytest.approx(seconds)


def test_a_sum_goes_around_the_ring_twice_on_the_links_of_its_axis(tmp_path: Path) -> None:
    (made,) = cost(tmp_path, 1e9, 1e9).collectives()
    sent = 4 * 16 * 4 * 2 * 3 / 4
    assert (made.op, made.serves, made.bytes) == ("all-reduce", "stablehlo.dot_general", sent)
    assert made.seconds == pytest.approx(sent / 10 + 2 * 3 * 0.5)


def test_memory_is_that_of_what_lives_at_once(tmp_path: Path) -> None:
    arguments = 4 * (4 * 16 + 16 * 8 + 8 * 16)
    # While the second product is summed, it and the sum live; what it was made of is gone.
    assert cost(tmp_path, 1, 1).peak == arguments + 2 * 4 * (4 * 16)


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


@pytest.mark.parametrize("name", names())
def test_known_machines(name: str) -> None:
    found = machine(name)
    assert found.flops / found.memory_bandwidth > 100
    assert found.memory_bandwidth > found.link.bandwidth


def test_what_is_wrong_with_a_machine(tmp_path: Path) -> None:
    with pytest.raises(ShardlogError, match="there is no topology v5x") as error:
        machine("v5x")
    assert "v5e" in error.value.hint
    file = tmp_path / "m.toml"
    for text, said in (
        ("flops = [", "cannot read the topology"),
        (MACHINE.format(flops='"fast"', bandwidth=1), "flops is 'fast'"),
        (MACHINE.format(flops=0, bandwidth=1), "flops is 0"),
        ("flops = 1", r"there is no table \[links\]"),
    ):
        file.write_text(text)
        with pytest.raises(ShardlogError, match=said):
            machine(str(file))
    file.write_text(MACHINE.format(flops=1, bandwidth=1))
    with pytest.raises(ShardlogError, match="the mesh has no axis model") as error:
        machine(str(file), ["data", "mode"])
    assert "did you mean" in error.value.hint
