"""Columns of a saved run: numbers of one width, and texts by number. An answer reads the columns that it
needs.

Texts are distinct and sorted: a column of texts is one of their numbers, and a text is found by bisection.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

WIDTHS: Sequence[Any] = "bhiq"  # of numbers, as in ``struct``; they are little-endian
Column = Sequence[int]


def numbers_of(width: Any, data: bytes) -> Column:
    """The numbers of a column. Raises ValueError and TypeError where they are none."""
    if width not in WIDTHS:
        raise ValueError(f"no column is as wide as {width}")
    if sys.byteorder == "big":
        swapped = array(width, data)
        swapped.byteswap()
        return swapped
    column: memoryview[int] = memoryview(data).cast(width)
    return column


class DistinctTexts(Sequence[str]):
    """Distinct texts, sorted. ``ends`` says where each ends in ``data``, which is UTF-8."""

    def __init__(self, ends: Column, data: bytes) -> None:
        self._ends, self._data = ends, data

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[n] for n in range(*number.indices(len(self)))]
        if number < 0:
            raise IndexError(number)
        start = self._ends[number - 1] if number else 0
        return str(self._data[start : self._ends[number]], "utf-8")

    def find(self, text: str) -> int:
        """The number of a text; -1: it is none of these."""
        number = self.first(text)
        return number if number < len(self) and self[number] == text else -1

    def first(self, text: str) -> int:
        """The number of the first text that is not before another one."""
        return bisect_left(range(len(self)), text, key=self.__getitem__)


def same(column: Column, wanted: int, of: Callable[[int], int] | None = None) -> range:
    """The rows of a sorted column that have a number. ``of`` gives the number in each row, where the rows are
    sorted by that of another column."""
    return range(bisect_left(column, wanted, key=of), bisect_right(column, wanted, key=of))


def rows(column: Column, wanted: int) -> Iterator[int]:
    """The rows of a column that have a number, in order."""
    return (row for row, number in enumerate(column) if number == wanted)


class GainColumns(Sequence[tuple[int, int]]):
    """The changes and dimensions of a gain and those before it, as far as they were asked for."""

    def __init__(self, changes: Column, dims: Column, before: Column, gain: int, length: int) -> None:
        self._changes, self._dims, self._before, self._length = changes, dims, before, length
        self._found = [gain]

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> tuple[int, int]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[int, int]]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not 0 <= index < self._length:
            raise IndexError(index)
        gains, before, gain = self._found, self._before, self._found[-1]
        for _ in range(index + 1 - len(gains)):
            if not 0 <= before[gain] < gain:
                raise ValueError(f"no gain before gain {gain}")
            gain = before[gain]
            gains.append(gain)
        gain = gains[index]
        return self._changes[gain], self._dims[gain]
