"""Random programs, partitioned, compute what they compute on one device; see ``random_programs``."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from ...support.drawing import SEED
from . import random_programs


@pytest.mark.parametrize(
    "seed", [SEED, *(pytest.param(SEED + n, marks=pytest.mark.nightly) for n in range(1, 8))]
)
def test_random_programs(seed: int) -> None:
    """They run in processes of their own, which XLA may end."""
    command = [sys.executable, "-m", "shardlog.tests.partition.generated.random_programs", "--count", "105"]
    done = subprocess.run([*command, "--seed", str(seed)], capture_output=True, text=True, check=False)
    said = re.search(r"105 programs: 0 wrong, (\d+) that XLA does not run", done.stdout)
    assert said is not None, done.stdout + done.stderr[-2000:]
    assert int(said[1]) <= 3, done.stdout


@pytest.mark.parametrize("op", random_programs.NAMES)
def test_every_op(op: str) -> None:
    found = [random_programs.checked(0, number, [op]) for number in range(2)]
    assert [wrong for wrong in found if wrong] == []
