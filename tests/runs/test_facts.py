"""`shardlog facts`: what the rules are given, in files with which stock Soufflé gives our answers."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import shardlog
from shardlog import cli
from shardlog.engine import load
from shardlog.rulebook.shipped import RULES

from ..support import models, tools

Rows = list[tuple[str, ...]]
PROGRAMS = {
    "ops": "ops/main.dl",
    **{
        name: f"propagation/{name}.dl"
        for name in (
            "turn",
            "boundary",
            "constraints",
            "siblings",
            "tactics",
            "constants",
            "groups",
            "schedule",
        )
    },
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
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, shardlog.Session]:
    """A folder with the facts of a transformer's train step with a scan, and its run."""
    folder = tmp_path_factory.mktemp("facts")
    module = folder / "m.mlir"
    module.write_text(models.text("transformer", scan=True, train=True))
    assert cli.main(["facts", str(module), "-o", str(folder)]) == 0
    return folder, shardlog.run(module)


def test_every_input_of_every_program_has_a_file(model: tuple[Path, shardlog.Session]) -> None:
    folder, result = model
    for name, program in result.result.book.programs().items():
        inputs = {relation.name for relation in program.plan.relations if relation.input}
        assert set(read(folder / name, ".facts")) == inputs


def test_relations_of_the_result(model: tuple[Path, shardlog.Session]) -> None:
    folder, result = model
    assert read(folder / "module", ".facts") == {name: as_text(rows) for name, rows in result.facts.items()}


@pytest.mark.souffle
@pytest.mark.parametrize("name", PROGRAMS)
def test_souffle_gives_our_answers(model: tuple[Path, shardlog.Session], name: str, tmp_path: Path) -> None:
    folder, file = model[0], RULES / PROGRAMS[name]
    subprocess.run([tools.souffle() or "", "-w", "-F", folder / name, "-D", tmp_path, file], check=True)
    program = load([file], include_from=[RULES])
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
    assert any(ours.values()) or name in ("constraints", "tactics", "groups")


MINE = """\
func.func @main(%0: tensor<8x4xf32>, %1: tensor<4x2xf32>) -> tensor<8x2xf32> {
  %2 = "my.scale"(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = "my.product"(%2, %1) : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  %4 = stablehlo.custom_call @soften(%3) : (tensor<8x2xf32>) -> tensor<8x2xf32>
  return %4 : tensor<8x2xf32>
}
"""


@pytest.mark.souffle
def test_souffle_gives_our_answers_with_more_rules(tmp_path: Path) -> None:
    for name, text in {
        "m.mlir": MINE,
        "a.dl": 'elementwise_op("my.scale").\n',
        "b.rules": "/// A product.\nmy.product: i j, j k -> i k reduction={j}\n"
        "@soften: ... i -> ... i need_replication={i}\n",
        "order": "my.*: forward\n*: both\n",
    }.items():
        (tmp_path / name).write_text(text)
    rules = [tmp_path / "a.dl", tmp_path / "b.rules"]
    options = [word for path in rules for word in ("--rules", str(path))]
    options += ["--op-priorities", str(tmp_path / "order")]
    assert cli.main(["facts", str(tmp_path / "m.mlir"), "-o", str(tmp_path / "facts"), *options]) == 0
    out, folder = tmp_path / "out", tmp_path / "facts" / "ops"
    out.mkdir()
    subprocess.run([tools.souffle() or "", "-w", "-F", folder, "-D", out, folder / "rules.dl"], check=True)
    book = shardlog.run(tmp_path / "m.mlir", rules=rules, op_priorities=tmp_path / "order").result.book
    asked, theirs = list(book.asked["ops"]), read(out, ".csv")
    for relation in ("factor", "maps", "kind", "known", "flows", "pure"):
        ours = [(s, *row) for s, facts in enumerate(asked) for row in book.classify(facts)[relation]]
        assert theirs[relation] == as_text(ours)
        assert ours


@pytest.mark.souffle
def test_souffle_reads_the_relations_of_the_result(
    model: tuple[Path, shardlog.Session], tmp_path: Path
) -> None:
    folder, result = model
    rule = "split(v) :- sharded(v, _, _, x), sharded(v, _, _, y), x != y.\n"
    declarations = f'.include "{folder}/module/relations.dl"\n.decl split(v: symbol)\n.output split\n'
    (tmp_path / "split.dl").write_text(declarations + rule)
    command: list[str | Path] = [
        tools.souffle() or "",
        "-F",
        folder / "module",
        "-D",
        tmp_path,
        tmp_path / "split.dl",
    ]
    subprocess.run(command, check=True)
    axes: dict[str, set[str]] = {}
    for v, _, _, x in result.facts["sharded"]:
        axes.setdefault(v, set()).add(x)
    assert read(tmp_path, ".csv")["split"] == sorted((v,) for v, xs in axes.items() if len(xs) > 1)
