"""The operands and results of the nodes of a function, in arrays of machine numbers.

Columns of numbers are Python's ``array``: an entry costs four bytes and is an ``int`` when it is asked for,
and NumPy computes with all of them at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Whole = npt.NDArray[np.signedinteger[Any]]  # of any width
_Int = TypeVar("_Int", bound=np.signedinteger[Any])


def column(numbers: npt.ArrayLike = ()) -> array[int]:
    """A column with these numbers, such as an array of NumPy's."""
    return array("i", np.asarray(numbers, np.int32).tobytes())


def among(numbers: Ints) -> list[int]:
    """The distinct ones of small numbers, sorted."""
    there: list[int] = np.bincount(numbers).nonzero()[0].tolist()
    return there


def unique(numbers: npt.NDArray[_Int]) -> npt.NDArray[_Int]:
    """The distinct ones of numbers, sorted. NumPy's own function is slow when it is first called: it
    imports masked arrays."""
    numbers = np.sort(numbers)
    new = np.ones(len(numbers), bool)
    np.not_equal(numbers[1:], numbers[:-1], out=new[1:])
    return numbers[new]


def numbers(column: array[int]) -> Ints:
    """The current numbers of a column."""
    return np.array(column, np.int32)


def without(nodes: array[int], removed: Collection[int]) -> array[int]:
    """A column of nodes without some of them."""
    if not removed:
        return nodes
    kept = numbers(nodes)
    gone = np.zeros(max(int(kept.max(initial=0)), *removed) + 1, bool)
    gone[list(removed)] = True
    return column(kept[~gone[kept]])


class Operands(Sequence[tuple[int, ...]]):
    """The values that each node uses. ``values`` has all operands; the operands of a node start at its
    offset."""

    __slots__ = ("offsets", "values")

    def __init__(self, values: npt.ArrayLike = (), offsets: npt.ArrayLike = (0,)) -> None:
        self.values, self.offsets = column(values), column(offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, node: int) -> tuple[int, ...]: ...
    @overload
    def __getitem__(self, node: slice) -> list[tuple[int, ...]]: ...
    def __getitem__(self, node: int | slice) -> Any:
        if isinstance(node, slice):
            return [self[n] for n in range(*node.indices(len(self)))]
        if node < 0:
            raise IndexError(node)
        return tuple(self.values[self.offsets[node] : self.offsets[node + 1]])

    def __setitem__(self, node: int, operands: Sequence[int]) -> None:
        """Other operands, as many as there were."""
        start, end = self.offsets[node], self.offsets[node + 1]
        if end - start != len(operands):
            raise ValueError(f"{len(operands)} operands instead of {end - start}")
        self.values[start:end] = array("i", operands)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        values = self.values.tolist()
        return (tuple(values[start:end]) for start, end in pairwise(self.offsets.tolist()))

    def append(self, operands: Iterable[int]) -> None:
        """The operands of one more node."""
        self.values.extend(operands)
        self.offsets.append(len(self.values))

    def extend(self, values: Whole, counts: Whole) -> None:
        """The operands of more nodes, so many of each."""
        first = self.offsets[-1]
        self.values.extend(column(values))
        self.offsets.extend(column(first + np.cumsum(counts)))

    @property
    def counts(self) -> Ints:
        """How many operands each node has."""
        return widths(numbers(self.offsets))


class Results(Sequence[range]):
    """The values that each node makes, which are adjacent: where they start, and how many they are."""

    __slots__ = ("counts", "first")

    def __init__(self, first: npt.ArrayLike = (), counts: npt.ArrayLike = ()) -> None:
        self.first, self.counts = column(first), column(counts)

    def __len__(self) -> int:
        return len(self.first)

    @overload
    def __getitem__(self, node: int) -> range: ...
    @overload
    def __getitem__(self, node: slice) -> list[range]: ...
    def __getitem__(self, node: int | slice) -> Any:
        if isinstance(node, slice):
            return [self[n] for n in range(*node.indices(len(self)))]
        first = self.first[node]
        return range(first, first + self.counts[node])

    def __iter__(self) -> Iterator[range]:
        return (range(f, f + n) for f, n in zip(self.first.tolist(), self.counts.tolist(), strict=True))

    def append(self, results: range) -> None:
        """The results of one more node."""
        self.first.append(results.start)
        self.counts.append(len(results))

    def extend(self, first: Whole, counts: Whole) -> None:
        """The results of more nodes."""
        self.first.extend(column(first))
        self.counts.extend(column(counts))


def widths(offsets: Ints) -> Ints:
    """How many entries rows have that start there. NumPy's ``diff`` takes long for few of them."""
    return offsets[1:] - offsets[:-1]


def starts(counts: Whole) -> Ints:
    """Where rows with so many entries start, and at last where the last one ends."""
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def spread(offsets: Ints, rows: Whole) -> tuple[Ints, Ints]:
    """The entries of some rows, one row after the other: where each stands, and in which of these rows.

    Row r has the entries from ``offsets[r]`` up to ``offsets[r + 1]``.
    """
    first = offsets[rows]
    return spread_ranges(first, offsets[rows + 1] - first)


def spread_ranges(first: Ints, counts: Whole) -> tuple[Ints, Ints]:
    """The numbers in ranges, one range after the other, and in which range each is."""
    which = np.arange(len(counts), dtype=np.int32).repeat(counts)
    before = counts.cumsum(dtype=np.int32) - counts
    return np.arange(len(which), dtype=np.int32) + (first - before)[which], which


def distinct(numbers: Whole) -> tuple[Whole, Ints, Whole]:
    """The distinct ones of small numbers in the order in which they first come, with where they do, and how
    often each comes."""
    counts = np.bincount(numbers)
    first = np.empty(len(counts), np.int32)
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1, dtype=np.int32)  # the last one written stays
    there = np.nonzero(counts)[0]
    there = there[np.argsort(first[there])]
    return there, first[there], counts[there]


def told_apart(numbers: Whole) -> tuple[Ints, Whole]:
    """Where the distinct ones of small numbers first come, in that order, and for each number which of these
    it is. NumPy's function sorts them."""
    there, first, _ = distinct(numbers)
    place = np.empty(int(there.max(initial=-1)) + 1, np.intp)
    place[there] = np.arange(len(there))
    return first, place[numbers]


def numbered(things: Iterable[Hashable]) -> tuple[list[Any], npt.NDArray[np.int64]]:
    """The distinct ones of some things in the order in which they first come, and for each thing its number
    among them."""
    numbers: dict[Hashable, int] = {}
    which = np.asarray([numbers.setdefault(thing, len(numbers)) for thing in things], np.int64)
    return list(numbers), which


def first_alike(columns: Sequence[Whole]) -> Ints:
    """For each row of some columns, which have as many rows, the first row that is equal."""
    order = np.lexsort(columns)
    new = np.zeros(len(order), bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[order[1:]] != column[order[:-1]]
    first = np.empty(len(order), np.int32)
    first[order] = order[new][new.cumsum() - 1]  # rows that are equal are sorted by their numbers
    return first
