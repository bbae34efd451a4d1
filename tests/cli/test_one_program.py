"""One truth: all commands, the page and Python say the same of the program that is meant, and name it."""

from __future__ import annotations

import json
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import shardlog
from shardlog.checks.lint import Lint, findings
from shardlog.cli import main
from shardlog.cli.choosing import choice_arguments, choice_of
from shardlog.explanations.report.data import collect
from shardlog.runs.choice import ProgramChoice, ProgramOptions
from shardlog.session import Session

from ..explanations.questions.test_pins import LOOP
from ..support.sums import SUMS

CHOICES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "as decided": (["--keep-shardings"], {"keep_shardings": True}),
    "least bytes": ([], {}),
    "least time on v5e": (["--topology", "v5e"], {"topology": "v5e"}),
}


@pytest.fixture(params=[LOOP, SUMS], ids=["loop", "sums"])
def module(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(request.param)
    return "m.mlir"


def said(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert main(list(arguments)) == status
    return capsys.readouterr().out


@pytest.mark.parametrize("name", CHOICES)
def test_all_commands_are_about_one_program(
    name: str, module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags, keywords = CHOICES[name]

    def document(*arguments: str, status: int = 0) -> Any:
        found = json.loads(said(capsys, *arguments, "--json", *flags, status=status))
        assert found["program"] == name
        return found

    said(capsys, "run", module, "--save", "m.shardlog", "-o", "out.mlir")
    listed = document("partition", module)
    assert listed["bytes"] > 0
    moved = [
        {name: each[name] for name in ("number", "kind", "op", "slot", "value", "where", "bytes", "axes")}
        for each in listed["collectives"]
    ]
    numbers = list(range(len(moved)))
    result = shardlog.run(module)
    for given in (module, "m.shardlog"):
        conflicts = document("conflicts", given)
        assert conflicts["bytes"] == listed["bytes"]
        assert sorted(n for each in conflicts["conflicts"] for n in each["numbers"]) == numbers
        for number, collective in enumerate(moved):
            why = document("why", given, "--collective", str(number))
            assert why["collective"].items() >= collective.items()
    cost = document("cost", module)
    links = [item for item in cost["items"] if item["limited"] == "links"]
    assert cost["sent"] == listed["bytes"]
    assert sorted(n for item in links for n in item["numbers"]) == numbers
    lints = document("run", module, "-o", "out.mlir", "--fail-on", "reshard-above=0", status=1)
    assert sum(finding["bytes"] for finding in lints["findings"]) == listed["bytes"]

    page = collect(result.programs, choice=ProgramChoice(**keywords))
    assert page["means"].startswith(f"program: {name} (")
    assert sum(conflict["bytes"] for conflict in page["conflicts"]) == listed["bytes"]
    assert (page["cost"]["sent"], page["cost"]["seconds"]) == (listed["bytes"], cost["seconds"])
    assert sorted(n for row in page["cost"]["collectives"] for n in row["numbers"]) == numbers

    assert str(result.partition(**keywords).choice) == name
    assert [c.bytes for c in result.partition(**keywords).collectives] == [each["bytes"] for each in moved]
    assert sum(conflict.bytes for conflict in result.conflicts(**keywords)) == listed["bytes"]
    assert (result.cost(**keywords).sent, result.cost(**keywords).seconds) == (cost["sent"], cost["seconds"])
    assert f"{listed['bytes']:,} bytes to each device" in repr(shardlog.explain(result, **keywords))
    found = findings(result, [Lint.parse("reshard-above=0")], ProgramChoice(**keywords))
    assert sum(finding.bytes for finding in found) == listed["bytes"]


@pytest.mark.parametrize("name", CHOICES)
def test_all_tables_name_the_program_first(
    name: str, module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags, _ = CHOICES[name]
    others = {"as decided": "--keep-shardings", "least bytes": "least bytes", "least time": "--topology"}
    lines = set()
    for command in (
        ["partition", module, "--list"],
        ["conflicts", module],
        ["cost", module],
        ["exec", module],
        ["why", module, "--collective", "0"],
        ["what-if", module, "--drop", "%arg0"],
        ["run", module, "-o", "out.mlir", "--fail-on", "reshard-above=0"],
    ):
        first, *_ = said(capsys, *command, *flags, status=int(command[0] == "run")).splitlines()
        lines.add(first)
    (line,) = lines
    assert line.startswith(f"program: {name} (")
    assert all(text in line for other, text in others.items() if not name.startswith(other))


def test_the_loop_is_three_programs() -> None:
    """The tests above would pass with one program for all."""
    result = shardlog.run(LOOP)
    sent = [
        sum(c.total for c in result.partition(**keywords).collectives) for _, keywords in CHOICES.values()
    ]
    assert len(set(sent)) == 3


def test_a_program_is_made_once() -> None:
    result = shardlog.run(SUMS)
    program = result.partition(topology="v5e", memory="1GiB")
    assert result.partition("sdy-manual", topology="v5e", memory=1 << 30) is program
    assert result.programs.asked(ProgramChoice(topology="v5e", memory="1GiB")) is program
    assert result.partition(topology="v5e") is not program
    assert result.conflicts(topology="v5e") is result.conflicts(topology="v5e")


def test_options_are_described_in_one_place() -> None:
    named = [option.name for option in fields(ProgramChoice)]
    assert list(get_type_hints(ProgramOptions)) == named
    assert set(signature(Session.partition).parameters) == {"self", "refuse", *named}


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"memory": "16GiB"}, "least bytes, within 16 GiB"),
        ({"keep_shardings": True, "topology": "h100"}, "as decided, moved in least time on h100"),
        ({"topology": "v5e:2x4", "seconds": 2.5}, "least time on v5e:2x4, the best found in 2.5 s"),
        ({"pins": ["%0=[{}, {}]", "%1=[{}, {}]"]}, "least bytes, 2 pinned"),
        ({"topology": "v5e", "collective_matmul": True}, "least time on v5e, products part by part"),
    ],
)
def test_names_say_what_was_asked_for(options: Any, name: str) -> None:
    choice = ProgramChoice(**options)
    assert str(choice) == name
    assert choice_of(choice_arguments().parse_args(choice.arguments)) == choice
