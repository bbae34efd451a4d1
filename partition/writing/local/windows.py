"""Ops whose parts need halos, by ``reads`` in ``rules/partition/local.dl``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ....program.mlir.types import Value
from ...choice.choosing import Stretch, stretch
from ...facts.knowledge import Read
from ...layouts import Pieces
from ...reshards.exchange import Exchange, Round
from ..building import Builder, element_of, shape_of
from .halos import beside, cut_out, exchange, received
from .local import LocalSite, clone, copied, gathered, own, parts, picked_dims


def _pieces(site: LocalSite, read: Read) -> Pieces:
    """The pieces that the dimension is split on whose parts read stretches."""
    return site.pieces(read.part_slot, read.part_dim)


def _stretch(site: LocalSite, read: Read) -> Stretch:
    count = site.builder.axes.product(_pieces(site, read))
    return stretch(read, site.size(read.slot, read.dim), site.size(read.part_slot, read.part_dim), count)


def _split(site: LocalSite, slot: int) -> list[Read]:
    """The stretches of an operand that parts read."""
    return [read for read in site.knowledge.reads if read.slot == slot and _pieces(site, read)]


def _rows(site: LocalSite, value: Value, read: Read, fill: Value | None) -> Any:
    """The rows of an operand for a device's part of the result, with ``fill`` for rows outside of the
    operand."""
    builder, size, pieces = site.builder, site.size(read.slot, read.dim), _pieces(site, read)
    plan, dim = _stretch(site, read).exchange, read.dim
    starts, index = np.asarray(plan.starts), builder.axes.index(pieces)
    if site.pieces(read.slot, dim):
        with site.sends(read.slot):
            rows = exchange(builder, value, dim, pieces, plan)
    else:
        rows = cut_out(builder, value, dim, plan.starts, plan.length, index)
    if fill is not None and (starts.min() < 0 or starts.max() + plan.length > size):
        rows = _inside(builder, rows, dim, size, starts[index], fill)
    return rows


def _fetched(site: LocalSite, value: Value, reads: Sequence[Read], fill: Value | None) -> Any:
    """The elements of an operand for a device's part of the result, with ``fill`` for those outside of the
    operand and between its elements. The fill is added after all rows are sent."""
    builder = site.builder
    for read in reads:
        value = _rows(site, value, read, fill)
    for read in reads:
        plan = _stretch(site, read)
        if plan.dilation > 1:
            index = builder.axes.index(_pieces(site, read))
            value = _spread_out(builder, value, read.dim, plan.dilation, fill)
            start = builder.lookup(np.asarray(plan.offsets)[index])
            value = builder.rows(value, read.dim, start, plan.length)
    return value


def _inside(builder: Builder, value: Value, dim: int, size: int, starts: Any, fill: Any) -> Any:
    """A stretch with ``fill`` outside of the dimension."""
    shape = shape_of(value)
    places = builder.places(shape, dim, builder.lookup(starts))
    return builder.select(builder.within(places, size), value, builder.spread(fill, shape))


def _spread_out(builder: Builder, value: Value, dim: int, dilation: int, fill: Value | None) -> Any:
    """A stretch with dilation - 1 rows of ``fill`` before and after each row."""
    shape = shape_of(value)
    between = [dilation - 1 if d == dim else 0 for d in range(len(shape))]
    attributes = {
        "edge_padding_low": builder.integers(between),
        "edge_padding_high": builder.integers(between),
        "interior_padding": builder.integers(between),
    }
    shape[dim] = (shape[dim] + 1) * dilation - 1
    return builder.one("stablehlo.pad", [value, fill], builder.tensor(shape, element_of(value)), attributes)


def slice_(site: LocalSite, operands: list[Value]) -> list[Any]:
    """The stretch that a device needs, or its share of it, strided."""
    reads, picked = _split(site, 0), picked_dims(site)
    if not reads and not picked:
        return parts(site, operands)
    (value,), builder = operands, site.builder
    starts, limits = (list(site.op.attributes[name]) for name in ("start_indices", "limit_indices"))
    for d in picked:
        begin = starts[d] - builder.axes.index(site.pieces(0, d)) * shape_of(value)[d]
        value = own(site, value, d, builder.lookup(begin), limits[d] - starts[d])
    for d in range(len(starts)):
        if site.pieces(0, d):
            starts[d], limits[d] = 0, shape_of(value)[d]
    value = _fetched(site, value, reads, None)
    for read in reads:
        starts[read.dim], limits[read.dim] = 0, shape_of(value)[read.dim]
    attributes = {"start_indices": builder.integers(starts), "limit_indices": builder.integers(limits)}
    return clone(site, [value], attributes)


def pad(site: LocalSite, operands: list[Value]) -> list[Any]:
    """The stretch that a device needs, with the padding value outside of the operand."""
    reads = _split(site, 0)
    if not reads:
        return parts(site, operands)
    value, fill = operands
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    amounts = {name: list(site.op.attributes[name]) for name in names}
    value = _fetched(site, value, reads, fill)
    for read in reads:
        for name in names:
            amounts[name][read.dim] = 0
    return clone(site, [value, fill], {n: site.builder.integers(v) for n, v in amounts.items()})


def shift(site: LocalSite, operands: list[Value]) -> list[Any]:
    """The stretch that a device needs of an operand that is padded, and then sliced to its former size."""
    (value, fill), split = operands, _split(site, 0)
    value = _fetched(site, value, split, fill)
    low, none = ([0] * len(shape_of(value)) for _ in range(2))
    for read in site.knowledge.reads:
        low[read.dim] = 0 if read in split else read.low
    if not any(low):
        return [value]
    integers = site.builder.integers
    amounts = {
        "edge_padding_low": integers(low),
        "edge_padding_high": integers([-n for n in low]),
        "interior_padding": integers(none),
    }
    return [site.builder.one("stablehlo.pad", [value, fill], value.type, amounts)]


def reverse(site: LocalSite, operands: list[Value]) -> list[Any]:
    """The rows of the mirrored part, reversed."""
    (value,) = operands
    return clone(site, [_fetched(site, value, _split(site, 0), None)])


def concatenate(site: LocalSite, operands: list[Value]) -> list[Any]:
    """The rows of each operand, or of the source of a skipped slice, that belong to a device's part of the
    result."""
    reads = {slot: _split(site, slot) for slot in range(len(operands))}
    if not any(reads.values()):
        return parts(site, [_cut(site, slot, value) for slot, value in enumerate(operands)])
    if (joined := _joined(site, operands)) is not None:
        return [joined]
    all_rows = None
    for slot, value in enumerate(operands):
        for read in reads[slot]:
            stretched = _then(site, read, _fetched(site, value, [read], None))
            all_rows = stretched if all_rows is None else _later(site, read, stretched, all_rows, 0)
    return [all_rows]


def _later(site: LocalSite, read: Read, value: Value, before: Value, at: int) -> Any:
    """The rows of an operand, from row ``at`` of the part on, after those of earlier operands."""
    builder, plan, shape = site.builder, _stretch(site, read).exchange, shape_of(value)
    starts = np.asarray(plan.starts)[builder.axes.index(_pieces(site, read))] + (at - read.first)
    places = builder.places(shape, read.dim, builder.lookup(starts))
    own = builder.compare("GE", places, builder.zero(builder.i32, shape))
    return builder.select(own, value, before)


def _joined(site: LocalSite, operands: list[Value]) -> Any | None:
    """The rows of all operands side by side, if those of each are at the same places on all devices, and
    these places are distinct or equal; otherwise None."""
    reads = [read for slot in range(len(operands)) for read in _split(site, slot)]
    each = [(read, _stretch(site, read).exchange) for read in reads]
    if len({read.dim for read in reads}) != 1 or len(reads) != len(operands):
        return None
    if not all(plan.aligned and site.pieces(read.slot, read.dim) for read, plan in each):
        return None
    spans: dict[tuple[int, int], list[tuple[Read, Exchange, Round]]] = {}
    for read, plan in each:
        for r in plan.aligned:
            spans.setdefault((r.places[0], r.rows), []).append((read, plan, r))
    dim, rows = reads[0].dim, list[tuple[int, Any]]()
    if any(place < before + size for (before, size), (place, _) in pairwise(sorted(spans))):
        return None
    for (place, _), several in sorted(spans.items()):
        joined = None
        for read, plan, r in several:
            value, pieces = operands[read.slot], _pieces(site, read)
            with site.sends(read.slot):
                got = received(site.builder, value, dim, pieces, plan, r, r.sources[0])
            got = _then(site, read, got)
            joined = got if joined is None else _later(site, read, got, joined, place)
        rows.append((place, joined))
    return beside(site.builder, rows, dim, each[0][1].length)


def _cut(site: LocalSite, slot: int, value: Value) -> Any:
    """The source of a skipped slice, sliced."""
    for read in site.knowledge.reads:
        if read.slot == slot and read.last is not None:
            value = _then(site, read, site.builder.rows(value, read.dim, read.first, read.last - read.first))
    return value


def _then(site: LocalSite, read: Read, value: Value) -> Any:
    """Rows of a source, after the op that is applied to them."""
    return site.builder.one(read.then, [value], value.type) if read.then else value


def reduce_window(site: LocalSite, operands: list[Value]) -> list[Any]:
    """The windows over the stretch that a device needs, with the neutral element outside of the operand."""
    count = len(site.op.results)
    if any(read.accumulates for read in _split(site, 0)):
        return _accumulated(site, operands)
    values, reset = list(operands), set[int]()
    for slot in range(count):
        reads = _split(site, slot)
        values[slot] = _fetched(site, values[slot], reads, operands[count + slot])
        reset.update(read.dim for read in reads)
    if not reset:
        return parts(site, operands)
    rank = len(shape_of(operands[0]))
    return clone(site, values, _unpadded(site, range(rank), reset, "base_dilations"))


def _accumulated(site: LocalSite, operands: list[Value]) -> list[Any]:
    """A cumulative op along a dimension, starting from the total of earlier parts. The total comes before the
    first of a device's own elements, or after the last one if it accumulates from the end."""
    (read,), builder, count = _split(site, 0), site.builder, len(site.op.results)
    dim, pieces, forwards = read.dim, site.pieces(0, read.dim), read.low > 0
    values, initial = [site.filled(operands, slot) for slot in range(count)], operands[count:]
    if not pieces:
        size = site.size(0, dim)
        windows = _windows(site, dim, values, initial, *((size - 1, 0) if forwards else (0, size - 1)))
        divided = _pieces(site, read)
        return [builder.part(each, dim, builder.axes.tile(size, divided), divided) for each in windows]
    totals = list[Any]()
    for slot, total in enumerate(_windows(site, dim, values, initial)):
        with site.sends(slot):
            totals.append(gathered(builder, total, pieces, dim))
    rows, tile = shape_of(totals[0]), shape_of(values[0])[dim]
    places = builder.places(rows, dim, builder.number(0))
    own = builder.spread(builder.lookup(builder.axes.index(pieces)), rows)
    others = builder.compare("LT" if forwards else "GT", places, own)
    totals = [
        builder.select(others, total, builder.spread(fill, rows))
        for total, fill in zip(totals, initial, strict=True)
    ]
    joined = list[Any]()
    for value, window in zip(values, _windows(site, dim, totals, initial), strict=True):
        both = [(0, window), (1, value)] if forwards else [(0, value), (tile, window)]
        joined.append(beside(builder, both, dim, tile + 1))
    # With the total of the others as a row: XLA adds up once if each window holds everything before it.
    windows = _windows(site, dim, joined, initial, *((tile, 0) if forwards else (0, tile)))
    return [builder.rows(each, dim, int(forwards), tile) for each in windows]


