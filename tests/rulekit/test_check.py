"""Checking rules: those of shardlog are true, and wrong ones are found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from shardlog import ShardlogError
from shardlog.engine import DatalogError
from shardlog.rulebook.book import RuleBook
from shardlog.rulekit.case import Case, file_cases, shipped_cases
from shardlog.rulekit.check.check import Report, check, check_rules
from shardlog.rulekit.check.claims import fits
from shardlog.rulekit.check.execute import NotExecutableError, execute
from shardlog.rulekit.check.shards import parts

from ..ops.single_ops import FAMILIES
from ..support.drawing import by_day, drawing

TABLE = sorted((Path(__file__).parents[1] / "ops" / "table").glob("*.mlir"))


def items(case: Case, name: str) -> list[int]:
    return [v for list_, _, v in sorted(case.facts.get("attribute_item", ())) if list_ == name]


def by_default(case: Case) -> Iterator[int]:
    """Shardy takes the dimension of a sort as it is written: -1, the default, is none of them."""
    written = [v for name, v in case.facts.get("attribute_number", ()) if name == "dimension"]
    d = written[0] if written else -1
    if d < 0:
        yield len(case.shapes[0] or ()) + d


def in_place(case: Case) -> Iterator[int]:
    """Elements are cut off on one side and added on the other: the size stays, so it passes up to Shardy
    0.11; yet elements move."""
    (before, *_, after) = (shape or () for shape in case.shapes)
    low = items(case, "edge_padding_low")
    for d, (n, m) in enumerate(zip(before, after, strict=True)):
        if n == m and low[d] != 0 and case.kinds[case.maps[0, d][0]] == "pass_through":
            yield d


def halves(case: Case, f: int, t: int, d: int) -> list[int]:
    """In which part of factor `f` each element of a dimension is."""
    factors, size = case.maps[t, d], case.factors[f]
    after = prod(case.factors[g] for g in factors[factors.index(f) + 1 :])
    return [x // after % size // (size // parts(size)) for x in range((case.shapes[t] or ())[d])]


def off_the_window(case: Case) -> Iterator[int]:
    """A kernel is contracted with the windows, part by part. That is a plain reduction if its parts meet
    the same parts of the input in every window; otherwise they need halos, which no reduction implies."""
    low = {i: v for name, i, j, v in case.facts.get("attribute_row", ()) if (name, j) == ("padding", 0)}
    names = ("window_strides", "lhs_dilation", "rhs_dilation")
    strides, bases, dilations = (items(case, name) or [1] * 9 for name in names)
    reversal = items(case, "window_reversal") or [0] * 9
    dims = [items(case, f"dimension_numbers.{of}_spatial_dimensions") for of in ("input", "kernel", "output")]
    found = []
    for i, (d, k, o) in enumerate(zip(*dims, strict=True)):
        size, width, count = ((case.shapes[t] or ())[e] for t, e in enumerate((d, k, o)))
        starts = [w * strides[i] - low.get(i, 0) for w in range(count)]
        order = range(width)[::-1] if reversal[i] else range(width)
        places = [(start + x * dilations[i], y) for start in starts for x, y in enumerate(order)]
        met = [(x // bases[i], y) for x, y in places if x % bases[i] == 0 and 0 <= x // bases[i] < size]
        if not met:
            return  # all is padding
        for f in case.maps[1, k]:
            if case.kinds[f] == "reduction" and case.factors[f] > 1:
                inside, kernel = halves(case, f, 0, d), halves(case, f, 1, k)
                found += [f] if any(inside[x] != kernel[y] for x, y in met) else []
    yield from found


def spread(case: Case) -> Iterator[None]:
    """Shardy overlooks that the operand is spread: the sizes along a factor that passes through differ."""
    before, *_, after = (shape or () for shape in case.shapes)
    for d, dilation in enumerate(items(case, "base_dilations")):
        if dilation > 1 and before[d] != after[d] and case.kinds[case.maps[0, d][0]] == "pass_through":
            yield None


def all_of_them(case: Case) -> Iterator[int | None]:
    """XLA takes the largest n of n elements for what passes them through; they are sorted."""
    if case.shapes[0] == case.shapes[1]:
        yield len(case.factors) - 1


# Where Shardy's rules, and so ours, promise too much: the factors, or None where the sizes tell.
TOO_MUCH: dict[str, Callable[[Case], Iterator[int | None]]] = {
    "stablehlo.reduce_window": spread,
    "stablehlo.sort": by_default,
    "stablehlo.pad": in_place,
    "stablehlo.convolution": off_the_window,
    "mhlo.topk": all_of_them,
    "chlo.top_k": all_of_them,
}


def wrong_factors(report: Report) -> set[tuple[str, int | None]]:
    return {(finding.place, finding.factor) for finding in report.wrong}


def expected(cases: list[Case]) -> set[tuple[str, int | None]]:
    """The factors that promise too much, where shards of them can be computed."""
    return {
        (case.place, f)
        for case in cases
        for f in (TOO_MUCH[case.name](case) if case.name in TOO_MUCH else ())
        if f is None or (case.factors[f] > 1 and all(fits(case, *place) for place in case.dims(f)))
    }


# By day linear algebra, which takes the longest, has random signatures only.
QUICK = [path for path in TABLE if path.stem != "linear_algebra"]


@pytest.mark.parametrize("path", by_day(QUICK, TABLE), ids=lambda path: path.stem)
def test_rules_of_shardlog(path: Path) -> None:
    book = RuleBook()
    for text in path.read_text().split("\n// -----\n"):
        cases = file_cases(text, book)
        assert wrong_factors(check(cases)) == expected(cases)


@pytest.mark.parametrize("family", [f for f in FAMILIES if f not in ("collective", "custom_call")])
def test_random_signatures(family: str) -> None:
    book, computed = RuleBook(), 0

    @drawing(5)
    @given(FAMILIES[family])
    def holds(text: str) -> None:
        nonlocal computed
        cases = file_cases(text, book)
        report = check(cases)
        computed += report.computed
        found, wanted = wrong_factors(report), expected(cases)
        # XLA does not always sort along a negative dimension either.
        assert found == wanted or (family == "sort" and found < wanted)

    holds()
    assert computed or family in ("slice", "pad")  # whose factors are permutations more often than not


def test_examples() -> None:
    """`shardlog rules check` without files."""
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
        (
            "i j, j k -> i k",
            ["error: @matmul: factor 1 is pass_through, but sharded along it the results differ"],
        ),
        (
            "i j, j k -> k i reduction={j}",
            [
                f"error: @matmul: factor {f} is pass_through, but sharded along it the results differ"
                for f in (0, 2)
            ],
        ),
        (
            "i j, j k -> l k reduction={j}",
            ["note: @matmul: could be sharded together: dimension 0 of operand 0, dimension 0 of result 0"],
        ),
        (
            "i j, j k -> i k need_replication={j}",
            [
                "note: @matmul: factor 1 is need_replication, "
                "but could be sharded with a reduction of the results"
            ],
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
    report = checked(tmp_path, f"@matmul: {rule}\n", references={"@matmul": matmul})
    assert [re.sub(r" \(.*?\)", "", f) for f in report] == findings


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
            "factor 0 stands twice in operand 0, but a factor shards one dimension of a tensor",
        ),
        (
            f'pointwise(s) :- {BASE}. needs(s, 0, "reduction") :- {BASE}.',
            "factor 0 is a reduction, but result 0 has it: it is not reduced",
        ),
        (
            f'pointwise(s) :- {BASE}. needs(s, 0, cat("su", "m")) :- {BASE}.',
            "factor 0 is sum, which is no kind: there are "
            "pass_through, reduction, need_replication and permutation",
        ),
        (
            f'pointwise(s) :- {BASE}. needs(s, 0, x) :- {BASE}, (x = "reduction" ; x = "permutation").',
            "factor 0 needs two things, permutation and reduction",
        ),
        (
            f"pointwise(s) :- {BASE}. along(s, 1, 1, 2) :- {BASE}.",
            "dimension 2 of result 0 has factors, but its rank is 2",
        ),
    ],
)
def test_what_makes_no_sense(tmp_path: Path, rules: str, message: str) -> None:
    examples = tmp_path / "mine.mlir"
    examples.write_text(MINE)
    report = checked(tmp_path, rules, ".dl", examples=[examples])
    assert f"error: mine.op: {message} ({tmp_path}/mine.dl:1)" in report


def test_a_rule_for_an_op_of_stablehlo(tmp_path: Path) -> None:
    examples = tmp_path / "tanh.mlir"
    examples.write_text(TANH)
    report = checked(tmp_path, "stablehlo.tanh: i j -> i k\n", examples=[examples])
    together = "dimension 1 of operand 0, dimension 1 of result 0 (size 4)"
    assert f"note: stablehlo.tanh: could be sharded together: {together}" in report


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(DatalogError, match=r"mine\.dl"):
        checked(tmp_path, "pointwise(s) :- op(x, _).", ".dl")
    with pytest.raises(ShardlogError, match=r"mine\.rules"):
        checked(tmp_path, "@mine i -> i")


def test_an_op_whose_result_is_no_tensor_is_not_computed() -> None:
    cases = {case.name: case for case in shipped_cases(RuleBook())}
    with pytest.raises(NotExecutableError, match="its results are not tensors"):
        execute(cases["tensor.dim"], [])
