"""Ctrl-C stops an evaluation that would never end, and the search for a proof."""

from __future__ import annotations

import _thread
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from shardlog.datalog import Program

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


@pytest.mark.core
def test_from_python_it_is_an_exception(tmp_path: Path) -> None:
    assert interrupted("-c", IN_PYTHON, cwd=tmp_path) == (0, "stopped with [(1,)]\n", "")


def test_on_the_command_line_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(ENDLESS)
    code = "from shardlog import interrupt\ninterrupt.install()\nprint('running', flush=True)\n"
    code += "from shardlog.__main__ import main\nimport sys\nsys.exit(main())"
    process = interrupted("-c", code, "datalog", "p.dl", cwd=tmp_path)
    assert process == (128 + signal.SIGINT, "", "shardlog: interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["p.dl"]


IN_A_HANDLER = f"""
import signal
from shardlog.datalog import EngineError, Program
program = Program({ENDLESS!r})
def ask(*_):
    try:
        program.count("up")
    except EngineError as error:
        print(error)
    raise KeyboardInterrupt
signal.signal(signal.SIGPROF, ask)
try:
    signal.setitimer(signal.ITIMER_PROF, 0.2)  # of processor time: the program is running then
    program.run()
except KeyboardInterrupt:
    print("stopped with", program.count("one"))
"""


@pytest.mark.core
def test_a_handler_of_a_signal_cannot_ask(tmp_path: Path) -> None:
    command = [sys.executable, "-c", IN_A_HANDLER]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    said = "the program is in the middle of another call of the same thread\nstopped with 1\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, said, "")


@pytest.mark.core
def test_the_search_for_a_proof_is_interrupted() -> None:
    program = Program(
        ".decl a(x: number)\n.decl cube(n: number)\n"
        "cube(n) :- a(x), a(y), a(z), n = (x * y * z + 1) * 1000 / 7, n > 1134571000."
    )
    program.add("a", [(x,) for x in range(1, 201)])
    program.run()
    (row,) = program.rows("cube")[-1:]
    timer = threading.Timer(0.1, _thread.interrupt_main)
    found = []
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        found.append(program.explain(f"cube({row[0]})"))
        timer.join()
    assert not found
    assert program.explain(f"cube({row[0]})").height == 1
