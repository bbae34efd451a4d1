"""Rules that make no sense: found when they are loaded where they can be, else at an op they are about."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardlog import ShardlogError, run
from shardlog.engine import DatalogError

MODULE = """func.func @main(%0: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %1 = "my.op"(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
"""
RULED = 'ruled(s) :- op(s, "my.op").\n'
PLACE = 'op(s, "my.op")'


def with_rules(tmp_path: Path, text: str) -> str:
    """The message about rules."""
    rules = tmp_path / "mine.dl"
    rules.write_text(text)
    with pytest.raises((ShardlogError, DatalogError)) as caught:
        run(MODULE, rules=[rules])
    return str(caught.value).removeprefix(f"{tmp_path}/")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (f'needs(s, 0, "reduce") :- {PLACE}.', '"reduce" is not a `factor_kind`'),
        (f'needs(s, 0, k) :- {PLACE}, (k = "sum" ; k = "reduction").', '"sum" is not a `factor_kind`'),
        ('looks_at("my.op", "operand").', '"operand" is not a `surrounding`'),
        ('passes_op("my.op", "forwards").', '"forwards" is not a `flow_direction`'),
        ('op_priority(0, 0, "my.op", "sum", "any", "both").', '"sum" is not a `priority_kind`'),
        (f'edge_owner(s, 0, "results", 0, 0) :- {PLACE}.', '"results" is not a `edge_end`'),
        (f'combined_by(s, "bogus") :- {PLACE}.', '"bogus" is not a `combination`'),
        (f'padded_with(s, 0, 1, "zeros") :- {PLACE}.', '"zeros" is not a `padding`'),
        ('touches_part_op("my.op", "read").', '"read" is not a `touching`'),
        ('asks_op("my.op", 0, "positiv").', '"positiv" is not a `domain_id`'),
    ],
)
def test_words_are_checked_when_rules_are_loaded(tmp_path: Path, rule: str, message: str) -> None:
    rule_run = with_rules(tmp_path, RULED + rule)
    assert rule_run.startswith("mine.dl:2:")
    assert f"error[E0307]: {message}" in rule_run


def test_the_nearest_word_is_named_and_all_that_there_are(tmp_path: Path) -> None:
    rule_run = with_rules(tmp_path, RULED + f'combined_by(s, "maxium") :- {PLACE}.')
    assert 'did you mean `maximum`? There are: "add", "multiply", "maximum", "minimum"' in rule_run


@pytest.mark.parametrize(
    ("rules", "line", "message"),
    [
        ("{R}along(s, 0, 0, 7) :- {P}.", 2, "dimension 7 of operand 0 has factors, but its rank is 2"),
        ("{R}along(s, 0, 9, 0) :- {P}.", 2, "slot 9 has factors, but the op has only 2 operands and results"),
        ("{R}along(s, 0, 0, 0) :- {P}.\nsized(s, 0, -3) :- {P}.", 3, "the size of factor 0 is -3"),
        ("{R}sized(s, 0, 8) :- {P}.", 2, "factor 0 has a size, but no dimension belongs to it"),
        ("along(s, 0, 0, 0) :- {P}.", 1, "the op has factors, but no rule: ruled(s) does not hold"),
        (
            "{R}along(s, 0, 0, 0) :- {P}.\nsized(s, 0, x) :- {P}, (x = 4 ; x = 8).",
            3,
            "factor 0 has two sizes, 4 and 8",
        ),
        (
            "{R}along(s, k, 0, 0) :- {P}, (k = 0 ; k = 1).\nsized(s, k, 3) :- {P}, (k = 0 ; k = 1).",
            2,
            "dimension 0 of operand 0 has size 8, but its factors make 9",
        ),
        (
            'known(s) :- {P}.\nmaps(s, 0, 0, 1, 0), factor(s, 0, 8), kind(s, 0, "pass_through") :- {P}.',
            2,
            "dimension 0 of operand 0 has a factor at position 1, but none before it",
        ),
        (
            '{R}combined_by(s, how) :- {P}, (how = "add" ; how = "maximum").',
            2,
            "partial results are combined in two ways, by add and by maximum",
        ),
        (
            "{R}along(s, d, 0, d) :- {P}, (d = 0 ; d = 1).\nalong(s, 0, 1, 0), along(s, 2, 1, 1) :- {P}.\n"
            'needs(s, 1, "reduction"), needs(s, 2, "need_replication") :- {P}.\n'
            'combined_by(s, "stablehlo.and") :- {P}.',
            5,
            "partial results are combined by stablehlo.and, which takes integers and booleans, "
            "but result 0 has elements of type f32",
        ),
        ("known(s) :- {P}.\nedge(s, 0) :- {P}.", 2, "data-flow edge 0 has no owner"),
        (
            'known(s), edge(s, 0) :- {P}.\nedge_owner(s, 0, "result", 0, 3) :- {P}.',
            2,
            "data-flow edge 0 connects result 3 (region 0), which the op does not have",
        ),
    ],
)
def test_what_depends_on_the_op_is_checked_for_it(
    tmp_path: Path, rules: str, line: int, message: str
) -> None:
    rule_run = with_rules(tmp_path, rules.replace("{R}", RULED).replace("{P}", PLACE))
    op = "my.op (8x4xf32) -> (8x4xf32)"
    assert rule_run.startswith(
        f"mine.dl:{line}: error: wrong rule for {op}: {message}\n  hint: it follows from: "
    )


def test_facts_have_places_too(tmp_path: Path) -> None:
    rules = tmp_path / "mine.dl"
    rules.write_text('\nelementwise_op("my.op").\n')
    module = MODULE.replace("-> tensor<8x4xf32>", "-> tensor<8x3xf32>").replace(
        "%1 : tensor<8x4", "%1 : tensor<8x3"
    )
    with pytest.raises(ShardlogError, match="has size 3, but its factors make 4") as caught:
        run(module, rules=[rules])
    assert caught.value.where == f"{rules}:2"


def test_a_rule_adds_nothing_to_the_op(tmp_path: Path) -> None:
    rule_run = with_rules(tmp_path, f"dim(s, 0, 2, 5) :- {PLACE}.")
    message = "a rule cannot add to dim, which is shardlog's description of an op"
    assert rule_run.startswith(f"mine.dl:1: error: {message}")


def test_an_op_that_combines_may_have_its_full_name(tmp_path: Path) -> None:
    module = """sdy.mesh @mesh = <["x"=2]>
        func.func @main(%0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
            -> tensor<8xf32> {
          %1 = stablehlo.custom_call @sums(%0) : (tensor<8x4xf32>) -> tensor<8xf32>
          return %1 : tensor<8xf32>
        }"""
    texts = []
    for how in ("maximum", "stablehlo.maximum"):
        rules = tmp_path / "sums.dl"
        rules.write_text(
            """.decl sums(s: sig)
            sums(s) :- target(s, "sums").
            ruled(s), along(s, 0, 0, 0), along(s, 0, 1, 0) :- sums(s).
            along(s, 1, 0, 1), needs(s, 1, "reduction") :- sums(s).
            """
            f'combined_by(s, "{how}") :- sums(s).'
        )
        texts.append(run(module, rules=[rules]).partition(keep_shardings=True).text())
    assert texts[0] == texts[1]
    assert "stablehlo.maximum" in texts[0]
