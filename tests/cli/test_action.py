"""The scripts of action.yml, in a repository with a baseline; ``gh`` notes what it is asked."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ..checks.test_check import BEFORE
from ..checks.test_lint import MODULE

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / ".github" / "action"
GH = """#!/usr/bin/env bash
printf '%s\\n' "$*" >> "$GH_LOG"
case "$*" in *--paginate*) printf '%s' "$GH_KNOWN" ;; esac
"""


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """A repository whose first commit lowers to another module than its second, and what a runner sets."""
    repository, temporary, tools = (tmp_path / name for name in ("repository", "temporary", "tools"))
    for folder in (repository, temporary, tools):
        folder.mkdir()
    python = f'#!/usr/bin/env bash\nexec {shlex.quote(sys.executable)} "$@"\n'
    for name, text in (("gh", GH), ("python", python)):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    identity = {"NAME": "a", "EMAIL": "a@b"}
    git = {f"GIT_{who}_{k}": v for who in ("AUTHOR", "COMMITTER") for k, v in identity.items()}
    variables = {
        **os.environ,
        **git,
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "RUNNER_TEMP": str(temporary),
        "GITHUB_STEP_SUMMARY": str(temporary / "summary"),
        "GITHUB_OUTPUT": str(temporary / "output"),
        "GITHUB_REPOSITORY": "owner/name",
        "GH_LOG": str(temporary / "gh"),
        "GH_KNOWN": "",
        **dict.fromkeys(("RUN", "BASELINE", "BASELINE_REF", "EXPECT", "FAIL_ON", "OPTIONS", "SARIF"), ""),
        "MODULE": "m.mlir",
    }
    for text in (BEFORE, MODULE):
        (repository / "source").write_text(text)
        for command in ("init -q", "add source", "commit -q -m x"):
            subprocess.run(["git", *command.split()], cwd=repository, env=variables, check=True)
    return variables


def ran(script: str, variables: dict[str, str], **inputs: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", SCRIPTS / script],
        cwd=Path(variables["RUNNER_TEMP"]).parent / "repository",
        env=variables | inputs,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_commit_is_the_baseline(variables: dict[str, str]) -> None:
    done = ran("check.sh", variables, RUN="cp source m.mlir", BASELINE_REF="HEAD~1", SARIF="out.sarif")
    assert done.returncode == 1, done.stderr
    assert "::error file=model.py,line=7,title=shardlog%3A new-collective::" in done.stdout
    temporary = Path(variables["RUNNER_TEMP"])
    report = (temporary / "output").read_text().strip().removeprefix("report=")
    text = Path(report).read_text()
    assert "| bytes sent | 256 | 512 |" in text
    assert (temporary / "summary").read_text() == text
    assert (temporary.parent / "repository" / "out.sarif").exists()
    assert ran("comment.sh", variables, REPORT=report, NUMBER="7").returncode == 0
    posted = (temporary / "gh").read_text().splitlines()[-1]
    assert posted.startswith("api --silent --method POST repos/owner/name/issues/7/comments -F body=@")
    comment = Path(posted.rpartition("@")[2]).read_text()
    assert comment == f"<!-- shardlog: m.mlir -->\n{text}"
    assert ran("comment.sh", variables, REPORT=report, NUMBER="7", GH_KNOWN="12\n13").returncode == 0
    patched = (temporary / "gh").read_text().splitlines()[-1]
    assert patched.startswith("api --silent --method PATCH repos/owner/name/issues/comments/12 -F body=@")


def test_lints_and_options_are_lines(variables: dict[str, str]) -> None:
    lints = "collectives=1\n\nunknown-op\n"
    done = ran("check.sh", variables, RUN="cp source m.mlir", FAIL_ON=lints, OPTIONS="--keep-shardings")
    assert done.returncode == 1, done.stderr
    assert re.findall("title=shardlog%3A (.*?)::", done.stdout) == ["collectives", "unknown-op"]


def test_a_baseline_that_cannot_be_made_is_left_out(variables: dict[str, str]) -> None:
    command = "grep -q data} source && cp source m.mlir"
    (Path(variables["RUNNER_TEMP"]).parent / "repository" / "source").write_text("{data}" + MODULE)
    done = ran("check.sh", variables, RUN=command, BASELINE_REF="HEAD~1")
    assert done.returncode == 0, done.stderr
    assert "there is no baseline" in done.stdout
    assert "there is nothing to check" in done.stdout


def test_bad_input_has_no_report(variables: dict[str, str]) -> None:
    done = ran("check.sh", variables, FAIL_ON="unknown-op", MODULE="missing.mlir")
    assert done.returncode == 2
    assert "missing.mlir: error" in done.stderr
    assert not Path(variables["GITHUB_OUTPUT"]).exists()


def test_inputs_are_those_that_are_used() -> None:
    text = (ROOT / "action.yml").read_text()
    declared = text[text.index("inputs:") : text.index("outputs:")]
    names = set(re.findall(r"(?m)^  ([\w-]+):$", declared))
    assert names == set(re.findall(r"inputs\.([\w-]+)", text))
    read = set(re.findall(r"(?m)^        ([A-Z_]+): \$", text))
    scripts = "".join(file.read_text() for file in SCRIPTS.glob("*.sh"))
    assert all(f"${name}" in scripts or f"{{{name}" in scripts for name in read - {"INSTALL", "GH_TOKEN"})
