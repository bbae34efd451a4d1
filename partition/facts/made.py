"""What stands for local values where no program is written: what each is made of, and what is sent for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..layouts import Layout, Pieces


class Sending(NamedTuple):
    """A collective of a plan: its kind, the pieces of axes it goes over (none for a permutation of parts),
    the devices of a group, and the bytes that a device sends each time; and how often it does, None where a
    loop does not say how many turns it takes, and if such take one turn."""

    kind: str
    pieces: Pieces
    group: int
    bytes: int
    known: int | None
    often: int


@dataclass(slots=True, eq=False)
class Made:
    """What stands for local values: what makes them ``takes`` others, and has so many ``uses``; ``depth``
    says in how many of the loops around it they change from turn to turn. What is ``pure`` goes with its last
    use. ``what``: the name of the op or step that makes them. ``sent``: the collective that does."""

    takes: Sequence[Made] = ()
    depth: int = 0
    pure: bool = True
    what: str = ""
    sent: SentOnce | None = None
    uses: int = 0


def anew(layout: Layout) -> Made:
    """What stands for what is made of nothing."""
    return Made()


class Place(NamedTuple):
    """A block: whether it is the body of a loop, in how many such it is, and the block around it."""

    block: Any
    turns: bool
    depth: int
    outer: Place | None


@dataclass(slots=True, eq=False)
class SentOnce:
    """A collective, before it is known how often it runs."""

    kind: str
    pieces: Pieces
    group: int
    bytes: int
    permutes: bool
    place: Place


class Inner(NamedTuple):
    """A collective within the way to compute an op: which result it is; -1 for one that the op uses
    itself."""

    kind: str
    pieces: Pieces
    group: int
    bytes: int
    permutes: bool
    result: int


class Template(NamedTuple):
    """What a way to compute an op does: how often it uses each operand, what it sends, and whether all else
    in it goes with its last use."""

    uses: tuple[int, ...]
    sends: tuple[Inner, ...]
    pure: bool


def sendings(
    sent: Sequence[Made], times: Callable[[Any], tuple[int | None, int]]
) -> tuple[Sending, ...] | None:
    """The collectives that are used, as ``finishing.passes.erase_unused`` leaves them; None where several
    permutations may become one. ``times``: how often a block runs."""
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
    """Whether a collective may send what one before it in its block does: both are made by ops of the same
    names of the same values. Only who reads the ops of the program knows for certain."""
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
            # What no op makes, as an argument, is like nothing else; what is made of nothing may be alike.
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
