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


@dataclass(frozen=True)
class Outline:
    """The items of a run in the order of the program; and of those before the returned values the scope that
    each is in, and a number that is equal for those that look alike."""

    items: Sequence[Item]
    scopes: Sequence[tuple[str, ...]]
    tokens: Sequence[int]

    def groups(self, least: int) -> list[Group]:
        """The groups of the items; scopes of at least so many ops are groups. The returned values are one."""
        groups = list(fold(self.scopes, self.tokens, least))
        if len(self.tokens) + _FEW < len(self.items):
            groups.append(Group("results", PART, len(self.tokens), len(self.items), ()))
        return groups


def ordered(record: RunRecord, outline: Outline) -> Ordered:
    """The program of a run in the order of its ops, by its outline."""
    return Ordered(dict(record.ops()), outline.items, outline.groups(LEAST))


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


def outline(record: RunRecord) -> Outline:
    """The outline of a run."""
    items = list(in_order(record))
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
    return Outline(items, scopes, tokens)
