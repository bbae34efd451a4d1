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

    argument: Any
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


def gifts(given: Mapping[Any, Any], order: Order, layouts: MemoryLayouts) -> dict[Any, Gift]:
    """The gifts of a block, by the values that reuse memory: ``given`` are results by arguments."""
    if not given:
        return {}
    looking, by_value = _Looking(order, layouts), dict[Any, Gift]()
    for argument, result in given.items():
        value = layouts.storing.memory_of(result)
        if value != argument and value not in by_value:
            by_value[value] = looking.gift(argument, value)
    return by_value


class _Looking:
    """Which ops of a block always run after others, whatever their order."""

    def __init__(self, order: Order, layouts: MemoryLayouts) -> None:
        self.order, self.layouts = order, layouts
        self.numbers = {op: n for n, op in enumerate(order.every)}
        self.before = defaultdict[int, int](int)  # sets of ops as bit sets
        for op in sorted(order.needs):
            if op >= 0:
                for user in order.needs[op]:
                    self.before[user] |= self.before[op] | 1 << op

    def gift(self, argument: Any, value: Any) -> Gift:
        """The copies that are made if a value of an op reuses the memory of an argument."""
        reads, last = self._reads(argument), self.numbers.get(value.owner, -1)
        first, in_place = self._first(argument, value)
        early = sum(1 << op for op in reads)
        if early & ~(self.before[last] | 1 << max(last, 0)):
            return Gift(argument, True, first is None or not early & (self.before[first] | 1 << first))
        done = 0 if first is None else self.before[first] | (1 << first if in_place else 0)
        return Gift(argument, False, bool(early & ~done))

    def _first(self, argument: Any, value: Any) -> tuple[int | None, bool]:
        """The first op that writes to the memory of a value, through the values that loops carry; and whether
        it may overwrite the argument, which is its operand. None if it is a copy of something else."""
        storing, loop = self.layouts.storing, None
        lowering = storing.traits.lowering
        while not isinstance(value.owner, ir.Block) and lowering(value.owner.operation.name) == "loop":
            loop = value.owner
            value = storing.memory_of(loop.operands[value.result_number])
        if isinstance(value.owner, ir.Block):
            return (self.numbers[loop], True) if value == argument and loop is not None else (None, False)
        return self.numbers[value.owner], argument in self.layouts.replaced(value)

    def _reads(self, argument: Any) -> set[int]:
        """The readers of an argument, also under another type."""
        left, readers = self.order.needing([argument]), set[int]()
        while left:
            op = left.pop()
            if op not in readers:
                readers.add(op)
                results = self.order.every[op].results
                left += self.order.needing(
                    r for r in results if self.layouts.storing.memory_of(r) == argument
                )
        return readers