def _windows(
    site: LocalSite, dim: int, values: Sequence[Value], initial: Sequence[Value], low: int = 0, high: int = 0
) -> list[Any]:
    """The op with windows over all of a dimension, and this padding around it."""
    builder, shape = site.builder, shape_of(values[0])
    padding = np.zeros((len(shape), 2), np.int64)
    padding[dim] = low, high
    copy = copied(site)
    for i, value in enumerate((*values, *initial)):
        copy.operands[i] = value
    sizes = [n if d == dim else 1 for d, n in enumerate(shape)]
    copy.attributes["window_dimensions"] = builder.integers(sizes)
    copy.attributes["padding"] = builder.dense(padding)
    shape[dim] = 1 + low + high
    for result in copy.results:
        result.set_type(builder.tensor(shape, element_of(result)))
    return list(copy.results)


def select_and_scatter(site: LocalSite, operands: list[Value]) -> list[Any]:
    """The windows that reach into a device's part of the operand, with their elements of the source; and the
    part of the result.

    A row outside of the operand repeats the nearest one inside, and elements that it receives go to that one.
    So windows select as if it did not exist, even if all of their elements are infinite, or NaN.
    """
    value, source, initial = operands
    reads = _split(site, 0)
    if not reads:
        return parts(site, operands)
    builder, name, own = site.builder, site.knowledge.combine, list[tuple[int, Any, int]]()
    neutral, edges = builder.neutral(name, element_of(value)), list[_Edges]()
    for read, given in zip(reads, _split(site, 1), strict=True):
        dim, size, pieces = read.dim, site.size(0, read.dim), _pieces(site, read)
        value = _rows(site, value, read, None)
        source = _rows(site, source, given, neutral)
        index, tile = builder.axes.index(pieces), builder.axes.tile(size, pieces)
        starts = np.asarray(_stretch(site, read).exchange.starts)[index]
        own.append((dim, index * tile - starts, tile))
        end = (site.size(1, dim) - 1) * read.stride - read.low + read.extent  # of the last window
        if read.low > 0 or end > size:
            edges.append(_Edges(builder, dim, size, starts))
            value = edges[-1].repeated(value)
    copy = copied(site)
    for i, operand in enumerate((value, source, neutral if edges else initial)):
        copy.operands[i] = operand
    unpadded = _unpadded(site, range(len(shape_of(value))), {read.dim for read in reads}, "base_dilations")
    for label, attribute in unpadded.items():
        copy.attributes[label] = attribute
    (sums,) = copy.results
    sums.set_type(value.type)
    for each in edges:
        sums = each.combined(sums, name, neutral)
    for dim, begins, tile in own:
        sums = builder.rows(sums, dim, builder.lookup(begins), tile)
    return [builder.binary(name, sums, builder.spread(initial, shape_of(sums))) if edges else sums]


