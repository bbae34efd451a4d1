"""Every reason why an axis does not come to a tensor, and why it had not come before another."""

from __future__ import annotations

import pytest
import shardlog
from shardlog.errors import ShardlogError
from shardlog.explanations.answers.why import Explanation, why_text
from shardlog.explanations.answers.why_not import WhyNot, why_not_text
from shardlog.explanations.questions.why import Explainer
from shardlog.explanations.questions.why_not import why_not
from shardlog.explanations.steps import Reason

DOT = """%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
   : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>"""


def tensor(name: str, type_: str, sharding: str = "") -> str:
    given = f" {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}" if sharding else ""
    return f"%{name}: tensor<{type_}>{given}"


def module(arguments: list[str], body: str, returned: str, mesh: str = '"data"=2, "model"=4') -> str:
    """A function that returns the value ``name : type``."""
    return f"""
sdy.mesh @mesh = <[{mesh}]>
func.func @main({", ".join(arguments)}) -> {returned.split(" : ")[1]} {{
  {body}
  return {returned}
}}
"""


X = tensor("x", "8x4xf32", '[{"data"}, {?}]')
ADD = "%0 = stablehlo.add %x, %y : tensor<8x4xf32>", "%0 : tensor<8x4xf32>"

PARTIAL = '[{?}, {?}], unreduced={"data"}'
SUM = f"{{sdy.sharding = #sdy.sharding_per_value<[<@mesh, {PARTIAL}>]>}}"
ADD_PARTIAL = f"%0 = stablehlo.add %x, %y {SUM} : tensor<8x4xf32>", ADD[1]


def first(text: str, value: str, dim: int, axis: str) -> Reason:
    (answer,) = why_not(shardlog.run(text).explainer, value, dim, axis)
    return answer.stops[0].reasons[0]


@pytest.mark.parametrize(
    ("reason", "sentence", "text", "value"),
    [
        (
            "blocked",
            "Shardings never flow along factor i, of kind need_replication.",
            module(
                [X, "%i: tensor<i32>"],
                "%0 = stablehlo.dynamic_slice %x, %i, %i, sizes = [4, 4] : (tensor<8x4xf32>, tensor<i32>, "
                "tensor<i32>) -> tensor<4x4xf32>",
                "%0 : tensor<4x4xf32>",
            ),
            "%0",
        ),
        (
            "direction",
            "Shardings never flow from operands, as slot 0 (%arg0), along factor i.",
            module(
                [X], "%0 = sdy.propagation_barrier %x allowed_direction=BACKWARD : tensor<8x4xf32>", ADD[1]
            ),
            "%0",
        ),
        (
            "no rule",
            "No rule says how stablehlo.unary_einsum is sharded: to be written as reduce and transpose.",
            module(
                [X],
                '%0 = "stablehlo.unary_einsum"(%x) {einsum_config = "ab->ab"} '
                ": (tensor<8x4xf32>) -> tensor<8x4xf32>",
                ADD[1],
            ),
            "%0",
        ),
        (
            "no rule",
            "No rule says how my.op is sharded.",
            module([X], '%0 = "my.op"(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>', ADD[1]),
            "%0",
        ),
        (
            "result",
            "The result, slot 2 (%0), does not get the axis.",
            module(
                [X, tensor("y", "8x4xf32")],
                ADD[0].replace(" :", " {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} :"),
                ADD[1],
            ),
            "%arg1",
        ),
        (
            "replicated",
            'Slot 1 (%arg1) is explicitly replicated on "data".',
            module([X, tensor("y", "8x4xf32", '[{?}, {?}], replicated={"data"}')], *ADD),
            "%arg1",
        ),
        (
            "unreduced",
            'Slot 1 (%arg1) is explicitly unreduced on "data".',
            module([X, tensor("y", "8x4xf32", PARTIAL)], *ADD_PARTIAL),
            "%arg1",
        ),
        (
            "mesh",
            "Slot 0 (%arg0) is bound to another mesh.",
            module([X, tensor("y", "8x4xf32", '[{?}, {"data"}]').replace("@mesh", "@other")], *ADD)
            + 'sdy.mesh @other = <["data"=2]>',
            "%arg1",
        ),
        (
            "strided",
            "Factor i of the same dimension, which is major to j, is not full.",
            module(
                [tensor("x", "6x4xf32", '[{}, {"data"}]')],
                "%0 = stablehlo.reshape %x : (tensor<6x4xf32>) -> tensor<24xf32>",
                "%0 : tensor<24xf32>",
            ),
            "%0",
        ),
        (
            "indivisible",
            '"data" does not divide what more major axes leave of factor i, which is not the minor-most of '
            "its dimension.",
            module(
                [tensor("x", "3x4xf32", '[{"data"}, {}]')],
                "%0 = stablehlo.reshape %x : (tensor<3x4xf32>) -> tensor<12xf32>",
                "%0 : tensor<12xf32>",
            ),
            "%0",
        ),
    ],
    ids=lambda argument: argument if " " not in argument else "",
)
def test_reasons(reason: str, sentence: str, text: str, value: str) -> None:
    answer = first(text, value, 0, "data")
    assert (answer.reason, answer.sentence) == (reason, sentence)


