"""Rules for an op leave the others alone: their signatures are not solved again."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from shardlog import run
from shardlog.program.shardy import installed
from shardlog.rulebook import book as rulebook
from shardlog.rulebook.about import names
from shardlog.rulebook.book import RuleBook, builtin_ops
from shardlog.rulebook.naming import naming
from shardlog.rulebook.shipped import RULES
from shardlog.rulebook.users import rule_texts
from shardlog.rulebook.written import read

from ..support import models

NAMING = naming(builtin_ops()[1])
FAMILY = """
    .decl mine(name: symbol)
    mine("my.a").  mine("my.b").
"""
KEYED = """
    .decl mine(s: sig)
    mine(s) :- op(s, "my.a").
    mine(s) :- target(s, "b"), dim(s, 0, 0, _).
"""


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("", set()),
        ('elementwise_op("my.a"). pointwise_target("b").', {"my.a", "b"}),
        ('passes_op("@b", "both").', {"b", "both"}),
        ('ruled(s) :- op(s, "my.a"), slot(s, _, _, _, 2).', {"my.a"}),
        (KEYED + "ruled(s) :- mine(s). along(s, 0, t, d) :- mine(s), dim(s, t, d, _).", {"my.a", "b"}),
        (FAMILY + "ruled(s) :- op(s, name), mine(name).", {"my.a", "my.b"}),
        (FAMILY + "elementwise_op(name) :- mine(name).", {"my.a", "my.b"}),
        # These may be about any op.
        (FAMILY + "ruled(s) :- op(s, name), mine(_).", None),
        ("stops(s, k) :- needs(s, k, _).", None),
        ('stops(s, k) :- needs(s, k, "permutation").', None),
        ('ruled(s) :- op(s, name), !lacks_rule(name, _), name != "my.a".', None),
        ('op_priority(0, 0, "my.a", "any", "any", "both").', None),
        ('.include "more.dl"', None),
    ],
)
def test_names(text: str, about: set[str] | None) -> None:
    assert names(read({"mine.dl": text}).module, NAMING) == about


def test_lines_are_about_their_op(tmp_path: Path) -> None:
    rules = tmp_path / "mine.rules"
    rules.write_text('my.a: i -> i\n@b: ... i -> ... i\nelementwise_op("my.c").\n')
    assert names(read(rule_texts([rules])).module, NAMING) == frozenset({"my.a", "b", "my.c"})


def test_all_relations_of_facts_about_ops_are_known() -> None:
    schema = (RULES / "ops" / "schema.dl").read_text()
    assert {*re.findall(r"^\.decl (\w+)\(name: symbol", schema, re.M)} <= NAMING.names.keys()


class Counting:
    """A solver that counts."""

    def __init__(self, solver: Any) -> None:
        self.solver, self.solved = solver, list[str]()

    def solve(self, facts: Any, outputs: Any = None) -> Any:
        self.solved += [name for (name,) in facts.get("op", ())]
        return self.solver.solve(facts, outputs)


def test_signatures_of_other_ops_are_not_solved_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = models.text("transformer", scan=True, train=True)
    plain = run(text).result.book
    asked = list(plain.asked["ops"])
    answers = rulebook._answers(installed())
    shared: Any = Counting(answers.solver)
    monkeypatch.setattr(rulebook, "_answers", lambda shardy: replace(answers, solver=shared))
    rules = tmp_path / "mine.rules"
    rules.write_text("my.attention: i j, j k -> i k reduction={j}\nstablehlo.tanh: ... -> ...\n")
    book = RuleBook([rules])
    own: Any = Counting(book._ops)
    book._answers = replace(book._answers, solver=own)
    assert [book.classify(facts) for facts in asked] == [plain.classify(facts) for facts in asked]
    assert set(own.solved) <= {"stablehlo.tanh"}
    assert shared.solved == []
