"""What whole processes take."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import pytest

# A process of its own, as small as can be, starts the command: the peak of memory of a process that starts
# another counts for that one.
_LAUNCHER = """
import os, sys, time
start = time.perf_counter()
running = os.spawnvp(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(running, 0)
print(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@dataclass(frozen=True)
class Taken:
    """Seconds by the clock and of the processor, the peak of memory in MiB, and the printed lines."""

    clock: float
    processor: float
    mebibytes: float
    printed: tuple[str, ...]


def taken(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Taken:
    """What a process takes, with more variables in its environment. Raises SystemExit where it fails."""
    launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, *command]
    variables = {**os.environ, **(environment or {})}
    done = subprocess.run(launcher, capture_output=True, text=True, env=variables, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
    *printed, figures = done.stdout.splitlines()
    clock, processor, kibibytes = map(float, figures.split())
    return Taken(clock, processor, kibibytes / 1024, tuple(printed))


def shardlog(arguments: Sequence[str]) -> list[str]:
    """The command of shardlog with these arguments."""
    return [sys.executable, "-m", "shardlog", *arguments]


@contextmanager
def bytecode() -> Iterator[None]:
    """Meanwhile processes find Python's bytecode, as where shardlog is installed: the first one writes it."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        patch.setenv("PYTHONPYCACHEPREFIX", folder)
        yield
