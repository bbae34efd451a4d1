"""Processes that do something for another one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from shardlog import children
from shardlog.interrupt import clearing

WAITS = [sys.executable, "-c", "import sys, time; sys.stdout.write('.'); sys.stdout.flush(); time.sleep(600)"]


def test_a_child_is_ended() -> None:
    child = children.start(WAITS)
    assert child.stdout is not None
    assert child.stdout.read(1) == b"."
    children.end(child)
    assert child.returncode == -signal.SIGKILL
    assert not clearing


def test_ctrl_c_is_not_for_a_child() -> None:
    """The terminal tells all processes of its group."""
    child = children.start(WAITS)
    assert os.getpgid(child.pid) == child.pid != os.getpgrp()
    children.end(child)


def test_a_child_does_not_outlive_its_parent() -> None:
    code = f"""
from shardlog import interrupt
interrupt.install()
from shardlog import children
child = children.start({WAITS!r})
child.stdout.read(1)
print(child.pid, flush=True)
child.wait()
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.send_signal(signal.SIGINT)
    assert parent.wait(60) == 130
    for _ in range(2000):  # the end of a process takes a moment
        if not _lives(child):
            break
        time.sleep(0.01)
    else:
        os.kill(child, signal.SIGKILL)
        raise AssertionError("the child is still there")


def _lives(process: int) -> bool:
    """Whether a process is there, and has not ended yet."""
    state = subprocess.run(["ps", "-o", "state=", "-p", str(process)], capture_output=True, text=True).stdout
    return state.strip()[:1] not in ("", "Z")
