"""Modules of which no function is called main, as libraries are: which one runs is said by its name."""

from __future__ import annotations

from pathlib import Path

import pytest
import shardlog
from shardlog.cli import main

LIBRARY = """sdy.mesh @mesh = <["a"=2]>
func.func @step(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x4xf32> {
  %0 = call @f(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
func.func @init(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @f(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.exponential %x : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
func.func private @elsewhere(tensor<8xf32>) -> tensor<8xf32>
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    file = tmp_path / "library.mlir"
    file.write_text(LIBRARY)
    return file


def test_all_public_functions_are_propagated_whichever_runs(library: Path) -> None:
    for entry, other in (("step", "init"), ("init", "step")):
        text = shardlog.run(library, entry=entry).text()
        assert text.index("@main") < text.index("@f") and f"@{other}(" in text and f"@{entry}" not in text
        assert 'exponential %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}' in text
        program = str(shardlog.run(library, entry=entry).partition().module)
        assert ("exponential" in program) == (entry == "step")


@pytest.mark.parametrize("view", ["lowered", "roundtrip", "compiled"])
def test_views_and_saved_runs(library: Path, view: str, tmp_path: Path) -> None:
    result = shardlog.run(library, entry="step", view=view)
    result.save(tmp_path / "run")
    assert shardlog.open(tmp_path / "run").text() == result.text()
    assert "stablehlo.exponential" in result.text()


def test_callers_follow_and_another_main_has_another_name() -> None:
    text = LIBRARY.replace("@init", "@main").replace("@f(", "@main_0(")
    read = shardlog.run(text, entry="step").text()
    assert "@main_1(%arg0: tensor<8xf32>)" in read and "call @main_0(%arg0)" in read
    private = shardlog.run(LIBRARY, entry="f").text()
    assert "func.func @main(" in private and "call @main" in private


@pytest.mark.parametrize(
    "command",
    ["run", "partition", "exec", "cost", "conflicts", "why %arg0", "report -o r.html", "facts -o facts"],
)
def test_commands(command: str, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name, *rest = command.split()
    assert main([name, str(library), *rest, "--entry", "step"]) in (0, None)


@pytest.mark.parametrize(
    ("entry", "message", "hint"),
    [
        (
            "",
            "the module has several functions and none is called main",
            "--entry step.*there are: step, init$",
        ),
        ("ste", "no function @ste", "did you mean step"),
        ("elsewhere", "@elsewhere has no body", "expected a function with one"),
    ],
)
def test_errors(entry: str, message: str, hint: str) -> None:
    import re

    with pytest.raises(shardlog.ShardlogError, match=message) as error:
        shardlog.run(LIBRARY, entry=entry)
    assert re.search(hint, error.value.hint)
