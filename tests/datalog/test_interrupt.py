"""Ctrl-C stops an evaluation that would never end."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

ENDLESS = ".decl up(x: number)\nup(0).\nup(x + 1) :- up(x).\n.decl one(x: number)\none(1).\n.output up\n"
IN_PYTHON = f"""
from shardlog.datalog import Program
program = Program({ENDLESS!r})
try:
    print("running", flush=True)
    program.run()
except KeyboardInterrupt:
    program.run("one")
    print("stopped with", program.rows("one"))
"""


def interrupted(*arguments: str, cwd: Path) -> tuple[int, str, str]:
    """Exit status, output and messages of a process that gets Ctrl-C when it has begun to run."""
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    return process.returncode, out, err


def test_from_python_it_is_an_exception(tmp_path: Path) -> None:
    pytest.importorskip("shardlog.engine._core")
    assert interrupted("-c", IN_PYTHON, cwd=tmp_path) == (0, "stopped with [(1,)]\n", "")


def test_on_the_command_line_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(ENDLESS)
    code = "from shardlog import interrupt\ninterrupt.install()\nprint('running', flush=True)\n"
    code += "from shardlog.__main__ import main\nimport sys\nsys.exit(main())"
    found = interrupted("-c", code, "datalog", "p.dl", cwd=tmp_path)
    assert found == (128 + signal.SIGINT, "", "shardlog: interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["p.dl"]
