"""What is done to a module before it is read: modules in modules, and Shardy's debugging output."""

from __future__ import annotations

import pytest
import shardlog
from jaxlib.mlir import ir
from shardlog.program.mlir.modules import bytecode_of

from ..support import oracle

MESH = 'sdy.mesh @mesh = <["a"=2]>'
MAIN = """func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
    -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %x : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}"""
HELPER = """func.func @helper(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %a {mhlo.sharding = "{devices=[2,1]<=[2]}"} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}"""

# As sdy-user-priority-propagate{debug-sharding-origins debug-propagation-edge-sharding} writes it.
EDGES = 'sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"a" = operand-0 -> [result-0]}]}]>'
ORIGINS = 'sdy.sharding_origins = [{a = "input: 0"}]'
ROWS = 'sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>'
EACH = 'sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>'
DEBUGGED = f"""{MESH}
func.func @main(%x: tensor<8x4xf32> {{{ROWS}, sdy.sharding_origins = {{a = "self"}}}})
    -> (tensor<8x4xf32> {{{ROWS}, {EDGES}, sdy.sharding_origins = {{a = "input: 0"}}}}) {{
  %0 = stablehlo.add %x, %x {{{EACH}, {EDGES}, {ORIGINS}}} : tensor<8x4xf32>
  %1 = call @f(%0) {{{EACH}}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{{"a"}}, {{}}]>]
      out_shardings=[<@mesh, [{{"a"}}, {{}}]>] manual_axes={{"a"}} (%arg2: tensor<4x4xf32>) {{
    %3 = stablehlo.tanh %arg2 : tensor<4x4xf32>
    sdy.return %3 : tensor<4x4xf32>
  }} {{sdy.block_arg_propagation_edges = [], sdy.block_arg_sharding_origins = [{{a = "self"}}],
      sdy.result_propagation_edges = [], sdy.result_sharding_origins = [{{a = "self"}}],
      sdy.sharding_origin_name = "mc_0"}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}}
func.func private @f(%x: tensor<8x4xf32> {{{ROWS}}}) -> (tensor<8x4xf32> {{{ROWS}}}) {{
  %0 = stablehlo.exponential %x {{{EACH}, {EDGES}, {ORIGINS}}} : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}}
"""


@pytest.mark.parametrize("around", ["module {{ {} }}", "module @outer {{ module @inner {{ {} }} }}"])
def test_a_module_that_is_all_there_is_in_one(around: str) -> None:
    program = f"{MESH}\n{MAIN}"
    wanted = shardlog.run(program).text()
    assert shardlog.run(around.format(program)).text().replace("module @inner {", "module {") == wanted
    assert "stablehlo.tanh" in shardlog.run(around.format(HELPER.replace("@helper", "@main"))).text()


@pytest.mark.parametrize("name", ["", " @library"])
def test_a_module_beside_functions_is_refused_by_name(name: str) -> None:
    text = f"module {{\n  {MESH}\n  module{name} {{ {HELPER} }}\n  {MAIN}\n}}"
    with pytest.raises(shardlog.ShardlogError, match=f"a module{name} in the module") as error:
        shardlog.run(text)
    assert error.value.where == "<text>:3:3"
    assert "one module at a time" in error.value.hint


@pytest.mark.parametrize("form", ["text", "bytecode"])
def test_what_an_earlier_propagation_says_of_its_shardings_is_dropped(form: str) -> None:
    assert DEBUGGED.count("propagation_edges") + DEBUGGED.count("sharding_origin") > 10
    with oracle.context():
        program = DEBUGGED if form == "text" else bytecode_of(ir.Module.parse(DEBUGGED))
    result = shardlog.run(program)
    for text in (result.text(), str(result.partition().module)):
        assert "propagation_edges" not in text
        assert "sharding_origin" not in text
    assert result.partition().collectives == ()
