"""Stand-ins for local values while no program is written: their operands, and the collectives behind them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from ...program.ids import Slot
from ..choice.purposes import Purpose
from ..layouts import Layout, Pieces

_LOOK = 3  # operands, and ops behind one another, that are looked at to tell collectives apart


class Sending(NamedTuple):
    """A collective of a plan: its kind, the pieces of axes that it runs over (none for a permutation of
    parts), the devices of a group, and the bytes that a device sends each time. ``executions`` is None inside
    a loop of unknown trip count; ``repeats`` is the number of executions if such loops had one iteration.
    Collectives with one purpose share the function that returns it."""

    kind: str
    pieces: Pieces
    group: int
    bytes: int
    executions: int | None
    repeats: int
    purpose: Callable[[], Purpose]


@dataclass(slots=True, eq=False)
class Made:
    """A stand-in for local values. Its maker ``takes`` other ones, and it has a number of ``uses``. ``depth``
    is the number of surrounding loops in which it changes from iteration to iteration. A ``pure`` one
    disappears with its last use. ``what`` is the name of the op or step that makes it, and ``sent`` the
    collective that does. An argument that a loop carries unchanged is the ``same`` as the loop's operand.
    ``last`` is the last collective that it needs for certain, or is, by number; -1 for none."""

    takes: Sequence[Made] = ()
    depth: int = 0
    pure: bool = True
    what: str = ""
    sent: SentOnce | None = None
    uses: int = 0
    same: Made | None = None
    last: int = -1


def results_of(op: Made, count: int) -> list[Made]:
    """A stand-in for each result of an op that stays after its last use."""
    return [Made((op,), op.depth, pure=False, what=f"result {n}") for n in range(count)]


def anew(layout: Layout) -> Made:
    """A stand-in without operands."""
    return Made()


class Nesting(NamedTuple):
    """A block: whether it is the body of a loop, the number of loops around it, the outer block, and the
    number of collectives before its op."""

    block: Any
    turns: bool
    depth: int
    outer: Nesting | None
    before: int = 0


@dataclass(slots=True, eq=False)
class SentOnce:
    """A collective, before its number of executions is known. If it is moved out of loops, it is ``put``
    before the collective of this number; else -1."""

    kind: str
    pieces: Pieces
    group: int
    bytes: int
    permutes: bool
    place: Nesting
    purpose: Callable[[], Purpose]
    put: int = -1

    def put_before_loops(self, depth: int) -> None:
        """Moves it out of the loops in which its operand is the same in all iterations; the operand changes
        in ``depth`` of them."""
        while self.place.turns and depth < self.place.depth:
            assert self.place.outer is not None
            self.place, self.put = self.place.outer, self.place.before


class Inner(NamedTuple):
    """A collective within the computation of an op, the slot that it serves, and the result that it gives; -1
    if the op uses it itself."""

    kind: str
    pieces: Pieces
    group: int
    bytes: int
    permutes: bool
    slot: Slot
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
    """The collectives that are used, in the order of the program, as ``finishing.passes.erase_unused`` keeps
    them. None if several permutations may be merged. ``times`` says how often a block runs."""
    used = list[tuple[tuple[int, bool, int], SentOnce]]()
    for number, value in reversed(list(enumerate(sent))):
        if value.uses and value.sent:
            put = value.sent.put
            used.append(((number if put < 0 else put, put < 0, number), value.sent))
            continue
        waiting = [value]
        while waiting:
            gone = waiting.pop()
            for source in gone.takes:
                source.uses -= 1
            for source in gone.takes:
                if source.pure and not source.uses and source not in waiting:
                    waiting.append(source)
    if sum(each.permutes for _, each in used) > 1:
        return None
    times_of, sendings = dict[int, tuple[int | None, int]](), list[Sending]()
    for _, each in sorted(used, key=itemgetter(0)):
        if id(each.place) not in times_of:
            times_of[id(each.place)] = times(each.place.block)
        often = times_of[id(each.place)]
        sendings.append(Sending(each.kind, each.pieces, each.group, each.bytes, *often, each.purpose))
    return tuple(sendings)


def is_ordered(sent: Sequence[Made]) -> bool:
    """Whether the order of collectives in the program is known. If some are moved out of loops, they are
    sorted by their place in the module, which has other functions after the main one."""
    once = [result.sent for result in sent if result.sent]
    moved = any(each.put >= 0 for each in once)
    return not moved or len({id(_function(each.place)) for each in once}) < 2


def _function(place: Nesting) -> Nesting:
    while place.outer is not None:
        place = place.outer
    return place


def may_repeat(sent: Sequence[Made]) -> bool:
    """Whether a collective may send the same as an earlier one in its block: ops of the same names make both
    from the same values. Only the ops of the written program tell for certain."""
    looks = set[Hashable]()
    for value in sent:
        assert value.sent is not None
        look = id(value.sent.place), _look(value, _LOOK)
        if look in looks:
            return _do_repeat(sent)
        looks.add(look)
    return False


def _look(value: Made, steps: int) -> Hashable:
    """Equal for values that the same ops make from the same values: some of these ops, and how many operands
    they have."""
    while value.same is not None:
        value = value.same
    sources = [_look(source, steps - 1) for source in value.takes[:_LOOK]] if steps else ()
    return value.what, _alone(value), len(value.takes), *sources


def _alone(value: Made) -> int | None:
    """What tells a value without an op, such as an argument, from all others. Ops without operands may be
    equal."""
    return None if value.takes or value.pure or value.what else id(value)


def _do_repeat(sent: Sequence[Made]) -> bool:
    """The same, after a look at all values that collectives are made from."""
    numbers, keys, seen = dict[int, int](), dict[tuple[Any, ...], int](), set[tuple[int, int]]()
    for value in sent:
        waiting = [value]
        while waiting:
            if id(one := waiting[-1]) in numbers:
                waiting.pop()
                continue
            sources = [one.same] if one.same else one.takes
            if left := [source for source in sources if id(source) not in numbers]:
                waiting += left
                continue
            if one.same:
                numbers[id(one)] = numbers[id(one.same)]
                continue
            key = one.what, _alone(one), *[numbers[id(source)] for source in one.takes]
            numbers[id(one)] = keys.setdefault(key, len(keys))
            waiting.pop()
        assert value.sent is not None
        place = id(value.sent.place), numbers[id(value)]
        if place in seen:
            return True
        seen.add(place)
    return False
