"""What ops copy because they want it in another order in memory, as ``rules/cost/layouts.dl`` says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

from jaxlib.mlir import ir

from ..program.signature import Told, describe
from ..rulebook.shipped import shipped
from .storing import Storing, used_once

Dims = tuple[int, ...] | None  # dimensions in memory, outermost first; None is their own order
_TOLD = ("op", "slot", "dim", "attribute_number", "attribute_item", "attribute_symbol")


@dataclass(frozen=True)
class Ordering:
    """The orders that an op wants of its operands and has its results in, by slot, where they are not their
    own; the ``pieces`` that it takes and gives apart; the bytes that it ``needs`` besides; whether it writes
    results ``in_place`` of operands."""

    orders: Mapping[int, tuple[int, ...]]
    pieces: int = 1
    needs: int = 0
    in_place: bool = False


_PLAIN = Ordering({})


class Layouts:
    """The orders of the values of one module."""

    def __init__(self, storing: Storing) -> None:
        self.storing = storing
        self._platform = storing.allocation.platform
        self._told = Told()
        self._known: dict[Any, Ordering] = {}

    def of(self, op: Any) -> Ordering:
        """What the rules say of an op."""
        if not _asked(self._platform, op.name)[0]:
            return _PLAIN
        if op not in self._known:
            facts = describe(op, False, {}, self._told)
            told = tuple((name, tuple(facts.get(name, ()))) for name in _TOLD)
            self._known[op] = _ordering(self._platform, told)
        return self._known[op]

    def result(self, value: Any) -> Dims:
        """The order that a value has when it is made."""
        if isinstance(value.owner, ir.Block):
            return None
        return self.of(value.owner).orders.get(len(value.owner.operands) + value.result_number)

    def replaced(self, value: Any) -> Iterator[Any]:
        """The values of which one may be written over by what an op makes, if it has its size and is not read
        any more."""
        if self.of(value.owner).in_place:
            yield from map(self.storing.memory_of, value.owner.operands)
        elif self.storing.of(value).in_place:
            yield from (taken for taken in self.storing.inputs(value) if self.result(taken) is None)

    def copied(self, op: Any) -> Iterator[Any]:
        """The operands that an op copies, as the values whose memory they are."""
        if not self._platform:
            return
        known, storing = self.of(op), self.storing
        any_order = _asked(self._platform, op.name)[1] or any(storing.of(v).loop for v in op.results)
        if any_order and known.pieces == 1:
            return
        for number, operand in enumerate(op.operands):
            value = storing.memory_of(operand)
            wanted = known.orders.get(number)
            computed = not isinstance(value.owner, ir.Block) and storing.of(value).loop
            if computed and value == operand and used_once(value):
                continue  # as it is wanted
            has = None if computed else self.result(value)
            if has != wanted or (has and value != operand) or known.pieces > 1:
                yield value


@cache
def _asked(platform: str, name: str) -> tuple[bool, bool]:
    """Whether the rules say more of ops of a name, and whether they take any order."""
    said = _rules(platform).solve({"op": [(name,)]}, ["asked", "any_order"])
    return bool(said["asked"]), bool(said["any_order"])


@cache
def _ordering(platform: str, told: tuple[tuple[str, Any], ...]) -> Ordering:
    facts = dict(told)
    said = _rules(platform).solve(facts)
    sizes = {(slot, dim): size for slot, dim, size in facts["dim"]}
    places: dict[int, list[tuple[int, int]]] = {}
    for slot, place, dim in said["placed"]:
        if sizes[slot, dim] > 1:
            places.setdefault(slot, []).append((place, dim))
    orders = {}
    for slot, found in places.items():
        order = tuple(dim for _, dim in sorted(found))
        if list(order) != sorted(order):
            orders[slot] = order
    needs = sum(
        width * prod(size for (of, _), size in sizes.items() if of == slot) for slot, width in said["needs"]
    )
    ((pieces,),) = said["pieces"] or [(1,)]
    return Ordering(orders, pieces, needs, bool(said["aliased"]))


@cache
def _rules(platform: str) -> Any:
    return shipped("cost/layouts").solver({"platform": [(platform,)]})
