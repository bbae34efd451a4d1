"""The changes by which an axis came to a dimension.

Chains share their tails: the chains to all values of a sequence take no more room than the longest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from ...program.ids import Cell
from ...runs.records.history import Event
from ...runs.records.record import Way
from ..steps import WhyStep


@dataclass(frozen=True, eq=False)
class Chain:
    """The changes by which an atom came, back to an annotated cell, their ``origin``.

    ``last`` is the latest change, with the dimension that got the atom; ``rest`` is the chain before it.

    ``number`` counts the changes and the origin, of all dimensions. ``far`` is a chain further back: by
    these, any change is reached in a number of steps like the logarithm of the length.
    """

    origin: Cell
    number: int
    length: int = 0
    last: tuple[Event, int] | None = None
    rest: Chain | None = None
    far: Chain | None = None

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[tuple[Event, int]]:
        """The changes with their dimensions, latest first."""
        chain: Chain | None = self
        while chain is not None and chain.last is not None:
            yield chain.last
            chain = chain.rest

    def __getitem__(self, index: int) -> tuple[Event, int]:
        """A change with its dimension; 0 is the latest."""
        if not 0 <= index < self.length:
            raise IndexError(index)
        chain, left = self, self.length - index
        while chain.length > left:
            further = chain.far if chain.far is not None and chain.far.length >= left else chain.rest
            assert further is not None
            chain = further
        assert chain.last is not None
        return chain.last


class KeptChain(Sequence[tuple[Event, int]]):
    """The same, of a saved run, which keeps it."""

    def __init__(self, way: Way, event: Callable[[int], Event]) -> None:
        self.origin, self.number = way.origin, way.number
        self._changes, self._event = way.changes, event

    def __len__(self) -> int:
        return len(self._changes)

    @overload
    def __getitem__(self, index: int) -> tuple[Event, int]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[Event, int]]: ...
    def __getitem__(self, index: Any) -> Any:
        """A change with its dimension; 0 is the latest."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        change, dim = self._changes[index]
        return self._event(change), dim


class Chains:
    """Makes chains, and numbers them."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int], int] = {}

    def beginning(self, origin: Cell) -> Chain:
        """The chain without changes."""
        return Chain(origin, self._number(-1, origin))

    def longer(self, chain: Chain, event: Event, dim: int) -> Chain:
        """A chain with one more change."""
        far, farther = chain, chain.far and chain.far.far
        if chain.far and farther and chain.length - chain.far.length == chain.far.length - farther.length:
            far = farther
        number = self._number(event.number, chain.number)
        return Chain(chain.origin, number, chain.length + 1, (event, dim), chain, far)

    def _number(self, change: int, behind: int) -> int:
        return self._numbers.setdefault((change, behind), len(self._numbers))


class Steps(Sequence[WhyStep]):
    """The steps of a chain, latest first, each made when it is asked for, and those ``behind`` it."""

    def __init__(
        self,
        chain: Chain | KeptChain,
        step_of: Callable[[Event, int], WhyStep],
        behind: Sequence[WhyStep] = (),
    ) -> None:
        self._chain, self._step_of, self._behind = chain, step_of, behind
        self._kept: dict[int, WhyStep] = {}

    def __len__(self) -> int:
        return len(self._chain) + len(self._behind)

    @overload
    def __getitem__(self, index: int) -> WhyStep: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[WhyStep, ...]: ...

    def __getitem__(self, index: int | slice) -> WhyStep | tuple[WhyStep, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        number = index + len(self) if index < 0 else index
        if number >= len(self._chain):
            return self._behind[number - len(self._chain)]
        if number not in self._kept:
            self._kept[number] = self._step_of(*self._chain[number])
        return self._kept[number]