@dataclass(frozen=True)
class _Edges:
    """The first and the last row of a dimension of this size, in stretches that begin at ``starts``."""

    builder: Builder
    dim: int
    size: int
    starts: npt.NDArray[np.int64]  # of each device

    def _where(self, direction: str, row: int, shape: Sequence[int]) -> Any:
        builder = self.builder
        places = builder.places(shape, self.dim, builder.lookup(self.starts))
        return builder.compare(direction, places, builder.splat(str(row), builder.i32, shape))

    def _spread(self, row: Any, dims: Sequence[int], shape: Sequence[int]) -> Any:
        attributes = {"broadcast_dimensions": self.builder.integers(dims)}
        type_ = self.builder.tensor(shape, element_of(row))
        return self.builder.one("stablehlo.broadcast_in_dim", [row], type_, attributes)

    def repeated(self, value: Value) -> Any:
        """A tensor with these rows repeated before and after them."""
        shape = shape_of(value)
        for direction, row in (("LT", 0), ("GT", self.size - 1)):
            place = self.builder.lookup(np.clip(row - self.starts, 0, shape[self.dim] - 1))
            edge = self._spread(self.builder.rows(value, self.dim, place, 1), range(len(shape)), shape)
            value = self.builder.select(self._where(direction, row, shape), edge, value)
        return value

    def combined(self, value: Value, name: str, neutral: Value) -> Any:
        """A tensor with the rows before and after these combined into them."""
        builder, shape, combined = self.builder, shape_of(value), value
        others, nothing = [d for d in range(len(shape)) if d != self.dim], builder.spread(neutral, shape)
        type_ = builder.tensor([shape[d] for d in others], element_of(value))
        for direction, row in (("LT", 0), ("GT", self.size - 1)):
            outside = builder.select(self._where(direction, row, shape), value, nothing)
            attributes = {"dimensions": builder.integers([self.dim])}
            reduced = builder.op("stablehlo.reduce", [outside, neutral], [type_], attributes, 1)
            builder.combination(reduced.regions[0], name, element_of(value))
            edge = self._spread(reduced.results[0], others, shape)
            more = builder.select(self._where("EQ", row, shape), edge, nothing)
            combined = builder.binary(name, combined, more)
        return combined


