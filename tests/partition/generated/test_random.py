"""Random programs, partitioned, compute what they compute on one device; see ``random_programs``."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from ...support.drawing import SEED, by_day
from . import random_programs


@pytest.mark.parametrize(
    ("seed", "count"),
    [(SEED, 20), *(pytest.param(SEED + n, 105, marks=pytest.mark.nightly) for n in range(8))],
)
def test_random_programs(seed: int, count: int) -> None:
    """They run in processes of their own, which XLA may end."""
    command = [sys.executable, "-m", "shardlog.tests.partition.generated.random_programs"]
    command += ["--count", str(count), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = re.search(rf"{count} programs: 0 wrong, (\d+) that XLA does not run", done.stdout)
    assert said is not None, done.stdout + done.stderr[-2000:]
    assert int(said[1]) <= 3, done.stdout


@pytest.mark.parametrize("number", by_day([0], range(2)))
@pytest.mark.parametrize("op", random_programs.NAMES)
def test_every_op(op: str, number: int) -> None:
    assert random_programs.checked(0, number, [op]) == ""
