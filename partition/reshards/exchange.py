"""Halo exchanges: each device gets a stretch of a dimension that reaches into the parts of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

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
    def every(self) -> tuple[Round, ...]:
        """What a part has of its stretch, as a round of its own, and the rounds."""
        return (*([self.own] if self.own else ()), *self.rounds)

    @cached_property
    def aligned(self) -> tuple[Round, ...]:
        """All rounds, in the order in which their rows lie, if these lie beside each other and at the same
        places on all devices that get them, as in most exchanges with neighbours; else none."""
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
        """So many rows before the stretch and behind it are written to: by rows beyond what is needed, and by
        devices that get nothing in a round."""
        before = behind = 0
        for each in self.every:
            idle = each.rows if len(each.pairs) < len(self.starts) else 0
            before = max(before, idle, -min(each.places))
            behind = max(behind, max(each.places) + each.rows - self.length)
        return before, behind

    @property
    def rows(self) -> float:
        """The rows that a device sends in the mean: there are rounds in which few of them do."""
        return sum(each.rows * len(each.pairs) for each in self.rounds) / len(self.starts)

    @property
    def turns(self) -> float:
        """How often a device sends in the mean."""
        return sum(len(each.pairs) for each in self.rounds) / len(self.starts)

    @cached_property
    def busy(self) -> npt.NDArray[np.int64]:
        """How often each part is sent from, and how often each gets something."""
        pairs = np.asarray([pair for each in self.rounds for pair in each.pairs], np.int64).reshape(-1, 2)
        return np.stack([np.bincount(ends, minlength=len(self.starts)) for ends in pairs.T])


@cache
def plan_exchange(
    size: int, parts: int, starts: tuple[int, ...], length: int, ends: tuple[int, ...], begin: int = 0
) -> Exchange:
    """The exchange of a dimension of ``size`` rows in ``parts`` parts, of which part i needs ``length``
    rows from ``starts[i]`` on, as far as they are in the range from ``begin`` to ``ends[i]``. Rows outside of
    the dimension belong to no part.

    Parts send to those at one distance in a round, or, where that is fewer rows, each to the next one
    that is not served yet.
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


def received(
    builder: Builder, value: Any, dim: int, pieces: Pieces, plan: Exchange, each: Round, start: Any
) -> Any:
    """The rows that a device gets in a round of an exchange, of which each sends those from a start on."""
    sent = builder.rows(value, dim, start, each.rows)
    if each is plan.own:
        return sent
    groups = builder.axes.groups(pieces)
    pairs = np.asarray([(row[a], row[b]) for row in groups for a, b in each.pairs], dtype=np.int64)
    elements = float(prod(shape_of(sent)))
    return builder.collective("collective_permute", sent, sent.type, pieces, elements, pairs=pairs)


def exchange(builder: Builder, value: Any, dim: int, pieces: Pieces, plan: Exchange) -> Any:
    """The stretch of every device; rows that belong to no part are zero."""
    if plan.aligned:
        rows = [
            (r.places[0], received(builder, value, dim, pieces, plan, r, r.sources[0])) for r in plan.aligned
        ]
        return beside(builder, rows, dim, plan.length)
    shape, count, index = shape_of(value), len(plan.starts), builder.axes.index(pieces)
    if not plan.every:
        return builder.zero(element_of(value), _resized(shape, dim, plan.length))
    before, behind = plan.margins
    found = None
    for each in plan.every:
        sources, places = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for (source, target), at, place in zip(each.pairs, each.sources, each.places, strict=True):
            sources[source], places[target] = at, place + before
        sent = received(builder, value, dim, pieces, plan, each, builder.lookup(sources[index]))
        # What a device gets in no round it puts before the stretch.
        if found is None:  # no zeros are made, which XLA would hold from the beginning
            found = cut_out(builder, sent, dim, -places, before + plan.length + behind, index)
        else:
            starts: list[Any] = [0] * len(shape)
            starts[dim] = builder.lookup(places[index])
            found = builder.put(found, sent, starts)
    return builder.rows(found, dim, before, plan.length)


def _resized(shape: Sequence[int], dim: int, size: int) -> list[int]:
    return [*shape[:dim], size, *shape[dim + 1 :]]


def beside(builder: Builder, rows: Sequence[tuple[int, Any]], dim: int, length: int) -> Any:
    """A stretch of rows that lie beside each other, from their places on, and zeros between them."""
    found, at = list[Any](), 0
    shape, element = shape_of(rows[0][1]), element_of(rows[0][1])
    for place, value in (*rows, (length, None)):
        if place > at:
            found.append(builder.zero(element, _resized(shape, dim, place - at)))
        if value is not None:
            found.append(value)
            at = place + shape_of(value)[dim]
    if len(found) == 1:
        return found[0]
    type_ = builder.tensor(_resized(shape, dim, length), element)
    return builder.one("stablehlo.concatenate", found, type_, {"dimension": builder.integer(dim)})


def cut_out(
    builder: Builder, value: Any, dim: int, starts: npt.ArrayLike, length: int, index: npt.NDArray[np.int64]
) -> Any:
    """The ``length`` rows from the start of each part on, cut from a dimension that all devices have whole,
    and zeros beyond it. ``index``: the part of each device."""
    shape = shape_of(value)
    begins = np.clip(starts, -length, shape[dim])  # farther away there is nothing either
    before, after = max(0, -begins.min()), max(0, begins.max() + length - shape[dim])
    low, high = ([int(n) if d == dim else 0 for d in range(len(shape))] for n in (before, after))
    begin = builder.lookup((begins + before)[index])
    return builder.rows(builder.pad(value, low, high), dim, begin, length)
