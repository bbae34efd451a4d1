"""All public functions are propagated, not only main and what it calls; with the names that Shardy gives."""

from __future__ import annotations

import pytest
import shardlog

from ..support.compare import differences
from ..support.oracle import propagate, run_passes

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=4]>'
ROWS = 'tensor<6x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"a"}]>}'
HELPER = """
func.func private @helper(%arg0: tensor<6x16xf32>) -> tensor<6x16xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<6x16xf32>
  return %0 : tensor<6x16xf32>
}
"""
MAIN = """
func.func public @main(%arg0: tensor<6x16xf32>,
    %arg1: tensor<6x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b":(2)2, ?}]>}) -> tensor<6x16xf32> {
  %0 = stablehlo.multiply %arg0, %arg1 : tensor<6x16xf32>
  %1 = call @helper(%0) : (tensor<6x16xf32>) -> tensor<6x16xf32>
  return %1 : tensor<6x16xf32>
}
"""
FIRST = f"""
func.func @first(%arg0: {ROWS}, %arg1: tensor<6x16xf32>) -> tensor<6x16xf32> {{
  %0 = stablehlo.add %arg0, %arg1 : tensor<6x16xf32>
  %1 = call @deep(%0) : (tensor<6x16xf32>) -> tensor<6x16xf32>
  return %1 : tensor<6x16xf32>
}}
func.func @deep(%arg0: tensor<6x16xf32>) -> tensor<6x16xf32> {{
  %0 = call @helper(%arg0) : (tensor<6x16xf32>) -> tensor<6x16xf32>
  return %0 : tensor<6x16xf32>
}}
"""
# What a function other than main returns takes nothing from the annotation of the result.
RESULT = f"""
func.func @result(%arg0: tensor<6x16xf32>) -> ({ROWS}) {{
  %0 = stablehlo.tanh %arg0 : tensor<6x16xf32>
  return %0 : tensor<6x16xf32>
}}
"""
_NOTED = '>) -> tensor<6x16xf32> attributes {sdy.original_func_name = "helper"} {'
UNUSED = HELPER.replace("@helper", "@unused")


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(
    "functions",
    [
        (MAIN, FIRST, HELPER),
        (FIRST, HELPER, MAIN),
        (HELPER, UNUSED, RESULT, FIRST, MAIN, FIRST.replace("@first", "@last").split("func.func @deep")[0]),
    ],
)
def test_public_functions(functions: tuple[str, ...], closed: bool) -> None:
    text = "\n".join((MESH, *functions))
    assert differences(shardlog.run(text, closed=closed).text(), propagate(text, closed=closed)) == []


def test_the_only_function_that_can_be_called_from_outside_is_as_if_it_were_main() -> None:
    text = "\n".join((MESH, HELPER, MAIN, UNUSED))
    found = shardlog.run(text.replace("@main", "@step")).text()
    assert differences(found.replace("@step", "@main"), propagate(text)) == []


def test_what_shardy_has_noted_of_copies_goes() -> None:
    text = "\n".join((MESH, HELPER.replace(">) -> tensor<6x16xf32> {", _NOTED), MAIN))
    assert differences(shardlog.run(text).text(), propagate(text)) == []


@pytest.mark.parametrize(
    "named",
    [
        *("x.y = @f", "x.y = [[@f]]", "x.y = {a = {b = [@f]}}", "called_computations = [@f]", 'x.y = "f"'),
        "api_version = 4 : i32, backend_config = {k = @f}",
    ],
)
def test_a_private_function_is_kept_if_an_attribute_names_it(named: str) -> None:
    """As symbol-dce, at any depth of the attribute."""
    text = f"""func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {{
  %0 = stablehlo.custom_call @t(%x) {{{named}}} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}}
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {{ return %x : tensor<8xf32> }}
"""
    assert ("@f(" in shardlog.run(text).text()) == ("@f(" in run_passes(text, "symbol-dce"))
