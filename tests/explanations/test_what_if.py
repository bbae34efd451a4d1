"""What-if: runs with other annotations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import shardlog
from jsonschema import validate
from shardlog.cli import main
from shardlog.cli.schemas import schema
from shardlog.errors import ShardlogError
from shardlog.explanations.questions.conflicts import conflicts
from shardlog.explanations.questions.what_if import what_if
from shardlog.runs.records.record import Run

MODULE = """
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("batch['x']"),
                %w: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}]>}
                    loc("params['w']"),
                %v: tensor<32x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}]>}
                    loc("params['v']"))
    -> tensor<8x4xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
     : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = stablehlo.dot_general %0, %v, contracting_dims = [1] x [0]
     : (tensor<8x32xf32>, tensor<32x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
"""


@pytest.fixture(params=["live", "saved"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    result = shardlog.run(MODULE)
    if request.param == "live":
        return result
    result.save(tmp_path / "run.shardlog")
    return shardlog.open(tmp_path / "run.shardlog")


def test_another_annotation(run: Run) -> None:
    found = what_if(run, annotate=['%arg2=[{}, {"model"}]'])
    changed = shardlog.run(MODULE, annotate=['%arg2=[{}, {"model"}]'])
    assert {t.value: t.second for t in found.diff.tensors}["result#0"] == ("", "model")
    assert found.bytes == tuple(sum(c.bytes for c in conflicts(r)) for r in (run, changed))


@pytest.mark.parametrize("name", ["%arg2", "params['v']"])
def test_an_annotation_less(run: Run, name: str) -> None:
    found = what_if(run, drop=[name])
    parting = next(p for p in found.diff.partings if p.op == "annotation")
    assert (parting.has, parting.site.value, parting.why_not) == (1, "%arg2", "not annotated")
    before, after = found.bytes
    assert after < before


def test_patterns(run: Run) -> None:
    found = what_if(run, drop=["params[*]"])
    assert {p.site.value for p in found.diff.partings if p.op == "annotation"} == {"%arg1", "%arg2"}
    assert found.bytes[1] == 0


def test_both(run: Run) -> None:
    found = what_if(run, annotate=['%arg1=[{}, {"model"}]'], drop=["%arg2"])
    assert {t.value: t.second for t in found.diff.tensors}["%0"] == ("data", "model")


def test_no_change(run: Run) -> None:
    found = what_if(run)
    assert found.diff.tensors == ()
    assert found.before == found.after


def test_a_constraint_is_dropped() -> None:
    text = MODULE.replace(
        "  %1 = stablehlo.dot_general %0,",
        '  %c = sdy.sharding_constraint %0 <@mesh, [{?}, {"model", ?}]> : tensor<8x32xf32>\n'
        "  %1 = stablehlo.dot_general %c,",
    ).replace(
        '%w: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}]>}', "%w: tensor<16x32xf32>"
    )
    run = shardlog.run(text)
    found = what_if(run, drop=["%1"])
    assert {t.value: t.second for t in found.diff.tensors}["%0"] == ("data", "")


@pytest.mark.parametrize(
    ("drop", "message", "hint"),
    [
        ("%0", "%0 has no annotation", "%arg0, %arg1, %arg2"),
        ("%9", "there is no value %9", "the nearest are"),
        ("parms[*]", "no value is called parms[*]", "params['w']"),
    ],
)
def test_bad_input(run: Run, drop: str, message: str, hint: str) -> None:
    with pytest.raises(ShardlogError) as error:
        what_if(run, drop=[drop])
    assert error.value.message == message
    assert hint in error.value.hint


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = tmp_path / "two.mlir"
    module.write_text(MODULE)
    assert main(["what-if", str(module), "--drop", "params['v']"]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    found = what_if(shardlog.run(module), drop=["%arg2"])
    before, after = found.bytes
    assert first == f"{before} bytes must move to each device before, {after} after: {after - before:+}"
    assert second == f"{len(found.diff.tensors)} of 6 tensors are sharded otherwise"
    assert main(["what-if", str(module), "--drop", "%arg2", "--json"]) == 0
    validate(json.loads(capsys.readouterr().out), schema("what-if"))
