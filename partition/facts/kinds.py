"""The ops of an annotated module by kind. Common facts of equal ops are read off one of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from ...importers.listing import listing_of
from ...program.columns import distinct, told_apart
from ...program.ids import Slot
from ...program.mlir.types import Operation
from ..writing.building import OUTSIDE
from .knowledge import Knowledge, RuleReader

_LARGEST = 64  # ops, by what is compared


@dataclass(slots=True, eq=False)
class Kind:
    """A kind of op. ``known`` is what the rules say of it, or None if that depends on its surroundings.
    ``closed``: its regions use no values from outside. ``outside`` are attributes that an op of the device
    program does not have."""

    types: list[Any]  # of the results
    knowledge: Knowledge | None
    closed: bool
    outside: tuple[str, ...]


class Kinds:
    """The ops of a module and their kinds, listed once. Ops and values are called by their numbers in the
    listing. ``inside`` are the ops in the module, if they are listed already."""

    def __init__(self, module: ir.Module, inside: Sequence[Any] | None = None) -> None:
        self.module, self.listing = module, listing_of(module, ops=inside)
        self.ops = self.listing.ops
        listing = self.listing
        self._kinds: list[int] = listing.kinds.tolist()
        self._regions: list[int] = listing.regions.tolist()
        self._parents: list[int] = listing.parents.tolist()
        self._ends: list[int] = listing.ends.tolist()
        self._operands: list[int] = listing.operands.tolist()
        self._definers: list[int] = listing.definers.tolist()
        self._offsets: list[int] = listing.operand_offsets.tolist()
        self._firsts: list[int] = listing.first_results.tolist()
        self._results: list[int] = listing.results.tolist()
        self._known: dict[Hashable, Kind] = {}
        self._names: dict[int, str] = {}

    def examples(self) -> list[Any]:
        """The first op of each kind, in the order of the module."""
        return [self.ops[number] for number in distinct(self.listing.kinds)[1].tolist()]

    def having(self, label: str) -> list[Any]:
        """The ops with an attribute."""
        return [self.ops[n] for n in self.numbers_having(label)]

    def numbers_having(self, label: str) -> list[int]:
        """The numbers of the ops with an attribute."""
        return self.numbers_of(lambda op: label in op.attributes)

    def numbers_of(self, which: Callable[[Operation], bool]) -> list[int]:
        """The numbers of the ops for which a predicate holds. It depends only on the kind."""
        first, kind = told_apart(self.listing.kinds)
        some = np.asarray([which(self.ops[n]) for n in first.tolist()], bool)
        there: list[int] = np.flatnonzero(some[kind]).tolist()
        return there

    def name(self, number: int) -> str:
        """The name of an op."""
        kind = self._kinds[number]
        if kind not in self._names:
            self._names[kind] = self.ops[number].name
        return self._names[kind]

    def operands(self, number: int) -> list[int]:
        """The operands of an op, without those of ops in its regions."""
        return self._operands[self._offsets[number] : self._offsets[number + 1]]

    def results(self, number: int) -> range:
        """The results of an op."""
        first = self._firsts[number]
        return range(first, first + self._results[number])

    def definer(self, value: int) -> int:
        """The op that defines a value; -1 for an argument of a block."""
        return self._definers[value]

    def region(self, number: int) -> int:
        """The region that contains an op."""
        return self._regions[number]

    def parent(self, number: int) -> int:
        """The op that contains an op."""
        return self._parents[number]

    def end(self, number: int) -> int:
        """The number of the op after an op and the ops inside of it."""
        return self._ends[number]

    def blocks(self, number: int) -> list[list[int]]:
        """The ops of each block in the regions of an op, without those nested deeper."""
        blocks: list[list[int]] = []
        regions, inner, end, last = self._regions, number + 1, self._ends[number], -1
        while inner < end:
            if regions[inner] != last:
                blocks.append([])
                last = regions[inner]
            blocks[-1].append(inner)
            inner = self._ends[inner]
        return blocks

    def arguments(self, ops: Sequence[int]) -> range:
        """The arguments of the block with these ops, the first of its region."""
        region = self._regions[ops[0]]
        first = int(self.listing.first_arguments[region])
        return range(first, first + int(self.listing.arguments[region]))

    def value(self, value: Any) -> int | None:
        """The number of a value; None for a value of another module."""
        owner = value.owner
        block = isinstance(owner, ir.Block)
        number = self._numbers.get((owner.operations[0] if block else owner).operation)
        if number is None:
            return None
        if block:
            return self.arguments([number])[int(value.arg_number)]
        return self._firsts[number] + int(value.result_number)

    def unused(self) -> list[int]:
        """The ops with results of which none is used."""
        listing = self.listing
        used = np.bincount(listing.operands[listing.operands >= 0], minlength=len(listing.definers)) > 0
        before = np.append(0, np.cumsum(used))
        first, count = listing.first_results, listing.results
        none = before[first + count] == before[first]
        return [int(number) for number in np.flatnonzero(none & (count > 0))]

    def users(self, value: int) -> list[tuple[int, Slot]]:
        """The ops that use the results of an op, and in which slots. None if an op outside of its block
        does."""
        order, begins = self._uses
        slots = order[begins[value] : begins[value + 1]]
        users = (np.searchsorted(self.listing.operand_offsets, slots, "right") - 1).tolist()
        region = self._regions[self._definers[value]]
        if any(self._regions[user] != region for user in users):
            return []
        pairs = zip(users, slots.tolist(), strict=True)
        return [(user, Slot(slot - self._offsets[user])) for user, slot in pairs]

    @cached_property
    def _uses(self) -> tuple[Any, Any]:
        """The uses of values as operands, value by value, and where those of each value begin."""
        used = self.listing.operands
        order = np.argsort(used, kind="stable")
        return order, np.searchsorted(used[order], np.arange(len(self._definers) + 1))

    @cached_property
    def _numbers(self) -> dict[Any, int]:
        return {op: number for number, op in enumerate(self.ops)}

    def of(self, number: int, reader: RuleReader) -> Kind:
        """The kind of an op."""
        which = self._kinds[number] if self._ends[number] == number + 1 else self._inside(number)
        kind = self._known.get(which)
        if kind is None:
            op = self.ops[number]
            knowledge = None if reader.looks_around(op) else reader.knowledge(op)
            closed = min(self._used(number), default=0) >= 0
            outside = tuple([name for name in OUTSIDE if name in op.attributes])
            kind = self._known[which] = Kind(list(op.results.types), knowledge, closed, outside)
        return kind

    def _inside(self, number: int) -> Hashable:
        """The kind of an op with regions, by the kinds of the ops inside and their operands."""
        end = self._ends[number]
        if end - number > _LARGEST:  # it equals no other
            return -number
        return (*self._kinds[number:end], -1, *self._used(number))

    def _used(self, number: int) -> list[int]:
        """The values that the ops in an op use, counted from its results. Negative numbers are from
        outside."""
        first, offsets = self._firsts[number], self._offsets
        inside = self._operands[offsets[number + 1] : offsets[self._ends[number]]]
        return [value - first for value in inside]
