"""A partitioned step trains in two processes as it does in one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
from shardlog.examples.two_processes import STEPS, arrays, update

EXAMPLE = Path(__file__).parents[2] / "examples" / "two_processes.py"


def test_two_processes_train_as_one_does() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run(
        [sys.executable, EXAMPLE], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    losses = [float(found) for found in re.findall(r"loss (\S+)", done.stdout)]
    values, expected = arrays(), []
    params = {name: values[name] for name in ("up", "down")}
    for _ in range(STEPS):
        value, params = jax.jit(update)(params, values["x"], values["y"])
        expected.append(float(value))
    np.testing.assert_allclose(losses, expected, atol=2e-6)
    assert "row 0 of the mesh is in process 0\nrow 1 of the mesh is in process 1\n" in done.stdout
