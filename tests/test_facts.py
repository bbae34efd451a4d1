"""`shardlog facts`: what the rules are given, in files with which stock Soufflé gives our answers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import shardlog
from shardlog import cli
from shardlog.engine import load
from shardlog.rulebook import RULES

from . import models

Rows = list[tuple[str, ...]]
PROGRAMS = {
    "ops": "ops/main.dl",
    **{name: f"propagation/{name}.dl" for name in ("turn", "boundary", "constants", "groups", "schedule")},
}


def read(folder: Path, ending: str) -> dict[str, Rows]:
    """The files in a folder: relation -> sorted rows."""
    return {
        path.stem: sorted(tuple(line.split("\t")) for line in path.read_text().splitlines())
        for path in folder.glob(f"*{ending}")
    }


def as_text(rows: Any) -> Rows:
    """Rows as Soufflé writes them."""
    return sorted(tuple(str(value) for value in row) for row in rows)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, shardlog.Result]:
    """A folder with the facts of a transformer's train step with a scan, and its run."""
    folder = tmp_path_factory.mktemp("facts")
    module = folder / "m.mlir"
    module.write_text(models.text("transformer", scan=True, train=True))
    assert cli.main(["facts", str(module), "-o", str(folder)]) == 0
    return folder, shardlog.run(module)


def test_every_input_of_every_program_has_a_file(model: tuple[Path, shardlog.Result]) -> None:
    folder, result = model
    for name, program in result.book.programs().items():
        inputs = {relation.name for relation in program.plan.relations if relation.input}
        assert set(read(folder / name, ".facts")) == inputs


def test_relations_of_the_result(model: tuple[Path, shardlog.Result]) -> None:
    folder, result = model
    assert read(folder / "module", ".facts") == {name: as_text(rows) for name, rows in result.facts.items()}


@pytest.mark.skipif(shutil.which("souffle") is None, reason="souffle is not installed")
@pytest.mark.parametrize("name", PROGRAMS)
def test_souffle_gives_our_answers(model: tuple[Path, shardlog.Result], name: str, tmp_path: Path) -> None:
    folder, file = model[0], RULES / PROGRAMS[name]
    subprocess.run(["souffle", "-w", "-F", folder / name, "-D", tmp_path, file], check=True)
    program = load([file])
    given = read(folder / name, ".facts")
    facts = {
        relation.name: [
            tuple(v if c.type == "symbol" else int(v) for c, v in zip(relation.columns, row, strict=True))
            for row in given[relation.name]
        ]
        for relation in program.plan.relations
        if relation.input
    }
    ours = {name: as_text(rows) for name, rows in program.evaluate(facts).items()}
    assert ours == read(tmp_path, ".csv")
    assert any(ours.values()) or name == "groups"


@pytest.mark.skipif(shutil.which("souffle") is None, reason="souffle is not installed")
def test_souffle_reads_the_relations_of_the_result(
    model: tuple[Path, shardlog.Result], tmp_path: Path
) -> None:
    folder, result = model
    rule = "split(v) :- sharded(v, _, _, x), sharded(v, _, _, y), x != y.\n"
    declarations = f'.include "{folder}/module/relations.dl"\n.decl split(v: symbol)\n.output split\n'
    (tmp_path / "split.dl").write_text(declarations + rule)
    command: list[str | Path] = ["souffle", "-F", folder / "module", "-D", tmp_path, tmp_path / "split.dl"]
    subprocess.run(command, check=True)
    axes: dict[str, set[str]] = {}
    for v, _, _, x in result.facts["sharded"]:
        axes.setdefault(v, set()).add(x)
    assert read(tmp_path, ".csv")["split"] == sorted((v,) for v, xs in axes.items() if len(xs) > 1)
