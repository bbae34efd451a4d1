"""``shardlog check``: expected shardings, a baseline and limits, in the formats that CI systems read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import shardlog
from shardlog.cli import main

from .test_lint import MODULE

BEFORE = MODULE.replace('[{}, {"data"}]', "[{}, {}]")
CHECK = (
    "check",
    "m.mlir",
    "--expect",
    "e.toml",
    "--baseline",
    "before.mlir",
    "--fail-on",
    "unknown-op",
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(MODULE)
    Path("before.mlir").write_text(BEFORE)
    Path("e.toml").write_text("# none\n\"params['v']\" = '[{}, {}]'\n")


def said(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 1) -> str:
    assert main(arguments) == status
    return capsys.readouterr().out


def test_text_has_totals_and_causes(capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, *CHECK).splitlines()
    assert lines[1:4] == [
        "since before.mlir:",
        "  collectives: 1 -> 2",
        "  bytes sent by each device: 256 -> 512",
    ]
    heads = [line for line in lines if line.startswith(("error: ", "warning: "))]
    assert heads == [
        "error: expected: params['v'] : tensor<32x16xf32> at e.toml:2",
        "error: new-collective: all-gather 0 of %arg0 at model.py:7",
        "error: unknown-op: my.op at model.py:10:10",
        "warning: changed-sharding: %arg2 : tensor<32x16xf32> at params['v']",
        "warning: changed-sharding: %1 : tensor<8x16xf32> at model.py:9",
    ]
    assert "      because of the annotation of %arg0 at batch['x']" in lines
    assert lines[-1] == "m.mlir: 3 errors, 2 warnings"


def test_the_same_program_passes(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "check", "m.mlir", "--baseline", "m.mlir", status=0)
    assert text.endswith("m.mlir: 0 errors, 0 warnings\n")
    assert "As expected." in said(
        capsys, "check", "m.mlir", "--baseline", "m.mlir", "--format", "markdown", status=0
    )


def test_changed_shardings_alone_pass(capsys: pytest.CaptureFixture[str]) -> None:
    # The other way round a collective is gone and none is new.
    text = said(capsys, "check", "before.mlir", "--baseline", "m.mlir", status=0)
    assert "warning: changed-sharding: " in text
    assert "error" not in text.replace("0 errors", "")


def test_a_saved_run_is_a_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    shardlog.run(BEFORE).save("before.shardlog")
    arguments = ("check", "m.mlir", "--mesh", "data=2,model=4", "--baseline", "before.shardlog", "--json")
    changes = json.loads(said(capsys, *arguments))["changes"]
    assert (changes["before"]["collectives"], changes["after"]["collectives"]) == (1, 2)
    assert [each["kind"] for each in changes["new"]] == ["all-gather"]


def test_github(capsys: pytest.CaptureFixture[str]) -> None:
    first, second, *_ = said(capsys, *CHECK, "--format", "github").splitlines()
    assert first.startswith("::error file=e.toml,line=2,title=shardlog%3A expected::params['v']")
    assert second == (
        "::error file=model.py,line=7,title=shardlog%3A new-collective::all-gather 0 of %25arg0: "
        "256 bytes for operand 0 of stablehlo.dot_general; before.mlir has no such collective%0A"
        "because of the annotation of %25arg0 at batch['x']"
    )


def test_junit(capsys: pytest.CaptureFixture[str]) -> None:
    suites = ElementTree.fromstring(said(capsys, *CHECK, "--format", "junit"))
    (suite,) = suites
    assert (suite.get("tests"), suite.get("failures")) == ("4", "3")
    failed = {case.get("name"): case.find("failure") is not None for case in suite}
    assert failed == {
        "expected": True,
        "new-collective": True,
        "changed-sharding": False,
        "unknown-op": True,
    }
    new = next(case for case in suite if case.get("name") == "new-collective").find("failure")
    assert new is not None
    what, because, *_ = str(new.text).splitlines()
    assert what.startswith("all-gather 0 of %arg0 at model.py:7: 256 bytes for operand 0")
    assert because == "because of the annotation of %arg0 at batch['x']"


def test_sarif(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(said(capsys, *CHECK, "--format", "sarif"))
    (run,) = document["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    places = [
        (rules[result["ruleIndex"]], result["level"], location["physicalLocation"])
        for result in run["results"]
        for location in result["locations"]
    ]
    model = {"artifactLocation": {"uri": "model.py"}, "region": {"startLine": 7}}
    assert ("new-collective", "error", model) in places
    assert ("changed-sharding", "warning", {"artifactLocation": {"uri": "m.mlir"}}) in places


def test_markdown_is_tables_of_text(capsys: pytest.CaptureFixture[str]) -> None:
    Path("odd|name.mlir").write_text(BEFORE.replace('"model.py"', '"<b>|`x`_@a.py"'))
    text = said(capsys, "check", "m.mlir", "--baseline", "odd|name.mlir", "--format", "markdown")
    assert "| bytes sent | 256 | 512 |" in text
    assert "| of each device | odd\\|name.mlir | now |" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    for row in rows:  # as many cells as the table has columns, whatever the text
        assert len(re.findall(r"(?<!\\)\|", row)) in (4, 5)
    assert "<b>" not in text
    assert "has no such collective<br>because of the annotation of" in text  # lines stay apart
    assert any(row.startswith("| %1 at model.py:9 |") for row in rows)  # its place is that of now


def test_markdown_has_places_as_seen_from_the_folder(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.mlir").write_text(MODULE.replace('"model.py"', f'"{Path.cwd()}/model.py"'))
    text = said(capsys, "check", "m.mlir", "--baseline", "before.mlir", "--format", "markdown")
    assert "at model.py:9" in text
    assert str(Path.cwd()) not in text.replace("\\", "")


def test_several_formats_of_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    formats = ("--format", "github", "--format", "markdown=out.md", "--format", "sarif=out.sarif")
    assert said(capsys, *CHECK, *formats).startswith("::error")
    assert Path("out.md").read_text().startswith("### ❌ shardlog: m.mlir")
    assert json.loads(Path("out.sarif").read_text())["version"] == "2.1.0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "m.mlir"], "there is nothing to check"),
        (["check", "rules.dl", "--fail-on", "unknown-op"], "shardlog rules check checks rule files"),
        ([*CHECK, "--format", "marxdown"], "did you mean markdown?"),
        ([*CHECK, "--format", "sarif="], "no file"),
        ([*CHECK, "--format", "text=m.mlir"], "would replace what is read"),
        (["check", "m.mlir", "--baseline", "no.mlir"], "no.mlir"),
        (["check", "m.mlir", "--baseline", "no.shardlog"], "no.shardlog"),
    ],
)
def test_bad_input(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
    assert Path("m.mlir").read_text() == MODULE
