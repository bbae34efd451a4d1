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
from shardlog.explanations.report.data import collect
from shardlog.session import Session

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
V = '%v: tensor<32x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}]>}'


@pytest.fixture(params=["live", "saved"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Session:
    result = shardlog.run(MODULE)
    if request.param == "live":
        return result
    result.save(tmp_path / "run.shardlog")
    return shardlog.open(tmp_path / "run.shardlog")


def test_another_annotation(run: Session) -> None:
    answer = run.what_if(annotate=['%arg2=[{}, {"model"}]'])
    changed = shardlog.run(MODULE, annotate=['%arg2=[{}, {"model"}]'])
    assert {t.value: t.second for t in answer.diff.tensors}["result#0"] == ("", "model")
    assert answer.bytes == tuple(sum(c.bytes for c in r.conflicts()) for r in (run, changed))


@pytest.mark.parametrize("name", ["%arg2", "params['v']"])
def test_an_annotation_less(run: Session, name: str) -> None:
    """As if it had not been written."""
    answer = run.what_if(drop=[name])
    parting = next(p for p in answer.diff.partings if p.op == "annotation")
    assert (parting.has, parting.site.value, parting.why_not) == (1, "%arg2", "not annotated")
    changed = shardlog.run(MODULE.replace(V, "%v: tensor<32x4xf32>"))
    assert [c.as_json() for c in answer.after] == [c.as_json() for c in changed.conflicts()]
    assert {c.collective for c in answer.after} != {c.collective for c in answer.before}


def test_patterns(run: Session) -> None:
    answer = run.what_if(drop=["params[*]"])
    assert {p.site.value for p in answer.diff.partings if p.op == "annotation"} == {"%arg1", "%arg2"}
    assert answer.bytes == (sum(c.bytes for c in answer.before), 0)


def test_both(run: Session) -> None:
    answer = run.what_if(annotate=['%arg1=[{}, {"model"}]'], drop=["%arg2"])
    assert {t.value: t.second for t in answer.diff.tensors}["%0"] == ("data", "model")


def test_no_change(run: Session) -> None:
    answer = run.what_if()
    assert answer.diff.tensors == ()
    assert answer.before == answer.after


def test_a_constraint_is_dropped() -> None:
    text = MODULE.replace(
        "  %1 = stablehlo.dot_general %0,",
        '  %c = sdy.sharding_constraint %0 <@mesh, [{?}, {"model", ?}]> : tensor<8x32xf32>\n'
        "  %1 = stablehlo.dot_general %c,",
    ).replace(
        '%w: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}]>}', "%w: tensor<16x32xf32>"
    )
    run = shardlog.run(text)
    answer = run.what_if(drop=["%1"])
    assert {t.value: t.second for t in answer.diff.tensors}["%0"] == ("data", "")
    # The constraint asks for nothing any more: what moves is what moves without it.
    free = shardlog.run(text.replace('[{?}, {"model", ?}]', "[{?}, {?}]"))
    assert [c.as_json() for c in answer.after] == [c.as_json() for c in free.conflicts()]
    assert "model" in {c.partial for c in answer.before} - {c.partial for c in answer.after}


def test_partial_sums_count() -> None:
    """An MLP as in Megatron: what its second product leaves partial is summed over "model"."""
    text = """
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                %up: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
                %down: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>})
    -> tensor<8x16xf32> {
  %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0]
     : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = stablehlo.tanh %0 : tensor<8x32xf32>
  %2 = stablehlo.dot_general %1, %down, contracting_dims = [1] x [0]
     : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}
"""
    answer = shardlog.run(text).what_if(drop=["%arg1", "%arg2"])
    (conflict,) = answer.before
    assert (conflict.tensor, conflict.partial, conflict.collective) == ("%2", "model", "all-reduce")
    # Of 4 * 16 elements of four bytes, three quarters are sent to be added up, and as much of the sums.
    assert answer.bytes == (2 * (4 * 16 * 4) * 3 // 4, 0)


def test_a_program_that_cannot_be_partitioned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is propagated, and reported on: only what moves is not known."""
    module = tmp_path / "meshes.mlir"
    module.write_text("""
sdy.mesh @mesh = <["a"=4]>
sdy.mesh @half = <["b"=2]>
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>})
    -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = sdy.manual_computation(%x) in_shardings=[<@half, [{"b"}]>] out_shardings=[<@half, [{"b"}]>]
      manual_axes={"b"} (%z: tensor<4xf32>) {
    %1 = stablehlo.tanh %z : tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %2 = stablehlo.abs %y : tensor<8xf32>
  return %0, %2 : tensor<8xf32>, tensor<8xf32>
}
""")
    message = "meshes.mlir:6:8: error: a manual computation over @half of 2 devices, in a program of 4"
    assert main(["what-if", str(module), "--drop", "%arg1"]) == 0
    _, first, *_, last = capsys.readouterr().out.splitlines()
    assert "the bytes that must move are not known" in first
    assert message in first
    assert "so differ" in last
    assert main(["what-if", str(module), "--drop", "%arg1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    validate(document, schema("what-if"))
    assert document["bytes"] is None
    assert message in document["unpartitioned"]
    assert main(["conflicts", str(module)]) == 2
    assert message in capsys.readouterr().err
    assert main(["run", str(module), "--fail-on", "reshard-above=0", "-o", str(tmp_path / "o.mlir")]) == 1
    assert "reshard-above: the collectives are not known" in capsys.readouterr().out
    result = shardlog.run(module)
    assert message in repr(shardlog.explain(result))
    assert message in collect(result.programs)["unpartitioned"]


@pytest.mark.parametrize(
    ("drop", "message", "hint"),
    [
        ("%0", "%0 has no annotation", "%arg0, %arg1, %arg2"),
        ("%9", "there is no value %9", "the nearest are"),
        ("parms[*]", "no value is called parms[*]", "params['w']"),
    ],
)
def test_bad_input(run: Session, drop: str, message: str, hint: str) -> None:
    with pytest.raises(ShardlogError) as error:
        run.what_if(drop=[drop])
    assert error.value.message == message
    assert hint in error.value.hint


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = tmp_path / "two.mlir"
    module.write_text(MODULE)
    assert main(["what-if", str(module), "--drop", "params['v']"]) == 0
    program, first, second, *_ = capsys.readouterr().out.splitlines()
    assert program.startswith("program: least bytes (")
    answer = shardlog.run(module).what_if(drop=["%arg2"])
    assert answer.bytes is not None
    before, after = answer.bytes
    assert first == f"{before} bytes must move to each device before, {after} after: {after - before:+}"
    assert second == f"{len(answer.diff.tensors)} of 6 tensors are sharded otherwise"
    assert main(["what-if", str(module), "--drop", "%arg2", "--json"]) == 0
    validate(json.loads(capsys.readouterr().out), schema("what-if"))
