"""``shardlog profile``, and what evaluations note of their rules."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from shardlog.authoring.profiles.page import page
from shardlog.authoring.profiles.text import profile_text
from shardlog.cli import main
from shardlog.datalog import EngineError, Limits, Program
from shardlog.engine.evaluate.program import Backend

CHAIN = """.decl edge(a: number, b: number)
edge(i, i + 1) :- i = range(0, 50).
.decl path(a: number, b: number)
.output path
path(a, b) :- edge(a, b).
path(a, c) :- path(a, b), edge(b, c).
.decl long(a: number)
.output long
long(a) :- path(a, b), b - a > 40.
"""
BACKENDS: list[Backend] = ["core", "reference"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_each_rule_gives(backend: Backend) -> None:
    profile = Program(CHAIN, backend=backend).profile()
    made = {rule.place: (rule.tuples, [r.tuples for r in rule.rounds]) for rule in profile.rules}
    assert made == {
        "program:2": (50, [50]),
        "program:5": (50, [50]),
        "program:6": (1225, [*range(49, -1, -1)]),
        "program:9": (10, [10]),
    }
    assert profile.tuples == 50 + 50 + 1225 + 10
    numbers = {rule.place: [r.number for r in rule.rounds] for rule in profile.rules}
    assert numbers["program:5"] == [0] and numbers["program:6"] == [*range(1, 51)]
    strata = {rule.place: rule.stratum for rule in profile.rules}
    assert strata["program:2"] < strata["program:5"] == strata["program:6"] < strata["program:9"]
    assert all(r.seconds >= 0 for rule in profile.rules for r in rule.rounds)
    assert sum(rule.seconds for rule in profile.rules) <= profile.seconds


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_runs_the_program_once(backend: Backend) -> None:
    program = Program(CHAIN, backend=backend)
    program.profile("edge")
    assert program.count("edge") == 50
    assert "program:2" not in {rule.place for rule in program.profile("edge").rules}


@pytest.mark.parametrize("backend", BACKENDS)
def test_after_more_facts(backend: Backend) -> None:
    program = Program(".decl a(x: number)\n.decl b(x: number)\nb(x) :- a(x).\n", backend=backend)
    program.add("a", [(1,), (2,)])
    assert program.profile().tuples == 2
    program.add("a", [(3,)])
    program.profile()
    assert program.count("b") == 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_limits(backend: Backend) -> None:
    program = Program(CHAIN, backend=backend)
    with pytest.raises(EngineError, match="more than 100 tuples"):
        program.profile(limits=Limits(tuples=100))
    assert program.profile().tuples == 1335


def test_text_leaves_rows_out_and_says_so() -> None:
    profile = Program(CHAIN).profile()
    text = profile_text(profile)
    assert "... 31 more (--full shows all)" in text and "more" not in profile_text(profile, full=True)
    assert re.search(r"(?m)^program:6 .* 1,225 +50  path\(a, c\) :- path\(a, b\), edge\(b, c\)\.$", text)


class _Page(HTMLParser):
    """The names of elements, and their texts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def test_page() -> None:
    program = Program('.decl a(x: symbol)\na("<b>") :- 1 < 2.\n' + CHAIN)
    read = _Page()
    read.feed(page(program.profile(), "what <it> took"))
    assert "what <it> took" in read.texts and 'a("<b>") :- 1 < 2.' in read.texts
    assert read.tags.count("svg") == 1 and read.tags.count("g") == 50  # of the one recursive rule
    assert not {"script", "link", "img"} & set(read.tags)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.dl").write_text(
        ".decl a(x: number)\n.input a\n.decl b(x: number)\n.output b\nb(x) :- a(x).\n"
    )
    (tmp_path / "a.facts").write_text("1\n2\n")
    arguments = ["profile", str(tmp_path / "p.dl"), "-F", str(tmp_path)]
    assert main([*arguments, "--json"]) == 0
    (rule,) = json.loads(capsys.readouterr().out)["rules"]
    assert (rule["text"], rule["tuples"]) == ("b(x) :- a(x).", 2)
    assert main([*arguments, "--html", str(tmp_path / "p.html")]) == 0
    assert "b(x) :- a(x)." in (tmp_path / "p.html").read_text()
    assert not (tmp_path / "b.csv").exists()
    assert main([*arguments, "--html", str(tmp_path / "p.dl")]) == 2
    assert "would replace what is read" in capsys.readouterr().err
