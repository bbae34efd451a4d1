"""Explanations of `shard_map`: manual axes shard what is inside, and specs are not the user's annotations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import shardlog
from shardlog.checks.lint import Lint, findings
from shardlog.cli import main
from shardlog.errors import ShardlogError
from shardlog.explanations.answers.why_not import why_not_text
from shardlog.explanations.questions.why_not import why_not
from shardlog.explanations.report.data import collect
from shardlog.session import Session

MODULE = """
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>} loc("x"),
                %y: tensor<8x16xf32> loc("y")) -> tensor<8x16xf32> {
  %0 = call @relu(%x) : (tensor<8x16xf32>) -> tensor<8x16xf32> loc("model.py":3:1)
  %1 = stablehlo.tanh %y : tensor<8x16xf32> loc("model.py":4:1)
  %2 = sdy.manual_computation(%0, %1) in_shardings=[<@mesh, [{"a"}, {}]>, <@mesh, [{"a"}, {}]>]
      out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%p: tensor<4x16xf32>, %q: tensor<4x16xf32>) {
    %3 = stablehlo.add %p, %q : tensor<4x16xf32> loc("model.py":8:1)
    %4 = func.call @relu_0(%3) : (tensor<4x16xf32>) -> tensor<4x16xf32> loc("model.py":9:1)
    sdy.return %4 : tensor<4x16xf32>
  } : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32> loc("model.py":7:1)
  return %2 : tensor<8x16xf32>
}
func.func private @relu(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = stablehlo.abs %x : tensor<8x16xf32> loc("model.py":1:1)
  return %0 : tensor<8x16xf32>
}
func.func private @relu_0(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %0 = stablehlo.abs %x : tensor<4x16xf32> loc("model.py":2:1)
  return %0 : tensor<4x16xf32>
}
"""
SHARD_MAP = "the shard_map at model.py:7"


@pytest.fixture(params=["live", "saved"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Session:
    result = shardlog.run(MODULE)
    if request.param == "live":
        return result
    result.save(tmp_path / "run.shardlog")
    return shardlog.open(tmp_path / "run.shardlog")


def manual_of(run: Session, name: str) -> tuple[tuple[str, str], ...]:
    return run.record.named(name)[0].manual


def test_what_is_inside_is_a_part_along_the_manual_axes(run: Session) -> None:
    inside = (("a", "model.py:7"),)
    for name in ("%arg2", "%3", "%4", "@relu_0:%arg0", "@relu_0:%0"):
        assert manual_of(run, name) == inside, name
    for name in ("%0", "%1", "%2", "%arg0", "@relu:%0", "result#0"):
        assert manual_of(run, name) == (), name


def test_specs_are_those_of_the_shard_map(run: Session) -> None:
    given = {a.value: (a.by, a.where) for a in run.record.given_shardings()}
    assert given["%1"] == ("in_specs[1]", "model.py:7")
    assert given["%0'1"] == ("in_specs[0]", "model.py:7")  # where data flows from a call: a constraint
    assert given["%2"] == ("out_specs[0]", "model.py:7")
    assert [a.value for a in run.record.annotations()] == ["%arg0"]


def test_why_names_the_spec(run: Session) -> None:
    (answer,) = run.why("%arg1", 0)
    assert str(answer.origin) == f"in_specs[1] of {SHARD_MAP}"
    assert str(answer).splitlines()[-1] == f'  in_specs[1] of {SHARD_MAP}: %1 <@mesh, [{{"a"}}, {{}}]>'


def test_why_not_inside(run: Session) -> None:
    (answer,) = why_not(run.explainer, "%3", 0, "a")
    sentence = f"Manual axis of {SHARD_MAP}: inside, a tensor is a device's own part."
    assert [(reason.reason, reason.sentence) for reason in answer.here] == [("manual", sentence)]


def test_why_not_at_the_boundary() -> None:
    """Results of the computation lack "a", which everything outside has."""
    module = MODULE.replace('out_shardings=[<@mesh, [{"a"}, {}]>]', "out_shardings=[<@mesh, [{}, {}]>]")
    module = module.replace('-> tensor<8x16xf32> loc("model.py":7', '-> tensor<4x16xf32> loc("model.py":7')
    module = module.replace("return %2 : tensor<8x16", "return %2 : tensor<4x16")
    module = module.replace('loc("y")) -> tensor<8x16xf32>', 'loc("y")) -> tensor<4x16xf32>')
    (answer,) = why_not(shardlog.run(module).explainer, "%2", 0, "a")
    assert {reason.reason for stop in answer.stops for reason in stop.reasons} == {"manual"}
    assert SHARD_MAP in why_not_text(answer)


def test_lint_counts_manual_axes(run: Session) -> None:
    listed = findings(run, [Lint.parse("replicated-above=0")])
    (inside,) = [f for f in listed if f.what.startswith("%3")]
    assert inside.bytes == 4 * 16 * 4 * 3 // 4
    assert inside.sentence.endswith('it is not sharded on "b"')


def test_stages_count_manual_axes() -> None:
    (account,) = shardlog.run(MODULE).accounts
    assert not [tensor.name for tensor in account.replicated if tensor.manual]
    assert {one.tensor for one in account.given} == {"x"}


def test_summary_counts_manual_axes() -> None:
    first = str(shardlog.explain(shardlog.run(MODULE))).splitlines()[1]
    assert first.endswith("by 1 annotations and the specs of shard_maps")
    sharded, of, total = first.split()[:3]
    assert sharded == total, of


def test_report_counts_manual_axes(run: Session) -> None:
    data = collect(run.programs)
    tensors = data["tensors"]
    found = {
        name: (size, data["manual"][manual])
        for name, size, manual in zip(tensors["name"], tensors["bytes"], tensors["manual"], strict=True)
    }
    assert found["%3"] == (8 * 16 * 4, ("a",))
    assert found["%1"] == (8 * 16 * 4, ())
    assert {row[4] for row in data["annotations"]} == {"user", "in_specs[0]", "in_specs[1]", "out_specs[0]"}


@pytest.mark.parametrize("name", ["%1", "%2", "y"])
def test_specs_cannot_be_dropped(run: Session, name: str) -> None:
    if name == "y":
        with pytest.raises(ShardlogError, match="y has no annotation"):
            run.what_if(drop=[name])
        return
    with pytest.raises(ShardlogError, match=f"of {SHARD_MAP}, which cannot be dropped"):
        run.what_if(drop=[name])


def test_conflicts_name_the_spec() -> None:
    module = MODULE.replace('{"b"}', '{"a"}')
    conflict_list = shardlog.run(module).conflicts(keep_shardings=True)
    assert f"in_specs[0] of {SHARD_MAP}" in (
        str(given) for conflict in conflict_list for given in conflict.given
    )


def test_verify_where_an_op_has_several_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the specs a part along the manual axes would be on no mesh."""
    path = tmp_path / "sort.mlir"
    path.write_text(SORT)
    assert main(["why", str(path), "%arg0", "--dim", "1", "--verify", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    verified: dict[str, Any] = entry["verified"]
    assert verified["derived_again"]


SORT = """
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>},
                %y: tensor<8x16xi32>) -> tensor<8x16xf32> {
  %0:2 = "stablehlo.sort"(%x, %y) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %5 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %5 : tensor<i1>
  }) {dimension = 1 : i64} : (tensor<8x16xf32>, tensor<8x16xi32>) -> (tensor<8x16xf32>, tensor<8x16xi32>)
  %2 = sdy.manual_computation(%0#0) in_shardings=[<@mesh, [{"a"}, {?}]>]
      out_shardings=[<@mesh, [{"a"}, {?}]>] manual_axes={"a"} (%p: tensor<4x16xf32>) {
    sdy.return %p : tensor<4x16xf32>
  } : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}
"""
