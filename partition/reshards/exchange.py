"""Halo exchanges: each device gets a stretch of a dimension that reaches into other parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

Pair = tuple[int, int]  # the part that sends, the part that receives


@dataclass(frozen=True)
class Round:
    """One collective-permute of an exchange. Each part sends ``rows`` rows to another, from an offset in its
    own part to an offset in the receiver's stretch."""

    rows: int
    pairs: tuple[Pair, ...]
    sources: tuple[int, ...]  # of each pair
    places: tuple[int, ...]


@dataclass(frozen=True)
class Exchange:
    """The rounds that bring every part the ``length`` rows from its start on. ``own`` are rows that it has
    already."""

    starts: tuple[int, ...]  # of each part, in rows of the whole dimension
    length: int
    own: Round | None
    rounds: tuple[Round, ...]

    @property
    def every(self) -> tuple[Round, ...]:
        """The own rows of a part's stretch as a round of their own, and the rounds."""
        return (*([self.own] if self.own else ()), *self.rounds)

    @cached_property
    def aligned(self) -> tuple[Round, ...]:
        """All rounds, in the order of their rows, if these are adjacent and at the same places on all
        receivers, as in most exchanges with neighbours. Otherwise none."""
        own = self.own
        if own and len(own.pairs) != len(self.starts):
            return ()
        rounds = sorted(self.every, key=lambda each: each.places)
        at = 0
        for each in rounds:
            if len({*each.sources}) != 1 or len({*each.places}) != 1 or each.places[0] < at:
                return ()
            at = each.places[0] + each.rows
        return tuple(rounds) if at <= self.length else ()

    @property
    def margins(self) -> tuple[int, int]:
        """Rows before and after the stretch that are also written: by rows beyond the needed ones, and by
        devices that get nothing in a round."""
        before = behind = 0
        for each in self.every:
            idle = each.rows if len(each.pairs) < len(self.starts) else 0
            before = max(before, idle, -min(each.places))
            behind = max(behind, max(each.places) + each.rows - self.length)
        return before, behind

    @property
    def rows(self) -> float:
        """The mean number of rows that a device sends. Few devices send in some rounds."""
        return sum(each.rows * len(each.pairs) for each in self.rounds) / len(self.starts)

    @property
    def turns(self) -> float:
        """The mean number of sends of a device."""
        return sum(len(each.pairs) for each in self.rounds) / len(self.starts)

    @cached_property
    def busy(self) -> npt.NDArray[np.int64]:
        """The number of sends, and of receives, of each part."""
        pairs = np.asarray([pair for each in self.rounds for pair in each.pairs], np.int64).reshape(-1, 2)
        return np.stack([np.bincount(ends, minlength=len(self.starts)) for ends in pairs.T])


@lru_cache(maxsize=1024)
def plan_exchange(
    size: int, parts: int, starts: tuple[int, ...], length: int, ends: tuple[int, ...], begin: int = 0
) -> Exchange:
    """The exchange of a dimension of ``size`` rows in ``parts`` parts. Part i needs ``length`` rows from
    ``starts[i]`` on, as far as they are between ``begin`` and ``ends[i]``. Rows outside of the dimension
    belong to no part.

    In a round, parts send to those at one distance; or, if that is fewer rows, each to the next one that
    still lacks rows.
    """
    tile = -(-size // parts)
    overlaps: dict[Pair, tuple[int, int]] = {}
    first: dict[int, int] = {}
    for target, start in enumerate(starts):
        low, high = max(start, begin), min(start + length, size, ends[target])
        for source in range(low // tile, -(-high // tile)) if low < high else ():
            overlaps[source, target] = max(low, source * tile), min(high, (source + 1) * tile)
            first.setdefault(target, source)
    own = {pair: where for pair, where in overlaps.items() if pair[0] == pair[1]}
    others = {pair: where for pair, where in overlaps.items() if pair[0] != pair[1]}
    by_distance, by_turn = dict[int, list[Pair]](), dict[int, list[Pair]]()
    for source, target in others:
        by_distance.setdefault(source - target, []).append((source, target))
        by_turn.setdefault(source - first[target], []).append((source, target))
    ways = [by_distance]
    if all(len({source for source, _ in pairs}) == len(pairs) for pairs in by_turn.values()):
        ways.append(by_turn)
    plans = []
    for way in ways:
        each = (_round(tile, starts, {p: others[p] for p in pairs}) for _, pairs in sorted(way.items()))
        plans.append(tuple(each))
    rounds = min(plans, key=lambda way: (sum(r.rows for r in way), len(way)))
    return Exchange(starts, length, _round(tile, starts, own) if own else None, rounds)


def _round(tile: int, starts: Sequence[int], overlaps: dict[Pair, tuple[int, int]]) -> Round:
    """One round, with the same number of rows for all pairs. Rows beyond the overlap are correct as well."""
    rows = max(high - low for low, high in overlaps.values())
    pairs = tuple(sorted(overlaps))
    sources = tuple(min(overlaps[p][0] - p[0] * tile, tile - rows) for p in pairs)
    places = tuple(p[0] * tile + at - starts[p[1]] for p, at in zip(pairs, sources, strict=True))
    return Round(rows, pairs, sources, places)
