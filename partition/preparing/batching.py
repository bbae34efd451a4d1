"""Gathers and scatters in which each row of a batch uses its own row get batching dimensions.

In `x[jnp.arange(n), i]` some indices count up, so each row of the indices belongs to one row of `x`. With
batching dimensions instead, the batch is computed in parts, and nothing is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from ...program.elements import bits_of
from ...program.mlir.types import Operation, Value
from ...rulebook.traits import OpTraits
from ..writing.building import element_of, shape_of
from .cutting import joined_along, maker

_GATHER, _SCATTER = stablehlo.GatherDimensionNumbers, stablehlo.ScatterDimensionNumbers
PICKING = frozenset({"gather", "scatter"})  # the lowerings of ops that pick rows
_CHECKED = 1 << 16  # the most elements of a constant that is checked for counting up


class _DimensionNumbers(NamedTuple):
    """The dimension numbers of an op: the window dimensions of the result; the collapsed and the batching
    dimensions of the operand; the batching dimensions of the indices; the operand's dimension of each index;
    and the dimension of the indices that holds them."""

    windows: list[int]
    lacking: list[int]
    batches: list[int]
    with_batches: list[int]
    columns: list[int]
    vector: int


class Own(NamedTuple):
    """An op whose indices say which rows belong together; its batching dimensions; and the indices that are
    ``left``."""

    op: Any
    slot: int  # of the indices
    numbers: _DimensionNumbers
    left: list[Any]


def own_rows(ops: Iterable[Operation], traits: OpTraits) -> list[Own]:
    """Those of some ops that read or write a batch's own rows by indices."""
    picking = [op for op in ops if traits.lowering(op.name) in PICKING]
    return [own for op in picking if (own := _own(op, traits)) is not None]


def batch_own_rows(
    ops: Iterable[Operation], traits: OpTraits, mark: Callable[[Any, Any, bool], None]
) -> bool:
    """Gives these ops batching dimensions, and returns whether there are any. ``mark`` is told of each op
    that replaces another one or a part of it: the new op, the old one, and whether it is a part."""
    every = own_rows(ops, traits)
    for op, slot, numbers, left in every:
        op.operands[slot] = (
            left[0] if len(left) == 1 else _joined(op.operands[slot].owner.operation, left, op, mark)
        )
        op.attributes["indices_are_sorted"] = ir.BoolAttr.get(False)
        _say(op, traits.lowering(op.name), numbers)
    return bool(every)


def _own(op: Operation, traits: OpTraits) -> Own | None:
    how = traits.lowering(op.name)
    slot = 1 if how == "gather" else len(op.results)
    numbers, indices = _numbers(op, how), op.operands[slot]
    if maker(indices, traits) != "concatenate" or joined_along(indices.owner) != numbers.vector:
        return None
    operand, sizes = shape_of(op.operands[0]), shape_of(indices)
    pairs, left, column = dict(zip(numbers.batches, numbers.with_batches, strict=True)), list[Any](), 0
    for part in indices.owner.operands:
        alone = shape_of(part)[numbers.vector] == 1 and numbers.columns[column] in numbers.lacking
        along = counting_along(part, traits) if alone else None
        others = (numbers.vector, *pairs.values())
        if along is None or along in others or sizes[along] != operand[numbers.columns[column]]:
            left.append(part)
        else:
            pairs[numbers.columns[column]] = along
        column += shape_of(part)[numbers.vector]
    without_pairs = numbers._replace(
        lacking=[dim for dim in numbers.lacking if dim not in pairs],
        batches=sorted(pairs),
        with_batches=[pairs[dim] for dim in sorted(pairs)],
        columns=[dim for dim in numbers.columns if dim not in pairs],
    )
    return (
        Own(op, slot, without_pairs, left)
        if without_pairs.columns and len(pairs) > len(numbers.batches)
        else None
    )


def _joined(join: Operation, parts: list[Any], before: Any, mark: Callable[[Any, Any, bool], None]) -> Any:
    """Some of the operands of a concatenation, concatenated."""
    sizes = shape_of(join.results[0])
    sizes[joined_along(join)] = sum(shape_of(part)[joined_along(join)] for part in parts)
    type_ = ir.RankedTensorType.get(sizes, element_of(parts[0]))
    attributes = {name: join.attributes[name] for name in join.attributes}
    ip = ir.InsertionPoint(before)
    concatenation = ir.Operation.create(join.name, [type_], parts, attributes, loc=join.location, ip=ip)
    mark(concatenation, join, False)
    return concatenation.results[0]


