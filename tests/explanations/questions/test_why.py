"""Why a value is sharded as it is: small modules with the explanation beside them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import shardlog
from shardlog.errors import ShardlogError
from shardlog.explanations.answers.why import Explanation, why_text
from shardlog.explanations.questions.replay import replay
from shardlog.explanations.questions.why import Explainer

DOT = """
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("batch['x']"),
                %w: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}
                    loc("params['w']"))
    -> (tensor<8x16xf32> {jax.result_info = "result['y']"}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
     : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32> loc("dot"("model.py":7:3))
  %1 = stablehlo.tanh %0 : tensor<8x16xf32> loc("tanh"(callsite("f"("model.py":8:3) at "train.py":3:1)))
  return %1 : tensor<8x16xf32>
}
"""


def explain(
    text: str, value: str, dim: int | None = None, axis: str | None = None, **options: Any
) -> Explanation:
    (answer,) = Explainer(shardlog.run(text, **options).record).why(value, dim, axis)
    return answer


def test_chain() -> None:
    answer = explain(DOT, "%1", 1)
    assert [(s.op, s.where, s.site.value, s.source.value, s.factor) for s in answer.steps] == [
        ("stablehlo.tanh", "model.py:8", "%1", "%0", "j"),
        ("stablehlo.dot_general", "model.py:7", "%0", "%arg1", "j"),
    ]
    assert (answer.steps[1].from_slot, answer.steps[1].to_slot) == ("operand 1", "result")
    assert answer.steps[1].sentence == (
        'Slot 1 (%arg1) has "model" as axis 0 of factor j, no other slot has another there, '
        "and operands pass it on."
    )
    assert answer.steps[1].rule.startswith("rules/propagation/turn/compatible.dl:")
    assert (answer.origin.value, answer.origin.where) == ("%arg1", "params['w']")
    assert answer.needs == (answer.origin,)


def test_text() -> None:
    lines = why_text(explain(DOT, "%0", 0)).splitlines()
    assert lines[0] == "%0 : tensor<8x16xf32> at model.py:7"
    assert lines[1] == 'dim 0 is sharded on "data"'
    assert lines[2] == '  %0 dim 0 gets "data" from %arg0 dim 0 by stablehlo.dot_general at model.py:7'
    assert lines[-1] == """  annotated %arg0 <@mesh, [{"data"}, {}]> at batch['x']"""


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("%1", ["%1"]),
        ("result#0", ["result#0"]),
        ("result['y']", ["result#0"]),
        ("params['w']", ["%arg1"]),
        ("model.py:7", ["%0"]),
        ("train.py:3", ["%1"]),
    ],
)
def test_names(name: str, values: list[str]) -> None:
    answer = Explainer(shardlog.run(DOT).record).why(name)
    assert answer
    assert {explanation.site.value for explanation in answer} == set(values)


def test_an_annotation_explains_itself() -> None:
    answer = explain(DOT, "%arg0")
    assert not answer.steps
    assert answer.origin.value == "%arg0"


def test_atoms_of_an_axis_are_explained_together() -> None:
    assert len(Explainer(shardlog.run(DOT).record).why("%0", 1)) == 1


def test_user_priority() -> None:
    text = """
sdy.mesh @mesh = <["data"=2]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}p1, {?}]>})
    -> tensor<8x4xf32> {
  %0 = stablehlo.tanh %x : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""
    answer = explain(text, "%0")
    assert [(s.kind, s.site.value, s.stage.priority) for s in answer.steps] == [
        ("propagation", "%0", 1),
        ("priority", "%arg0", 1),
    ]
    assert answer.steps[1].sentence == 'Dimension 0 is annotated with "data", and its priority has come.'
    assert answer.origin.value == "%arg0"


def test_a_constraint_is_the_annotation() -> None:
    text = """
sdy.mesh @mesh = <["data"=2]>
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.tanh %x : tensor<8x4xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"data"}, {}]> : tensor<8x4xf32> loc("model.py":5:1)
  return %1 : tensor<8x4xf32>
}
"""
    answer = explain(text, "%arg0")
    assert (answer.origin.value, answer.origin.where) == ("%1", "model.py:5")


def test_verified() -> None:
    session = shardlog.run(DOT)
    explainer = session.explainer
    (answer,) = explainer.why("%1", 1)
    assert explainer.check_proofs(answer) > len(answer.steps)
    assert replay(session.result, answer).holds


def test_json() -> None:
    document = json.loads(json.dumps(explain(DOT, "%0", 0).as_json(proofs=True)))
    (step,) = document["steps"]
    assert step["stage"] == {"priority": 0, "level": 2, "strategy": "aggressive"}
    proof = step["proof"]
    assert proof[0]["tuple"] == "puts(2, 0, 0, 0)"
    assert all(premise < len(proof) for row in proof for premise in row["premises"])


@pytest.mark.parametrize(
    ("value", "dim", "axis", "message", "hint"),
    [
        ("%2", None, None, "there is no value %2", "%1, %0"),
        ("parms['w']", None, None, "there is no value parms['w']", "params['w']"),
        ("model.py:9", None, None, "no value comes from model.py:9", "lines 7, 8 of model.py"),
        ("other.py:9", None, None, "no value comes from other.py:9", "no locations in other.py"),
        ("%0", 2, None, "%0 has no dimension 2", "0 to 1"),
        ("%0", 0, "modl", "no mesh has an axis modl", "@mesh has data, model; did you mean model?"),
    ],
)
def test_bad_input(value: str, dim: int | None, axis: str | None, message: str, hint: str) -> None:
    with pytest.raises(ShardlogError) as error:
        Explainer(shardlog.run(DOT).record).why(value, dim, axis)
    assert message in error.value.message
    assert hint in error.value.hint


def test_values_of_a_chain_share_its_steps() -> None:
    """Of a line with thousands of values, each behind the one before, every step is made once."""
    ops = "".join(
        f'  %{i} = stablehlo.tanh {f"%{i - 1}" if i else "%x"} : tensor<8xf32> loc("model.py":7:3)\n'
        for i in range(100)
    )
    text = f"""
sdy.mesh @mesh = <["data"=2]>
func.func @main(%x: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"data"}}]>}}) -> tensor<8xf32> {{
{ops}  return %99 : tensor<8xf32>
}}
"""
    answer = Explainer(shardlog.run(text).record).why("model.py:7")
    assert [len(explanation.steps) for explanation in answer] == list(range(1, 101))
    assert len({id(step) for explanation in answer for step in explanation.steps}) == 100
