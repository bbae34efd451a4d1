"""The pieces of work of a block that a library computes, as ``rules/cost/libraries.dl`` says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

from jaxlib.mlir import ir

from ..program.mlir.modules import operations_in
from ..program.signature import Told, describe
from ..rulebook.shipped import shipped

_LOOKS_AT = dict.fromkeys(("stablehlo.reduce", "stablehlo.reduce_window"), ("regions",))
_TOLD = ("op", "slot", "dim", "element", "attribute_item", "returned_by", "returned_from")


@dataclass(frozen=True)
class Part:
    """Whether an op ``begins`` a piece of work; whether it ``joins`` one; whether it is kept ``apart`` from
    what makes its operand."""

    begins: bool = False
    joins: bool = False
    apart: bool = False


_NONE = Part()


class Libraries:
    """The pieces of work of the blocks of one module."""

    def __init__(self, platform: str) -> None:
        self._platform = platform
        self._told = Told()
        self._known: dict[Any, Part] = {}
        self._pieces: dict[Any, dict[Any, int]] = {}

    def of(self, value: Any) -> int | None:
        """The number of the piece of work, among those of its block, that makes a value; None where none
        does."""
        if not self._platform:
            return None
        block = value.owner.operation.block
        if block not in self._pieces:
            self._pieces[block] = _Pieces([op.operation for op in block.operations], self._part).by_value()
        return self._pieces[block].get(value)

    def _part(self, op: Any) -> Part:
        if not _said_of(self._platform, op.name, "told"):
            return _NONE
        divides = op.name == "stablehlo.broadcast_in_dim" and _divides(op)
        types = (*(value.type for value in op.operands), *op.results.types)
        inside = tuple(each.name for each in operations_in(op)) if op.regions else ()
        converted = _converted(op) if _said_of(self._platform, op.name, "chooses") else ()
        key = op.name, divides, types, inside, converted, tuple(map(tuple, op.attributes.items()))
        if key not in self._known:
            facts = describe(op, False, _LOOKS_AT, self._told)
            told = {name: tuple(facts.get(name, ())) for name in _TOLD}
            told["elements"] = tuple((slot, _elements(type_)) for slot, type_ in enumerate(types))
            told["divides"] = ((),) if divides else ()
            told["converted"] = converted
            self._known[key] = _part(self._platform, tuple(told.items()))
        return self._known[key]


class _Pieces:
    """The pieces of work of the ops of a block, by the numbers of the ops that they began with."""

    def __init__(self, ops: Sequence[Any], part: Callable[[Any], Part]) -> None:
        self.ops = ops
        self.parts = list(map(part, ops))
        self.piece: list[int | None] = [None] * len(ops)
        first = [n for n, part in enumerate(self.parts) if part.begins]
        if first:
            self._look_up()
        for n in reversed(first):
            if self.piece[n] is None:
                self._grow(n)

    def by_value(self) -> dict[Any, int]:
        """The number of the piece that makes a value, if one does."""
        pieces = zip(self.ops, self.piece, strict=True)
        return {value: piece for op, piece in pieces if piece is not None for value in op.results}

    def _look_up(self) -> None:
        """Finds which ops make what an op takes, and which use what it gives."""
        made = {value: n for n, op in enumerate(self.ops) for value in op.results}
        self.makers, self.users = list[list[int]](), defaultdict[int, set[int]](set)
        for n, op in enumerate(self.ops):
            makers = [made[value] for value in op.operands if value in made]
            inner = operations_in(op) if op.regions else ()
            inside = [made[value] for each in inner for value in each.operands if value in made]
            self.makers.append(makers)
            for maker in (*makers, *inside):
                self.users[maker].add(n)

    def _grow(self, first: int) -> None:
        """Takes into a piece what it can compute, until there is nothing more."""
        self.piece[first] = first
        inside, last, grown = [first], first, True
        while grown:
            grown = False
            for n in inside:  # to which others are added on the way
                for maker in () if self.parts[n].apart else self.makers[n]:
                    if self._joins(maker) and all(self.piece[user] == first for user in self.users[maker]):
                        self.piece[maker] = first
                        inside.append(maker)
            users = self.users[last]
            if len(users) == 1:
                (user,) = users
                if self._joins(user) and not self.parts[user].apart:
                    self.piece[user] = first
                    inside.append(user)
                    last, grown = user, True

    def _joins(self, n: int) -> bool:
        return self.piece[n] is None and self.parts[n].joins


def element_of(value: Any) -> str:
    """The type of a tensor's elements, as MLIR writes it; empty of other values."""
    type_ = value.type
    return str(type_.element_type) if isinstance(type_, ir.RankedTensorType) else ""


def _divides(op: Any) -> bool:
    return any(use.operand_number == 1 and use.owner.name == "stablehlo.divide" for use in op.result.uses)


def _converted(op: Any) -> tuple[tuple[int, str], ...]:
    """The operands of an op that are made of elements of another type, and the type."""
    found = []
    for slot, value in enumerate(op.operands):
        maker = value.owner
        if not isinstance(maker, ir.Block) and maker.name == "stablehlo.convert":
            found.append((slot, element_of(maker.operands[0])))
    return tuple(found)


def _elements(type_: Any) -> int:
    return prod(type_.shape) if isinstance(type_, ir.RankedTensorType) and type_.has_static_shape else 0


@cache
def _said_of(platform: str, name: str, relation: str) -> bool:
    """Whether a relation holds of ops of a name, whatever they take."""
    return bool(_rules(platform).solve({"op": [(name,)]}, [relation])[relation])


@cache
def _part(platform: str, told: tuple[tuple[str, Any], ...]) -> Part:
    said = _rules(platform).solve(dict(told))
    return Part(*(bool(said[name]) for name in ("begins", "joins", "apart")))


@cache
def _rules(platform: str) -> Any:
    return shipped("cost/libraries").solver({"platform": [(platform,)]})
