"""The changes by which an axis came to a dimension. Ways share what is behind them: those to all values of a
chain take no more room than the longest of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from ...program.ids import Cell
from ...runs.records.history import Event
from ..steps import Step


@dataclass(frozen=True, eq=False)
class Way:
    """A way of an atom: ``last`` is the latest change, with the dimension that got the atom; ``rest`` is the
    way before it. All begin at an annotated cell, their ``origin``.

    ``number`` is that of the changes and the origin, whatever dimensions they are of. ``far`` is a way
    further back: by these, any change is reached in a number of steps like the logarithm of the length.
    """

    origin: Cell
    number: int
    length: int = 0
    last: tuple[Event, int] | None = None
    rest: Way | None = None
    far: Way | None = None

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[tuple[Event, int]]:
        """The changes with their dimensions, latest first."""
        way: Way | None = self
        while way is not None and way.last is not None:
            yield way.last
            way = way.rest

    def __getitem__(self, index: int) -> tuple[Event, int]:
        """A change with its dimension; 0 is the latest."""
        if not 0 <= index < self.length:
            raise IndexError(index)
        way, left = self, self.length - index
        while way.length > left:
            further = way.far if way.far is not None and way.far.length >= left else way.rest
            assert further is not None
            way = further
        assert way.last is not None
        return way.last


class Ways:
    """Makes ways, and numbers them."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int], int] = {}

    def beginning(self, origin: Cell) -> Way:
        """The way without changes."""
        return Way(origin, self._number(-1, origin))

    def longer(self, way: Way, event: Event, dim: int) -> Way:
        """A way with one more change."""
        far, farther = way, way.far and way.far.far
        if way.far and farther and way.length - way.far.length == way.far.length - farther.length:
            far = farther
        number = self._number(event.number, way.number)
        return Way(way.origin, number, way.length + 1, (event, dim), way, far)

    def _number(self, change: int, behind: int) -> int:
        return self._numbers.setdefault((change, behind), len(self._numbers))


class Steps(Sequence[Step]):
    """The steps of a way, latest first, each made when it is asked for."""

    def __init__(self, way: Way, made: Callable[[Event, int], Step]) -> None:
        self._way, self._made = way, made
        self._kept: dict[int, Step] = {}

    def __len__(self) -> int:
        return len(self._way)

    @overload
    def __getitem__(self, index: int) -> Step: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Step, ...]: ...

    def __getitem__(self, index: int | slice) -> Step | tuple[Step, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        number = index + len(self) if index < 0 else index
        if number not in self._kept:
            self._kept[number] = self._made(*self._way[number])
        return self._kept[number]
