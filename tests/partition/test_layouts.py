"""What a device has of a tensor, by its number."""

from __future__ import annotations

from itertools import permutations, product
from math import prod

import numpy as np
import pytest
from shardlog.partition.layouts import Axes, Digit, digits
from shardlog.program.meshes import Mesh, Meshes, SubAxis
from shardlog.program.shardings import Dimension, Sharding


@pytest.mark.parametrize("sizes", [(2, 2, 2), (4, 2), (2, 3), (3, 2, 2), (1, 5)])
def test_parts_are_digits_of_the_number_of_a_device(sizes: tuple[int, ...]) -> None:
    axes = Axes(Meshes([Mesh("mesh", tuple(zip("abc", sizes, strict=False)), ())]), [])
    for count in range(len(axes.pieces) + 1):
        for pieces in permutations(axes.numbers, count):
            table = axes.index(pieces) * 7 + 3
            position = digits(table)
            assert position is not None
            made = [3 + sum(d // p % n * s for p, n, s in position) for d in range(axes.count)]
            assert made == table.tolist()
            assert len(position) <= count


def test_neighbouring_digits_are_one() -> None:
    assert digits(np.arange(8) * 2) == [Digit(1, 8, 2)]
    assert digits(np.array([5, 5, 4, 4, 5, 5, 4, 4])) == [Digit(2, 2, -1)]
    assert digits(np.array([6])) == digits(np.array([6, 6])) == []


def test_other_tables_are_no_sums_of_digits() -> None:
    bits = (0, 1)
    assert digits(np.array([a ^ b for a, b in product(bits, bits)])) is None
    assert digits(np.array([0, 1, 2, 0, 1])) is None


SHAPES = [(2, 4), (4, 2), (8,), (2, 2, 2), (2, 3), (3, 2), (6,), (2, 1, 3)]
ORDERS = {8: [(), (0, 4, 1, 5, 2, 6, 3, 7), (0, 1, 2, 3, 4, 5, 7, 6)], 6: [(), (0, 3, 1, 4, 2, 5)]}


def along(mesh: Mesh, axis: SubAxis) -> list[int]:
    """The place of each device of a mesh along a sub-axis."""
    names = [name for name, _ in mesh.axes]
    after = prod(size for _, size in mesh.axes[names.index(axis.name) :]) // (axis.pre * axis.size)
    order = list(mesh.device_ids or range(prod(mesh.sizes.values())))
    return [order.index(d) // after % axis.size for d in range(len(order))]


@pytest.mark.parametrize("first", SHAPES, ids=str)
def test_another_mesh_of_the_same_devices_is_cut_into_the_same_pieces(first: tuple[int, ...]) -> None:
    """If what lies along its axes lies along those of the main one; whichever it is, devices have the parts
    that they have there."""
    count = prod(first)
    main = Mesh("main", tuple(zip("abc", first, strict=False)))
    for sizes, order in product([s for s in SHAPES if prod(s) == count], ORDERS[count]):
        other = Mesh("other", tuple(zip("xyz", sizes, strict=False)), order)
        for cut in (
            SubAxis(x, pre, n) for x, size in other.axes for pre, n in product((1, 2, 3), (2, 3, 4, 8))
        ):
            if other.sizes[cut.name] % (cut.pre * cut.size):
                continue
            meshes = Meshes([main, other])
            axes = Axes(meshes, [Sharding(1, (Dimension((cut,)),))])
            pieces, whole = axes.of(1, [cut])
            assert whole
            assert axes.index(pieces).tolist() == along(other, cut)
            for each in (SubAxis(name, 1, size) for name, size in main.axes):
                pieces, whole = axes.of(0, [each])
                assert whole
                assert axes.index(pieces).tolist() == along(main, each)
            if (
                len(first) == 3 and 3 not in first and order != ORDERS[8][2]
            ):  # the digits are those of numbers
                assert {piece.mesh for piece in axes.pieces} == {0}
