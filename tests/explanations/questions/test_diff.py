"""Differences between two runs: where they part, and why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import shardlog
from jsonschema import validate
from shardlog.cli import main
from shardlog.cli.schemas import schema
from shardlog.explanations.answers.diff import diff_text
from shardlog.explanations.questions.diff import diff

from ...support import models, oracle
from ...support.drawing import by_day

DOT = """
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%x: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                %w: tensor<16x32xf32>) -> tensor<64x32xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
     : (tensor<64x16xf32>, tensor<16x32xf32>) -> tensor<64x32xf32> loc("model.py":7:9)
  %1 = stablehlo.tanh %0 : tensor<64x32xf32> loc("model.py":8:9)
  return %1 : tensor<64x32xf32>
}
"""
COLUMNS = '%arg1=[{}, {"model"}]'


def test_a_run_does_not_differ_from_itself() -> None:
    difference = diff(shardlog.run(DOT).record, shardlog.run(DOT).record)
    assert (difference.compared, difference.alone, difference.tensors, difference.partings) == (
        5,
        (0, 0),
        (),
        (),
    )


def test_they_part_at_an_annotation() -> None:
    difference = diff(shardlog.run(DOT).record, shardlog.run(DOT, annotate=[COLUMNS]).record)
    assert [(t.value, t.first, t.second) for t in difference.tensors] == [
        ("%arg1", ("", ""), ("", "model")),
        ("%0", ("data", ""), ("data", "model")),
        ("%1", ("data", ""), ("data", "model")),
        ("result#0", ("data", ""), ("data", "model")),
    ]
    (parting,) = difference.partings
    assert (parting.has, parting.axis, parting.op, parting.site.value) == (2, "model", "annotation", "%arg1")
    assert parting.why == 'annotated <@mesh, [{}, {"model"}]>'
    assert parting.why_not == "not annotated"
    assert parting.dims == (("%arg1", 1), ("%0", 1), ("%1", 1), ("result#0", 1))


def test_they_part_at_an_op() -> None:
    """Both have the axis on an operand; in one run another dimension of the result takes it."""
    both = '%arg1=[{}, {"data"}]'
    first = shardlog.run(DOT, annotate=[both])
    second = shardlog.run(DOT.replace('{"data"}, {}', "{}, {}"), annotate=[both])
    parting = next(p for p in diff(first.record, second.record).partings if p.site.dim == 1)
    assert (parting.has, parting.axis, parting.op, parting.where) == (
        2, "data", "stablehlo.dot_general", "model.py:7"
    )  # fmt: skip
    assert parting.why.startswith('"data" comes from the annotation of %arg1')
    assert 'in use: Factor i of slot 2 (%0) uses "data"' in parting.why_not
    assert parting.dims == (("%0", 1), ("%1", 1), ("result#0", 1))


def test_strategies() -> None:
    """The aggressive strategy settles a conflict within an op, the basic one leaves it."""
    both = '%arg1=[{}, {"data"}]'
    runs = [shardlog.run(DOT, annotate=[both], strategy=name).record for name in ("aggressive", "basic")]
    (parting,) = diff(*runs).partings
    assert (parting.has, parting.axis, parting.op, parting.site.dim) == (
        1,
        "data",
        "stablehlo.dot_general",
        0,
    )
    assert "in use" in parting.why_not


def test_meshes_of_other_sizes() -> None:
    """An axis is the same axis, however many devices it has."""
    runs = [shardlog.run(DOT, mesh=f"data=2,model={size}", annotate=[COLUMNS]).record for size in (2, 8)]
    assert diff(*runs).tensors == ()


@pytest.mark.parametrize(
    ("name", "scan"), by_day([("recommender", False), ("mixture_of_experts", True)], models.LAYERED)
)
def test_shardy(name: str, scan: bool) -> None:
    """The tensors of a module that Shardy has annotated are those of our run, and are sharded the same."""
    text = models.text(name, train=name != "decode", scan=scan)
    theirs = shardlog.run(oracle.propagate(text), strategy="none")
    difference = diff(shardlog.run(text, strict_shardy=True).record, theirs.record)
    assert difference.tensors == ()
    # Apart from constants, of which Shardy's module has those that are used, and reshards that it adds.
    assert difference.compared > 5 * sum(difference.alone) / 2


def test_another_version_of_the_program() -> None:
    """Tensors are the same if they are computed the same way, or by the same op at the same line."""
    other = DOT.replace(
        "%1 = stablehlo.tanh %0 ", "%n = stablehlo.negate %0 : tensor<64x32xf32>\n  %1 = stablehlo.tanh %n "
    )
    difference = diff(shardlog.run(DOT).record, shardlog.run(other, annotate=[COLUMNS]).record)
    assert (difference.compared, difference.alone) == (5, (0, 1))
    assert {(t.value, t.other) for t in difference.tensors} == {
        ("%arg1", "%arg1"),
        ("%0", "%0"),
        ("%1", "%2"),
        ("result#0", "result#0"),
    }


# ---- The command -------------------------------------------------------------------------------------------


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "dot.mlir"
    path.write_text(DOT)
    return path


def test_command(module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "columns.shardlog"
    assert main(["run", str(module), "--annotate", COLUMNS, "--save", str(saved)]) == 0
    assert main(["diff", str(module), str(saved)]) == 1
    shown = capsys.readouterr().out
    live = diff_text(diff(shardlog.run(module).record, shardlog.run(module, annotate=[COLUMNS]).record))
    assert shown == f"{live}\n"
    assert shown.splitlines() == [
        "4 of 5 tensors are sharded otherwise",
        f'  2 only: "model" on %arg1 dim 1, by annotation at {module}:4',
        '      2: annotated <@mesh, [{}, {"model"}]>',
        "      1: not annotated",
        "      so differ %arg1 dim 1, %0 dim 1, %1 dim 1, result#0 dim 1",
    ]
    assert main(["diff", str(saved), str(saved)]) == 0
    assert capsys.readouterr().out == "0 of 5 tensors are sharded otherwise\n"


def test_as_is(module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    annotated = tmp_path / "annotated.mlir"
    annotated.write_text(oracle.propagate(DOT))
    assert main(["diff", str(module), str(annotated), "--as-is"]) == 0
    annotated.write_text(
        annotated.read_text().replace('[{"data"}, {}]>]>} : tensor<64x32', "[{}, {}]>]>} : tensor<64x32")
    )
    capsys.readouterr()
    assert main(["diff", str(module), str(annotated), "--as-is", "--full"]) == 1
    shown = capsys.readouterr().out
    assert '1 only: "data" on %1 dim 0, by stablehlo.tanh at model.py:8' in shown
    assert "2: annotated <@mesh, [{}, {}]>" in shown
    assert "%1 : tensor<64x32xf32> at model.py:8: [{data}, {}] -> [{}, {}]" in shown


def test_json(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(module), str(module), "--json"]) == 0
    validate(json.loads(capsys.readouterr().out), schema("diff"))
    found = diff(shardlog.run(DOT).record, shardlog.run(DOT, annotate=[COLUMNS]).record).as_json()
    validate(json.loads(json.dumps(found)), schema("diff"))
