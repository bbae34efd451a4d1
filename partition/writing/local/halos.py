"""Writes halo exchanges, as ``reshards/exchange.py`` plans them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ....program.mlir.types import Value
from ...layouts import Pieces
from ...reshards.exchange import Exchange, Round
from ..building import Builder, element_of, shape_of


def received(
    builder: Builder, value: Value, dim: int, pieces: Pieces, plan: Exchange, each: Round, start: Any
) -> Any:
    """The rows that a device gets in a round of an exchange, in which each sends its rows from a start on."""
    sent = builder.rows(value, dim, start, each.rows)
    if each is plan.own:
        return sent
    groups = builder.axes.groups(pieces)
    pairs = np.asarray([(row[a], row[b]) for row in groups for a, b in each.pairs], dtype=np.int64)
    elements = float(prod(shape_of(sent)))
    return builder.collective("collective_permute", sent, sent.type, pieces, elements, pairs=pairs)


def exchange(builder: Builder, value: Value, dim: int, pieces: Pieces, plan: Exchange) -> Any:
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
    stretch: Any = None
    for each in plan.every:
        sources, places = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for (source, target), at, place in zip(each.pairs, each.sources, each.places, strict=True):
            sources[source], places[target] = at, place + before
        sent = received(builder, value, dim, pieces, plan, each, builder.lookup(sources[index]))
        # Rows of a round in which a device gets nothing go before the stretch.
        if stretch is None:  # no zeros are made, which XLA would keep from the beginning
            stretch = cut_out(builder, sent, dim, -places, before + plan.length + behind, index)
        else:
            starts: list[Any] = [0] * len(shape)
            starts[dim] = builder.lookup(places[index])
            stretch = builder.put(stretch, sent, starts)
    return builder.rows(stretch, dim, before, plan.length)


def _resized(shape: Sequence[int], dim: int, size: int) -> list[int]:
    return [*shape[:dim], size, *shape[dim + 1 :]]


def beside(builder: Builder, rows: Sequence[tuple[int, Any]], dim: int, length: int) -> Any:
    """A stretch of adjacent groups of rows at their places, with zeros between them."""
    pieces, at = list[Any](), 0
    shape, element = shape_of(rows[0][1]), element_of(rows[0][1])
    for place, value in (*rows, (length, None)):
        if place > at:
            pieces.append(builder.zero(element, _resized(shape, dim, place - at)))
        if value is not None:
            pieces.append(value)
            at = place + shape_of(value)[dim]
    if len(pieces) == 1:
        return pieces[0]
    type_ = builder.tensor(_resized(shape, dim, length), element)
    return builder.one("stablehlo.concatenate", pieces, type_, {"dimension": builder.integer(dim)})


def cut_out(
    builder: Builder, value: Value, dim: int, starts: npt.ArrayLike, length: int, index: npt.NDArray[np.int64]
) -> Any:
    """The ``length`` rows from the start of each part on, sliced from a dimension that all devices have
    whole, with zeros beyond it. ``index``: the part of each device."""
    shape = shape_of(value)
    begins = np.clip(starts, -length, shape[dim])  # farther away there are no rows either
    before, after = max(0, -begins.min()), max(0, begins.max() + length - shape[dim])
    low, high = ([int(n) if d == dim else 0 for d in range(len(shape))] for n in (before, after))
    begin = builder.lookup((begins + before)[index])
    return builder.rows(builder.pad(value, low, high), dim, begin, length)
