"""Writes ops of StableHLO before an op that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from ...program.mlir.types import Value


def shape_of(value: Value) -> list[int]:
    """The sizes of the dimensions of a value that is a tensor."""
    return list(ir.RankedTensorType(value.type).shape)


def element_of(value: Value) -> Any:
    """The type of the elements of a value that is a tensor."""
    return ir.RankedTensorType(value.type).element_type


def is_float(element: ir.Type) -> bool:
    """Whether a type of elements is a floating-point one."""
    return isinstance(element, ir.FloatType)


def written_type(kind: ir.Type) -> Any:
    """The replacement of a type of another dialect: scalars are tensors of rank 0, indices have 64 bits. None
    for types that no tensor replaces, such as shapes."""
    if isinstance(kind, ir.RankedTensorType):
        element = written_element(kind.element_type)
        return kind if element == kind.element_type else ir.RankedTensorType.get(kind.shape, element)
    if isinstance(kind, ir.FloatType | ir.IntegerType | ir.IndexType):
        return ir.RankedTensorType.get([], written_element(kind))
    return None


def array_type(kind: ir.Type) -> Any:
    """The type of the array that a program takes or gives for a value of this type."""
    with ir.Location.unknown(kind.context):
        return written_type(kind) or kind


def written_element(element: ir.Type) -> Any:
    """The replacement of an element type."""
    return ir.IntegerType.get_signless(64) if isinstance(element, ir.IndexType) else element


class OpWriter:
    """Writes ops at a place, with a location."""

    def __init__(self, place: ir.InsertionPoint, loc: ir.Location) -> None:
        self.before, self.location = place, loc

    def create(
        self, name: str, operands: Sequence[Any], type_: ir.Type, attributes: dict[str, ir.Attribute]
    ) -> Any:
        """The result of a new op."""
        return ir.Operation.create(
            name, [type_], list(operands), attributes, loc=self.location, ip=self.before
        ).results[0]

    def op(
        self,
        name: str,
        operands: Sequence[Value],
        shape: Sequence[int] | None = None,
        element: ir.Type | None = None,
        *,
        dialect: str = "stablehlo",
        **attributes: ir.Attribute,
    ) -> Any:
        """The result of a new op. Its shape and element type default to those of the first operand."""
        type_ = ir.RankedTensorType.get(
            shape_of(operands[0]) if shape is None else list(shape), element or element_of(operands[0])
        )
        return self.create(f"{dialect}.{name}", operands, type_, attributes)

    # ---- Elements ---------------------------------------------------------------------------------------

    def splat(self, value: Any, element: ir.Type, shape: Sequence[int] = ()) -> Any:
        """A constant whose elements are all one number."""
        type_ = ir.RankedTensorType.get(list(shape), element)
        kind: Any = ir.FloatAttr if is_float(element) else ir.IntegerAttr
        attribute = kind.get(element, float(value) if is_float(element) else int(value))
        held = ir.DenseElementsAttr.get_splat(type_, attribute)
        return self.create("stablehlo.constant", [], type_, {"value": held})

    def constant(self, value: Any) -> Any:
        """A constant with the elements of an attribute."""
        return self.create("stablehlo.constant", [], value.type, {"value": value})

    def integers(self, values: Any, element: ir.Type) -> Any:
        """A constant with the integers of an array."""
        array = np.asarray(values)
        type_ = ir.RankedTensorType.get(list(array.shape), element)
        return self.constant(ir.Attribute.parse(f"dense<{array.tolist()}> : {type_}"))

    def converted(self, value: Value, element: ir.Type) -> Any:
        """A value with elements of another type."""
        return value if element_of(value) == element else self.op("convert", [value], None, element)

    def bits(self, value: Value, element: ir.Type) -> Any:
        """The same bits as elements of another type."""
        return value if element_of(value) == element else self.op("bitcast_convert", [value], None, element)

    def compare(self, direction: str, one: Value, other: Value) -> Any:
        """The elementwise comparison of two values, as booleans."""
        how = ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>")
        bit = ir.IntegerType.get_signless(1)
        return self.op("compare", [one, other], None, bit, comparison_direction=how)

    # ---- Dimensions -------------------------------------------------------------------------------------

    def reshaped(self, value: Value, shape: Sequence[int]) -> Any:
        """The same elements in another shape."""
        return value if shape_of(value) == list(shape) else self.op("reshape", [value], shape)

    def transposed(self, value: Value, order: Sequence[int]) -> Any:
        """A transposed value: dimension i was dimension ``order[i]``."""
        if list(order) == list(range(len(order))):
            return value
        shape = shape_of(value)
        return self.op("transpose", [value], [shape[d] for d in order], permutation=integers_attribute(order))

    def spread(self, value: Value, shape: Sequence[int], dims: Sequence[int]) -> Any:
        """A value broadcast to a shape. Its dimensions become ``dims``, in any order; dimensions of size 1
        are broadcast too."""
        order = sorted(range(len(dims)), key=lambda i: dims[i])
        value = self.transposed(value, order)
        if shape_of(value) == list(shape):
            return value
        return self.op(
            "broadcast_in_dim", [value], shape, broadcast_dimensions=integers_attribute(sorted(dims))
        )

    def repeated(self, value: Value, shape: Sequence[int]) -> Any:
        """A value of the same rank, or a scalar, repeated to a shape."""
        rank = len(shape_of(value))
        return self.spread(value, shape, range(rank) if rank else ())

    def padded(self, value: Value, low: Sequence[int], high: Sequence[int], fill: Value) -> Any:
        """A value with so much more of a scalar before and after each dimension."""
        if not any(low) and not any(high):
            return value
        shape = [a + n + b for a, n, b in zip(low, shape_of(value), high, strict=True)]
        return self.op(
            "pad",
            [value, fill],
            shape,
            edge_padding_low=integers_attribute(low),
            edge_padding_high=integers_attribute(high),
            interior_padding=integers_attribute([0] * len(shape)),
        )

    def cut(
        self, value: Value, starts: Sequence[int], sizes: Sequence[int], strides: Sequence[int] | None = None
    ) -> Any:
        """So many elements of each dimension from a start on, ``strides`` apart."""
        steps = strides or [1] * len(sizes)
        if list(sizes) == shape_of(value):
            return value
        limits = [a + (n - 1) * step + 1 for a, n, step in zip(starts, sizes, steps, strict=True)]
        return self.op(
            "slice",
            [value],
            sizes,
            start_indices=integers_attribute(starts),
            limit_indices=integers_attribute(limits),
            strides=integers_attribute(steps),
        )

    def cut_at(self, value: Value, starts: Sequence[Value], sizes: Sequence[int]) -> Any:
        """So many elements of each dimension from places on that are scalars."""
        return self.op("dynamic_slice", [value, *starts], sizes, slice_sizes=integers_attribute(sizes))

    def counted(self, shape: Sequence[int], dim: int, element: ir.Type) -> Any:
        """The numbers from 0 on along a dimension."""
        type_ = ir.RankedTensorType.get(list(shape), element)
        which = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim)
        return self.create("stablehlo.iota", [], type_, {"iota_dimension": which})

    def taken(self, value: Value, places: Any, dim: int) -> Any:
        """The elements at constant ``places``, an array of integers, along a dimension, in whose place its
        dimensions are."""
        shape, table = shape_of(value), np.asarray(places)
        first, step = int(table.flat[0]), int(table.flat[1] - table.flat[0]) if table.size > 1 else 1
        sizes = [table.size if d == dim else n for d, n in enumerate(shape)]
        if table.ndim == 1 and step > 0 and (table == first + step * np.arange(table.size)).all():
            starts = [first if d == dim else 0 for d in range(len(shape))]
            return self.cut(value, starts, sizes, [step if d == dim else 1 for d in range(len(shape))])
        result = [*shape[:dim], *table.shape, *shape[dim + 1 :]]
        offsets = [d for d in range(len(result)) if not dim <= d < dim + table.ndim]
        numbers = ir.Attribute.parse(
            f"#stablehlo.gather<offset_dims = {offsets}, collapsed_slice_dims = [{dim}], "
            f"start_index_map = [{dim}], index_vector_dim = {table.ndim}>"
        )
        indices = self.integers(table, ir.IntegerType.get_signless(32))
        slices = [1 if d == dim else n for d, n in enumerate(shape)]
        return self.op(
            "gather",
            [value, indices],
            result,
            dimension_numbers=numbers,
            slice_sizes=integers_attribute(slices),
        )

    def reduced(self, value: Any, dims: Sequence[int], combine: str, neutral: Any) -> Any:
        """A value combined along dimensions by an op of StableHLO; ``neutral`` is a scalar."""
        if not dims:
            return value
        element, kept = element_of(value), [n for d, n in enumerate(shape_of(value)) if d not in dims]
        scalar = ir.RankedTensorType.get([], element)
        reduce = ir.Operation.create(
            "stablehlo.reduce",
            [ir.RankedTensorType.get(kept, element)],
            [value, neutral],
            {"dimensions": integers_attribute(sorted(dims))},
            regions=1,
            loc=self.location,
            ip=self.before,
        )
        block = ir.Block.create_at_start(reduce.regions[0], [scalar, scalar], [self.location] * 2)
        inside = OpWriter(ir.InsertionPoint(block), self.location)
        both = inside.create(combine, block.arguments, scalar, {})
        ir.Operation.create("stablehlo.return", [], [both], loc=self.location, ip=inside.before)
        return reduce.results[0]


def integers_attribute(values: Sequence[int]) -> Any:
    """A list of integers."""
    return ir.DenseI64ArrayAttr.get(list(values))