def test_taken() -> None:
    text = module(
        [tensor("x", "8x4xf32", '[{"data"}, {}]'), tensor("w", "4x16xf32", '[{}, {"data"}]')],
        DOT,
        "%0 : tensor<8x16xf32>",
    )
    answer = first(text, "%0", 0, "data")
    assert answer.reason == "in use"
    assert answer.before is not None
    (reason,) = answer.before.reasons
    assert (reason.reason, reason.sentence) == (
        "taken",
        "Factor j takes the axis in slot 2 (%0), since its source is larger.",
    )
    assert reason.rule.startswith("rules/propagation/blocked.dl:")


def test_not_yet() -> None:
    """An elementwise op gives its operand an axis before the product does."""
    text = module(
        [
            tensor("x", "8x4xf32", '[{"data"}, {}]'),
            tensor("w", "4x16xf32"),
            tensor("y", "8x16xf32", '[{?}, {"data"}]'),
        ],
        f"{DOT}\n  %1 = stablehlo.add %0, %y : tensor<8x16xf32>",
        "%1 : tensor<8x16xf32>",
    )
    before = first(text, "%0", 0, "data").before
    assert before is not None
    assert (before.op, before.stage.level, before.site.value) == ("stablehlo.dot_general", 0, "%0")
    (reason,) = before.reasons
    assert (reason.reason, reason.sentence) == (
        "not yet",
        "Along factor i, of kind pass_through, shardings flow from operands, as slot 0 (%arg0), from op "
        "priority 2 on.",
    )


def test_a_later_priority_reserved_the_source() -> None:
    text = module(
        [tensor("x", "8x4xf32", '[{"data"}p1, {}]'), tensor("w", "4x16xf32", '[{}, {"data"}]')],
        DOT,
        "%0 : tensor<8x16xf32>",
    )
    before = first(text, "%0", 0, "data").before
    assert before is not None
    assert (before.op, before.stage.priority, before.site.value) == ("annotation", 0, "%arg0")
    (reason,) = before.reasons
    assert (reason.reason, reason.sentence) == (
        "reserved",
        'Dimension 0 is annotated with "data" at user priority 1, which is still to come.',
    )


def test_a_later_priority_reserved_the_target() -> None:
    text = module(
        [tensor("x", "8x4xf32", '[{?}, {"data"}p1]'), tensor("y", "8x4xf32", '[{"data"}, {?}]')],
        "%0 = stablehlo.add %x, %y : tensor<8x4xf32>",
        "%0 : tensor<8x4xf32>",
    )
    before = first(text, "%arg0", 0, "data").before
    assert before is not None
    (reason,) = before.reasons
    assert (reason.reason, reason.sentence) == (
        "reserved",
        "Slot 0 (%arg0) reserves it for user priority 1, which comes later.",
    )


def test_order() -> None:
    """Both axes could have come in the same stage."""
    text = module(
        [
            tensor("x", "8x4xf32"),
            tensor("y", "8x4xf32", '[{"data"}, {}]'),
            tensor("z", "8x4xf32", '[{}, {"data"}]'),
        ],
        "%0 = stablehlo.add %x, %y : tensor<8x4xf32>\n  %1 = stablehlo.multiply %x, %z : tensor<8x4xf32>\n"
        "  %2 = stablehlo.add %0, %1 : tensor<8x4xf32>",
        "%2 : tensor<8x4xf32>",
    )
    answer = first(text, "%arg0", 1, "data")
    assert answer.before is not None
    assert [reason.reason for reason in answer.before.reasons] == ["order"]
    assert answer.before.reasons[0].sentence == (
        "It could have come, but stablehlo.add at <text>:4 had its turn first."
    )
    with pytest.raises(ShardlogError, match='%arg0 dim 0 is sharded on "data"'):
        first(text, "%arg0", 0, "data")


