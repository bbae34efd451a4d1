"""The program of a run in the order of its ops, as nested groups: scopes and repetitions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from ..program.folding import LEAST, PART, Group, fold, scope
from ..program.ids import Item
from ..program.mlir.origins import Origin
from .records.record import Op, RunRecord

_FEW = 8  # results that need no group of their own
_CALLED = re.compile(r"@([^:#]+)")  # what stands before the names of values in functions that are called


@dataclass(frozen=True)
class Ordered:
    """The ops of a run that are still there, its items in the order of the program, and their groups."""

    ops: Mapping[Item, Op]
    items: Sequence[Item]
    groups: Sequence[Group]


def ordered(record: RunRecord, least: int = LEAST) -> Ordered:
    """The program of a run in the order of its ops; scopes of at least so many ops are groups."""
    ops = dict(record.ops())
    items = list(in_order(record, ops))
    return Ordered(ops, items, groups_of(record, items, ops, least))


def in_order(record: RunRecord, ops: Mapping[Item, Op]) -> Iterator[Item]:
    """The items of a run in the order of the program; constants, which take no turns, before their first
    use. ``ops`` are the remaining ones."""
    order = record.order()
    constants: dict[int, Item] = {}
    for item in sorted(ops.keys() - set(order)):
        op = ops[item]
        constants |= {v: item for v, role in zip(op.values, op.roles, strict=True) if role == "result"}
    for item in order:
        for value in (ops.get(item) or record.op(item)).values if constants else ():
            if value in constants:
                yield constants.pop(value)
        yield item


def groups_of(record: RunRecord, items: Sequence[Item], ops: Mapping[Item, Op], least: int) -> list[Group]:
    """The groups of items in the order of the program. The returned values are one of them."""
    numbers: dict[tuple[str, ...], int] = {}
    tokens = list[int]()
    scopes, follows = list[tuple[str, ...]](), list[bool]()
    read: dict[Origin | None, tuple[str, ...]] = {}
    caller: tuple[str, ...] = ()
    type_of = cache(record.type_of)
    for item in items:
        op, origin = ops.get(item) or record.op(item), record.origin(item)
        if op.roles[-1:] == ("function result",):
            break
        if origin not in read:
            read[origin] = () if origin is None else scope(origin)
        called = _CALLED.match(op.slots[-1]) if op.slots else None
        # A constant has the place that it was lifted to. Like data flow it belongs to the op that follows.
        follows.append(not called and (op.roles == ("result",) or origin is None))
        if not called and not follows[-1]:
            caller = read[origin] or caller
        scopes.append((*caller, called[1]) if called else read[origin])
        key = (op.name, *map(type_of, op.values))
        tokens.append(numbers.setdefault(key, len(numbers)))
    for i in reversed(range(len(scopes) - 1)):
        if follows[i]:
            scopes[i] = scopes[i + 1]
    groups = list(fold(scopes, tokens, least))
    if len(tokens) + _FEW < len(items):
        groups.append(Group("results", PART, len(tokens), len(items), ()))
    return groups
