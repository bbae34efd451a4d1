"""Ops that move elements: the functions that ``written_as`` names in ``rules/ops/lowering.dl``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from ...errors import ShardlogError
from ...partition.writing.neutral import neutral
from ...program.carried import DYNAMIC
from ...program.function import location
from ...program.mlir.types import Value
from ...program.signature import attributes
from .writer import OpWriter, element_of, integers_attribute, is_float, shape_of, written_type


@dataclass
class Move:
    """An op to write, and its written operands, None for operands that are not values. ``written`` returns
    the replacements of other values."""

    writer: OpWriter
    op: Any
    values: Sequence[Any]
    written: Callable[[Any], Any] = lambda value: None

    @property
    def shape(self) -> list[int]:
        """The shape of the first result."""
        return list(written_type(self.op.results[0].type).shape)

    @property
    def first(self) -> Any:
        """The first operand."""
        return self.values[0]

    def number(self, name: str) -> int:
        """An attribute that is an integer."""
        attribute: Any = self.op.attributes[name]
        return int(attribute.value)

    def integers(self, operand: int, name: str) -> list[int]:
        """Integers that a constant operand has, or an attribute."""
        if name in self.op.attributes:
            listed: Any = self.op.attributes[name]
            return [int(getattr(each, "value", each)) for each in listed]
        constant = constant_of(self.op.operands[operand]) if operand < len(self.op.operands) else None
        if constant is None:
            raise self.refused(f"operand {operand} is not a constant")
        return [int(each) for each in np.asarray(constant).reshape(-1)]

    def refused(self, why: str) -> ShardlogError:
        """The error for an op that cannot be written."""
        hint = "partition it with --as, which keeps the op, or write it in StableHLO"
        return ShardlogError(f"{self.op.name} cannot run: {why}", where=location(self.op), hint=hint)


def constant_of(value: Value) -> Any:
    """The elements of a constant, as an array; None for other values."""
    if isinstance(value.owner, ir.Block):
        return None
    op = value.owner.operation
    held = None if len(op.operands) else _held(op)
    if isinstance(held, ir.DenseElementsAttr):
        return _array(held)
    return None if held is None else np.asarray(held.value)


def _held(op: Any) -> Any:
    """The attribute of a constant that has its elements; None for other ops. Attributes of other dialects are
    notes about it."""
    kinds = ir.DenseElementsAttr | ir.IntegerAttr | ir.FloatAttr | ir.BoolAttr
    return next((a for name, a in attributes(op) if "." not in name and isinstance(a, kinds)), None)


def _array(attribute: Any) -> Any:
    shape = ir.ShapedType(attribute.type).shape
    if attribute.is_splat:
        return np.full(shape, attribute.get_splat_value().value)
    return np.asarray(list(attribute)).reshape(shape)


def _constant(move: Move) -> Any:
    held, type_ = _held(move.op.operation), written_type(move.op.results[0].type)
    if held is None:
        raise move.refused("its elements are not known")
    if not isinstance(held, ir.DenseElementsAttr):
        return move.writer.splat(held.value, type_.element_type)
    if held.type == type_:
        return move.writer.constant(held)
    return move.writer.integers(_array(held), type_.element_type)


def _nothing(move: Move) -> Any:
    return None


def _fill(move: Move) -> Any:
    """A scalar everywhere; zeros in a tensor that holds anything."""
    type_ = written_type(move.op.results[0].type)
    if move.values and move.first is not None and not shape_of(move.first):
        return move.writer.spread(move.writer.converted(move.first, type_.element_type), move.shape, ())
    return move.writer.splat(0, type_.element_type, move.shape)


def _same(move: Move) -> Any:
    return move.first


def _reshape(move: Move) -> Any:
    return move.writer.reshaped(move.first, move.shape)


def _place(move: Move) -> Any:
    return move.writer.transposed(move.first, move.integers(1, "perms"))


def _concatenate(move: Move) -> Any:
    dim = move.number("axis" if "axis" in move.op.attributes else "dim")
    along = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim)
    return move.writer.op("concatenate", list(move.values), move.shape, dimension=along)


def _slice(move: Move) -> Any:
    return move.writer.cut(move.first, move.integers(1, "start"), move.shape)


def _pad(move: Move) -> Any:
    element, rank = element_of(move.first), len(move.shape)
    if len(move.op.regions):
        low, high = move.integers(-1, "static_low"), move.integers(-1, "static_high")
        (returned,) = list(move.op.regions[0].blocks[0].operations)[-1].operation.operands
        constant = constant_of(returned)
        fill = move.written(returned) if constant is None else move.writer.splat(constant, element)
        if fill is None:
            raise move.refused("its padding is computed in its body")
    else:
        pairs = move.integers(1, "padding")
        low, high = pairs[0::2], pairs[1::2]
        given = move.values[2] if len(move.values) > 2 else None
        fill = move.writer.splat(0, element) if given is None else move.writer.reshaped(given, [])
    if DYNAMIC in (*low, *high) or len(low) != rank:
        raise move.refused("how much it is padded is not a constant")
    return move.writer.padded(move.first, low, high, fill)


def _repeat(move: Move) -> Any:
    times, value = move.integers(1, "multiples"), move.first
    shape = shape_of(value)
    paired = [n for pair in zip(times, shape, strict=True) for n in pair]
    value = move.writer.spread(value, paired, range(1, 2 * len(shape), 2))
    return move.writer.reshaped(value, move.shape)


def _reverse(move: Move) -> Any:
    return move.writer.op("reverse", [move.first], dimensions=integers_attribute([move.number("axis")]))


def _look_up(move: Move) -> Any:
    """Rows of values [n, k, c] by indices [n, w]."""
    values, indices = move.values
    n, w = shape_of(indices)
    numbers = ir.Attribute.parse(
        "#stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], "
        "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>"
    )
    sizes = integers_attribute([1, 1, shape_of(values)[2]])
    places = move.writer.reshaped(indices, [n, w, 1])
    return move.writer.op(
        "gather", [values, places], move.shape, dimension_numbers=numbers, slice_sizes=sizes
    )


def _largest(move: Move) -> Any:
    """The index of the largest element along a dimension, the lowest index if several are equal."""
    writer, value, axis = move.writer, move.first, move.number("axis")
    element, shape = element_of(value), shape_of(value)
    place = written_type(move.op.results[0].type).element_type
    start = writer.constant(_scalar(neutral("stablehlo.maximum", element), element))
    largest = writer.reduced(value, [axis], "stablehlo.maximum", start)
    kept = [d for d in range(len(shape)) if d != axis]
    alike = writer.compare("EQ", value, writer.spread(largest, shape, kept))
    if is_float(element):
        alike = writer.op("or", [alike, writer.compare("NE", value, value)])
    none = writer.splat(shape[axis], place, shape)
    places = writer.op("select", [alike, writer.counted(shape, axis, place), none], shape, place)
    return writer.reduced(places, [axis], "stablehlo.minimum", writer.splat(shape[axis], place))


def _scalar(text: str, element: ir.Type) -> Any:
    return ir.Attribute.parse(f"dense<{text}> : {ir.RankedTensorType.get([], element)}")


def _softmax(move: Move) -> Any:
    writer, value, axis = move.writer, move.first, move.number("dimension")
    element, shape = element_of(value), shape_of(value)
    kept = [d for d in range(len(shape)) if d != axis]
    start = writer.constant(_scalar(neutral("stablehlo.maximum", element), element))
    largest = writer.reduced(value, [axis], "stablehlo.maximum", start)
    value = writer.op("exponential", [writer.op("subtract", [value, writer.spread(largest, shape, kept)])])
    total = writer.reduced(value, [axis], "stablehlo.add", writer.splat(0, element))
    return writer.op("divide", [value, writer.spread(total, shape, kept)])


def _elements(move: Move) -> Any:
    rows = [move.writer.reshaped(value, [1]) for value in move.values]
    along = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
    joined = move.writer.op("concatenate", rows, [len(rows)], dimension=along)
    return move.writer.reshaped(joined, move.shape)


def _size(move: Move) -> Any:
    i64, shape = ir.IntegerType.get_signless(64), shape_of(move.first)
    if len(move.op.operands) == 1:
        return move.writer.splat(len(shape), i64)
    which = constant_of(move.op.operands[1])
    if which is None:
        raise move.refused("the dimension is not a constant")
    return move.writer.splat(shape[int(which)], i64)


def _starts(move: Move, dynamic: list[Value]) -> list[Any]:
    """The offsets of a slice as scalars."""
    i64, left = ir.IntegerType.get_signless(64), list(dynamic)
    listed = move.integers(-1, "static_offsets")
    return [left.pop(0) if each == DYNAMIC else move.writer.splat(each, i64) for each in listed]


def _sizes(move: Move) -> list[int]:
    sizes, strides = move.integers(-1, "static_sizes"), move.integers(-1, "static_strides")
    if DYNAMIC in sizes or any(step != 1 for step in strides):
        raise move.refused("its sizes are not constants, or its elements do not lie side by side")
    return sizes


def _extract(move: Move) -> Any:
    """A slice, or an element."""
    value, places = move.first, list(move.values[1:])
    if "static_offsets" not in move.op.attributes:
        return move.writer.reshaped(move.writer.cut_at(value, places, [1] * len(places)), [])
    steps = move.integers(-1, "static_strides")
    if not places and DYNAMIC not in steps:
        sizes = move.integers(-1, "static_sizes")
        part = move.writer.cut(value, move.integers(-1, "static_offsets"), sizes, steps)
    else:
        part = move.writer.cut_at(value, _starts(move, places), _sizes(move))
    return move.writer.reshaped(part, move.shape)


def _insert(move: Move) -> Any:
    """A slice, or an element, put into a tensor."""
    part, whole, *places = move.values
    if "static_offsets" not in move.op.attributes:
        part = move.writer.reshaped(part, [1] * len(places))
    else:
        part, places = move.writer.reshaped(part, _sizes(move)), _starts(move, places)
    return move.writer.op("dynamic_update_slice", [whole, part, *places], shape_of(whole))


MOVES: dict[str, Callable[[Move], Any]] = {
    "constant": _constant,
    "nothing": _nothing,
    "fill": _fill,
    "same": _same,
    "reshape": _reshape,
    "place": _place,
    "concatenate": _concatenate,
    "slice": _slice,
    "pad": _pad,
    "repeat": _repeat,
    "reverse": _reverse,
    "look_up": _look_up,
    "largest": _largest,
    "softmax": _softmax,
    "elements": _elements,
    "size": _size,
    "extract": _extract,
    "insert": _insert,
}
