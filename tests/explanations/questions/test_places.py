"""Source locations: the user's innermost frame, and how values of one line are told apart."""

from __future__ import annotations

import pytest
import shardlog
from shardlog.program.mlir.places import name_stack, source_location, tell_apart
from shardlog.runs.records.record import Record


def call(name: str, *lines: int) -> str:
    """A location with a name stack and frames, inner ones first."""
    *inner, outer = [f"f(/home/me/model.py:{line}:1 to :9)" for line in lines]
    chain = outer
    for frame in reversed(inner):
        chain = f"callsite({frame} at {chain})"
    return f"{name}({chain})"


def test_installed_packages_are_named_from_the_package_on() -> None:
    file = "/usr/lib/python3.11/site-packages/flax/linen/linear.py"
    assert source_location(f"dot_general({file}:7:3)") == "flax/linen/linear.py:7"
    assert source_location('"/home/me/model.py":7:3') == "/home/me/model.py:7"


def test_name_stacks() -> None:
    for frames in ((3,), (3, 4), (3, 4, 5)):
        assert name_stack(call("jit(f)/jvp(layer_0)/norm/mul", *frames)) == "jvp(layer_0)/norm"
        assert name_stack(call("mul", *frames)) == ""
    assert name_stack("jit(f)/a/b(/home/me/model.py:3:1)") == "a"
    assert name_stack('"model.py":3:1') == ""


def test_what_a_helper_makes_is_told_apart() -> None:
    first, second = call("jit(f)/a/mul", 3, 10, 20), call("jit(f)/a/mul", 3, 11, 20)
    assert tell_apart(first, [first, second]) == "from /home/me/model.py:10"
    assert tell_apart(first, [first]) == ""
    layers = [call(f"jit(f)/layer_{i}/mul", 3, 10) for i in range(2)]
    assert tell_apart(layers[1], layers) == "in layer_1"
    assert (
        tell_apart(layers[1], [*layers, call("jit(f)/mul", 3, 12)]) == "from /home/me/model.py:10 in layer_1"
    )


CONSTRAIN = """
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %x : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
      loc(callsite("lib.py":3:1 at "m.py":10:1))
  %2 = stablehlo.tanh %1 : tensor<8x8xf32>
  %3 = sdy.sharding_constraint %2 <@mesh, [{"b"}, {}]> : tensor<8x8xf32>
      loc(callsite("lib.py":3:1 at "m.py":11:1))
  %4 = func.call @f(%3) : (tensor<8x8xf32>) -> tensor<8x8xf32> loc("m.py":12:1)
  return %4 : tensor<8x8xf32>
}
func.func private @f(%x: tensor<8x8xf32> loc(unknown)) -> tensor<8x8xf32> {
  %0:2 = stablehlo.while(%i = %x, %j = %x) : tensor<8x8xf32>, tensor<8x8xf32>
  cond { %c = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %c : tensor<i1> }
  do { stablehlo.return %i, %j : tensor<8x8xf32>, tensor<8x8xf32> } loc("m.py":20:1)
  return %0#0 : tensor<8x8xf32>
}
"""


@pytest.fixture(scope="module")
def run() -> Record:
    return shardlog.run(CONSTRAIN).record


def test_annotations_say_who_called_the_helper(run: Record) -> None:
    assert {a.where for a in run.annotations()} == {"lib.py:3 from m.py:10", "lib.py:3 from m.py:11"}


def test_arguments_come_from_where_they_are_given(run: Record) -> None:
    assert run.named("@f:%arg0")[0].where == "m.py:12"
    assert {value.where for value in run.named("@f:%iterArg")} == {"m.py:20"}
