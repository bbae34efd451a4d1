"""Independent collectives of a block that can be sent together, and the order of ops in which they are
adjacent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from ....program.mlir.types import Operation

_WINDOW = 256  # the most ops by which a collective is moved, because live ranges grow


@dataclass
class Send:
    """A collective of a block: the number of its op, the key of those that it can be combined with, the bytes
    of its result, the first collective that needs it (``by``), and the number of senders of a permutation."""

    place: int
    key: Hashable
    size: int
    by: int
    senders: int


def each_needs_the_last(needs: Sequence[Sequence[int]], collectives: Collection[int]) -> bool:
    """Whether each collective of a block needs the one before, so that no two are independent."""
    latest, before = list[int](), -1  # for each op the last collective that it needs, or is
    for n, needed in enumerate(needs):
        last = max([latest[m] for m in needed], default=-1)
        if n in collectives:
            if last != before:
                return False
            last = before = n
        latest.append(last)
    return True


def groups_of(
    operations: Sequence[Operation],
    needs: Sequence[Sequence[int]],
    sends: dict[int, Send],
    fits: Callable[[list[Any], Any], bool],
    most: int,
) -> list[list[int]]:
    """The collectives of a block that become one, in order, by number.

    Of the collectives that depend on no other pending one, the one that is needed first runs, with all those
    that it can be combined with: those that one after the other fit to the ones before, up to ``most`` bytes.
    """
    schedule, groups = _Schedule(needs, sends), list[list[int]]()
    while (first := schedule.next()) is not None:
        group, total = [first], first.size
        # Permutations of most devices first: only those of few fit beside these.
        for each in sorted(schedule.alike(first), key=lambda each: -each.senders):
            near = each is not first and abs(each.place - first.place) <= _WINDOW
            small = total + each.size <= most
            if near and small and fits([operations[e.place] for e in group], operations[each.place]):
                group.append(each)
                total += each.size
        places = schedule.run(group)
        if len(group) > 1:
            groups.append(places)
    return groups


class _Schedule:
    """The ops of a block in an order in which each follows those that it needs. All ops but collectives run
    as soon as they can."""

    def __init__(self, needs: Sequence[Sequence[int]], sends: dict[int, Send]) -> None:
        self._sends = sends
        self._users = list[list[int]]([] for _ in needs)
        for n, needed in enumerate(needs):
            for m in needed:
                self._users[m].append(n)
        self._missing = [len(needed) for needed in needs]
        self._ready: dict[Hashable, dict[int, Send]] = defaultdict(dict)  # collectives, by key and number
        self._queue: list[tuple[int, int]] = []  # the same, by the collective that needs each first
        first_ones = list[int]()
        for n, needed in enumerate(needs):
            if not needed:
                self._reach(n, first_ones)
        self._go_on(first_ones)

    def next(self) -> Send | None:
        """Of the collectives that can run, the one that is needed first; None at the end."""
        while self._queue:
            first = self._sends[heappop(self._queue)[1]]
            if first.place in self._ready[first.key]:
                return first
        return None

    def alike(self, first: Send) -> Iterable[Send]:
        """The collectives that can run, and that can be combined with one of them: it is among these."""
        return self._ready[first.key].values()

    def run(self, group: Sequence[Send]) -> list[int]:
        """Runs collectives, and all ops up to the next ones. Returns the numbers of the group, in order."""
        for each in group:
            del self._ready[each.key][each.place]
        places = sorted(each.place for each in group)
        self._go_on([*places])
        return places

    def _go_on(self, waiting: list[int]) -> None:
        """Runs ops whose needs are met, and those that become ready, up to the next collectives."""
        while waiting:
            for n in self._users[waiting.pop()]:
                self._missing[n] -= 1
                if not self._missing[n]:
                    self._reach(n, waiting)

    def _reach(self, n: int, waiting: list[int]) -> None:
        each = self._sends.get(n)
        if each is None:
            waiting.append(n)
        else:
            self._ready[each.key][n] = each
            heappush(self._queue, (each.by, n))


def reorder(
    operations: Sequence[Operation], needs: Sequence[Sequence[int]], groups: Sequence[Sequence[int]]
) -> None:
    """Reorders the ops of a block so that each group is adjacent, at the first use of any of its results."""
    group_of = {n: group for group in groups for n in group}
    last, order, done = len(operations) - 1, list[int](), [False] * len(operations)
    for number in range(last):
        waiting = [] if number in group_of else [number]
        while waiting:
            together = group_of.get(waiting[-1], (waiting[-1],))
            missing = [m for n in together for m in needs[n] if not done[m]]
            waiting += reversed(missing)
            if not missing:
                waiting.pop()
                for n in together:
                    if not done[n]:
                        order.append(n)
                        done[n] = True
    _put(operations, order)


def _put(operations: Sequence[Any], order: Sequence[int]) -> None:
    """Reorders ops of a block that are out of place."""
    first, done = 0, [False] * len(operations)  # the first op that does not follow those placed so far
    for n in order:
        while done[first]:
            first += 1
        if n != first:
            operations[n].move_before(operations[first])
        done[n] = True
