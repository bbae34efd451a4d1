"""StableHLO's own interpreter tests, partitioned; see ``interpreter_tests``."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.stablehlo
def test_all_of_them_under_random_shardings() -> None:
    command = [sys.executable, "-m", "shardlog.tests.partition.generated.interpreter_tests"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ", 0 wrong, " in done.stdout, done.stdout + done.stderr
