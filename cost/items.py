"""The pieces of a device's work, as columns: a large program has one for each of its lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from ..program.mlir.origins import numberless
from ..runs.collectives import Causes

Floats = npt.NDArray[np.float64]
AMOUNTS = ("times", "seconds", "flops", "bytes", "redundant", "launches", "waits")


@dataclass(frozen=True)
class Item:
    """A piece of a device's work: ops, or a collective, at a place of the user's source.

    ``where`` is the line and ``stack`` the name stack there. Ops of one kind at one place with one limit are
    one item, of ``times`` ops. ``seconds``, ``flops`` and ``bytes`` (read, written or sent) are for all of
    them. ``limited`` is the limit: "compute", "memory" or "links". ``redundant`` is the part of ``flops``
    that other devices compute too. ``sure`` is how sure the seconds are (see ``OpPrice``). ``launches`` is
    the number of kernels on a GPU, and ``waits`` the seconds for which it waits for the host to launch them.
    A collective has the op that it ``serves``, its ``causes`` (annotations), and its ``numbers``: several if
    the item stands for all collectives with one purpose at a place.
    """

    op: str
    where: str
    stack: str
    times: int
    seconds: float
    flops: float
    bytes: float
    limited: str
    redundant: float = 0.0
    sure: str = ""
    launches: int = 0
    waits: float = 0.0
    serves: str = ""
    causes: Sequence[str] = ()
    numbers: tuple[int, ...] = ()

    def with_(self, other: Item) -> Item:
        """Two items merged into one; their stacks differ only in numbers."""
        added: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in AMOUNTS}
        return replace(
            self,
            **added,
            stack=self.stack if self.stack == other.stack else numberless(self.stack),
            causes=Causes.joined(self.causes, other.causes),
            numbers=(*self.numbers, *other.numbers),
        )

    def as_json(self) -> dict[str, Any]:
        """The fields by name."""
        return {**vars(self), "causes": list(self.causes), "numbers": list(self.numbers)}


class Kept(NamedTuple):
    """What ops share that are one item: their name, place and limit, and how sure their seconds are."""

    op: str
    where: str
    stack: str
    limited: str
    sure: str


class Items(Sequence[Item]):
    """The items of a program: its collectives ``sent``, then ops. Those are made when they are asked for,
    from what they share (``kept``), and a column for each of ``AMOUNTS``."""

    def __init__(self, sent: Sequence[Item], kept: Sequence[Kept], amounts: Sequence[Floats]) -> None:
        self.sent, self.kept = tuple(sent), kept
        self._amounts = dict(zip(AMOUNTS, amounts, strict=True))

    def __len__(self) -> int:
        return len(self.sent) + len(self.kept)

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...

    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        if isinstance(index, slice):
            return tuple([self[n] for n in range(*index.indices(len(self)))])
        n = range(len(self))[index] - len(self.sent)
        return self.sent[n] if n < 0 else self._op(n)

    def __iter__(self) -> Iterator[Item]:
        yield from self.sent
        yield from map(self._op, range(len(self.kept)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Items) and [*self] == [*other]

    def __hash__(self) -> int:
        return hash((self.sent, tuple(self.kept)))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def _op(self, n: int) -> Item:
        op, where, stack, limited, sure = self.kept[n]
        times, seconds, flops, moved, redundant, launches, waits = (
            column[n].item() for column in self._amounts.values()
        )
        return Item(
            *(op, where, stack, int(times), seconds, flops, moved, limited, redundant, sure),
            *(int(launches), waits),
        )

    def redundant(self) -> Iterator[Item]:
        """The items of ops that other devices compute in part too."""
        return map(self._op, np.flatnonzero(self._amounts["redundant"]).tolist())

    def of(self, amount: str) -> Floats:
        """An amount of each item."""
        of_sent = [getattr(item, amount) for item in self.sent]
        return np.concatenate([np.asarray(of_sent, np.float64), self._amounts[amount]])

    def names(self, name: str) -> list[str]:
        """The text called so of each item."""
        return [getattr(item, name) for item in self.sent] + [getattr(kept, name) for kept in self.kept]

    def total(self, amount: str) -> float:
        """The sum of an amount."""
        return total(self.of(amount))


def total(amounts: Floats) -> float:
    """The sum of amounts, from the first to the last."""
    return float(np.cumsum(amounts)[-1]) if len(amounts) else 0


def sums(keys: Iterable[Any], amounts: Floats) -> dict[Any, float]:
    """The sum of amounts by key, in the order of the keys."""
    numbers: dict[Any, int] = {}
    of = [numbers.setdefault(key, len(numbers)) for key in keys]
    added = np.bincount(np.asarray(of, np.intp), amounts, len(numbers))
    return dict(zip(numbers, added.tolist(), strict=True))
