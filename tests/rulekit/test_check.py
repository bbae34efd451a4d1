"""Checking rules: those of shardlog are true, and wrong ones are found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from shardlog import ShardlogError
from shardlog.engine import DatalogError
from shardlog.rulebook import RuleBook
from shardlog.rulekit.case import Case, file_cases
from shardlog.rulekit.check import Finding, Report, check, check_rules

from ..ops.single_ops import FAMILIES

TABLE = sorted((Path(__file__).parents[1] / "ops" / "table").glob("*.mlir"))


def attributes(case: Case) -> dict[str, Any]:
    return {
        row[0]: row[1:] for name in case.facts if name.startswith("attribute") for row in case.facts[name]
    }


def shifts_in_place(case: Case) -> bool:
    low = [v for name, _, v in case.facts.get("attribute_item", ()) if name == "edge_padding_low"]
    return any(low)


def nowhere(case: Case) -> bool:
    return False


# Where Shardy's rules, and so ours, promise too much.
TOO_MUCH: dict[str, Callable[[Case], bool]] = {
    # The dimension that is sorted by default.
    "stablehlo.sort": lambda case: "dimension" not in attributes(case),
    # What is taken away on one side and added on the other: the size stays, the elements move.
    "stablehlo.pad": shifts_in_place,
    # Windows that begin in the padding do not begin where shards do.
    "stablehlo.convolution": lambda case: any(v for *_, v in case.facts.get("attribute_row", ())),
}


def unexpected(cases: list[Case], report: Report) -> list[Finding]:
    places = {(c.place, c.name) for c in cases if TOO_MUCH.get(c.name, nowhere)(c)}
    return [f for f in report.wrong if (f.place, f.name) not in places]


@pytest.mark.parametrize("path", TABLE, ids=lambda path: path.stem)
def test_rules_of_shardlog(path: Path) -> None:
    book = RuleBook()
    for text in path.read_text().split("\n// -----\n"):
        cases = file_cases(text, book)
        assert unexpected(cases, check(cases)) == []


@pytest.mark.parametrize("family", [f for f in FAMILIES if f not in ("collective", "custom_call")])
def test_random_signatures(family: str) -> None:
    book, computed = RuleBook(), 0

    @seed(0)
    @settings(max_examples=10, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(FAMILIES[family])
    def holds(text: str) -> None:
        nonlocal computed
        cases = file_cases(text, book)
        report = check(cases)
        computed += report.computed
        assert unexpected(cases, report) == []

    holds()
    assert computed or family in ("slice", "pad")  # whose factors are permutations more often than not


def test_examples() -> None:
    """`shardlog check` without files."""
    report = check_rules([])
    assert report.wrong == []
    assert report.cases > 100
    assert report.computed > 140


def checked(tmp_path: Path, rules: str, suffix: str = ".rules", **options: Any) -> list[str]:
    """The findings without their places."""
    path = tmp_path / f"mine{suffix}"
    path.write_text(rules)
    return [str(f).partition(": ")[2] for f in check_rules([path], **options).findings]


def matmul(a: Any, b: Any) -> Any:
    return a @ b


@pytest.mark.parametrize(
    ("rule", "findings"),
    [
        ("i j, j k -> i k reduction={j}", []),
        ("i j, j k -> i k need_replication={j}", []),
        ("i j, j k -> i k", ["error: @matmul: factor 1"]),
        ("i j, j k -> k i reduction={j}", ["error: @matmul: factor 0", "error: @matmul: factor 2"]),
        (
            "i j, j k -> l k reduction={j}",
            ["note: @matmul: could be sharded together: dimension 0 of operand 0, dimension 0 of result 0"],
        ),
        (
            "i j, l k -> i k",
            [
                "note: @matmul: could be sharded with a reduction of the results: "
                "dimension 1 of operand 0, dimension 0 of operand 1"
            ],
        ),
    ],
)
def test_lines(tmp_path: Path, rule: str, findings: list[str]) -> None:
    found = checked(tmp_path, f"@matmul: {rule}\n", references={"@matmul": matmul})
    assert [f.partition(" (")[0] for f in found] == findings


def test_other_reductions(tmp_path: Path) -> None:
    rule = "@largest: i j -> i reduction={j}\n"
    assert checked(tmp_path, rule, references={"@largest": lambda a: a.max(axis=1)}) == []
    wrong = checked(tmp_path, rule, references={"@largest": lambda a: np.median(a, axis=1)})
    assert [f.partition(" (")[0] for f in wrong] == ["error: @largest: factor 1"]


TANH = "func.func @f(%0: tensor<8x4xf32>) {\n  %1 = stablehlo.tanh %0 : tensor<8x4xf32>\n  return\n}\n"
BASE = 'op(s, "mine.op")'
MINE = TANH.replace("stablehlo.tanh %0 :", '"mine.op"(%0) : (tensor<8x4xf32>) ->')


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            f"ruled(s) :- {BASE}. along(s, 0, t, 0) :- {BASE}, (t = 0 ; t = 1). sized(s, 0, 6) :- {BASE}.",
            "dimension 0 of operand 0 has size 8, but its factors make 6",
        ),
        (
            f"ruled(s) :- {BASE}. along(s, 0, t, d) :- {BASE}, dim(s, t, d, _), t = 0.",
            "factor 0 (size 8: dimension 0 of operand 0, dimension 1 of operand 0) "
            "stands twice in operand 0: a factor shards one dimension of a tensor",
        ),
        (
            f'pointwise(s) :- {BASE}. needs(s, 0, "sum") :- {BASE}.',
            "factor 0 has the unknown kind 'sum'; there are: "
            "pass_through, reduction, need_replication, permutation",
        ),
        (
            f'pointwise(s) :- {BASE}. needs(s, 0, x) :- {BASE}, (x = "reduction" ; x = "permutation").',
            "factor 0 has several kinds: permutation, reduction",
        ),
        (
            f"pointwise(s) :- {BASE}. along(s, 1, 1, 2) :- {BASE}.",
            "dimension 2 of result 0 has factors, but there is no such dimension",
        ),
    ],
)
def test_what_makes_no_sense(tmp_path: Path, rules: str, message: str) -> None:
    examples = tmp_path / "mine.mlir"
    examples.write_text(MINE)
    found = checked(tmp_path, rules, ".dl", examples=[examples])
    assert f"error: mine.op: {message}" in found


def test_a_rule_for_an_op_of_stablehlo(tmp_path: Path) -> None:
    examples = tmp_path / "tanh.mlir"
    examples.write_text(TANH)
    found = checked(tmp_path, "stablehlo.tanh: i j -> i k\n", examples=[examples])
    together = "dimension 1 of operand 0, dimension 1 of result 0 (size 4)"
    assert f"note: stablehlo.tanh: could be sharded together: {together}" in found


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(DatalogError, match=r"mine\.dl"):
        checked(tmp_path, "pointwise(s) :- op(x, _).", ".dl")
    with pytest.raises(ShardlogError, match=r"mine\.rules"):
        checked(tmp_path, "@mine i -> i")
