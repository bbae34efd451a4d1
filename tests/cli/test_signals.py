"""Processes of the command line that are told to end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

MODULE = """\
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
COMMANDS = (
    ["run", "m.mlir", "-o", "out", "--save", "saved", "--mesh", "data=2"],
    ["report", "m.mlir", "-o", "out"],
    ["facts", "m.mlir", "-o", "folder"],
    ["why", "m.mlir", "%0"],
)
TRIES = int(os.environ.get("SHARDLOG_INTERRUPTS", "8"))


def ended(command: list[str], after: float, number: int) -> tuple[int, str]:
    """Exit status and messages of a process that gets a signal some seconds after its first line."""
    # What comes before the first line is Python's own start.
    code = "import os, sys\nfrom shardlog.__main__ import main\nsys.exit(main())"
    code = f"import os\nfrom shardlog import interrupt\ninterrupt.install()\nos.write(1, b'.')\n{code}"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.read(1)
    time.sleep(after)
    process.send_signal(number)
    _, messages = process.communicate()
    return process.returncode, messages.decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_process_with_one_line(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(MODULE)
    chance = random.Random(number)
    said = {signal.SIGINT: "shardlog: interrupted\n", signal.SIGTERM: "shardlog: terminated\n"}[number]
    stopped = 0
    for attempt in range(TRIES):
        status, messages = ended(COMMANDS[attempt % len(COMMANDS)], chance.uniform(0, 0.8), number)
        if status == 0:
            continue  # it was done before
        stopped += 1
        assert (status, messages.splitlines()[-1:]) == (128 + number, [said.strip()])
        assert "Traceback" not in messages
        assert not list(Path().glob("*.partial"))
    assert stopped
