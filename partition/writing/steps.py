"""Carries out reshards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from ...program.mlir.types import Value
from ...program.reductions import AVERAGE, COMBINED_BY
from ...program.signature import value_of
from ...rulebook.traits import OpTraits
from ..layouts import Axes, Layout, PieceId, Shape
from ..reshards.moves import Places, Step
from .building import Builder, element_of, shape_of


def carry_out(builder: Builder, value: Value, shape: Shape, start: Layout, steps: tuple[Step, ...]) -> Any:
    """The tensor of ``shape`` whose part is ``value``, after some steps."""
    key = value.type, shape, start, steps
    if (earlier := builder.reshards.get(key)) is not None:
        return builder.again(earlier, value)
    if 0 in shape and steps:  # collectives accept no tensors without elements
        return builder.zero(element_of(value), builder.axes.local(shape, steps[-1].after.dims))
    given, before = value, len(builder.sent)
    for step in steps:
        value = _STEPS[step.kind](builder, value, shape, start, step)
        start = step.after
    for sent in builder.sent[before:][:1]:  # a collective alone
        if sent.op == value.owner and sent.op.operands[0] == given:
            builder.reshards[key] = sent
    return value


def _slice(builder: Builder, value: Value, shape: Shape, start: Layout, step: Step) -> Any:
    d, axes = step.dim, builder.axes
    if value in builder.looked_up:
        value = builder.fenced(value)
    return builder.part(value, d, axes.tile(shape[d], step.after.dims[d]), step.pieces)


def _all_gather(builder: Builder, value: Value, shape: Shape, start: Layout, step: Step) -> Any:
    value = builder.all_gather(value, step.pieces, step.dim, step.price)
    return _trimmed(builder, value, shape, step)


def _trimmed(builder: Builder, value: Value, shape: Shape, step: Step) -> Any:
    """A value without the padding of a dimension that is whole again."""
    sizes = list(builder.axes.local(shape, step.after.dims))
    return builder.cut(value, [0] * len(sizes), sizes)


def _all_reduce(builder: Builder, value: Value, shape: Shape, start: Layout, step: Step) -> Any:
    combine = _added(start)
    value = builder.collective("all_reduce", value, value.type, step.pieces, step.price, combine=combine)
    return _divided(builder, value, start, step)


def _added(layout: Layout) -> str:
    """The op by which a collective combines parts."""
    return COMBINED_BY["sum"] if layout.combine == AVERAGE else layout.combine


def _divided(builder: Builder, value: Value, start: Layout, step: Step) -> Any:
    """A sum of parts, which for an average is divided by their number."""
    if start.combine != AVERAGE:
        return value
    count = builder.splat(f"{builder.axes.product(step.pieces)}.0", element_of(value), shape_of(value))
    return builder.one("stablehlo.divide", [value, count], value.type)


def _reduce_scatter(builder: Builder, value: Value, shape: Shape, start: Layout, step: Step) -> Any:
    d, axes = step.dim, builder.axes
    tile = axes.tile(shape[d], step.after.dims[d])
    held = shape_of(value)
    value = builder.filled_up(value, d, tile * axes.product(step.pieces) - held[d])
    type_ = builder.tensor([*held[:d], tile, *held[d + 1 :]], element_of(value))
    attributes = {"scatter_dimension": builder.integer(d)}
    value = builder.collective(
        "reduce_scatter", value, type_, step.pieces, step.price, attributes, combine=_added(start)
    )
    return _divided(builder, value, start, step)


def _all_to_all(builder: Builder, value: Value, shape: Shape, start: Layout, step: Step) -> Any:
    d, other, axes = step.dim, step.to, builder.axes
    n, tile = axes.product(step.pieces), axes.tile(shape[other], step.after.dims[other])
    held = shape_of(value)[other]
    value = builder.filled_up(value, other, tile * n - held)
    if held <= tile * (n - 1):  # XLA may choose another order of dimensions for a part that is all padding
        value = builder.barrier(value)
    sizes = shape_of(value)
    sizes[d], sizes[other] = sizes[d] * n, tile
    attributes = {
        "split_dimension": builder.integer(other),
        "concat_dimension": builder.integer(d),
        "split_count": builder.integer(n),
    }
    type_ = builder.tensor(sizes, element_of(value))
    value = builder.collective("all_to_all", value, type_, step.pieces, step.price, attributes)
    return _trimmed(builder, value, shape, step)


def _collective_permute(builder: Builder, value: Value, shape: Shape, start: Layout, step: Step) -> Any:
    """Every device receives its new part from the nearest device that has it."""
    table = pairs_of_step(builder.axes, start, step.after, builder.manual)
    if table is None:
        return value
    return builder.collective("collective_permute", value, value.type, (), step.price, pairs=table)


def pairs_of_step(axes: Axes, start: Layout, after: Layout, manual: Iterable[PieceId]) -> Places | None:
    """The pairs of sender and receiver in a permutation from one layout to another, inside of ``manual``
    computations. None if every device has what it needs already, as between meshes with the same order of
    devices."""
    has, wants = (_parts(axes, layout, manual) for layout in (start, after))
    owners: dict[tuple[int, ...], list[int]] = {}
    for device, part in enumerate(has):
        owners.setdefault(part, []).append(device)
    takers: dict[tuple[int, ...], list[int]] = {}
    for device, part in enumerate(wants):
        takers.setdefault(part, []).append(device)
    pairs = []
    for part, devices in takers.items():
        stay = [device for device in owners[part] if device in devices]
        givers = [device for device in owners[part] if device not in stay]
        pairs += [(device, device) for device in stay]
        pairs += zip(givers, [device for device in devices if device not in stay], strict=True)
    if all(giver == taker for giver, taker in pairs):
        return None
    return np.asarray(sorted(pairs, key=lambda pair: pair[1]), dtype=np.int64)


def _parts(axes: Axes, layout: Layout, manual: Iterable[PieceId]) -> list[tuple[int, ...]]:
    """For each device, its part of the tensor; its share, if it is partial; and which tensor, inside of
    ``manual`` computations."""
    several = *layout.dims, *((p,) for p in (*layout.partial, *sorted(manual)))
    indices = [axes.index(pieces) for pieces in several]
    if not indices:
        return [()] * axes.count
    return [tuple(part) for part in np.stack(indices, axis=1).tolist()]


def _mask(builder: Builder, value: Value, shape: Shape, start: Layout, step: Step) -> Any:
    """One device keeps the value; the others get the neutral element of the combining op. The average of
    equal values is the value."""
    if step.after.combine == AVERAGE:
        return value
    first = builder.lookup(builder.axes.index(step.pieces))
    held = shape_of(value)
    nothing = builder.neutral(step.after.combine, element_of(value), held)
    traits = builder.traits
    if (filled := _splat(value, traits)) is not None and filled == _splat(nothing, traits):
        return value
    keeps = builder.compare("EQ", first, builder.number(0))
    return builder.select(builder.spread(keeps, held), value, nothing)


def _splat(value: Value, traits: OpTraits) -> Any:
    """The element of a splat constant; None for other values."""
    if isinstance(value.owner, ir.Block):
        return None
    owner = value.owner.operation
    if owner.name in traits.family("broadcast_op"):
        return _splat(owner.operands[0], traits)
    if traits.lowering(owner.name) != "constant":
        return None
    _, held = value_of(owner) or ("", None)
    if isinstance(held, ir.FloatAttr | ir.IntegerAttr):
        return held
    return held.get_splat_value() if isinstance(held, ir.DenseElementsAttr) and held.is_splat else None


_STEPS = {
    "slice": _slice,
    "mask": _mask,
    "all_gather": _all_gather,
    "all_reduce": _all_reduce,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "collective_permute": _collective_permute,
}
