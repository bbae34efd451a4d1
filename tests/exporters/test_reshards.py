"""Explicit reshards are those that Shardy's ``sdy-insert-explicit-reshards`` inserts."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
import shardlog
from hypothesis import Phase, assume, given, reject
from shardlog import cli
from shardlog.exporters.agreeing import Agreement, FactorRule, Projection
from shardlog.program.meshes import SubAxis
from shardlog.program.shardings import Dimension, Sharding
from shardlog.program.shardy import installed

from ..support import models
from ..support.compare import differences
from ..support.drawing import by_day, drawing
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


CHAIN = """\
sdy.mesh @mesh = <["a"=8]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"a":(1)2}]> : tensor<8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a", ?}]> {said = 3} : tensor<8xf32>
  %2 = sdy.reshard %1 <@mesh, [{}]> : tensor<8xf32>
  return %2 : tensor<8xf32>
}
"""
CALLED = """\
sdy.mesh @mesh = <["x"=2, "y"=2]>
sdy.mesh @turned = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>
func.func private @f(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@turned, [{"x"}, {}]>})
    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.tanh %a : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
func.func @main(%a: tensor<8x4xf32>) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) {
  %0 = call @f(%a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
      : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.concatenate %0, %a, dim = 0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
  %2 = stablehlo.slice %1 [0:8, 0:4] : (tensor<16x4xf32>) -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}
"""
LOOPED = """\
sdy.mesh @mesh = <["a"=2]>
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %x = %a) : tensor<i32>, tensor<8xf32>
      attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{}], unreduced={"a"}>]>}
  cond {
    %1 = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    stablehlo.return %i, %x : tensor<i32>, tensor<8xf32>
  }
  return %a : tensor<8xf32>
}
"""
ALONE = """\
sdy.mesh @mesh = <["x"=2]>
sdy.mesh @zero = <[], device_ids=[0]>
sdy.mesh @one = <[], device_ids=[1]>
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %t: !stablehlo.token)
    -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0:3 = stablehlo.custom_call @f(%a, %t) {sdy.sharding = #sdy.sharding_per_value<[
      <@zero, []>, <@mesh, [{"x"}, {}]>, <@mesh, []>]>}
      : (tensor<8x4xf32>, !stablehlo.token) -> (tensor<8x4xf32>, tensor<8x4xf32>, !stablehlo.token)
  %1 = stablehlo.custom_call @g(%0#0) {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>}
      : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.add %1, %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x4xf32>
  return %2, %0#1 : tensor<8x4xf32>, tensor<8x4xf32>
}
"""
SEVERAL = """\
sdy.mesh @mesh = <["x"=2]>
sdy.mesh @zero = <[], device_ids=[0]>
sdy.mesh @one = <[], device_ids=[1]>
func.func @main(%a: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  %0:2 = stablehlo.custom_call @f(%a) {sdy.sharding = #sdy.sharding_per_value<[<@zero, []>, <@one, []>]>}
      : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %1 = stablehlo.add %0#0, %0#1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : tensor<8xf32>
  return %1 : tensor<8xf32>
}
"""
MODES = ["", "full", *(["mark", "full mark"] if installed() != "0.10" else [])]


def written(text: str, mode: str) -> str:
    return shardlog.run(
        text,
        explicit_reshards=True,
        full_reshards="full" in mode,
        mark_partial_results="mark" in mode,
        strict_shardy=True,
        separate_groups=True,
    ).text()


def expected(text: str, mode: str) -> str:
    return str(forked(with_explicit_reshards, text, full="full" in mode, mark="mark" in mode))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "text",
    [
        PROGRAM,
        PRODUCT,
        APART,
        CHAIN,
        CALLED,
        LOOPED,
        ALONE,
        *(REDUCED.replace("OP", op) for op in ("add", "maximum", "minimum", "multiply")),
    ],
)
def test_they_are_shardys(text: str, mode: str) -> None:
    assert differences(written(text, mode), expected(text, mode)) == []


MODES = ["", "full"]
EACH = [(name, MODES[number % 2]) for number, name in enumerate(models.MODELS)]


@pytest.mark.parametrize(("name", "mode"), by_day(EACH, product(models.MODELS, MODES)))
def test_models(name: str, mode: str) -> None:
    text = models.text(name, train=name != "decode")
    assert differences(written(text, mode), expected(text, mode)) == []


@drawing(8, phases=[Phase.generate])
@given(modules())
def test_random_modules(text: str) -> None:
    assume(not refused_unreduced_of(text))
    for mode in MODES:
        try:
            theirs = expected(text, mode)
        except OracleError:
            reject()
        assert differences(written(text, mode), theirs) == []


def refused_unreduced_of(text: str) -> str:
    try:
        return str(forked(refused_unreduced, text))
    except OracleError:
        reject()


def test_an_op_whose_operands_differ_gets_them_alike() -> None:
    """By default only where Shardy does, which an addition is not; a constraint is a reshard either way."""
    counts = [written(PROGRAM, mode).count("sdy.reshard") for mode in ("", "full")]
    assert counts[0] < counts[1]
    assert "sharding_constraint" not in written(PROGRAM, "")


def test_sub_axes_that_no_mesh_can_be_cut_into_exclude_each_other() -> None:
    """As ``d:(1)2`` and ``d:(3)2`` of 6 do, though they do not overlap."""
    rule = FactorRule([2, 2], {0: "reduction", 1: "pass_through"}, [[[1]], [[0]], [[0]], [[1]]], 3)
    held = (
        [SubAxis("d", 1, 2)],
        [SubAxis("d", 1, 6), SubAxis("c", 1, 3)],
        [SubAxis("d", 1, 2)],
        [SubAxis("d", 3, 2)],
    )
    slots = [Projection.of(rule, t, Sharding(0, (Dimension(tuple(axes)),))) for t, axes in enumerate(held)]
    assert Agreement(rule, [2, 2, 2, 2]).common_axes(slots) == [tuple(held[1]), ()]


def test_results_on_several_devices_are_refused_where_they_are() -> None:
    assert "sdy.reshard" not in shardlog.run(SEVERAL, shardy="0.10", explicit_reshards=True).text()
    with pytest.raises(shardlog.ShardlogError, match=r":5:.* on several single devices: 0 and 1"):
        shardlog.run(SEVERAL, shardy="0.11")


def test_the_first_shardy_marks_nothing() -> None:
    with pytest.raises(shardlog.ShardlogError, match=r":4:.* only Shardy 0.11 and later"):
        shardlog.run(
            REDUCED.replace("OP", "add"), shardy="0.10", full_reshards=True, mark_partial_results=True
        )


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.mlir").write_text(PRODUCT)
    assert cli.main(["run", str(tmp_path / "m.mlir"), "--explicit-reshards"]) in (0, None)
    assert capsys.readouterr().out.count("sdy.reshard") == 1
    (tmp_path / "m.mlir").write_text(REDUCED.replace("OP", "add"))
    options = ["--full-reshards", "--mark-partial-results", "--shardy", "0.12"]
    assert cli.main(["run", str(tmp_path / "m.mlir"), *options]) in (0, None)
    assert 'unreduced={"x"}' in capsys.readouterr().out


@pytest.mark.skipif(installed() != "0.10", reason="later ones have a notation for it")
def test_a_maximum_that_jaxlib_cannot_write_is_refused() -> None:
    with pytest.raises(shardlog.ShardlogError, match="no notation for 'max'"):
        shardlog.run(REDUCED.replace("OP", "maximum"), shardy="0.11", full_reshards=True)
