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
        raise move.refused("its sizes are not constants, or its elements are not contiguous")
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


# ---- Tables, and elements that are looked up ---------------------------------------------------------------


def _entries_at(writer: OpWriter, table: Any, places: Any) -> Any:
    """The entries of a table of one dimension at places, in the shape of these."""
    shape = shape_of(places)
    numbers = ir.Attribute.parse(
        "#stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], "
        f"index_vector_dim = {len(shape)}>"
    )
    return writer.op(
        "gather",
        [table, places],
        shape,
        element_of(table),
        dimension_numbers=numbers,
        slice_sizes=integers_attribute([1]),
    )


def _table(move: Move) -> Any:
    """The entry of each number of 8 bits; of 16 bits, between two of 513 entries, 128 numbers apart."""
    writer, i32 = move.writer, ir.IntegerType.get_signless(32)
    value, table = writer.converted(move.values[0], i32), move.values[1]
    entries = shape_of(table)[0]
    place = writer.op("add", [value, writer.splat(128 if entries == 256 else 1 << 15, i32, move.shape)])
    if entries == 256:
        return _entries_at(writer, table, place)
    if entries != 513:
        raise move.refused("its table has neither 256 nor 513 entries")
    bits, table = writer.splat(7, i32, move.shape), writer.converted(table, i32)
    at = writer.op("shift_right_logical", [place, bits])
    between = writer.op("and", [place, writer.splat(127, i32, move.shape)])
    one = _entries_at(writer, table, at)
    other = _entries_at(writer, table, writer.op("add", [at, writer.splat(1, i32, move.shape)]))
    step = writer.op("multiply", [writer.op("subtract", [other, one]), between])
    return writer.op("add", [writer.op("shift_left", [one, bits]), step])


def _put_rows(move: Move) -> Any:
    """Rows of an input [n, w, c] put into values [n, k, c] by indices [n, w]."""
    writer, (values, indices, rows) = move.writer, move.values
    numbers = ir.Attribute.parse(
        "#stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], "
        "scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>"
    )
    places = writer.reshaped(indices, [*shape_of(indices), 1])
    scatter = ir.Operation.create(
        "stablehlo.scatter",
        [values.type],
        [values, places, rows],
        {"scatter_dimension_numbers": numbers},
        regions=1,
        loc=writer.location,
        ip=writer.before,
    )
    scalar = ir.RankedTensorType.get([], element_of(values))
    block = ir.Block.create_at_start(scatter.regions[0], [scalar] * 2, [writer.location] * 2)
    place = ir.InsertionPoint(block)
    ir.Operation.create("stablehlo.return", [], [block.arguments[1]], loc=writer.location, ip=place)
    return scatter.results[0]


def _gathered(move: Move) -> Any:
    """Slices at indices, whose last dimension has a coordinate for each of some dimensions of the source.
    These have size one in the result, or are left out."""
    source, indices = move.values
    along, shape, batch = move.integers(-1, "gather_dims"), shape_of(source), len(shape_of(indices)) - 1
    left_out = len(move.shape) < batch + len(shape)
    offsets = [*range(batch, len(move.shape))]
    collapsed = f"collapsed_slice_dims = {along}, " if left_out else ""
    numbers = ir.Attribute.parse(
        f"#stablehlo.gather<offset_dims = {offsets}, {collapsed}start_index_map = {along}, "
        f"index_vector_dim = {batch}>"
    )
    sizes = integers_attribute([1 if d in along else n for d, n in enumerate(shape)])
    return move.writer.op(
        "gather", [source, indices], move.shape, dimension_numbers=numbers, slice_sizes=sizes
    )


# ---- Images ------------------------------------------------------------------------------------------------


