"""Limits of the program that is meant: each names what broke it, with its cause."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import shardlog
from jsonschema import validate
from shardlog.checks.limits import count_in, time_in
from shardlog.cli import main
from shardlog.cli.schemas import schema

from .test_lint import MODULE


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(MODULE)


def said(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 1) -> str:
    assert main(["run", "m.mlir", "-o", "out.mlir", *arguments]) == status
    return capsys.readouterr().out


# Each gather of 4 x 16 floats over two devices sends 256 bytes.
X = "256 bytes: all-gather 0 of %arg0 for operand 0 of stablehlo.dot_general at model.py:7"
Y = "256 bytes: all-gather 1 of %1 for operand 0 of my.op at model.py:10"


@pytest.mark.parametrize(
    ("limit", "first", "parts", "kept"),
    [
        ("collectives=1", "collectives: 2 collectives", [X, Y, "because of the annotation"], "collectives=2"),
        ("sent=511", "sent: 512 bytes sent by each device", [X, Y, "at batch['x']"], "sent=512"),
        ("memory=1KiB", "memory: ", ["the limit is 1 KiB", "of arguments"], "memory=1MiB"),
    ],
)
def test_limits_name_what_breaks_them(
    limit: str, first: str, parts: list[str], kept: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program, head, *rest = said(capsys, "--fail-on", limit).splitlines()
    assert program.startswith("program: least bytes (")
    assert head.startswith(first)
    told = " ".join(line.strip() for line in rest)
    assert all(part in told for part in parts)
    assert said(capsys, "--fail-on", kept, status=0) == ""


def test_times_are_on_a_machine(capsys: pytest.CaptureFixture[str]) -> None:
    program, head, *rest = said(capsys, "--fail-on", "time=1us", "--topology", "v5e").splitlines()
    assert program.startswith("program: least time on v5e (")
    assert head.endswith("us on TPU v5e")
    assert "all-gather for stablehlo.dot_general at model.py:7, because" in " ".join(rest)
    assert said(capsys, "--fail-on", "time=1s", "--topology", "v5e", status=0) == ""
    assert main(["run", "m.mlir", "--fail-on", "time=1us"]) == 2
    assert "give --topology" in capsys.readouterr().err


def test_limits_are_those_of_the_program_that_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "--fail-on", "sent=512", status=0) == ""
    told = said(capsys, "--fail-on", "sent=512", "--keep-shardings")
    assert told.startswith("program: as decided (")
    assert "sent: 768 bytes" in told


def test_new_collectives(capsys: pytest.CaptureFixture[str]) -> None:
    shardlog.run(MODULE).save("before.shardlog")
    limit = "--fail-on", "new-collective=before.shardlog"
    assert said(capsys, *limit, status=0) == ""
    Path("m.mlir").write_text(MODULE.replace('"model.py":', '"other.py":1'))  # lines that moved
    assert said(capsys, *limit, status=0) == ""
    changed = """--annotate=%arg1=[{}, {"model"}]"""
    document = json.loads(said(capsys, *limit, changed, "--json"))
    validate(document, schema("run"))
    (new,) = document["findings"]
    assert (new["lint"], new["what"], new["where"]) == ("new-collective", "all-reduce 1 of %1", "other.py:19")
    assert new["because"] == ["because of the annotation of %arg1 at params['w']"]


def test_limits_are_combined_with_expectations(capsys: pytest.CaptureFixture[str]) -> None:
    Path("shardings.toml").write_text('"%arg0" = \'[{}, {"data"}]\'\n')
    expect = ["expect", "m.mlir", "shardings.toml", "--fail-on", "collectives=0", "--fail-on", "unknown-op"]
    assert main([*expect, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    validate(document, schema("expect"))
    assert len(document["differences"]) == 1
    assert [finding["lint"] for finding in document["findings"]] == ["collectives", "unknown-op"]


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("collectives", "no number\n  hint: expected a whole number, as in collectives=12"),
        ("collectives=1.5", "'1.5' is not a number"),
        ("collectives=-1", "'-1' is not a number"),
        ("time=fast", "'fast' is not a time\n  hint: expected seconds, or a time in us, ms or s"),
        ("sent=much", "'much' is not a size"),
        ("new-collective=m.mlir", "m.mlir is not a saved run"),
        ("new-collective=nowhere.run", "there is no file nowhere.run"),
        ("new-collective", "no saved run"),
        ("colectives=1", "did you mean collectives?"),
    ],
)
def test_bad_limits(limit: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "m.mlir", "--fail-on", limit]) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert message in printed.err


def test_times_and_counts_are_read() -> None:
    assert [time_in(text) for text in ("2", "1.5 ms", "20us", ".5s")] == [
        2.0,
        1.5e-3,
        pytest.approx(2e-5),
        0.5,
    ]
    assert [time_in(text) for text in ("", "ms", "1e3", "1 h", "-1s")] == [None] * 5
    assert [count_in(text) for text in ("0", "12", "1.0", "", "x", "9" * 12)] == [
        0,
        12,
        None,
        None,
        None,
        None,
    ]


@pytest.mark.parametrize("word", ["explain", "lint", "shard", "propagate", "visualize", "convert", "Explain"])
def test_what_newcomers_type(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word, "m.mlir"]) == 2
    hint = capsys.readouterr().err.splitlines()[-1]
    wanted = {
        "explain": "why, why-not and conflicts",
        "lint": "check --fail-on",
        "visualize": "report",
    }
    assert wanted.get(word.lower(), "run ") in hint
