"""Columns of numbers: what nodes use and make."""

from __future__ import annotations

import numpy as np
import pytest
from shardlog.program.columns import (
    Operands,
    Results,
    column,
    distinct,
    numbers,
    spread,
    spread_ranges,
    told_apart,
    without,
)


def test_operands_are_tuples_of_numbers() -> None:
    operands = Operands([4, 5, 6], [0, 2, 2, 3])
    operands[0] = (7, 5)
    operands.append((1,))
    operands.extend(np.array([8, 9]), np.array([0, 2]))
    assert list(operands) == [(7, 5), (), (6,), (1,), (), (8, 9)] == [operands[n] for n in range(6)]
    assert operands.counts.tolist() == [2, 0, 1, 1, 0, 2]
    with pytest.raises(ValueError, match="1 operands instead of 2"):
        operands[0] = (3,)


def test_results_are_ranges() -> None:
    results = Results([0, 1], [1, 0])
    results.append(range(1, 3))
    results.extend(np.array([3]), np.array([2]))
    assert list(results) == [range(1), range(1, 1), range(1, 3), range(3, 5)] == results[:]


def test_rows_are_spread() -> None:
    entries, rows = spread(np.array([0, 2, 2, 5], np.int32), np.array([2, 1, 0, 2]))
    assert entries.tolist() == [2, 3, 4, 0, 1, 2, 3, 4]
    assert rows.tolist() == [0, 0, 0, 2, 2, 3, 3, 3]
    values, which = spread_ranges(np.array([9, 3], np.int32), np.array([1, 2]))
    assert (values.tolist(), which.tolist()) == ([9, 3, 4], [0, 1, 1])


def test_distinct_numbers_come_in_their_order() -> None:
    found = distinct(np.array([3, 0, 3, 1, 0, 3], np.int32))
    assert [each.tolist() for each in found] == [[3, 0, 1], [0, 1, 3], [3, 2, 1]]


def test_small_numbers_are_told_apart() -> None:
    first, which = told_apart(np.array([3, 0, 3, 1, 0], np.int32))
    assert (first.tolist(), which.tolist()) == ([0, 1, 3], [0, 1, 0, 2, 1])
    assert [len(each) for each in told_apart(np.array([], np.int32))] == [0, 0]


def test_nodes_are_left_out() -> None:
    assert numbers(without(column([4, 2, 7]), {2, 9})).tolist() == [4, 7]
