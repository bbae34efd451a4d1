"""What becomes of unreduced axes: which ops may drop them, bring them, or say another reduction."""

from __future__ import annotations

import pytest
import shardlog
from shardlog.program.shardy import installed

KINDS = pytest.mark.skipif(installed() == "0.10", reason="the text of jaxlib 0.10 has sums alone")
MESH = 'sdy.mesh @mesh = <["x"=2, "y"=2]>'
T = "tensor<8x8xf32>"
DROPS = 'drops the unreduced axis "x": its operand is a sum over it that nothing computes'


def spec(unreduced: str, dims: str = "[{}, {}]") -> str:
    return f"<@mesh, {dims}{f', unreduced={unreduced}' if unreduced else ''}>"


def module(takes: str, *ops: str, gives: str = "") -> str:
    given = f" {{sdy.sharding = #sdy.sharding{spec(gives)}}}" if gives else ""
    lines = [
        MESH,
        f"func.func @main(%a: {T} {{sdy.sharding = #sdy.sharding{spec(takes)}}}) -> ({T}{given}) {{",
        *ops,
        f"return %0 : {T}",
        "}",
    ]
    return "\n".join(lines)


def op(name: str, result: str | None = None, operands: str = "%a") -> str:
    said = "" if result is None else f" {{sdy.sharding = #sdy.sharding_per_value<[{spec(result)}]>}}"
    return f"%0 = stablehlo.{name} {operands}{said} : {T}"


def refused(text: str, shardy: str | None = "0.12") -> tuple[str, str]:
    """Where a module is refused, and why."""
    with pytest.raises(shardlog.ShardlogError) as error:
        shardlog.run(text, shardy=shardy)
    assert error.value.hint
    return error.value.where.removeprefix("<text>:").partition(":")[0], error.value.message


@pytest.mark.parametrize("name", ["tanh", "negate"])
def test_an_op_may_not_drop_what_is_unreduced(name: str) -> None:
    text = module('{"x"}', op(name))
    assert refused(text) == ("3", f"stablehlo.{name} {DROPS}")
    assert refused(text, "0.11") == ("3", f"stablehlo.{name} {DROPS}")
    assert 'unreduced={"x"}' in shardlog.run(text, shardy="0.10").text()  # which does not look


@pytest.mark.parametrize(
    "ops",
    [
        [op("tanh", '{"x"}')],
        [f"%1 = sdy.sharding_constraint %a {spec('')} : {T}", op("tanh", operands="%1")],
        [
            f"%1 = sdy.sharding_constraint %a {spec('')} : {T}",
            f"%2 = sdy.propagation_barrier %1 allowed_direction=NONE : {T}",
            op("tanh", operands="%2"),
        ],
        [f'%0 = sdy.all_reduce {{"x"}} %a out_sharding={spec("")} : {T}'],
    ],
    ids=["keeps", "constraint", "barrier", "all_reduce"],
)
def test_it_may_keep_it_or_take_what_is_reduced(ops: list[str]) -> None:
    assert shardlog.run(module('{"x"}', *ops), shardy="0.12").text()


def test_what_is_returned_is_unreduced_where_the_result_is() -> None:
    text = module('{"x"}', op("tanh", '{"x"}'), gives='{"y"}')
    why = 'func.return hands on what is unreduced on "x", and where it goes it is not'
    assert refused(text) == ("4", why)


def test_what_a_collective_reduces_has_a_sharding() -> None:
    ops = [
        f"%1 = stablehlo.constant dense<1.0> : {T}",
        f'%0 = sdy.all_reduce {{"x"}} %1 out_sharding={spec("")} : {T}',
    ]
    assert refused(module("", *ops)) == ("4", "sdy.all_reduce has an operand without a sharding")


def test_a_region_may_not_drop_it_either() -> None:
    loop = [
        f"%0 = stablehlo.while(%i = %a) : {T} cond {{",
        "%t = stablehlo.constant dense<false> : tensor<i1>",
        "stablehlo.return %t : tensor<i1> } do {",
        f"%b = stablehlo.tanh %a : {T}",
        f"stablehlo.return %b : {T} }}",
    ]
    assert refused(module('{"x"}', *loop)) == ("6", f"stablehlo.tanh {DROPS}")


