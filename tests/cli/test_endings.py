"""Commands that are interrupted in any of their phases, and those whose disk is full: what stood there stays
whole, nothing is left behind, and one line says why."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
import shardlog

from ..support.ended import endings
from ..support.mlp import MLP

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes of POSIX are forked")

# Each way to write a file: the command, and the file.
COMMANDS = {
    "run": ("run m.mlir -o out", "out"),
    "run, bytecode": ("run m.mlir -o out.mlirbc", "out.mlirbc"),
    "run --save": ("run m.mlir --save out", "out"),
    "partition": ("partition m.mlir -o out", "out"),
    "partition, plan": ("partition m.mlir -o out.json", "out.json"),
    "cost": ("cost m.mlir --trace out.json", "out.json"),
    "report": ("report m.mlir -o out", "out"),
    "report, saved": ("report m.run -o out", "out"),
    "exec": ("exec m.mlir -o out", "out"),
    "auto": ("auto plain.mlir --mesh data=2 -o out.json", "out.json"),
    "auto --program": ("auto plain.mlir --mesh data=2 --program out", "out"),
    "auto --plot": ("auto plain.mlir --mesh data=2 --plot out", "out"),
    "auto --report": ("auto plain.mlir --mesh data=2 --report out", "out"),
    "facts": ("facts m.mlir -o folder", "folder/module/sharded.facts"),
    "expect": ("expect m.mlir out --update", "out"),
    "datalog": ("datalog p.dl -D folder", "folder/path.csv"),
    "datalog --profile": ("datalog p.dl -D folder --profile out", "out"),
    "simplify": ("simplify m.mlir -o out", "out"),
    "compile": ("compile m.mlir --target cpu -o out", "out"),
    "check": ("check m.mlir --fail-on unknown-op --format junit=out", "out"),
    "fmt": ("fmt p.dl", "p.dl"),
    "profile": ("profile p.dl --html out", "out"),
    "sweep": ("sweep s.toml -o folder", "folder/table.csv"),
}
# The phases that commands have at least.
PHASES = {
    "run": ["reading", "importing", "propagating", "writing", "printing", "half-written", "taking"],
    "run --save": ["reading", "importing", "propagating", "writing", "saving", "taking"],
    "partition": ["reading", "importing", "propagating", "partitioning", "half-written", "taking"],
    "cost": ["reading", "importing", "partitioning", "counting costs", "half-written", "taking"],
    "report": ["reading", "importing", "explaining", "looking for conflicts", "counting costs", "taking"],
    "exec": ["reading", "importing", "partitioning", "compiling", "running", "taking"],
    "auto": ["reading", "choosing", "costing", "half-written", "taking"],
    "datalog": ["read_inputs", "run_outputs", "write_outputs", "taking"],
    "facts": ["half-written", "taking"],
    "expect": ["half-written", "taking"],
    "sweep": ["0 of 1 plans"],
}
PATHS = """\
.decl edge(a: number, b: number)
.decl path(a: number, b: number)
edge(1, 2).   edge(2, 3). edge(3, 4). edge(4, 5).
path(a, b) :- edge(a, b).
path(a, c) :- path(a, b), edge(b, c).
.output path
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.mlir").write_text(MLP)
    plain = MLP.partition("\n")[2]
    for sharding in ('[{"data"}, {}]', '[{}, {"model"}]'):
        plain = plain.replace(f" {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}", "")
    (tmp_path / "plain.mlir").write_text(plain)
    shardlog.run(tmp_path / "m.mlir").save(tmp_path / "m.run")
    (tmp_path / "p.dl").write_text(PATHS)
    (tmp_path / "s.toml").write_text('models = ["plain.mlir"]\nmeshes = ["data=2"]\ncompare = false\n')
    return tmp_path


def with_old(folder: Path, name: str) -> dict[str, str]:
    """The files of a folder, with the output as an older command has left it."""
    if not (folder / name).exists():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("# so far\n\"%arg0\" = '[{}, {}]'\n")
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes().hex() for path in files}


@pytest.mark.parametrize("name", PHASES)
def test_ctrl_c_leaves_what_was_there(name: str, folder: Path) -> None:
    command, written = COMMANDS[name]
    before = with_old(folder, written)
    *interrupted, whole = endings(folder, command.split())
    assert (whole.phase, whole.status) == ("", 0), whole.messages
    assert whole.files[written] != before[written]
    for phase in PHASES[name]:
        assert any(ending.phase.startswith(phase) for ending in interrupted), phase
    for ending in interrupted:
        assert ending.status == 128 + signal.SIGINT, ending.phase
        assert ending.messages == "shardlog: interrupted\n", ending.phase
        assert ending.files == before, ending.phase


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_leaves_what_was_there(name: str, folder: Path) -> None:
    command, written = COMMANDS[name]
    before = with_old(folder, written)
    (ending,) = endings(folder, command.split(), full=True)
    assert ending.status == 2, ending.messages
    assert ending.files == before
    assert [line for line in ending.messages.splitlines() if ": error: cannot write" in line], ending.messages
    assert len(ending.messages.splitlines()) == 1, ending.messages
