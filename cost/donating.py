"""Donated arguments, whose memory results reuse; and copies that compilers make so that none is overwritten
too early."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from .layouts import MemoryLayouts
from .order import Order

_RESULT, _ANY_RESULT = "tf.aliasing_output", "jax.buffer_donor"


@dataclass(frozen=True)
class Gift:
    """An argument whose memory a result reuses. ``read_elsewhere``: readers of the argument read a copy,
    because they may run after the result is written. ``made_elsewhere``: the result is copied there at the
    end, because it is begun before the argument is read."""

    argument: int
    read_elsewhere: bool = False
    made_elsewhere: bool = False


def given_to(
    taken: Sequence[int], returned: Sequence[int], entries: Sequence[Mapping[str, Any]]
) -> dict[int, int]:
    """The results that reuse the memory of arguments, by number: the result that an argument's attributes
    name, or else the next one of its size."""
    results = {n: ir.IntegerAttr(e[_RESULT]).value for n, e in enumerate(entries) if _RESULT in e}
    results = {n: result for n, result in results.items() if taken[n] == returned[result]}
    left = defaultdict[int, list[int]](list)
    for number in sorted(set(range(len(returned))).difference(results.values()), reverse=True):
        left[returned[number]].append(number)
    for number, entry in enumerate(entries):
        if number not in results and (_RESULT in entry or _ANY_RESULT in entry) and left[taken[number]]:
            results[number] = left[taken[number]].pop()
    return results


def gifts(given: Mapping[int, int], order: Order, layouts: MemoryLayouts) -> dict[int, Gift]:
    """The gifts of a block, by the values that reuse memory: ``given`` are results by arguments."""
    if not given:
        return {}
    looking, by_value = _Looking(order, layouts), dict[int, Gift]()
    for argument, result in given.items():
        value = layouts.storing.memory_of(result)
        if value != argument and value not in by_value:
            by_value[value] = looking.gift(argument, value)
    return by_value


class _Looking:
    """Which ops of a block always run after others, whatever their order."""

    def __init__(self, order: Order, layouts: MemoryLayouts) -> None:
        self.order, self.layouts, self.graph = order, layouts, order.graph
        self.bits = {op: 1 << n for n, op in enumerate(order.every)}
        self.before = defaultdict[int, int](int)  # sets of ops as bit sets
        for op in sorted(order.needs):
            if op >= 0:
                for user in order.needs[op]:
                    self.before[user] |= self.before[op] | self.bits[op]

    def gift(self, argument: int, value: int) -> Gift:
        """The copies that are made if a value of an op reuses the memory of an argument."""
        last = self.graph.definers[value]
        first, in_place = self._first(argument, value)
        early = sum(self.bits[op] for op in self._reads(argument))
        if early & ~(self.before[last] | self.bits.get(last, 1)):
            return Gift(argument, True, first is None or not early & (self.before[first] | self.bits[first]))
        done = 0 if first is None else self.before[first] | (self.bits[first] if in_place else 0)
        return Gift(argument, False, bool(early & ~done))

    def _first(self, argument: int, value: int) -> tuple[int | None, bool]:
        """The first op that writes to the memory of a value, through the values that loops carry; and whether
        it may overwrite the argument, which is its operand. None if it is a copy of something else."""
        graph, storing, loop = self.graph, self.layouts.storing, -1
        while (maker := graph.definers[value]) >= 0 and storing.traits.lowering(graph.plain[maker]) == "loop":
            loop = maker
            value = storing.memory_of(graph.operands[loop][graph.number_of(value)])
        if maker < 0:
            return (loop, True) if value == argument and loop >= 0 else (None, False)
        return maker, argument in self.layouts.replaced(value)

    def _reads(self, argument: int) -> set[int]:
        """The readers of an argument, also under another type."""
        left, readers = self.order.needing([argument]), set[int]()
        while left:
            op = left.pop()
            if op not in readers:
                readers.add(op)
                results = self.graph.results[op]
                left += self.order.needing(
                    r for r in results if self.layouts.storing.memory_of(r) == argument
                )
        return readers
