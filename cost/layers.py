"""The time of a program by layers: scopes of the source, with repeated ones merged."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..program.folding import REPEAT, Group
from ..program.ids import Item
from ..program.mlir.origins import Origin
from ..runs.records.live import Live

LIMITS = ("compute", "launch", "links", "memory")
_LEAST = 0.01  # of the whole time, for a layer to be named
_DEEPEST = 6  # levels of layers, at most


class TimedOps(NamedTuple):
    """The ops that a device runs, in order: their seconds, limits and origins; and for some, by number, the
    ops of the program that they were written for."""

    seconds: npt.NDArray[np.float64]
    limits: Sequence[str]
    origins: Sequence[Origin]
    serves: Mapping[int, Item]


@dataclass(frozen=True)
class Layer:
    """A part of the program that occurs ``times`` times in a row; the seconds of all occurrences by limit;
    and its own parts that take at least a hundredth of the whole time. Parts of repeated layers count all
    occurrences."""

    label: str
    times: int
    limited: Mapping[str, float]
    parts: tuple[Layer, ...]

    @property
    def seconds(self) -> float:
        """The seconds of all occurrences."""
        return sum(self.limited.values())

    def as_json(self) -> dict[str, Any]:
        """The fields as a JSON document."""
        own = {"label": self.label, "times": self.times, "seconds": self.seconds}
        return {**own, "limited": {**self.limited}, "parts": [part.as_json() for part in self.parts]}


def layers(timed: TimedOps, record: Live) -> tuple[Layer, ...]:
    """The layers of a run's program, in order, of the ops that a device runs."""
    items = record.outline.items
    if not items:  # no result needs any op
        return ()
    groups = record.outline.groups(1)  # a scope of one op may take most of the time
    row = {limited: n * (len(items) + 1) + 1 for n, limited in enumerate(LIMITS)}
    which = np.asarray([row[limited] for limited in timed.limits], np.intp)
    which += np.asarray(_followed(timed, items, record), np.intp)
    seconds = np.bincount(which, timed.seconds, len(LIMITS) * (len(items) + 1)).reshape(len(LIMITS), -1)
    until = seconds.cumsum(axis=1)
    least = _LEAST * until[:, -1].sum()

    def read(turns: Sequence[Sequence[Group]], depth: int) -> tuple[Layer, ...]:
        """The layers among the groups of each of some turns, which are alike."""
        layers_read: list[Layer] = []
        for alike in zip(*turns, strict=True):
            first, *_ = alike
            took = np.sum([until[:, group.end] - until[:, group.first] for group in alike], axis=0)
            if took.sum() < least or depth > _DEEPEST:
                continue
            repeats = first.kind == REPEAT
            inside = [m.members for group in alike for m in (group.members if repeats else (group,))]
            if not first.label:
                layers_read += read(inside, depth)
                continue
            times = len(first.members) if repeats else 1
            limited = dict(zip(LIMITS, took.tolist(), strict=True))
            parts = read(inside, depth + 1)
            if [part.label for part in parts] == [first.label] and 1 in (times, parts[0].times):
                (only,) = parts
                if took.sum() - only.seconds < least:  # it adds nothing
                    times, parts = times * only.times, only.parts
            layers_read.append(Layer(first.label, times, limited, parts))
        return tuple(layers_read)

    return read([groups], 0)


def _followed(timed: TimedOps, items: Sequence[Item], record: Live) -> list[int]:
    """For each op that was written, the op among ``items`` that it was written for. The partitioner
    follows the program's order. Collectives name the op that they serve, and ops between them are matched
    by origin."""
    serving = set(timed.serves.values())
    numbers = {item: n for n, item in enumerate(items) if item in serving}
    number_of = _numbers()
    where: dict[int, list[int]] = {}
    for n, origin in enumerate(record.whole_origins(items)):
        where.setdefault(number_of(origin), []).append(n)
    ahead, limit, serves = list[int](), len(items), timed.serves
    for line in reversed(range(len(timed.origins))):
        if line in serves:
            limit = min(limit, numbers.get(serves[line], limit))
        ahead.append(limit)
    written_for, at = list[int](), 0
    for line, (origin, limit) in enumerate(zip(timed.origins, reversed(ahead), strict=True)):
        item = serves.get(line)
        if item is not None and item in numbers:
            written_for.append(numbers[item])
            at = max(at, written_for[-1]) if written_for[-1] <= limit else at
            continue
        places = where.get(number_of(origin), ())
        n = bisect_left(places, at)
        if n < len(places) and places[n] <= limit:
            at = places[n]
        written_for.append(at)
    return written_for


def _numbers() -> Callable[[Origin | None], int]:
    """Numbers for origins, equal for equal ones. Most are the same objects, which is quick to see."""
    numbers: dict[Origin | None, int] = {}
    seen: dict[int, tuple[Origin | None, int]] = {}  # which keeps them, so that no other gets the same id

    def number_of(origin: Origin | None) -> int:
        numbered = seen.get(id(origin))
        if numbered is None:
            numbered = seen[id(origin)] = origin, numbers.setdefault(origin, len(numbers))
        return numbered[1]

    return number_of
