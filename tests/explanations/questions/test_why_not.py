"""Why a value is not sharded on an axis: small modules with the reason beside them."""

from __future__ import annotations

import pytest
import shardlog
from shardlog.errors import ShardlogError
from shardlog.explanations.answers.why_not import WhyNot, why_not_text
from shardlog.explanations.questions.why_not import after_removal, why_not
from shardlog.explanations.steps import Reason


def module(x: str, w: str, body: str = "") -> str:
    return f"""
sdy.mesh @mesh = <["data"=2, "model"=2]>
func.func @main(%x: tensor<8x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, {x}>}},
                %w: tensor<4x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, {w}>}}) -> tensor<8x16xf32> {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
     : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  {body}
  %1 = stablehlo.tanh %0 : tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}}
"""


def ask(text: str, value: str, dim: int, axis: str) -> WhyNot:
    (answer,) = why_not(shardlog.run(text).explainer, value, dim, axis)
    return answer


def only(found: WhyNot) -> Reason:
    """The only reason at the first op."""
    (reason,) = found.stops[0].reasons
    return reason


def test_taken_by_another_factor() -> None:
    answer = ask(module('[{"data"}, {}]', '[{}, {"data"}]'), "%0", 0, "data")
    assert (answer.stops[0].op, answer.stops[0].near.value) == ("stablehlo.dot_general", "%arg0")
    reason = only(answer)
    assert reason.reason == "in use"
    assert reason.sentence == 'Factor j of slot 2 (%0) uses "data".'
    assert reason.culprit.startswith('%0 dim 1 has "data" from the annotation of %arg1')


def test_closed() -> None:
    reason = only(ask(module('[{}, {"model"}]', "[{}, {?}]"), "%arg1", 0, "model"))
    assert (reason.reason, reason.sentence) == ("closed", "Factor k of slot 1 (%arg1) is closed.")
    assert reason.culprit.startswith("%arg1 is annotated <@mesh, [{}, {?}]>")


def test_clash() -> None:
    reason = only(ask(module('[{}, {"model"}]', '[{"data"}, {}]'), "%arg1", 0, "model"))
    assert reason.reason == "clash"
    assert reason.culprit.startswith('%arg1 dim 0 has "data"')


def test_replicated() -> None:
    reason = only(ask(module('[{}, {"model"}]', '[{?}, {}], replicated={"model"}'), "%arg1", 0, "model"))
    assert (reason.reason, reason.sentence) == (
        "replicated",
        'Slot 1 (%arg1) is explicitly replicated on "model".',
    )


def test_nothing_to_come() -> None:
    answer = ask(module('[{"data"}, {?}]', "[{?}, {?}]"), "%1", 1, "model")
    assert answer.stops == ()
    assert "annotate one of them" in why_not_text(answer)


def test_the_tensor_itself() -> None:
    (reason,) = ask(module('[{"data"}, {?}]', "[{?}, {?}]"), "%1", 1, "data").here
    assert (reason.reason, reason.sentence) == ("in use", "dim 0 of the tensor has it")


def test_further_on() -> None:
    answer = ask(module('[{"data"}, {}]', '[{}, {"data"}]'), "%1", 0, "data")
    assert [stop.distance for stop in answer.stops] == [1]
    assert "1 further on" in why_not_text(answer)


def test_it_is() -> None:
    with pytest.raises(ShardlogError, match='%0 dim 0 is sharded on "data"'):
        ask(module('[{"data"}, {}]', "[{}, {}]"), "%0", 0, "data")


def test_unknown_axis() -> None:
    with pytest.raises(ShardlogError) as error:
        ask(module('[{"data"}, {}]', "[{}, {}]"), "%0", 0, "x")
    assert error.value.hint == "@mesh has data, model"


@pytest.mark.parametrize(
    ("x", "w", "value", "dim", "axis", "culprit", "then"),
    [
        ('[{"data"}, {}]', '[{}, {"data"}]', "%0", 0, "data", "%arg1", '%0 dim 0 is sharded on "data"'),
        ('[{}, {"model"}]', "[{}, {?}]", "%arg1", 0, "model", "%arg1", '%arg1 dim 0 is sharded on "model"'),
    ],
)
def test_without_the_culprit(
    x: str, w: str, value: str, dim: int, axis: str, culprit: str, then: str
) -> None:
    result = shardlog.run(module(x, w))
    (answer,) = why_not(result.explainer, value, dim, axis)
    assert after_removal(result.result, answer) == (culprit, then)


def test_a_name_that_stands_for_two_tensors() -> None:
    text = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32>, %b: tensor<8x4xf32>, %i: tensor<i32>) -> tensor<8x4xf32> {
  %0 = "stablehlo.case"(%i) ({
    %1 = stablehlo.tanh %a : tensor<8xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<8xf32>) -> tensor<8x4xf32>
    stablehlo.return %2 : tensor<8x4xf32>
  }, {
    %1 = stablehlo.tanh %b : tensor<8x4xf32>
    stablehlo.return %1 : tensor<8x4xf32>
  }) : (tensor<i32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""
    run = shardlog.run(text)
    assert [found.site.type for found in why_not(run.explainer, "%1", 0, "x")] == [
        "tensor<8xf32>",
        "tensor<8x4xf32>",
    ]
    assert [found.site.type for found in why_not(run.explainer, "%1", 1, "x")] == ["tensor<8x4xf32>"]
    with pytest.raises(shardlog.ShardlogError, match="%1 has no dimension rows"):
        run.why_not("%1", "rows", "x")  # type: ignore[arg-type]
    with pytest.raises(shardlog.ShardlogError, match="%1 has no dimension 2"):
        why_not(run.explainer, "%1", 2, "x")