def reduction(body: str, gives: str = "") -> str:
    """A module that reduces rows, of which the initial value alone is unreduced."""
    said = f"{{sdy.sharding = #sdy.sharding_per_value<[{spec(gives, '[{}]')}]>}}" if gives else ""
    return f"""{MESH}
func.func @main(%a: {T}, %z: tensor<f32> {{sdy.sharding = #sdy.sharding{spec('{"x"}', "[]")}}})
    -> tensor<8xf32> {{
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.{body} across dimensions = [1] {said}
    : ({T}, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}}"""


@pytest.mark.parametrize("body", ["add", "minimum"])
def test_a_reduction_may_begin_with_what_is_unreduced(body: str) -> None:
    assert shardlog.run(reduction(body), shardy="0.12").text()


def test_that_does_not_make_its_result_unreduced() -> None:
    why = 'stablehlo.reduce leaves a sum over "x" to others, and computes a max'
    assert refused(reduction("maximum", '{"x"}')) == ("4", why)


@pytest.mark.parametrize(("first", "second"), [("", '{"x"}'), ('{"x"}', "")])
def test_of_several_tensors_a_collective_is_known_by_the_first(first: str, second: str) -> None:
    specs = ", ".join(map(spec, (first, second)))
    text = f"""{MESH}
func.func @main(%a: {T}, %b: {T}) -> ({T}, {T}) {{
  %0:2 = "stablehlo.all_reduce"(%a, %b) <{{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}}> ({{
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }}) {{sdy.sharding = #sdy.sharding_per_value<[{specs}]>}} : ({T}, {T}) -> ({T}, {T})
  return %0#0, %0#1 : {T}, {T}
}}"""
    if not first:
        assert shardlog.run(text, shardy="0.12").text()
    else:
        why = 'stablehlo.all_reduce brings the unreduced axis "x", which no operand has'
        assert refused(text) == ("3", why)


@KINDS
@pytest.mark.parametrize("kind", ["max", "min"])
def test_a_reduction_is_kept(kind: str) -> None:
    text = shardlog.run(module(f'{kind}{{"x"}}', op("tanh", f'{kind}{{"x"}}'))).text()
    assert text.count(f'unreduced={kind}{{"x"}}') == 3  # argument, op, result


@KINDS
def test_an_op_may_not_change_it() -> None:
    why = 'stablehlo.tanh has an operand that is a max over "x", and a result that is a sum'
    assert refused(module('max{"x"}', op("tanh", '{"x"}')), None) == ("3", why)


@KINDS
def test_a_product_leaves_sums_to_others() -> None:
    said = "{sdy.sharding = #sdy.sharding_per_value<[" + spec('max{"x"}') + "]>}"
    dot = f"%0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] {said} : ({T}, {T}) -> {T}"
    why = 'stablehlo.dot_general leaves a max over "x" to others, and computes a sum'
    assert refused(module("", dot), None) == ("3", why)


@KINDS
def test_an_older_shardy_knows_of_sums_alone() -> None:
    text = module('max{"x"}', op("tanh", 'max{"x"}'))
    why = 'stablehlo.tanh has a max over "x" that is yet to be computed, and this Shardy knows of sums alone'
    assert refused(text, "0.10") == ("3", why)


@pytest.mark.skipif(installed() != "0.10", reason="jaxlib 0.11 reads it")
@pytest.mark.parametrize(
    "text",
    [
        module('max{"x"}', op("tanh")),
        module("", f'%0 = sdy.all_reduce max {{"x"}} %a out_sharding={spec("")} : {T}'),
    ],
)
def test_a_reduction_that_is_not_in_the_notation_is_named(text: str) -> None:
    assert refused(text, None)[1] == "the sdy of this jaxlib has no reduction max"
