"""The ops of an annotated module by kind: what equal ops have in common is read off one of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from ..importers.listing import listing_of
from .choice.knowledge import Knowledge, Reader

_LARGEST = 64  # ops, of what is compared


@dataclass(slots=True, eq=False)
class Kind:
    """A kind of op. ``known``: what the rules say of it, None where that depends on what is around an op.
    ``closed``: its regions use nothing from outside."""

    types: list[Any]  # of the results
    known: Knowledge | None
    closed: bool


class Kinds:
    """The ops of a module, listed once, and their kinds."""

    def __init__(self, module: ir.Module) -> None:
        self.listing = listing_of(module)
        self.ops = self.listing.ops
        self._numbers = {op: number for number, op in enumerate(self.ops)}
        self._kinds: list[int] = self.listing.kinds.tolist()
        self._regions: list[int] = self.listing.regions.tolist()
        self._ends: list[int] = self.listing.ends.tolist()
        self._known: dict[Hashable, Kind] = {}

    def examples(self) -> list[Any]:
        """The first op of each kind, in the order of the module."""
        first = np.unique(self.listing.kinds, return_index=True)[1]
        return [self.ops[number] for number in np.sort(first).tolist()]

    def of_block(self, block: Any, reader: Reader) -> Iterator[tuple[Any, Kind]]:
        """The ops of a block with their kinds, but for the last one."""
        regions, ends = self._regions, self._ends
        number = self._numbers[block.operations[0].operation]
        region, last = regions[number], len(regions)
        while (behind := ends[number]) < last and regions[behind] == region:
            yield self.ops[number], self._kind(number, reader)
            number = behind

    def of(self, op: Any, reader: Reader) -> Kind:
        """The kind of an op."""
        return self._kind(self._numbers[op], reader)

    def _kind(self, number: int, reader: Reader) -> Kind:
        which = self._kinds[number] if self._ends[number] == number + 1 else self._inside(number)
        kind = self._known.get(which)
        if kind is None:
            op = self.ops[number]
            known = None if reader.looks_around(op) else reader.knowledge(op)
            closed = bool((self._used(number) >= 0).all())
            kind = self._known[which] = Kind(list(op.results.types), known, closed)
        return kind

    def _inside(self, number: int) -> Hashable:
        """The kind of an op with regions, by the kinds of what is inside, and what that uses."""
        end = self._ends[number]
        if end - number > _LARGEST:  # it is compared with no other
            return -number
        return (*self._kinds[number:end], -1, *self._used(number).tolist())

    def _used(self, number: int) -> Any:
        """The values that the ops in an op use, counted from its results; negative: from outside."""
        listing, offsets = self.listing, self.listing.operand_offsets
        inside = listing.operands[offsets[number + 1] : offsets[self._ends[number]]]
        return inside - listing.first_results[number]
