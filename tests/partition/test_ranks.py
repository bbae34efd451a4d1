"""Partitioned programs run by a process for each device; those on GPUs may share one."""

from __future__ import annotations

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
def test_models_give_the_results_of_one_device_on_gpus() -> None:
    texts = [models.text(name, depth=1, train=False) for name in models.MODELS]
    assert wrong([MLP, *texts], 8, "cuda") == []
