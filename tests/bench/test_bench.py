"""Shardlog is no slower than Shardy, grows linearly and takes at most twice the memory."""

from __future__ import annotations

import pytest

from . import bench

DEPTHS = (bench.SHALLOW, bench.DEEP)


@pytest.mark.parametrize("depth", DEPTHS)
def test_fixpoint(depth: int) -> None:
    seconds = bench.fixpoint(bench.train_step(depth))
    assert seconds.ratio <= 1.0


@pytest.mark.parametrize("depth", DEPTHS)
def test_text_to_text(depth: int) -> None:
    seconds = bench.whole(bench.train_step(depth))
    assert seconds.ratio <= 1.0


@pytest.mark.parametrize("depth", DEPTHS)
def test_memory(depth: int) -> None:
    mebibytes = bench.memory(bench.train_step(depth))
    assert mebibytes.ratio <= 2.0


def test_growth() -> None:
    shallow, deep = (bench.train_step(depth) for depth in DEPTHS)
    ops = bench.ops(deep) / bench.ops(shallow)
    seconds = bench.fixpoint(deep).ours / bench.fixpoint(shallow).ours
    assert seconds <= 1.2 * ops
