"""Why a value of a completed module is annotated: visits of completion, back to what the program says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import shardlog
from shardlog.cli import main
from shardlog.errors import ShardlogError

T = "tensor<12x18xf32>"

CHAIN = f"""shard.grid @g(shape = 2)
func.func @f(%x: {T}) -> {T} {{
  %a = tosa.exp %x : ({T}) -> {T}
  %b = tosa.tanh %a : ({T}) -> {T}
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %c = shard.shard %b to %s : {T}
  return %c : {T}
}}
"""

# Of two operands, the second gives way: a constraint stands before the op.
CONFLICT = f"""shard.grid @g(shape = 2x3)
func.func @f(%x: {T}, %y: {T}) -> {T} {{
  %s = shard.sharding @g split_axes = [[0]] : !shard.sharding
  %t = shard.sharding @g split_axes = [[], [1]] : !shard.sharding
  %p = shard.shard %x to %s : {T}
  %q = shard.shard %y to %t : {T}
  %z = tosa.maximum %p, %q : ({T}, {T}) -> {T}
  %e = tosa.exp %z : ({T}) -> {T}
  return %e : {T}
}}
"""

# A sum over a loop that is split, which the program wants as it is.
PARTIAL = """mesh.cluster @c(rank = 1, dim_sizes = [2])
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %0 = "mhlo.dot"(%x, %w) : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %1 = mesh.annotate %0 {required = true, sharding = [[], [], [0]]} : tensor<4x6xf32> -> tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}
"""


def completed(text: str) -> shardlog.Session:
    return shardlog.run(text, propagation="completion")


def test_the_visits_lead_back_to_the_annotation() -> None:
    (answer,) = completed(CHAIN).why("%x")
    assert re.sub(r"dl:\d+", "dl:...", str(answer)).splitlines() == [
        f"%x : {T} at <text>:2",
        'dim 1 is sharded on "0"',
        '  %x dim 1 gets "0" from %a dim 1 by tosa.exp at <text>:3',
        "      result (d0, d1) -> operand 0 (d0, d1), loop d1 (parallel); completion, visit 1 (backward)",
        '      The annotation of slot 1 (%a) splits loop d1 along axis "0".',
        "      [rules/propagation/completion/option.dl:...]",
        "      candidate 0 of 1: No annotation is resharded.",
        '  %a dim 1 gets "0" from %b dim 1 by tosa.tanh at <text>:4',
        "      result (d0, d1) -> operand 0 (d0, d1), loop d1 (parallel); completion, visit 0 (backward)",
        '      The annotation of slot 1 (%b) splits loop d1 along axis "0".',
        "      [rules/propagation/completion/option.dl:...]",
        "      candidate 0 of 1: No annotation is resharded.",
        '  annotated %b <@g, [{}, {"0"}]> at <text>:4',
    ]


def test_names_are_those_of_the_text_behind_a_constraint_that_was_added() -> None:
    session = completed(CONFLICT)
    (answer,) = session.why("%e")
    assert [step.site.value for step in answer.steps] == ["%e", "%z"]
    assert answer.site.where == "<text>:8"
    assert (answer.origin.value, answer.origin.by) == ("%x", "user")
    assert "candidate 1 of 4: Only annotations for other ops are resharded." in answer.steps[1].candidate
    assert "Slot 1 (%y.1) is annotated otherwise" in answer.steps[1].candidate
    assert [e.origin.value for e in session.why("%y")] == ["%y"]
    assert not session.why("%y")[0].steps


def test_a_reduction_is_split_for_a_partial_sum() -> None:
    (answer,) = completed(PARTIAL).why("%w")
    (step,) = answer.steps
    assert (step.factor, step.source.value) == ("d2 (reduction)", "%0")
    assert '%w dim 0 gets "0" from %0 (a partial sum) by stablehlo.dot' in str(answer)


def test_proofs_of_visits_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "conflict.mlir"
    path.write_text(CONFLICT)
    main(["why", str(path), "%e", "--propagation", "completion", "--verify"])
    assert "proof steps; completion was not run again" in capsys.readouterr().out
    with pytest.raises(ShardlogError, match="completion cannot drop an annotation"):
        completed(CONFLICT).what_if(drop="%x")


def test_a_saved_run_says_what_completion_gave(tmp_path: Path) -> None:
    session = completed(CHAIN)
    session.save(tmp_path / "chain.run")
    (answer,) = shardlog.open(tmp_path / "chain.run").why("%x")
    assert answer.origin.by == "completion"
    assert "annotated by completion: %x" in str(answer)


def test_completion_is_compared_with_shardys_algorithm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "conflict.mlir"
    path.write_text(CONFLICT)
    both = ["diff", str(path), str(path), "--propagation", "completion", "--other-propagation", "shardy"]
    assert main(both) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "3 of 5 tensors are sharded otherwise; 1 is in 1 only" in said
    assert '2 only: "1" on %z dim 1, by tosa.maximum' in said
    assert "1: annotated by completion" in said
    assert main([*both, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["compared"] == 5


def test_runs_part_at_a_visit() -> None:
    text = PARTIAL.replace("%1 : tensor<4x6xf32>\n}", "%1 : tensor<4x6xf32>\n}")
    difference = completed(text).diff(shardlog.run(text))
    assert {parting.op for parting in difference.partings} == {"stablehlo.dot"}
    assert all(
        "from %0 (a partial sum); completion, visit 0" in parting.why for parting in difference.partings
    )


def test_an_option_of_the_user_is_where_an_axis_comes_from() -> None:
    session = shardlog.run(CHAIN, propagation="completion", sharding_option=["%a=[[0]]"])
    (answer,) = session.why("%x", dim=0)
    assert '%x dim 0 gets "0" from the sharding option by tosa.exp' in str(answer)
    assert "The option that the user gives the op splits loop d0" in str(answer)
