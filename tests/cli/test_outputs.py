"""Outputs of commands: written whole or not at all, in place of files only, and never over an input."""

from __future__ import annotations

import gzip
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import shardlog
from shardlog import ShardlogError
from shardlog.cli import main
from shardlog.outputs import output, output_folder
from shardlog.runs.records.saved_file import is_saved

MODULE = """\
sdy.mesh @mesh = <["data"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
GONE = 2**22 + 1  # no process has such a number

# Each way in which a command writes, and the option that names the output.
WRITERS = {
    "module": ["run", "m.mlir", "-o"],
    "bytecode": ["run", "m.mlirbc", "-o"],
    "save": ["run", "m.mlir", "--save"],
    "report": ["report", "m.mlir", "-o"],
    "expect": ["expect", "m.mlir", "--update"],
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(MODULE)
    Path("m.mlirbc").write_bytes(shardlog.run(MODULE).bytecode())


def files() -> list[str]:
    """The files in the current folder beside the modules."""
    return sorted(p.name for p in Path().iterdir() if not p.name.startswith("m."))


@pytest.mark.parametrize("command", WRITERS.values(), ids=WRITERS)
def test_every_command_writes_like_the_others(command: list[str]) -> None:
    Path("real").touch(mode=0o640)
    Path("link").symlink_to("real")
    Path(f"real.{GONE}-0.partial").touch()  # which a process that was killed has left
    Path(f"real.{os.getpid()}-99.partial").touch()  # and one that still runs
    if command[0] == "expect":
        Path("real").write_text("# so far\n\"%arg0\" = '[{}]'\n")
    assert main([*command, "link"]) == 0
    assert files() == ["link", "real", f"real.{os.getpid()}-99.partial"]
    assert Path("link").is_symlink()
    assert Path("real").stat().st_size > 20
    assert stat.S_IMODE(Path("real").stat().st_mode) == 0o640
    assert main([*command, "new"]) == 0
    assert Path("new").is_file()


@pytest.mark.parametrize("command", [w for n, w in WRITERS.items() if n != "expect"])
def test_devices_and_pipes_stay(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "/dev/null"]) == 0
    assert Path("/dev/null").is_char_device()
    assert main([*command, "/dev/full"]) == 2
    assert "/dev/full: error: cannot write: No space left on device\n" in capsys.readouterr().err
    assert Path("/dev/full").is_char_device()
    os.mkfifo("pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe").read_bytes()))
    reader.start()
    assert main([*command, "pipe"]) == 0
    reader.join()
    assert Path("pipe").is_fifo()
    assert main([*command, "file"]) == 0
    assert read == [Path("file").read_bytes()]
    assert files() == ["file", "pipe"]


def shell(command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    function = f'shardlog() {{ "{sys.executable}" -m shardlog "$@"; }}\n'
    return subprocess.run(
        ["bash", "-c", function + command], capture_output=True, text=True, check=False, **options
    )


def test_standard_output_by_a_name() -> None:
    done = shell("shardlog run m.mlir -o /dev/stdout | true; exit ${PIPESTATUS[0]}")
    assert (done.returncode, done.stderr) in ((0, ""), (141, ""))
    assert shell("shardlog run m.mlir -o /dev/stdout").stdout == shardlog.run(MODULE).text()
    assert shell("echo before > all; shardlog run m.mlir -o /dev/stdout >> all").returncode == 0
    assert Path("all").read_text() == "before\n" + shardlog.run(MODULE).text()


def test_what_stood_there_stays_where_writing_fails() -> None:
    Path("out").write_text("before")
    with pytest.raises(ShardlogError, match="out: error: cannot write: No space"), output("out") as path:
        path.write_text("half")
        raise OSError(28, "No space left on device")
    with pytest.raises(ZeroDivisionError), output_folder("new") as path:
        (path / "a").write_text("half")
        raise ZeroDivisionError
    assert files() == ["out"]
    assert Path("out").read_text() == "before"


def test_a_folder_is_whole_and_keeps_other_files() -> None:
    assert main(["facts", "m.mlir", "-o", "facts"]) == 0
    facts = {p: p.read_bytes() for p in Path("facts").rglob("*.*")}
    assert Path("facts/module/sharded.facts") in facts
    Path("facts/mine.dl").write_text("mine")
    Path(f"facts/facts.{GONE}-0.partial").mkdir()
    Path("facts/module/sharded.facts").write_text("old")
    assert main(["facts", "m.mlir", "-o", "facts"]) == 0
    assert {p: p.read_bytes() for p in Path("facts").rglob("*.*")} == {
        **facts,
        Path("facts/mine.dl"): b"mine",
    }


def test_nothing_takes_the_place_of_what_was_read(capsys: pytest.CaptureFixture[str]) -> None:
    Path("same.mlir").symlink_to("m.mlir")
    Path("rules.rules").write_text("@twice: [i] -> [i]\n")
    for other in ("plan.json", "v.toml"):
        Path(other).touch()
    for command, message in {
        "run m.mlir -o m.mlir": "m.mlir: error: -o would replace what is read",
        "run m.mlir --save same.mlir": "same.mlir: error: --save would replace what is read",
        "run m.mlir -o x --rules rules.rules --save rules.rules": (
            "rules.rules: error: --save would replace what is read"
        ),
        "run m.mlir -o x --save ./x": "./x: error: --save would replace the file of -o",
        "report m.mlir -o m.mlir": "m.mlir: error: -o would replace what is read",
        "cost m.mlir --trace m.mlir": "m.mlir: error: --trace would replace what is read",
        "partition m.mlir --plan plan.json -o plan.json": "plan.json: error: -o would replace what is read",
        "cost m.mlir --topology v.toml --trace v.toml": "v.toml: error: --trace would replace what is read",
        "auto m.mlir --topology v.toml -o v.toml": "v.toml: error: -o would replace what is read",
    }.items():
        assert main(command.split()) == 2
        assert capsys.readouterr().err.splitlines() == [message, "  hint: choose another name"]
    assert Path("m.mlir").read_text() == MODULE
    assert shell("shardlog run - -o m.mlir < m.mlir").returncode == 2
    assert Path("m.mlir").read_text() == MODULE
    assert main(["run", "m.mlir", "-o", "/dev/null", "--save", "/dev/null"]) == 0


@pytest.mark.parametrize("name", ["", "-"])
def test_an_output_has_a_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("run -o", "report -o", "cost --trace", "auto --plot"):
        command, option = option.split()
        assert main([command, "m.mlir", option, name]) == 2
        assert capsys.readouterr().err.startswith(f"{option}: error: ")
    assert files() == []


def test_a_timeline_may_be_compressed() -> None:
    for name in ("step.json", "step.json.gz"):
        assert main(["cost", "m.mlir", "--trace", name]) == 0
    assert gzip.decompress(Path("step.json.gz").read_bytes()) == Path("step.json").read_bytes()


def test_a_saved_run_in_a_pipe_is_one() -> None:
    assert shell("shardlog run m.mlir --save /dev/stdout > saved").returncode == 0
    assert is_saved(Path("saved"))


def test_help_on_a_full_disk() -> None:
    for options in ("--help", "--version", "why --schema"):
        done = shell(f"shardlog {options} > /dev/full")
        assert (done.returncode, done.stderr) == (
            2,
            "<stdout>: error: cannot write: No space left on device\n",
        )
        done = shell(f"shardlog {options} | true; exit ${{PIPESTATUS[0]}}")
        assert done.returncode in (0, 141)
        assert done.stderr == ""


def test_names_that_the_terminal_cannot_show() -> None:
    Path("größe.mlir").write_text(MODULE.replace('"data"', '"größe"'))
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = shell("shardlog query größe.mlir 'sharded(v, 0, _, x)'", env=plain)
    assert done.returncode == 0, done.stderr
    assert "gr\\xf6\\xdfe" in done.stdout
    missing = shell("shardlog run fehlt_größe.mlir", env=plain)
    assert missing.returncode == 2
    assert "Traceback" not in missing.stderr and "cannot read the module" in missing.stderr
