"""The memory that a process keeps of its runs."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
import shardlog
from jaxlib.mlir import ir

from ..support.drawing import by_day

MODULE = """\
sdy.mesh @mesh = <["data"=2, "model"=4]>
#rows = #sdy.sharding<@mesh, [{"data"}, {}]>
func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #rows}) -> tensor<8x16xf32> {
  %0 = call @twice(%arg0) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
func.func private @twice(%arg0: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
"""


def contexts() -> int:
    """The number of MLIR contexts that are alive."""
    return ir.Context._get_live_count()


def test_a_run_is_freed_with_its_result() -> None:
    gc.collect()
    before = contexts()
    gc.disable()  # nothing in a result refers to itself: no collector is needed
    try:
        result = shardlog.run(MODULE)
        assert result.record.end == 4
        assert result.why("%0")
        assert contexts() == before + 1
        del result
        assert contexts() == before
    finally:
        gc.enable()


# Contexts of MLIR that stay take 1.2 MB each.
@pytest.mark.parametrize("most", by_day([200], [200, 500]))
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="where memory is read")
def test_many_runs_take_no_more_memory_than_a_few(most: int) -> None:
    def run(sizes: range) -> None:
        for size in sizes:
            result = shardlog.run(MODULE.replace("8x16", f"{8 * size}x16"))
            assert result.record.end == 4

    def memory() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    gc.collect()
    before = contexts()
    run(range(1, 51))
    few = memory()
    run(range(51, most + 1))
    assert memory() - few < (most - 50) * 0.4e6
    assert contexts() == before