def convolution(site: LocalSite, operands: list[Value]) -> list[Any]:
    """The windows over the stretch of the input that a device needs, with zeros outside of it."""
    reads = _split(site, 0)
    if not reads:
        return parts(site, operands)
    filled = [site.filled(operands, slot) for slot in range(len(operands))]
    zero = site.builder.zero(element_of(filled[0]))
    spatial = site.items("dimension_numbers.input_spatial_dimensions")
    filled[0] = _fetched(site, filled[0], reads, zero)
    reset = {read.dim for read in reads}
    attributes = site.attributes() | _unpadded(site, spatial, reset, "lhs_dilation")
    return clone(site, filled, attributes)


def windows(site: LocalSite, operands: list[Value]) -> list[Any]:
    """The loops over the stretches that a device needs, without the padding along them."""
    facts, filled = site.knowledge.facts, list(operands)
    reads = {slot: each for slot in range(len(operands)) if (each := _split(site, slot))}
    if not reads:
        return parts(site, operands)
    attributes = site.attributes()
    for slot in range(len(operands)):
        filled[slot] = site.filled(operands, slot)
        if slot in reads:
            filled[slot] = _fetched(site, filled[slot], reads[slot], _outside(site, slot, operands))
    dims = {(read.slot, read.dim) for each in reads.values() for read in each}
    padding: dict[str, list[int]] = {}
    for name, index, slot, dim in facts["padding_of"]:
        if (slot, dim) in dims:
            padding.setdefault(name, list(site.op.attributes[name]))[index] = 0
    return clone(site, filled, attributes | {n: site.builder.integers(v) for n, v in padding.items()})