def test_beyond_an_op_without_a_rule() -> None:
    text = module(
        [tensor("x", "8x4xf32", '[{?}, {"data"}]')],
        "%0 = stablehlo.tanh %x : tensor<8x4xf32>\n"
        '  %1 = "my.op"(%0) : (tensor<8x4xf32>) -> tensor<4x8xf32>\n'
        "  %2 = stablehlo.tanh %1 : tensor<4x8xf32>",
        "%2 : tensor<4x8xf32>",
    )
    (answer,) = why_not(shardlog.run(text).explainer, "%2", 0, "model")
    assert answer.stops == ()
    assert [(r.reason, r.sentence) for r in answer.here] == [
        ("no rule", "No rule says how my.op at <text>:5 is sharded.")
    ]


def test_text() -> None:
    text = module(
        [tensor("x", "8x4xf32", '[{"data"}p1, {}]'), tensor("w", "4x16xf32", '[{}, {"data"}]')],
        DOT,
        "%0 : tensor<8x16xf32>",
    )
    (answer,) = why_not(shardlog.run(text).explainer, "%0", 0, "data")
    assert isinstance(answer, WhyNot)
    assert why_not_text(answer).splitlines()[6:10] == [
        "          that came in user priority 0, op priority 2, aggressive, when the axis could not get to",
        "          %arg0 dim 0 by annotation at <text>:3",
        '              reserved: Dimension 0 is annotated with "data" at user priority 1, which is still to',
        f"              come. [{answer.stops[0].reasons[0].before.reasons[0].rule}]",  # type: ignore[union-attr]
    ]


# ---- What was in the running besides ---------------------------------------------------------------


def explain(text: str, value: str, dim: int) -> Explanation:
    (answer,) = Explainer(shardlog.run(text).record).why(value, dim)
    return answer


def test_another_dimension_lost() -> None:
    text = module(
        [tensor("x", "8x4xf32", '[{"data"}, {}]'), tensor("w", "4x16xf32", '[{}, {"data"}]')],
        DOT,
        "%0 : tensor<8x16xf32>",
    )
    answer = explain(text, "%0", 1)
    (loss,) = answer.steps[0].lost
    assert (loss.axis, loss.source.value, loss.source.dim, loss.site.value, loss.site.dim, loss.factor) == (
        ("data", "%arg0", 0, "%0", 0, "i")
    )
    assert (loss.reason, loss.sentence) == (
        "taken",
        "Factor j takes the axis in slot 2 (%0), since its source is larger.",
    )
    assert '      not in the same turn: "data" for %0 dim 0 (taken)' in why_text(answer).splitlines()
    full = why_text(answer, full=True)
    assert '        "data" of %arg0 dim 0 for %0 dim 0, factor i' in full
    assert "taken: Factor j takes the axis in slot 2 (%0), since its source is larger." in full


def test_another_slot_lost() -> None:
    text = module([X, tensor("y", "8x4xf32", "[{}, {?}]")], *ADD)
    answer = explain(text, "%0", 0)
    assert [(loss.site.value, loss.reason) for loss in answer.steps[0].lost] == [("%arg1", "closed")]


def test_another_axis_lost() -> None:
    text = module(
        [
            tensor("x", "8x4xf32", '[{"data", "model"}, {?}]'),
            tensor("y", "8x4xf32", '[{"data"}, {"model"}]'),
            tensor("z", "8x4xf32"),
        ],
        "%0 = stablehlo.add %x, %y : tensor<8x4xf32>\n  %1 = stablehlo.add %0, %z : tensor<8x4xf32>",
        "%1 : tensor<8x4xf32>",
    )
    lost = {
        (loss.axis, loss.site.value, loss.site.dim, loss.reason)
        for found in Explainer(shardlog.run(text).record).why("%0", 0)
        for loss in found.steps[0].lost
    }
    assert ("model", "%arg1", 0, "in use") in lost


def test_nothing_lost() -> None:
    text = module([X, tensor("y", "8x4xf32")], *ADD)
    answer = explain(text, "%0", 0)
    assert answer.steps[0].lost == ()
    assert "same turn" not in why_text(answer, full=True)
