"""Which values of a program are stored in memory, as ``rules/cost/storing.dl`` says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

from jaxlib.mlir import ir

from ..rulebook.book import family, lowerings
from ..rulebook.shipped import shipped
from .machine import Allocation


@dataclass(frozen=True)
class Stored:
    """Whether a value is stored; the operand of its op that it is the ``same`` memory as, if any; whether it
    may be written ``in_place`` of an operand; whether it is part of the program, ``apart`` from other values;
    whether it is computed in a ``loop`` over its elements."""

    stored: bool
    same: int | None
    in_place: bool
    apart: bool = False
    loop: bool = False


class Storing:
    """How the values of one module are stored where memory is allocated so."""

    def __init__(self, allocation: Allocation) -> None:
        self.allocation = allocation
        self._known: dict[Any, Stored] = {}

    def of(self, value: Any) -> Stored:
        """How a value that an op makes is stored."""
        if value not in self._known:
            self._known[value] = self._of(value)
        return self._known[value]

    def memory_of(self, value: Any) -> Any:
        """The value whose memory a value is: itself, or one that its op takes."""
        while not isinstance(value.owner, ir.Block):
            same = self.of(value).same
            if same is None:
                break
            operand = value.owner.operands[same]
            if not (isinstance(operand.owner, ir.Block) or self.of(operand).stored):
                break
            value = operand
        return value

    def inputs(self, value: Any) -> Iterator[Any]:
        """What the op that makes a value takes, and what is taken by ops that are computed there element by
        element, and not stored."""
        left, seen = list(value.owner.operands), set[Any]()
        while left:
            operand = self.memory_of(left.pop(0))
            if operand in seen:
                continue
            seen.add(operand)
            yield operand
            if not isinstance(operand.owner, ir.Block):
                how = self.of(operand)
                if how.in_place and not how.stored:
                    left += operand.owner.operands

    def _of(self, value: Any) -> Stored:
        maker, users = value.owner, [_called(use.owner.operation) for use in value.uses]
        if lowerings().get(maker.name) == "loop" and _unchanged(maker, value.result_number):
            return Stored(True, value.result_number, False)
        alone = next(filter(used_once, maker.operands), None)
        taken = "" if alone is None or isinstance(alone.owner, ir.Block) else alone.owner.name
        platform = self.allocation.platform
        return _storing(platform, _called(maker), taken, frozenset(users), len(users) > 1)


def used_once(value: Any) -> bool:
    """Whether a value has one use; others may have thousands."""
    return sum(1 for _ in islice(value.uses, 2)) == 1


def _called(op: Any) -> str:
    """The name of an op, or the function of a library that it calls."""
    target = op.attributes.get("call_target_name")
    return op.name if target is None else f"@{ir.StringAttr(target).value}"


def _unchanged(loop: Any, number: int) -> bool:
    """Whether a loop hands on what it carries as it is."""
    block = loop.regions[1].blocks[0]
    *_, end = block.operations
    return bool(end.operands[number] == block.arguments[number])


@cache
def _storing(platform: str, maker: str, taken: str, users: frozenset[str], several: bool) -> Stored:
    facts: dict[str, Any] = {
        "on": [(platform,)],
        "made_by": [(maker,)],
        "made_from": [(taken,)],
        "used_by": [(user,) for user in sorted(users)],
        "several_uses": [()] if several else [],
    }
    said = _rules().solve(facts)
    renamed, in_place, apart, loop = (bool(said[name]) for name in ("renamed", "in_place", "apart", "loop"))
    return Stored(bool(said["stored"]), 0 if renamed else None, in_place, apart, loop)


@cache
def _rules() -> Any:
    names = ("elementwise_op", "broadcast_op")
    return shipped("cost/storing").solver({name: [(op,) for op in sorted(family(name))] for name in names})
