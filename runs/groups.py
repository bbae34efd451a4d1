"""The program of a run in the order of its ops, as nested groups: scopes and repetitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..program.folding import LEAST, PART, Group, fold, scope
from ..program.ids import Item
from ..program.mlir.origins import Origin
from .records.record import RETURNED, Op, RunRecord

_FEW = 8  # results that need no group of their own


@dataclass(frozen=True)
class Ordered:
    """The ops of a run that are still there, its items in the order of the program, and their groups."""

    ops: Mapping[Item, Op]
    items: Sequence[Item]
    groups: Sequence[Group]


def ordered(record: RunRecord, least: int = LEAST) -> Ordered:
    """The program of a run in the order of its ops; scopes of at least so many ops are groups."""
    return Ordered(dict(record.ops()), *grouped(record, least))


def grouped(record: RunRecord, least: int) -> tuple[list[Item], list[Group]]:
    """The items of a run in the order of the program, and their groups."""
    items = list(in_order(record))
    return items, groups_of(record, items, least)


def in_order(record: RunRecord) -> Iterator[Item]:
    """The items of a run in the order of the program; constants, which take no turns, before their first
    use."""
    order = record.order()
    constants: dict[int, Item] = {}
    for item in sorted(set(record.present()).difference(order)):
        op = record.op(item)
        constants |= {v: item for v, role in zip(op.values, op.roles, strict=True) if role == "result"}
    for item in order:
        for value in record.values_of(item) if constants else ():
            if value in constants:
                yield constants.pop(value)
        yield item


def groups_of(record: RunRecord, items: Sequence[Item], least: int) -> list[Group]:
    """The groups of items in the order of the program. The returned values are one of them."""
    numbers: dict[tuple[str, ...], int] = {}
    tokens = list[int]()
    scopes, follows = list[tuple[str, ...]](), list[bool]()
    read: dict[int, tuple[Origin | None, tuple[str, ...]]] = {}  # by the ids of origins, which it keeps
    caller: tuple[str, ...] = ()
    for look, origin, alone, called in record.sketches(items):
        if look == RETURNED:
            break
        own = read.get(id(origin))
        if own is None:
            own = read[id(origin)] = origin, () if origin is None else scope(origin)
        # A constant has the place that it was lifted to. Like data flow it belongs to the op that follows.
        follows.append(not called and (alone or origin is None))
        if not called and not follows[-1]:
            caller = own[1] or caller
        scopes.append((*caller, called) if called else own[1])
        tokens.append(numbers.setdefault(look, len(numbers)))
    for i in reversed(range(len(scopes) - 1)):
        if follows[i]:
            scopes[i] = scopes[i + 1]
    groups = list(fold(scopes, tokens, least))
    if len(tokens) + _FEW < len(items):
        groups.append(Group("results", PART, len(tokens), len(items), ()))
    return groups
