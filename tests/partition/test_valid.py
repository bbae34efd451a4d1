"""Device programs are valid MLIR; where one is not, a message says which op, and of which line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shardlog
from jaxlib.mlir import ir
from shardlog.partition.finishing import passes
from shardlog.partition.finishing.passes import Draft
from shardlog.partition.forms import Form
from shardlog.partition.writing.writer import Writer

# A comparison calls a function, which is kept as it is: without what it says of shardings.
CALLED = """\
sdy.mesh @mesh = <["a"=2]>
#scalar = #sdy.sharding<@mesh, []>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x4xf32> {
  %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = func.call @less(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.not %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
func.func private @less(%a: tensor<f32> {sdy.sharding = #scalar}, %b: tensor<f32>) -> tensor<i1> {
  %0 = stablehlo.compare LT, %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>}
    : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
"""


@pytest.mark.parametrize("form", ["sdy-manual", "manual", "replica"])
def test_what_is_kept_says_no_shardings(form: Form) -> None:
    program = shardlog.run(CALLED).partition(form)
    assert program.text().count("sdy.sharding ") == (2 if form == "sdy-manual" else 0)  # of the boundary
    x = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    (result,) = program.compile()(x)
    np.testing.assert_array_equal(result, -np.sort(-x, axis=1))


SUM = """\
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x4xf32> {
  %0 = stablehlo.add %x, %x : tensor<8x4xf32>
  %1 = stablehlo.sine %0 : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
"""
# Two all-reduces, neither of which needs the other: a program of one has none to combine.
SUMS = """\
sdy.mesh @mesh = <["a"=2]>
#rows = #sdy.sharding<@mesh, [{"a"}, {}]>
func.func @main(%x: tensor<800x4xf32> {sdy.sharding = #rows}) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %1 = stablehlo.sine %x : tensor<800x4xf32>
  %2 = stablehlo.dot_general %x, %1, contracting_dims = [0] x [0]
    : (tensor<800x4xf32>, tensor<800x4xf32>) -> tensor<4x4xf32>
  %3 = stablehlo.dot_general %1, %1, contracting_dims = [0] x [0]
    : (tensor<800x4xf32>, tensor<800x4xf32>) -> tensor<4x4xf32>
  return %2, %3 : tensor<4x4xf32>, tensor<4x4xf32>
}
"""
PLACE, MESSAGE = "program.mlir:4:8: error: stablehlo.sine: ", "please report it"


def spoil(module: ir.Module) -> None:
    """Makes an op of a module invalid, wherever it is."""

    def visit(op: Any) -> ir.WalkResult:
        if op.name == "stablehlo.sine":
            op.results[0].set_type(ir.RankedTensorType.get([3], ir.F32Type.get()))
        return ir.WalkResult.ADVANCE

    with module.context, ir.Location.unknown():
        module.operation.walk(visit)


def spoiling(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Has one of the writers of programs write what is not valid."""
    if where == "walk":
        run = Writer.run

        def spoilt(self: Writer) -> Draft:
            outputs = run(self)
            spoil(outputs.module)
            return outputs

        monkeypatch.setattr(Writer, "run", spoilt)
        return
    name = {"combined": "COMBINED", "cpus": "CPU"}[where]
    monkeypatch.setattr(passes, name, (*getattr(passes, name), lambda draft: spoil(draft.module)))


Use = Callable[[shardlog.Session], Any]
USES: dict[str, Use] = {
    "partition": lambda result: result.partition().text(),
    "compile": lambda result: result.partition().compile(),
    "cost": lambda result: result.partition().cost("cpu"),
    "why": lambda result: result.partition().collectives,
}


@pytest.mark.parametrize("use", USES)
def test_what_the_walk_writes(use: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "program.mlir"
    path.write_text(SUM)
    result = shardlog.run(path)
    spoiling(monkeypatch, "walk")
    with pytest.raises(shardlog.ShardlogError) as error:
        USES[use](result)
    assert str(error.value).startswith(f"{tmp_path}/{PLACE}")
    assert MESSAGE in str(error.value)


@pytest.mark.parametrize(("where", "use"), [("combined", "partition"), ("cpus", "compile"), ("cpus", "cost")])
def test_what_is_written_behind_it(
    where: str, use: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "program.mlir"
    path.write_text(SUMS if where == "combined" else SUM)
    result = shardlog.run(path)
    spoiling(monkeypatch, where)
    with pytest.raises(shardlog.ShardlogError, match=MESSAGE) as error:
        USES[use](result)
    assert PLACE in str(error.value)


def test_the_command_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from shardlog.cli import main

    path, out = tmp_path / "program.mlir", tmp_path / "out.mlir"
    path.write_text(SUM)
    spoiling(monkeypatch, "walk")
    for command in (["partition", "-o", str(out)], ["exec", "--random"], ["cost"]):
        assert main([command[0], str(path), *command[1:]]) == 2, command
        assert PLACE in capsys.readouterr().err
        assert not out.exists()