def counting_along(value: Value, traits: OpTraits) -> int | None:
    """The dimension along which a value counts up from zero, like an iota; None for others."""
    if isinstance(value.owner, ir.Block):
        return None
    op, shape = value.owner.operation, shape_of(value)
    match traits.computed_as(op.name):
        case "iota" if _holds(value, shape):  # and does not start again
            return int(ir.IntegerAttr(op.attributes["iota_dimension"]).value)
        case "constant":
            return _counting(op.attributes["value"], shape)
        case "convert" if _holds(op.operands[0], shape) and _holds(value, shape):
            return counting_along(op.operands[0], traits)
        case "broadcast_in_dim":
            along = counting_along(op.operands[0], traits)
            dims: list[int] = [*ir.DenseI64ArrayAttr(op.attributes["broadcast_dimensions"])]
            if along is not None and shape_of(op.operands[0])[along] == shape[dims[along]]:
                return dims[along]
        case "reshape":
            along, source = counting_along(op.operands[0], traits), shape_of(op.operands[0])
            places, others = ([d for d, n in enumerate(sizes) if n > 1] for sizes in (source, shape))
            if along in places and [source[d] for d in places] == [shape[d] for d in others]:
                return others[places.index(along)]
        case "select" if _is_never(op.operands[0], traits):
            return counting_along(op.operands[2], traits)
    return None


def _counting(constant: ir.Attribute, shape: Sequence[int]) -> int | None:
    if prod(shape) > _CHECKED or not isinstance(constant, ir.DenseIntElementsAttr) or constant.is_splat:
        return None
    numbers = np.asarray(constant).reshape(shape)
    for along, size in enumerate(shape):
        rows = np.arange(size).reshape([size if d == along else 1 for d in range(len(shape))])
        if (numbers == rows).all():
            return along
    return None


def _holds(value: Value, shape: Sequence[int]) -> bool:
    """Whether the element type can represent the size of any dimension."""
    element = element_of(value)
    return isinstance(element, ir.IntegerType) and max(shape, default=0) < 1 << (bits_of(str(element)) - 1)


def _is_never(condition: Value, traits: OpTraits) -> bool:
    """Whether a condition says that a counting value is negative, as for indices from the end."""
    if isinstance(condition.owner, ir.Block):
        return False
    op = condition.owner.operation
    if traits.computed_as(op.name) != "compare":
        return False
    below = "LT" in str(op.attributes["comparison_direction"])
    return below and counting_along(op.operands[0], traits) is not None and _is_zero(op.operands[1], traits)


def _is_zero(value: Value, traits: OpTraits) -> bool:
    if isinstance(value.owner, ir.Block):
        return False
    op = value.owner.operation
    how = traits.computed_as(op.name)
    if how == "broadcast_in_dim":
        return _is_zero(op.operands[0], traits)
    number = op.attributes["value"] if how == "constant" else None
    return isinstance(number, ir.DenseIntElementsAttr) and number.is_splat and int(number[0]) == 0


# ---- Dimensions -----------------------------------------------------------------------------------------


def _numbers(op: Operation, how: str) -> _DimensionNumbers:
    if how == "gather":
        g = _GATHER(op.attributes["dimension_numbers"])
        windows, lacking, columns = g.offset_dims, g.collapsed_slice_dims, g.start_index_map
        batches, with_batches = g.operand_batching_dims, g.start_indices_batching_dims
        vector = g.index_vector_dim
    else:
        s = _SCATTER(op.attributes["scatter_dimension_numbers"])
        windows, lacking = s.update_window_dims, s.inserted_window_dims
        batches, with_batches = s.input_batching_dims, s.scatter_indices_batching_dims
        columns, vector = s.scattered_dims_to_operand_dims, s.index_vector_dim
    return _DimensionNumbers([*windows], [*lacking], [*batches], [*with_batches], [*columns], vector)


def _say(op: Operation, how: str, numbers: _DimensionNumbers) -> None:
    if how == "gather":
        op.attributes["dimension_numbers"] = _GATHER.get(*numbers)
    else:
        op.attributes["scatter_dimension_numbers"] = _SCATTER.get(*numbers)
