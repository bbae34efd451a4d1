"""Why a value is unreduced: where what is to be combined begins, who hands it on, and where it is reduced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import shardlog
from shardlog.cli import main
from shardlog.program.shardy import installed

T = "tensor<8x8xf32>"


def text(kind: str = "", *, gives: str = '[{"x"}, {}]', last: bool = True) -> str:
    """A product and an argument that are unreduced are added, and reduced at last or returned."""
    own = f'[{{}}, {{}}], unreduced={kind}{{"x"}}'
    said = f"{{sdy.sharding = #sdy.sharding_per_value<[<@mesh, {own}>]>}}"
    lines = [
        'sdy.mesh @mesh = <["x"=4]>',
        f'func.func @main(%arg0: {T} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}},',
        f"    %arg1: {T} {{sdy.sharding = #sdy.sharding<@mesh, {own}>}})",
        f"    -> ({T} {{sdy.sharding = #sdy.sharding<@mesh, {gives}>}}) {{",
        f"  %0 = stablehlo.tanh %arg0 {said} : {T}",
        f"  %1 = stablehlo.add %0, %arg1 {said} : {T}",
        f"  %2 = sdy.sharding_constraint %1 <@mesh, {gives}> : {T}" if last else "",
        f"  return {'%2' if last else '%1'} : {T}",
        "}",
    ]
    return "\n".join(lines)


def test_it_is_told_where_it_begins_and_where_it_is_reduced() -> None:
    (unreduced,) = shardlog.run(text()).why("%0").unreduced
    assert (unreduced.axis, unreduced.reduction) == ("x", "sum")
    assert str(unreduced).splitlines() == [
        f'%0 : {T} is unreduced on "x", the sum of what the devices along it hold',
        "  by the annotation of %0 at <text>:5",
        "  it begins at stablehlo.tanh (%0) at <text>:5",
        "  handed on, as annotations say, by stablehlo.add (%1) at <text>:6",
        "  it is reduced for sdy.sharding_constraint (%2) at <text>:7",
    ]
    (after,) = shardlog.run(text()).why("%1", axis="x").unreduced
    assert [point.value for point in after.begins] == ["%0", "%arg1"]


@pytest.mark.skipif(installed() == "0.10", reason="jaxlib 0.10 has sums alone")
def test_a_maximum_is_called_so() -> None:
    (unreduced,) = shardlog.run(text("max")).why("%1").unreduced
    assert "the maximum of what" in str(unreduced)


def test_what_is_returned_as_it_is_is_said() -> None:
    result = shardlog.run(text(gives='[{}, {}], unreduced={"x"}', last=False))
    (unreduced,) = result.why("%1").unreduced
    assert "it is returned unreduced, as result result#0" in str(unreduced)
    assert not result.why("%arg0").unreduced


def test_the_command_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file := tmp_path / "m.mlir").write_text(text())
    saved = tmp_path / "run.db"
    assert main(["run", str(file), "--save", str(saved), "-o", str(tmp_path / "o.mlir")]) == 0
    capsys.readouterr()
    for run in (file, saved):
        assert main(["why", str(run), "%1"]) == 0
        assert '%1 : tensor<8x8xf32> is unreduced on "x"' in capsys.readouterr().out
    assert main(["why", str(file), "%1", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    said: Any = {key: entry[key] for key in ("value", "axis", "reduction")}
    assert said == {"value": "%1", "axis": "x", "reduction": "sum"}
