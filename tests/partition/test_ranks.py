"""Partitioned programs run by a process for each device; those on GPUs may share one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..support import models
from ..support.mlp import MLP
from .ranks import wrong

_TWO = """
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                  %y: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<6x4xf32> {
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0]
        : (tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
    return %0 : tensor<6x4xf32>
  }"""


def test_two_processes_give_the_results_of_one_device() -> None:
    assert wrong([_TWO], 2, "cpu") == []


@pytest.mark.gpu
def test_programs_are_executed_on_a_gpu(tmp_path: Path) -> None:
    program = tmp_path / "one.mlir"
    program.write_text(_TWO.replace('"x"=2', '"x"=1'))
    done = subprocess.run(
        [sys.executable, "-m", "shardlog", "exec", str(program)],
        env=os.environ | {"JAX_PLATFORMS": "cuda,cpu"},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert lines[1].startswith("on 1 gpu device") and lines[-1] == "as on one device"


@pytest.mark.gpu
def test_models_give_the_results_of_one_device_on_gpus() -> None:
    texts = [models.text(name, depth=1, train=False) for name in models.MODELS]
    assert wrong([MLP, *texts], 8, "cuda") == []
