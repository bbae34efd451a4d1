"""Stand-ins for local values while no program is written: their operands, and the collectives behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..layouts import Layout, Pieces


class Sending(NamedTuple):
    """A collective of a plan: its kind, the pieces of axes that it runs over (none for a permutation of
    parts), the devices of a group, and the bytes that a device sends each time. Also the number of
    executions: None inside a loop of unknown trip count; and the number if such loops had one iteration."""

    kind: str
    pieces: Pieces
    group: int
    bytes: int
    known: int | None
    often: int


@dataclass(slots=True, eq=False)
class Made:
    """A stand-in for local values. Its maker ``takes`` other ones, and it has a number of ``uses``. ``depth``
    is the number of surrounding loops in which it changes from iteration to iteration. A ``pure`` one
    disappears with its last use. ``what`` is the name of the op or step that makes it, and ``sent`` the
    collective that does."""

    takes: Sequence[Made] = ()
    depth: int = 0
    pure: bool = True
    what: str = ""
    sent: SentOnce | None = None
    uses: int = 0


def anew(layout: Layout) -> Made:
    """A stand-in without operands."""
    return Made()


class Nesting(NamedTuple):
    """A block: whether it is the body of a loop, the number of loops around it, and the outer block."""

    block: Any
    turns: bool
    depth: int
    outer: Nesting | None


@dataclass(slots=True, eq=False)
class SentOnce:
    """A collective, before its number of executions is known."""

    kind: str
    pieces: Pieces
    group: int
    bytes: int
    permutes: bool
    place: Nesting


class Inner(NamedTuple):
    """A collective within the computation of an op, and the result that it gives; -1 if the op uses it
    itself."""

    kind: str
    pieces: Pieces
    group: int
    bytes: int
    permutes: bool
    result: int


class Template(NamedTuple):
    """The effects of computing an op in a way: how often it uses each operand, what it sends, and whether all
    its other ops disappear with their last use."""

    uses: tuple[int, ...]
    sends: tuple[Inner, ...]
    pure: bool


def sendings(
    sent: Sequence[Made], times: Callable[[Any], tuple[int | None, int]]
) -> tuple[Sending, ...] | None:
    """The collectives that are used, as ``finishing.passes.erase_unused`` keeps them. None if several
    permutations may be merged. ``times`` says how often a block runs."""
    used = list[SentOnce]()
    for made in reversed(sent):
        if made.uses and made.sent:
            used.append(made.sent)
            continue
        waiting = [made]
        while waiting:
            gone = waiting.pop()
            for source in gone.takes:
                source.uses -= 1
            for source in gone.takes:
                if source.pure and not source.uses and source not in waiting:
                    waiting.append(source)
    if sum(each.permutes for each in used) > 1:
        return None
    known, found = dict[int, tuple[int | None, int]](), list[Sending]()
    for each in reversed(used):
        if id(each.place) not in known:
            known[id(each.place)] = times(each.place.block)
        found.append(Sending(each.kind, each.pieces, each.group, each.bytes, *known[id(each.place)]))
    return tuple(found)


def may_repeat(sent: Sequence[Made]) -> bool:
    """Whether a collective may send the same as an earlier one in its block: ops of the same names make both
    from the same values. Only the ops of the written program tell for certain."""
    numbers, keys, seen = dict[int, int](), dict[tuple[Any, ...], int](), set[tuple[int, int]]()
    for made in sent:
        waiting = [made]
        while waiting:
            if id(one := waiting[-1]) in numbers:
                waiting.pop()
                continue
            if left := [source for source in one.takes if id(source) not in numbers]:
                waiting += left
                continue
            # Values without an op, such as arguments, equal no others. Ops without operands may be equal.
            alone = id(one) if not (one.takes or one.pure or one.what) else None
            key = one.what, alone, *[numbers[id(source)] for source in one.takes]
            numbers[id(one)] = keys.setdefault(key, len(keys))
            waiting.pop()
        assert made.sent is not None
        place = id(made.sent.place), numbers[id(made)]
        if place in seen:
            return True
        seen.add(place)
    return False
