"""Explicit reshards are those that Shardy's ``sdy-insert-explicit-reshards`` inserts."""

from __future__ import annotations

from pathlib import Path

import pytest
import shardlog
from hypothesis import Phase, assume, given, reject
from shardlog import cli

from ..support import models
from ..support.compare import differences
from ..support.drawing import drawing
from ..support.generators.random_modules import modules
from ..support.oracle import OracleError, forked, refused_unreduced, with_explicit_reshards

pytestmark = pytest.mark.versions

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=2]>\n'
PROGRAM = (
    MESH
    + """\
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %b: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) -> tensor<8x4xf32> {
  %0 = stablehlo.add %a, %b : tensor<8x4xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"y"}, {}]> : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
"""
)
REDUCED = (
    MESH
    + """\
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %i: tensor<f32>)
    -> tensor<4xf32> {
  %0 = stablehlo.reduce(%a init: %i) applies stablehlo.OP across dimensions = [0]
      : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
)
PRODUCT = (
    MESH
    + """\
func.func @main(%a: tensor<4x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %b: tensor<32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> (tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>}
      : (tensor<4x32xf32>, tensor<32x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
"""
)
APART = (
    MESH
    + """\
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"x"}>})
    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = sdy.reshard %a <@mesh, [{}, {}]> : tensor<8x4xf32>
  %1 = sdy.reshard %0 <@mesh, [{}, {}], unreduced={"y"}> : tensor<8x4xf32>
  %2 = sdy.reshard %1 <@mesh, [{}, {}]> : tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}
"""
)


def written(text: str, *, full: bool) -> str:
    return shardlog.run(
        text, explicit_reshards=True, full_reshards=full, strict_shardy=True, separate_groups=True
    ).text()


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        PROGRAM,
        PRODUCT,
        APART,
        *(REDUCED.replace("OP", op) for op in ("add", "maximum", "minimum", "multiply")),
    ],
)
def test_they_are_shardys(text: str, full: bool) -> None:
    assert differences(written(text, full=full), forked(with_explicit_reshards, text, full=full)) == []


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", models.MODELS)
def test_models(name: str, full: bool) -> None:
    text = models.text(name, train=name != "decode")
    assert differences(written(text, full=full), forked(with_explicit_reshards, text, full=full)) == []


@drawing(20, phases=[Phase.generate])
@given(modules())
def test_random_modules(text: str) -> None:
    """Of one mesh: results of calls on meshes with other orders of devices are resharded otherwise."""
    assume("device_ids" not in text and not forked(refused_unreduced, text))
    for full in (False, True):
        try:
            expected = forked(with_explicit_reshards, text, full=full)
        except OracleError:
            reject()
        assert differences(written(text, full=full), expected) == []


def test_an_op_whose_operands_differ_gets_them_alike() -> None:
    """By default only where Shardy does, which an addition is not; a constraint is a reshard either way."""
    counts = [written(PROGRAM, full=full).count("sdy.reshard") for full in (False, True)]
    assert counts[0] < counts[1]
    assert "sharding_constraint" not in written(PROGRAM, full=False)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.mlir").write_text(PRODUCT)
    assert cli.main(["run", str(tmp_path / "m.mlir"), "--explicit-reshards"]) in (0, None)
    assert capsys.readouterr().out.count("sdy.reshard") == 1
