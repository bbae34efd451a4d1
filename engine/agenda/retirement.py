"""Retiring items: once nothing uses the values of an item, it takes no more turns.

An item may make *values*, which other items use. When a worklist reaches an item that nothing keeps, it
retires, with the items inside of it. It then uses its operands no longer: an item that makes one with at most
one user left gets a turn, in which it may retire too. An item can wait for the other users of its values, and
has another class once they are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.int32]


class Lists(NamedTuple):
    """Lists of numbers, end to end: list i is ``numbers[offsets[i]:offsets[i + 1]]``."""

    offsets: Numbers
    numbers: Numbers

    def rows(self) -> list[list[int]]:
        """The lists as Python lists."""
        numbers = self.numbers.tolist()
        return [numbers[start:end] for start, end in pairwise(self.offsets.tolist())]


def lists(rows: Sequence[Sequence[int]]) -> Lists:
    """Python lists as ``Lists``."""
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    return Lists(offsets, np.array([n for row in rows for n in row], np.int32))


def empty(count: int) -> Lists:
    """Lists with nothing in them."""
    return Lists(np.zeros(count + 1, np.int32), np.zeros(0, np.int32))


class Retirement(NamedTuple):
    """The items that may retire, and the effects of that. Only values that matter for it have numbers."""

    keepers: Numbers  # item -> how many of its values are used, and items it is inside of; -1: never retires
    inside: Lists  # item -> the items that retire just before it does
    uses: Lists  # item -> the values that it uses, each once
    makers: Numbers  # value -> the item that makes it; -1: none
    users: Lists  # value -> the items that use it, each once
    waits: Numbers  # item -> how many of its values it waits to be the only user of
    later: Numbers  # item -> its class when it waits no longer


def nobody(classes: Numbers) -> Retirement:
    """No item retires."""
    items, no = len(classes), np.zeros(0, np.int32)
    never = np.full(items, -1, np.int32)
    return Retirement(never, empty(items), empty(items), no, empty(0), np.zeros(items, np.int32), classes)


def joined(retirements: Sequence[Retirement | None], classes: Sequence[Numbers]) -> Retirement | None:
    """One after the other, of items with these classes: the numbers of later items and values count on. None
    where no items retire."""
    if not any(retirements):
        return None
    parts = [part or nobody(numbers) for part, numbers in zip(retirements, classes, strict=True)]
    items = np.cumsum([0, *(len(part.keepers) for part in parts)])
    values = np.cumsum([0, *(len(part.makers) for part in parts)])

    def numbers(of: Callable[[Retirement], Numbers], first: NDArray[np.int64] | None = None) -> Numbers:
        shifts = [0] * len(parts) if first is None else first.tolist()
        shifted = [np.where(of(p) < 0, of(p), of(p) + s) for p, s in zip(parts, shifts, strict=False)]
        return np.concatenate([np.zeros(0, np.int32), *shifted]).astype(np.int32)

    def rows(of: Callable[[Retirement], Lists], first: NDArray[np.int64]) -> Lists:
        lengths = [np.diff(of(part).offsets) for part in parts]
        offsets = np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, np.int32), *lengths]))])
        return Lists(offsets.astype(np.int32), numbers(lambda part: of(part).numbers, first))

    return Retirement(
        numbers(lambda part: part.keepers),
        rows(lambda part: part.inside, items),
        rows(lambda part: part.uses, values),
        numbers(lambda part: part.makers, items),
        rows(lambda part: part.users, items),
        numbers(lambda part: part.waits),
        numbers(lambda part: part.later),
    )


class Retiring:
    """The state of retirement in a run. ``classes`` are the current ones of the items; ``push`` gives an
    item a turn."""

    def __init__(self, classes: list[int], retirement: Retirement, push: Callable[[int], None]) -> None:
        self.classes, self._push = classes, push
        self._keepers, self._inside = retirement.keepers.tolist(), retirement.inside.rows()
        self._uses, self._makers = retirement.uses.rows(), retirement.makers.tolist()
        self._users = [set(users) for users in retirement.users.rows()]
        self._waits, self._later = retirement.waits.tolist(), retirement.later.tolist()
        self.retired: set[int] = set()

    def reached(self, item: int) -> None:
        """A worklist came to an item."""
        if self._keepers[item] == 0:
            self._retire(item)

    def _retire(self, item: int) -> None:
        if item in self.retired:
            return
        self.retired.add(item)
        for inner in self._inside[item]:
            self._retire(inner)
        for value in self._uses[item]:
            left, maker = self._users[value], self._makers[value]
            left.discard(item)
            if not left and maker >= 0 and self._keepers[maker] > 0:
                self._keepers[maker] -= 1
            if len(left) == 1:
                (only,) = left
                self._waits[only] -= 1
                if self._waits[only] == 0:
                    self.classes[only] = self._later[only]
            if len(left) <= 1 and maker >= 0:
                self._push(maker)
