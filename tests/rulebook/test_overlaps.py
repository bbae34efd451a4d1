"""Several rules for one op: which is used, and what is said about it."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from shardlog import run
from shardlog.rulebook.book import RuleBook
from shardlog.rulebook.discover import discovered
from shardlog.rulekit.ops import module_ops

MODULE = """func.func @f(%0: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %1 = "my.op"(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.tanh %1 : tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}
"""


def loaded(folder: Path, files: dict[str, str]) -> tuple[RuleBook, list[str]]:
    """The rules of some files, and the warnings, without the folder."""
    for name, text in files.items():
        (folder / name).write_text(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        book = RuleBook([folder / name for name in files])
    return book, [str(warning.message).replace(f"{folder}/", "") for warning in caught]


def used(folder: Path, book: RuleBook, op: str) -> tuple[str, str]:
    """The place of the rule of an op, and what it says."""
    return next(
        (row[2].removeprefix(f"{folder}/"), row[3]) for row in module_ops(MODULE, book) if row[0] == op
    )


PLAIN, WHOLE = "([i, j])->([i, j]) {i=8, j=4}", "([i, j])->([i, j]) {i=8, j=4} need_replication={j}"


@pytest.mark.parametrize(
    ("files", "which", "place", "says"),
    [
        (
            {"a.rules": "my.op: i j -> i j need_replication={j}\n", "b.rules": "\nmy.op: ... -> ...\n"},
            "b.rules:2 and a.rules:1 both have a rule for my.op: the former is used where its shapes fit",
            "b.rules:2",
            PLAIN,
        ),
        (
            {"b.rules": "my.op: ... -> ...\n", "a.rules": "my.op: i j -> i j need_replication={j}\n"},
            "a.rules:1 and b.rules:1 both have a rule for my.op: the former is used where its shapes fit",
            "a.rules:1",
            WHOLE,
        ),
        (
            {"a.rules": "my.op: i j -> i j need_replication={j}\n", "b.dl": 'elementwise_op("my.op").\n'},
            "b.dl:1 and a.rules:1 both have a rule for my.op: the latter is used where its shapes fit",
            "a.rules:1",
            WHOLE,
        ),
        (
            {
                "a.dl": 'pointwise(s) :- op(s, "my.op").\n',
                "b.dl": 'needs(s, 1, "need_replication") :- op(s, name), name = "my.op".\n',
            },
            "b.dl:1 and a.dl:1 both have a rule for my.op: what both say holds",
            "b.dl:1",
            WHOLE,
        ),
    ],
)
def test_two_files(tmp_path: Path, files: dict[str, str], which: str, place: str, says: str) -> None:
    book, messages = loaded(tmp_path, files)
    assert messages == [which]
    assert used(tmp_path, book, "my.op") == (place, says)


def test_a_line_replaces_a_rule_that_ships(tmp_path: Path) -> None:
    book, messages = loaded(tmp_path, {"a.rules": "stablehlo.tanh: i j -> i j need_replication={j}\n"})
    (message,) = messages
    assert message.startswith("a.rules:1 and rules/ops/stablehlo/elementwise.dl:")
    assert message.endswith("both have a rule for stablehlo.tanh: the former is used where its shapes fit")
    assert used(tmp_path, book, "stablehlo.tanh") == ("a.rules:1", WHOLE)


def test_nothing_is_said_of_rules_that_do_not_meet(tmp_path: Path) -> None:
    files = {
        "a.rules": "my.op: i j -> i j\n",
        "b.dl": 'pointwise_op("my.other"). passes_op("my.op", "both"). pure_op("stablehlo.tanh").\n',
    }
    assert loaded(tmp_path, files)[1] == []


@pytest.mark.parametrize(
    ("value", "files", "why"),
    [
        ("nowhere_rules", {}, "there is no package nowhere_rules"),
        ("bad_rules", {}, "package bad_rules has no .dl or .rules file"),
        ("bad_rules", {"x.dl": "ruled(s) :- op(s, name), elementwize_op(name).\n"}, "unknown relation"),
        ("bad_rules", {"x.rules": "my.op i -> i\n"}, "expected a name and a colon"),
        ("bad_rules", {"x.dl": ".decl mine(s: sig)\n"}, "declared twice"),
        ("bad_rules..x", {"x.dl": ""}, "there is no package"),
    ],
)
def test_a_broken_package_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, files: dict[str, str], why: str
) -> None:
    for name, entry in (("bad_rules", value), ("good_rules", "good_rules.part")):
        package, metadata = tmp_path / name, tmp_path / f"{name}-1.0.dist-info"
        package.mkdir()
        metadata.mkdir()
        (package / "__init__.py").write_text("raise RuntimeError('the code of a rule package is not run')\n")
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[shardlog.rules]\n{name[:-6]} = {entry}\n")
    for file, text in files.items():
        (tmp_path / "bad_rules" / file).write_text(text)
    (tmp_path / "good_rules" / "part").mkdir()
    (tmp_path / "good_rules" / "part" / "ops.rules").write_text("my.op: i j -> i j\n")
    own = tmp_path / "own.dl"
    own.write_text(".decl mine(s: sig)\n")
    monkeypatch.syspath_prepend(tmp_path)
    discovered.cache_clear()
    try:
        with pytest.warns(UserWarning, match="shardlog.rules:bad are left out: ") as caught:
            result = run(MODULE, rules=[own])
    finally:
        discovered.cache_clear()
    assert [why in str(warning.message) for warning in caught] == [True]
    assert result.unknown_ops == ()
