"""The time of a program by layers: scopes of the source, with repeated ones merged."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..program.folding import REPEAT, Group
from ..program.ids import Item
from ..program.mlir.origins import Origin
from ..runs.groups import ordered
from ..runs.records.live import Live

LIMITS = ("compute", "launch", "links", "memory")
_LEAST = 0.01  # of the whole time, for a layer to be named
_DEEPEST = 6  # levels of layers, at most


class TimedOp(NamedTuple):
    """An op that a device runs: its origin, its seconds, its limit, and the op of the program that it was
    written for, if known."""

    origin: Origin
    seconds: float
    limited: str
    item: Item | None = None


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


def layers(lines: Sequence[TimedOp], record: Live) -> tuple[Layer, ...]:
    """The layers of a run's program, in order; ``lines`` are the ops that a device runs."""
    program = ordered(record, 1)  # a scope of one op may take most of the time
    items, groups = program.items, program.groups
    if not items:  # no result needs any op
        return ()
    seconds = np.zeros((len(LIMITS), len(items) + 1))
    for line, at in zip(lines, _followed(lines, items, record), strict=True):
        seconds[LIMITS.index(line.limited), at + 1] += line.seconds
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


def _followed(lines: Sequence[TimedOp], items: Sequence[Item], record: Live) -> list[int]:
    """For each op that was written, the op among ``items`` that it was written for. The partitioner
    follows the program's order. Collectives name the op that they serve, and ops between them are matched
    by origin."""
    numbers = {item: n for n, item in enumerate(items)}
    where: dict[Origin | None, list[int]] = {}
    for n, item in enumerate(items):
        where.setdefault(record.whole_origin(item), []).append(n)
    ahead, limit = list[int](), len(items)
    for line in reversed(lines):
        if line.item is not None:
            limit = min(limit, numbers.get(line.item, limit))
        ahead.append(limit)
    written_for, at = list[int](), 0
    for line, limit in zip(lines, reversed(ahead), strict=True):
        if line.item is not None and line.item in numbers:
            written_for.append(numbers[line.item])
            at = max(at, written_for[-1]) if written_for[-1] <= limit else at
            continue
        places = where.get(line.origin, ())
        n = bisect_left(places, at)
        if n < len(places) and places[n] <= limit:
            at = places[n]
        written_for.append(at)
    return written_for
