"""What a device has of a tensor, by its number."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from shardlog.partition.layouts import Axes, Digit, digits
from shardlog.program.meshes import Mesh, Meshes


@pytest.mark.parametrize("sizes", [(2, 2, 2), (4, 2), (2, 3), (3, 2, 2), (1, 5)])
def test_parts_are_digits_of_the_number_of_a_device(sizes: tuple[int, ...]) -> None:
    axes = Axes(Meshes([Mesh("mesh", tuple(zip("abc", sizes, strict=False)), ())]), [])
    for count in range(len(axes.pieces) + 1):
        for pieces in permutations(range(len(axes.pieces)), count):
            table = axes.index(pieces) * 7 + 3
            found = digits(table)
            assert found is not None
            made = [3 + sum(d // p % n * s for p, n, s in found) for d in range(axes.count)]
            assert made == table.tolist()
            assert len(found) <= count


def test_neighbouring_digits_are_one() -> None:
    assert digits(np.arange(8) * 2) == [Digit(1, 8, 2)]
    assert digits(np.array([5, 5, 4, 4, 5, 5, 4, 4])) == [Digit(2, 2, -1)]
    assert digits(np.array([6])) == digits(np.array([6, 6])) == []


def test_other_tables_are_no_sums_of_digits() -> None:
    bits = (0, 1)
    assert digits(np.array([a ^ b for a, b in product(bits, bits)])) is None
    assert digits(np.array([0, 1, 2, 0, 1])) is None
