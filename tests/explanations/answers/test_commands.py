"""``shardlog why``, ``why-not`` and ``conflicts`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import validate
from shardlog.cli import main
from shardlog.cli.schemas import schema

MODULE = """
sdy.mesh @mesh = <["data"=2, "model"=2]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                %w: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}]>})
    -> tensor<8x16xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
     : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
"""


@pytest.fixture
def module(tmp_path: Path) -> str:
    path = tmp_path / "dot.mlir"
    path.write_text(MODULE)
    return str(path)


def test_why(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", module, "%0", "--dim", "1", "--axis", "data", "--verify"]) == 0
    shown = capsys.readouterr().out
    assert '%0 dim 1 gets "data" from %arg1 dim 1 by stablehlo.dot_general' in shown
    assert "derived again with these annotations alone" in shown


def test_options_stand_anywhere(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    for order in ((module, "--axis", "data", "%0"), ("--axis", "data", module, "%0")):
        assert main(["why", *order]) == 0
        assert capsys.readouterr().out.startswith("%0 : tensor<8x16xf32>")
    assert main(["why", module, "--axis", "data", "%0", "%1"]) == 2
    assert "unrecognized arguments: %0 %1" in capsys.readouterr().err


def test_depth(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    lengths = []
    for depth in (["--depth", "1"], ["--depth", "3"], ["--full"]):
        assert main(["why", module, "%0", *depth]) == 0
        lengths.append(len(capsys.readouterr().out.splitlines()))
    assert lengths == sorted(set(lengths))


def test_not_sharded(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", module, "%0", "--axis", "model"]) == 0
    assert capsys.readouterr().out == (
        '%0 : tensor<8x16xf32> is not sharded on "model"; why-not names the reason\n'
    )


def test_why_not(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why-not", module, "%0", "--dim", "0", "--axis", "data"]) == 0
    shown = capsys.readouterr().out
    assert '%arg0 dim 0 has "data", %0 dim 0 does not get it  (next to it)' in shown
    assert 'in use: Factor j of slot 2 (%0) uses "data".' in shown


def test_conflicts(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conflicts", module]) == 0
    assert capsys.readouterr().out.splitlines()[1:4] == [
        "1 tensor must move, 64 bytes to each device",
        "  64 bytes, all-gather: %arg0 : tensor<8x4xf32>",
        f"      [{{data}}, {{}}] -> [{{}}, {{}}] for stablehlo.dot_general at {module}:6, operand 0",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["why", "%0"],
        ["why", "%0", "--full"],
        ["why-not", "%0", "--dim", "0", "--axis", "data"],
        ["conflicts"],
    ],
    ids=" ".join,
)
def test_json(module: str, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([arguments[0], module, *arguments[1:], "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document
    validate(document, schema(arguments[0]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["why", "%1"], "there is no value %1\n  hint: the nearest are: %arg1, %0"),
        (["why", "@main:%0"], "there is no value @main:%0\n  hint: the nearest are: %0\n"),
        (["why", "%0", "--axis", "dta"], "no mesh has an axis dta\n  hint: @mesh has data, model"),
        (
            ["why-not", "%0", "--dim", "2", "--axis", "data"],
            "%0 has no dimension 2\n  hint: its dimensions are 0 to 1",
        ),
    ],
)
def test_bad_input(
    module: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([arguments[0], module, *arguments[1:]]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err


def test_a_scalar_is_called_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It has no dimension to ask why-not about."""
    module = tmp_path / "scalar.mlir"
    module.write_text("""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  return %a : tensor<f32>
}
""")
    assert main(["why", str(module), "%arg0"]) == 0
    assert capsys.readouterr().out == "%arg0 : tensor<f32> is not sharded on any axis; it is a scalar\n"
