"""A user's rules: compiled when they change, and looked up otherwise."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from shardlog.engine.plan import compiler
from shardlog.engine.plan.cache import Request
from shardlog.errors import ShardlogError
from shardlog.rulebook.book import RuleBook

OVERLAP = "both have a rule for stablehlo.tanh: what both say holds"


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """The programs that are compiled, with a cache of their own."""
    requests: list[Request] = []
    compile_program = compiler.compile_program

    def noting(request: Request) -> object:
        requests.append(request)
        return compile_program(request)

    RuleBook()  # the rules that ship
    monkeypatch.setenv("SHARDLOG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compiler, "compile_program", noting)
    return requests


def book(*files: Path) -> tuple[RuleBook, list[str]]:
    """The rules in files, with the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rules = RuleBook(files)
    return rules, [str(warning.message) for warning in caught]


def test_unchanged_rules_are_not_compiled_again(tmp_path: Path, compiled: list[Request]) -> None:
    mine = tmp_path / "mine.dl"
    mine.write_text('elementwise_op("stablehlo.tanh"). elementwise_op("my.op").\n')
    (first, warned), (again, warned_again) = book(mine), book(mine)
    assert len(compiled) == 1
    assert again.ops.plan == first.ops.plan
    assert again._about == first._about == frozenset({"stablehlo.tanh", "my.op"})
    assert [OVERLAP in warning for warning in warned] == [True]
    assert warned_again == warned


def test_a_changed_include_is_seen(tmp_path: Path, compiled: list[Request]) -> None:
    mine, part = tmp_path / "mine.dl", tmp_path / "part.dl"
    mine.write_text('.include "part.dl"\n')
    part.write_text('elementwise_op("my.op").\n')
    one_op = {"op": [("my.op",)]}
    assert book(mine)[0].ops.solver({}).solve(one_op, ["elementwise"])["elementwise"]
    part.write_text('elementwise_op("your.op").\n')
    assert not book(mine)[0].ops.solver({}).solve(one_op, ["elementwise"])["elementwise"]
    assert len(compiled) == 2


def test_refused_rules_are_refused_again(tmp_path: Path, compiled: list[Request]) -> None:
    mine = tmp_path / "mine.dl"
    mine.write_text('op(s, "your.op") :- op(s, "my.op").\n')
    for _ in range(2):
        with pytest.raises(ShardlogError, match="a rule cannot add to op"):
            RuleBook([mine])
