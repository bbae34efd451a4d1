"""Halo exchanges: each device gets a stretch of a dimension that reaches into the parts of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..building import Builder, element_of, shape_of
from ..layouts import Pieces

Pair = tuple[int, int]  # the part that sends, the part that receives


@dataclass(frozen=True)
class Round:
    """One collective-permute of an exchange: each part sends ``rows`` rows to another, from an offset in
    its own part to an offset in the stretch of the receiver."""

    rows: int
    pairs: tuple[Pair, ...]
    sources: tuple[int, ...]  # of each pair
    places: tuple[int, ...]


@dataclass(frozen=True)
class Exchange:
    """The rounds by which every part gets the ``length`` rows from its start on. ``own`` are the rows that
    it has."""

    starts: tuple[int, ...]  # of each part, in rows of the whole dimension
    length: int
    own: Round | None
    rounds: tuple[Round, ...]

    @property
    def rows(self) -> float:
        """The rows that a device sends in the mean: there are rounds in which few of them do."""
        return sum(each.rows * len(each.pairs) for each in self.rounds) / len(self.starts)

    @property
    def turns(self) -> float:
        """How often a device sends in the mean."""
        return sum(len(each.pairs) for each in self.rounds) / len(self.starts)


@cache
def plan_exchange(
    size: int, parts: int, starts: tuple[int, ...], length: int, end: int, begin: int = 0
) -> Exchange:
    """The exchange of a dimension of ``size`` rows in ``parts`` parts, of which part i needs ``length``
    rows from ``starts[i]`` on, as far as they are in the range from ``begin`` to ``end``. Rows outside of the
    dimension belong to no part.

    Parts send to those at one distance in a round, or, where that is fewer rows, each to the next one
    that is not served yet.
    """
    tile = -(-size // parts)
    overlaps: dict[Pair, tuple[int, int]] = {}
    first: dict[int, int] = {}
    for target, start in enumerate(starts):
        low, high = max(start, begin), min(start + length, size, end)
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
    found = []
    for way in ways:
        each = (_round(tile, starts, {p: others[p] for p in pairs}) for _, pairs in sorted(way.items()))
        found.append(tuple(each))
    rounds = min(found, key=lambda way: (sum(r.rows for r in way), len(way)))
    return Exchange(starts, length, _round(tile, starts, own) if own else None, rounds)


def _round(tile: int, starts: Sequence[int], overlaps: dict[Pair, tuple[int, int]]) -> Round:
    """One round, with the same number of rows for all pairs: rows beyond the overlap are correct where they
    land, too."""
    rows = max(high - low for low, high in overlaps.values())
    pairs = tuple(sorted(overlaps))
    sources = tuple(min(overlaps[p][0] - p[0] * tile, tile - rows) for p in pairs)
    places = tuple(p[0] * tile + at - starts[p[1]] for p, at in zip(pairs, sources, strict=True))
    return Round(rows, pairs, sources, places)


def exchange(builder: Builder, value: Any, dim: int, size: int, pieces: Pieces, plan: Exchange) -> Any:
    """The stretch of every device; rows that belong to no part are zero."""
    index, shape = builder.axes.index(pieces), shape_of(value)
    rounds = [*([plan.own] if plan.own else []), *plan.rounds]
    margin = max((each.rows for each in rounds), default=0)
    wide = [*shape[:dim], plan.length + 2 * margin, *shape[dim + 1 :]]
    found = builder.zero(element_of(value), wide)
    per_row = int(np.prod([n for d, n in enumerate(shape) if d != dim], dtype=np.int64))
    groups = builder.axes.groups(pieces)
    for each in rounds:
        sources, places = np.zeros(groups.shape[1], np.int64), np.zeros(groups.shape[1], np.int64)
        for (source, target), at, place in zip(each.pairs, each.sources, each.places, strict=True):
            sources[source], places[target] = at, place + margin
        starts: list[Any] = [0] * len(shape)
        starts[dim] = builder.lookup(sources[index])
        sent = builder.cut(value, starts, [*shape[:dim], each.rows, *shape[dim + 1 :]])
        if each is not plan.own:
            pairs = np.asarray([(row[a], row[b]) for row in groups for a, b in each.pairs], dtype=np.int64)
            sent = builder.collective(
                "collective_permute", sent, sent.type, pieces, float(each.rows * per_row), pairs=pairs
            )
        # What a device gets in no round it puts into the margin.
        starts[dim] = builder.lookup(places[index])
        found = builder.put(found, sent, starts)
    starts = [margin if d == dim else 0 for d in range(len(shape))]
    return builder.cut(found, starts, [*shape[:dim], plan.length, *shape[dim + 1 :]])


def cut_out(builder: Builder, value: Any, dim: int, plan: Exchange, index: Any) -> Any:
    """The stretch of every device, cut from a dimension that all have whole. ``index``: the part of each."""
    shape = shape_of(value)
    before = max(0, -min(plan.starts))
    after = max(0, max(plan.starts) + plan.length - shape[dim])
    low, high = ([n if d == dim else 0 for d in range(len(shape))] for n in (before, after))
    starts: list[Any] = [0] * len(shape)
    starts[dim] = builder.lookup((np.asarray(plan.starts) + before)[index])
    sizes = [plan.length if d == dim else n for d, n in enumerate(shape)]
    return builder.cut(builder.pad(value, low, high), starts, sizes)
