"""Commands in a terminal: colours, progress, and completion."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
import shardlog
from shardlog.console.colours import painted, show
from shardlog.explanations.report import report

MODULE = """\
sdy.mesh @mesh = <["data"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8xf32> loc("model.py":7:9)
  return %0 : tensor<8xf32>
}
"""
CODE = re.compile(r"\x1b\[[0-9;]*m")
BAR = re.compile(r"\r\x1b\[K[^\r\n]*(?=\r\x1b\[K)|\r\x1b\[K")  # the progress of what takes long, wiped away


def in_terminal(arguments: list[str], **environment: str) -> str:
    """The output of a command in a terminal, without its progress."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "shardlog", *arguments]
    plain = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    environment = {**plain, "TERM": "xterm", **environment}
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            read = os.read(ours, 4096)
        except OSError:  # how Linux says that it is over
            break
        if not read:
            break
        shown += read
    process.wait()
    os.close(ours)
    return BAR.sub("", shown.decode().replace("\r\n", "\n"))


def test_colours_are_for_terminals_whose_user_wants_them(tmp_path: Path) -> None:
    module = tmp_path / "m.mlir"
    module.write_text(MODULE)
    why = ["why", str(module), "%0"]
    command = [sys.executable, "-m", "shardlog", *why]
    plain = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    coloured = in_terminal(why)
    assert '\x1b[32m"data"\x1b[0m' in coloured
    assert "\x1b[36mmodel.py:7\x1b[0m" in coloured
    assert CODE.sub("", coloured) == plain
    assert in_terminal(why, NO_COLOR="1") == plain
    assert in_terminal(why, TERM="dumb") == plain
    assert "\x1b[1;31merror:\x1b[0m" in in_terminal(["why", str(module), "%9"])
    assert "\x1b" not in in_terminal([*why, "--json"])


def test_colours_change_no_character() -> None:
    text = 'm.mlir:3:4: error[E0101]: %arg0 of stablehlo.dot at model.py:42 on "data"\n  hint: result#0'
    assert CODE.sub("", painted(text)) == text
    assert len(CODE.findall(painted(text))) == 2 * 8
    stream = io.StringIO()
    show(text, stream)
    assert stream.getvalue() == f"{text}\n"


def test_progress_of_saving_and_of_the_report(tmp_path: Path) -> None:
    told: list[tuple[str, float]] = []
    result = shardlog.run(MODULE)
    result.save(tmp_path / "m.run", lambda what, done: told.append((what, done)))
    assert told[0] == ("saving", 0.0)
    assert len(told) > 10
    assert [done for _, done in told] == sorted(done for _, done in told)
    assert told[-1][1] < 1
    told.clear()
    report(result.programs, lambda what, done: told.append((what, done)))
    assert list(dict.fromkeys(what for what, _ in told)) == [
        "reading the run",
        "explaining",
        "looking for conflicts",
        "counting costs",
        "writing",
    ]
    assert [done for _, done in told] == sorted(done for _, done in told)


def test_completion(tmp_path: Path) -> None:
    pytest.importorskip("argcomplete")

    def completions(line: str) -> list[str]:
        written = tmp_path / "completions"
        asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": str(written), "_ARGCOMPLETE_IFS": "\n"}
        asked |= {"COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_SUPPRESS_SPACE": "1"}
        command = [sys.executable, "-m", "shardlog"]
        subprocess.run(command, env={**os.environ, **asked}, capture_output=True, check=False)
        return written.read_text().split("\n")

    assert completions("shardlog wh") == ["why-plan", "why", "why-not", "what-if"]
    assert "--annotate" in completions("shardlog run --a")
    assert completions("shardlog run --strategy a") == ["aggressive"]