def _outside(site: LocalSite, slot: int, operands: Sequence[Value]) -> Any:
    """The value in the padding of an operand; None if it has no padding."""
    builder, element = site.builder, element_of(operands[slot])
    if not site.knowledge.facts["padding_of"]:
        return None
    for of, point in site.knowledge.facts["stands_for_zero"]:
        if of == slot:
            return builder.one("stablehlo.reshape", [operands[point]], builder.tensor([], element))
    return builder.neutral(site.knowledge.combine, element)


def _unpadded(site: LocalSite, dims: Sequence[int], reset: set[int], dilation: str) -> dict[str, Any]:
    """The attributes of windows without padding and dilation along dimensions."""
    builder, held = site.builder, site.op.attributes
    numbers = list(dims)
    padding = list(held["padding"]) if "padding" in held else [0] * 2 * len(numbers)
    attributes: dict[str, Any] = {}
    for row, dim in enumerate(numbers):
        if dim in reset:
            padding[2 * row], padding[2 * row + 1] = 0, 0
    table = np.asarray([int(n) for n in padding], dtype=np.int64).reshape(-1, 2)
    attributes["padding"] = builder.dense(table)
    if dilation in held:
        amounts = [1 if dim in reset else n for dim, n in zip(numbers, held[dilation], strict=True)]
        attributes[dilation] = builder.integers(amounts)
    return attributes


WINDOWS = {
    "slice": slice_,
    "pad": pad,
    "shift": shift,
    "reverse": reverse,
    "concatenate": concatenate,
    "reduce_window": reduce_window,
    "select_and_scatter": select_and_scatter,
    "convolution": convolution,
    "windows": windows,
}
