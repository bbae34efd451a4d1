"""Which values of a program are stored in memory, as ``rules/cost/storing.dl`` says."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from jaxlib.mlir import ir

from ..rulebook.book import family, lowerings
from ..rulebook.shipped import shipped


@dataclass(frozen=True)
class Stored:
    """Whether a value is stored; the operand of its op that it is the ``same`` memory as, if any; whether it
    may be written ``in_place`` of an operand."""

    stored: bool
    same: int | None
    in_place: bool


class Storing:
    """How the values of one module are stored."""

    def __init__(self) -> None:
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

    @staticmethod
    def _of(value: Any) -> Stored:
        maker, users = value.owner, [use.owner.operation.name for use in value.uses]
        if lowerings().get(maker.name) == "loop" and _unchanged(maker, value.result_number):
            return Stored(True, value.result_number, False)
        return _storing(maker.name, frozenset(users), len(users) > 1)


def _unchanged(loop: Any, number: int) -> bool:
    """Whether a loop hands on what it carries as it is."""
    block = loop.regions[1].blocks[0]
    *_, end = block.operations
    return bool(end.operands[number] == block.arguments[number])


@cache
def _storing(maker: str, users: frozenset[str], several: bool) -> Stored:
    facts: dict[str, Any] = {
        "made_by": [(maker,)],
        "used_by": [(user,) for user in sorted(users)],
        "several_uses": [()] if several else [],
    }
    said = _rules().solve(facts)
    return Stored(bool(said["stored"]), 0 if said["renamed"] else None, bool(said["in_place"]))


@cache
def reading(name: str) -> str:
    """Whether an op "reads" only a part of its operands, or "writes" only a part of its result."""
    said = _rules().solve({"made_by": [(name,)]}, ["part"])["part"]
    return str(said[0][0]) if said else ""


@cache
def _rules() -> Any:
    names = ("elementwise_op", "broadcast_op")
    return shipped("cost/storing").solver({name: [(op,) for op in sorted(family(name))] for name in names})
