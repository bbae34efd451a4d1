"""What lies in the memory of the host takes none of the device."""

from __future__ import annotations

from pathlib import Path

import pytest
import shardlog

HOST, DEVICE = "pinned_host", "device"
EFFECT = "has_side_effect = true"


def placed(name: str, value: str, kind: str) -> str:
    """A call that says in which memory a value is."""
    said = f'{EFFECT}, mhlo.frontend_attributes = {{_xla_buffer_placement = "{kind}"}}'
    call = f"stablehlo.custom_call @annotate_device_placement({value}) {{{said}}}"
    return f"{name} = {call} : (tensor<8x128xf32>) -> tensor<8x128xf32>"


def program(*lines: str, argument: str = "", given: str = "%9") -> str:
    body = "\n".join(lines)
    return f"""
      func.func @main(%x: tensor<8x128xf32>{argument}) -> tensor<8x128xf32> {{
        {body}
        return {given} : tensor<8x128xf32>
      }}
    """


def memories(text: str, topology: str = "v5e", rules: tuple[Path, ...] = ()) -> tuple[int, int]:
    """The bytes of the device and of the host that a program needs at most."""
    cost = shardlog.run(text, rules=rules).partition().cost(topology)
    for memory, most in (("device", cost.peak), ("host", cost.host)):
        assert sum(held.bytes for held in cost.held if held.memory == memory) == most
    return cost.peak, cost.host


SINE = "  {} = stablehlo.sine {} : tensor<8x128xf32>"
THERE = placed("%1", "%0", HOST)
BEHIND = placed("%8", "%1", DEVICE)
MORE = SINE.format("%9", "%8")


def test_what_is_offloaded() -> None:
    begin = SINE.format("%0", "%x")
    device, host = memories(program(begin, THERE, BEHIND, MORE))
    assert (device, host) == (2 * 4096, 4096)
    assert memories(program(begin, THERE, BEHIND, MORE), "cpu")[1] == 0  # it has the memory of its host


def test_arguments_and_what_is_cut_out_of_them() -> None:
    kind = ' {mhlo.memory_kind = "pinned_host"}'
    lines = (
        "%0 = stablehlo.slice %x [0:1, 0:128] : (tensor<8x128xf32>) -> tensor<1x128xf32>",
        "%1 = stablehlo.reshape %0 : (tensor<1x128xf32>) -> tensor<128xf32>",
        f"%2 = stablehlo.custom_call @annotate_device_placement(%1) {{{EFFECT}, mhlo.frontend_attributes = "
        '{_xla_buffer_placement = "device"}} : (tensor<128xf32>) -> tensor<128xf32>',
        "%9 = stablehlo.broadcast_in_dim %2, dims = [1] : (tensor<128xf32>) -> tensor<8x128xf32>",
    )
    device, host = memories(program(*lines, argument=kind))
    assert host >= 4096
    assert memories(program(*lines))[1] == 0
    assert device < memories(program(*lines))[0]


LOOP = """
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %begin = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<64x8x128xf32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %2:3 = stablehlo.while(%i = %c, %all = %begin, %y = %x)
    : tensor<i32>, tensor<64x8x128xf32>, tensor<8x128xf32>
  cond {
    %end = stablehlo.constant dense<64> : tensor<i32>
    %less = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  } do {
    %0 = stablehlo.sine %y : tensor<8x128xf32>
    SAVED
    %row = stablehlo.reshape %1 : (tensor<8x128xf32>) -> tensor<1x8x128xf32>
    %none = stablehlo.constant dense<0> : tensor<i32>
    %put = stablehlo.dynamic_update_slice %all, %row, %i, %none, %none
      : (tensor<64x8x128xf32>, tensor<1x8x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>)
      -> tensor<64x8x128xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %put, %0 : tensor<i32>, tensor<64x8x128xf32>, tensor<8x128xf32>
  }
  %3 = stablehlo.slice %2#1 [3:4, 0:8, 0:128] : (tensor<64x8x128xf32>) -> tensor<1x8x128xf32>
  %4 = stablehlo.reshape %3 : (tensor<1x8x128xf32>) -> tensor<8x128xf32>
  BACK
  %9 = stablehlo.add %8, %2#2 : tensor<8x128xf32>
"""


def test_what_a_loop_saves_there() -> None:
    """Its turns write what they save into one tensor, which is filled with zeros first: where it lies."""
    back = placed("%8", "%4", DEVICE)
    there = memories(program(LOOP.replace("SAVED", THERE).replace("BACK", back)))
    here = memories(program(LOOP.replace("SAVED", placed("%1", "%0", DEVICE)).replace("BACK", back)))
    assert there[1] >= 64 * 4096
    assert here[1] == 0
    assert here[0] - there[0] >= 63 * 4096


@pytest.mark.parametrize("target", ["MoveToHost", "mine"])
def test_targets(target: str, tmp_path: Path) -> None:
    rules = tmp_path / "mine.dl"
    rules.write_text('moving_target("mine", "host").\n')
    begin, type_ = SINE.format("%0", "%x"), "tensor<8x128xf32>"
    call = f"%1 = stablehlo.custom_call @{target}(%0) {{{EFFECT}}} : ({type_}) -> {type_}"
    back = f"%8 = stablehlo.custom_call @MoveToDevice(%1) : ({type_}) -> {type_}"
    assert memories(program(begin, call, back, MORE), rules=(rules,)) == (2 * 4096, 4096)