def _resized(move: Move) -> Any:
    """An image whose rows and columns are repeated, or lie between those of the operand."""
    scale, offset = move.integers(1, "scale"), move.integers(2, "offset")
    nearest, i32 = "NEAREST" in str(move.op.attributes["mode"]), ir.IntegerType.get_signless(32)
    value, element = move.first, written_type(move.op.results[0].type).element_type
    if not nearest:
        value = move.writer.converted(value, element)
    for dim, (up, down), first in ((2, scale[2:], offset[1]), (1, scale[:2], offset[0])):
        last, at = shape_of(value)[dim] - 1, np.arange(move.shape[dim]) * down + first
        row, beyond = at // up, at % up
        if nearest:
            value = move.writer.taken(value, np.clip(row + (2 * beyond >= up), 0, last), dim)
            continue
        shape = [n if d != dim else len(at) for d, n in enumerate(shape_of(value))]
        parts = []
        for rows, weights in ((row, up - beyond), (row + 1, beyond)):
            part = move.writer.taken(value, np.clip(rows, 0, last), dim)
            share = move.writer.converted(move.writer.integers(weights, i32), element)
            if is_float(element):
                share = move.writer.op("divide", [share, move.writer.splat(up, element, [len(at)])])
            parts.append(move.writer.op("multiply", [part, move.writer.spread(share, shape, [dim])]))
        value = move.writer.op("add", parts)
    return move.writer.converted(value, element)


def _transposed_convolution(move: Move) -> Any:
    """Each pixel spreads the kernel over the result; a bias is added."""
    writer, element = move.writer, written_type(move.op.results[0].type).element_type
    image, kernel, bias = (writer.converted(value, element) for value in move.values[:3])
    for which in (3, 4):
        if len(move.values) > which and not is_float(element):
            point = writer.reshaped(writer.converted(move.values[which], element), [])
            value = image if which == 3 else kernel
            value = writer.op("subtract", [value, writer.repeated(point, shape_of(value))])
            image, kernel = (value, kernel) if which == 3 else (image, value)
    out, stride, sizes = move.integers(-1, "out_pad"), move.integers(-1, "stride"), shape_of(kernel)[1:3]
    kernel = writer.op("reverse", [kernel], dimensions=integers_attribute([1, 2]))
    pairs = [[n - 1 + a, n - 1 + b] for n, a, b in zip(sizes, out[::2], out[1::2], strict=True)]
    i64 = ir.IntegerType.get_signless(64)
    result = writer.op(
        "convolution",
        [image, kernel],
        move.shape,
        element,
        dimension_numbers=ir.Attribute.parse("#stablehlo.conv<[b, 0, 1, f]x[o, 0, 1, i]->[b, 0, 1, f]>"),
        padding=ir.Attribute.parse(f"dense<{pairs}> : tensor<2x2xi64>"),
        lhs_dilation=integers_attribute(stride),
        feature_group_count=ir.IntegerAttr.get(i64, 1),
        batch_group_count=ir.IntegerAttr.get(i64, 1),
    )
    return writer.op("add", [result, writer.spread(bias, move.shape, [3])])


# ---- Indices -----------------------------------------------------------------------------------------------


def _applied(move: Move) -> Any:
    """An affine map of indices."""
    attribute: Any = move.op.attributes["map"]
    (result,) = attribute.value.results
    return _affine(move, result, attribute.value.n_dims)


def _affine(move: Move, expression: Any, dims: int) -> Any:
    """An affine expression. Its divisions round down, and its remainders are not negative."""
    if isinstance(expression, ir.AffineDimExpr):
        return move.values[expression.position]
    if isinstance(expression, ir.AffineSymbolExpr):
        return move.values[dims + expression.position]
    writer, i64 = move.writer, ir.IntegerType.get_signless(64)
    if isinstance(expression, ir.AffineConstantExpr):
        shape = shape_of(move.values[0]) if move.values else ()
        return writer.splat(expression.value, i64, shape)
    one, other = (_affine(move, each, dims) for each in (expression.lhs, expression.rhs))
    if isinstance(expression, ir.AffineAddExpr):
        return writer.op("add", [one, other])
    if isinstance(expression, ir.AffineMulExpr):
        return writer.op("multiply", [one, other])
    if isinstance(expression, ir.AffineCeilDivExpr):
        one = writer.op("add", [one, writer.op("subtract", [other, writer.splat(1, i64, shape_of(other))])])
    rest = writer.op("remainder", [one, other])
    rest = writer.op("remainder", [writer.op("add", [rest, other]), other])
    if isinstance(expression, ir.AffineModExpr):
        return rest
    return writer.op("divide", [writer.op("subtract", [one, rest]), other])


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
    "table": _table,
    "put_rows": _put_rows,
    "gathered": _gathered,
    "resized": _resized,
    "transposed_convolution": _transposed_convolution,
    "applied": _applied,
}
