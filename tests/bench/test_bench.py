"""Shardlog takes less time than Shardy, grows linearly and takes little more memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from . import bench, dispatch
from .partitioning import partitioning

DEPTHS = (bench.SHALLOW, bench.DEEP)
TRIES = 4
pytestmark = pytest.mark.bench


def least(measure: Callable[[], float], limit: float) -> float:
    """The least of a few measurements: other work on the machine disturbs one side of a ratio or the other.
    The first that is within the limit ends it."""
    found = float("inf")
    for _ in range(TRIES):
        found = min(found, measure())
        if found <= limit:
            break
    return found


@pytest.mark.parametrize("depth", DEPTHS)
def test_fixpoint(depth: int) -> None:
    text = bench.train_step(depth)
    assert least(lambda: bench.fixpoint(text).ratio, 0.1) <= 0.1


@pytest.mark.parametrize("depth", DEPTHS)
def test_text_to_text(depth: int) -> None:
    text = bench.train_step(depth)
    limit = 0.7 if depth == bench.SHALLOW else 0.5
    assert least(lambda: bench.whole(text).ratio, limit) <= limit


@pytest.mark.parametrize("depth", DEPTHS)
def test_memory(depth: int) -> None:
    mebibytes = bench.memory(bench.train_step(depth))
    assert mebibytes.ratio <= (1.25 if depth == bench.SHALLOW else 1.15)


def test_growth() -> None:
    shallow, deep = (bench.train_step(depth) for depth in DEPTHS)
    ops = bench.ops(deep) / bench.ops(shallow)

    def growth() -> float:
        return bench.fixpoint(deep).ours / bench.fixpoint(shallow).ours

    assert least(growth, 1.2 * ops) <= 1.2 * ops


@pytest.mark.parametrize("depth", DEPTHS)
def test_partitioning(depth: int) -> None:
    text = bench.train_step(depth)
    assert least(lambda: partitioning(text).ratio, 1.0) <= 1.0


@pytest.mark.parametrize("leaves", dispatch.LEAVES)
def test_calls(leaves: int) -> None:
    assert least(lambda: max(dispatch.ratios(leaves).values()), 1.2) <= 1.2
