"""Every program in ``programs/`` gives the relations that it says, in both evaluators and in Soufflé.

A line ``//= relation: tuple tuple ...`` is the answer, sorted. ``//# differs from Soufflé: why`` marks what
is not compared with it.
"""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from shardlog.datalog.values import text_of
from shardlog.engine import LoadedProgram, load

from ..support import tools

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*/*.dl"))
SOUFFLE = tools.souffle()


def expected(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    answers = {}
    for name, rows in re.findall(r"^//= (\S+):(.*)$", path.read_text(), re.MULTILINE):
        answers[name] = list(ast.literal_eval("[" + rows.strip().replace(") (", "), (") + "]"))
    return answers


@pytest.fixture(params=PROGRAMS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def program(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.mark.parametrize("backend", ["reference", "core"])
def test_answers(program: Path, backend: Any) -> None:
    assert load([program]).evaluate({}, backend=backend) == expected(program)


@pytest.mark.souffle
def test_souffle_agrees(program: Path, tmp_path: Path) -> None:
    text = program.read_text()
    if "//# differs from Soufflé" in text:
        pytest.skip("differs from Soufflé, and says so")
    assert SOUFFLE is not None
    if (
        "Word size: 64 bits"
        not in subprocess.run([SOUFFLE, "--version"], capture_output=True, text=True).stdout
    ):
        pytest.skip("Soufflé has 32-bit numbers")
    # Its own printing options would go to the standard output.
    text = re.sub(
        r"^\.output (.*)$", lambda m: ".output " + re.sub(r"\(.*?\)", "", m[1]), text, flags=re.MULTILINE
    )
    source = tmp_path / "program.dl"
    source.write_text(text.replace(".printsize", ".output"))
    subprocess.run([SOUFFLE, "-w", "-D", tmp_path, source], check=True, capture_output=True)
    loaded = load([program])
    for name, rows in expected(program).items():
        found = {tuple(line.split("\t")) for line in (tmp_path / f"{name}.csv").read_text().splitlines()}
        assert found == {souffle_row(loaded, name, row) for row in rows}, name


def souffle_row(program: LoadedProgram, name: str, row: tuple[Any, ...]) -> tuple[str, ...]:
    """A tuple as Soufflé prints it."""
    columns = program.relations[name].columns
    values = zip(columns, row, strict=True)
    return tuple(text_of(column, value, program.plan) for column, value in values) or ("()",)
