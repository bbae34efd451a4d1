"""What MLIR's bindings hide: how they are asked, everywhere."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
import shardlog
from jaxlib.mlir import ir
from shardlog.cli import main
from shardlog.program.mlir.modules import bytecode_of

from .support import oracle

ROOT = Path(__file__).parents[1]

# Its op's `name` is an attribute. It takes what nobody else does, is taken by such, and ends a loop's body.
COMPOSITES = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> tensor<8x4xf32> {
  %0 = stablehlo.custom_call @unknown(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.composite "my.gelu" %0 {decomposition = @impl} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.custom_call @Sharding(%1) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = stablehlo.constant dense<0> : tensor<i32>
  %4:2 = stablehlo.while(%i = %3, %x = %2) : tensor<i32>, tensor<8x4xf32> cond {
    %5 = stablehlo.constant dense<4> : tensor<i32>
    %6 = stablehlo.compare LT, %i, %5 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %6 : tensor<i1>
  } do {
    %5 = stablehlo.constant dense<1> : tensor<i32>
    %6 = stablehlo.add %i, %5 : tensor<i32>
    %7 = stablehlo.composite "my.gelu" %x {decomposition = @impl} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    stablehlo.return %6, %7 : tensor<i32>, tensor<8x4xf32>
  }
  return %4#1 : tensor<8x4xf32>
}
func.func private @impl(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""


@cache
def trees() -> tuple[tuple[Path, ast.Module], ...]:
    """The modules of the package."""
    others = {"tests", "build", "examples"}
    tops = [top for top in sorted(ROOT.iterdir()) if top.name not in others and top.name[0] != "."]
    files = [path for top in tops for path in ([top] if top.suffix == ".py" else sorted(top.rglob("*.py")))]
    return tuple((path.relative_to(ROOT), ast.parse(path.read_text())) for path in files)


def test_an_attribute_called_name_does_not_hide_what_an_op_is() -> None:
    result = shardlog.run(COMPOSITES)
    assert result.text().count("stablehlo.composite") == 2
    assert [c.kind for c in result.partition().collectives] == ["all-gather"]


def test_no_test_can_ask_an_opview_for_its_name() -> None:
    """The rest of the tests stands on this: see conftest.py."""
    with oracle.context():
        module = ir.Module.parse("func.func @main() { return }")
        (function,) = module.body.operations
        (end,) = function.regions[0].blocks[0].operations
        with pytest.raises(AssertionError, match=r"op\.operation\.name"):
            end.name  # noqa: B018


def test_what_owns_a_value_is_asked_as_an_operation() -> None:
    """``value.owner`` and ``use.owner`` are OpViews, and the name of some is an attribute of theirs."""
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr == "name":
                asked = isinstance(node.value, ast.Attribute) and node.value.attr in ("owner", "opview")
                assert not asked, f"{path}:{node.lineno}: {ast.unparse(node)}"


# What holds a name, and a number or a type: names in symbols are vetted, see vetting.py.
_NOT_TEXTS = {"callee", "decomposition", "function_type", "group_id", "index"}


def test_strings_of_mlir_are_read_in_one_place() -> None:
    """Where they are not UTF-8, ``value`` ends in an error of the bindings: ``text_of`` escapes them."""
    for path, tree in trees():
        if str(path) in ("program/signature.py", "importers/sources/vetting.py"):
            continue
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Attribute) and node.attr == "value"):
                continue
            asked = ast.unparse(node)
            assert "StringAttr(" not in asked, f"{path}:{node.lineno}: {asked}"
            if isinstance(node.value, ast.Subscript) and isinstance(node.value.slice, ast.Constant):
                label = node.value.slice.value
                assert not isinstance(label, str) or label in _NOT_TEXTS, f"{path}:{node.lineno}: {asked}"


NOT_UTF8 = """
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>, x.y = "\\FF"})
    -> (tensor<8x4xf32> {jax.result_info = "\\FFr"}) {
  %0 = stablehlo.custom_call @"\\FFt"(%x) {backend_config = "\\FFb", mhlo.frontend_attributes = {k = "\\FFv"}}
    : (tensor<8x4xf32>) -> tensor<8x4xf32> loc("\\FFl")
  %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{devices=[2,1]<=[2]}"}
    : (tensor<8x4xf32>) -> tensor<8x4xf32> loc(callsite("\\FFn"("\\FFf.py":1:2) at "\\FFg.py":3:4))
  %2 = stablehlo.composite "my.op" %1 {decomposition = @f, composite_attributes = {k = "\\FF"}}
    : (tensor<8x4xf32>) -> tensor<8x4xf32> loc(fused<"\\FFm">["\\FFn", "\\FFf.py":1:2 to 3:4])
  return %2 : tensor<8x4xf32>
}
func.func private @f(%x: tensor<8x4xf32> loc("\\FFx")) -> tensor<8x4xf32> {
  return %x : tensor<8x4xf32>
}
"""
COMMANDS = ["run --save run.save -o out.mlir", "partition", "cost", "conflicts", "why result#0 --mermaid"]
COMMANDS += ["report -o report.html", "ops", "facts -o facts", "run --notation gspmd"]


@pytest.mark.parametrize("form", ["text", "bytecode"])
@pytest.mark.parametrize("command", COMMANDS)
def test_strings_that_are_not_utf8(
    command: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with oracle.context():
        bytecode = bytecode_of(ir.Module.parse(NOT_UTF8))
    Path("m.mlir").write_bytes(NOT_UTF8.encode() if form == "text" else bytecode)
    name, *rest = command.split()
    assert main([name, "m.mlir", *rest]) in (0, None)
