"""A module in GSPMD's notation is turned into sdy's first: values are called as they are there, ops stand
where they stood."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import shardlog
from shardlog.cli import main

SHARDED = '{mhlo.sharding = "{devices=[4,1]<=[4]}"}'
MANUAL = '{mhlo.sharding = "{manual}"}'
# As JAX writes a shard_map; @f disappears into a manual computation.
SHARD_MAP = f"""\
func.func public @main(%arg0: tensor<8x2xf32>) -> tensor<8x2xf32> {{
  %0 = stablehlo.abs %arg0 : tensor<8x2xf32>
  %1 = stablehlo.custom_call @Sharding(%0) {SHARDED} : (tensor<8x2xf32>) -> tensor<8x2xf32>
  %2 = stablehlo.custom_call @SPMDFullToShardShape(%1) {MANUAL} : (tensor<8x2xf32>) -> tensor<2x2xf32>
  %3 = call @f(%2) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %4 = stablehlo.custom_call @Sharding(%3) {MANUAL} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %5 = stablehlo.custom_call @SPMDShardToFullShape(%4) {SHARDED} : (tensor<2x2xf32>) -> tensor<8x2xf32>
  %6 = stablehlo.negate %5 : tensor<8x2xf32>
  return %6 : tensor<8x2xf32>
}}
func.func private @f(%arg0: tensor<2x2xf32>) -> tensor<2x2xf32> {{
  %0 = stablehlo.cosine %arg0 : tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}}
"""
# %1 and %2 are one group: the calls go, and what follows has lower numbers.
ALIKE = """\
func.func public @main(%arg0: tensor<8x2xf32>, %arg1: tensor<8x2xf32>) -> tensor<8x2xf32> {{
  %0 = stablehlo.abs %arg0 : tensor<8x2xf32>
  %1 = stablehlo.custom_call @Sharding(%0) {0} : (tensor<8x2xf32>) -> tensor<8x2xf32>
  %2 = stablehlo.custom_call @Sharding(%arg1) {0} : (tensor<8x2xf32>) -> tensor<8x2xf32>
  %3 = stablehlo.add %1, %2 : tensor<8x2xf32>
  return %3 : tensor<8x2xf32>
}}
""".format('{mhlo.sharding = "{unknown shard_as 1}"}')


def rows(text: str, relation: str, mesh: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = shardlog.run(text, mesh=mesh).facts[relation]
    return found


def test_names_and_places_after_a_shard_map() -> None:
    places = dict(rows(SHARD_MAP, "location", "x=4"))
    ops = {name: places[o] for o, name in rows(SHARD_MAP, "op", "x=4")}
    assert ops["stablehlo.abs"] == "<text>:2:8"
    assert ops["sdy.manual_computation"] == "<text>:5:8"
    assert ops["stablehlo.cosine"] == "callsite(<text>:12:8 at <text>:5:8)"
    assert ops["stablehlo.negate"] == "<text>:8:8"
    shapes = dict(rows(SHARD_MAP, "value", "x=4"))
    assert shapes["%0"] == "tensor<8x2xf32>"
    assert ("%1", 0, 0, "x") in rows(SHARD_MAP, "sharded", "x=4")  # the manual computation


def test_names_after_a_group() -> None:
    returned = {value for value, _ in rows(ALIKE, "returned", "x=4")}
    assert returned == {"%1"}
    assert {value for value, _ in rows(ALIKE, "value", "x=4")} == {"%arg0", "%arg1", "%0", "%1"}


@pytest.mark.parametrize(
    "command",
    [
        ["conflicts"],
        ["why", "%0"],
        ["why", "%1"],
        ["report", "-o", "report.html"],
        ["facts", "-o", "facts"],
        ["run", "--stages", "-o", "out.mlir"],
        ["run", "--save", "run.save", "-o", "out.mlir"],
        ["query", "value(v, t), sharded(v, d, k, x)"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("text", [SHARD_MAP, ALIKE], ids=["shard_map", "shard_alike"])
def test_commands(text: str, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(text)
    assert main([command[0], "m.mlir", *command[1:], "--mesh", "x=4"]) == 0
