"""The collectives of a device program, as rows: one row for each device that receives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir

from ...program.elements import bits_of
from ...program.mlir.types import Operation, Value
from ..writing.building import dense, element_of, shape_of
from ..writing.neutral import neutral, zero

HAND_ON = frozenset(  # they combine nothing, so any type works
    f"stablehlo.{kind}" for kind in ("all_gather", "all_to_all", "collective_permute")
)
KINDS = HAND_ON | {"stablehlo.all_reduce", "stablehlo.reduce_scatter"}
# The dimension with a part for each device, and the dimension with a part from each.
TO_EACH = {"stablehlo.reduce_scatter": "scatter_dimension", "stablehlo.all_to_all": "split_dimension"}
FROM_EACH = {"stablehlo.all_gather": "all_gather_dim", "stablehlo.all_to_all": "concat_dimension"}
DIMENSIONS = frozenset({*TO_EACH.values(), *FROM_EACH.values()})


def integer(value: int) -> Any:
    """A 64-bit integer attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def count(op: Operation) -> int:
    """The number of devices in a group."""
    size: int = ir.ShapedType(op.attributes["replica_groups"].type).shape[1]
    return size


def dimension(op: Operation, name: str) -> int:
    """The dimension in an attribute of a collective."""
    dim: int = ir.IntegerAttr(op.attributes[name]).value
    return dim


@dataclass
class WriterBefore:
    """Writes ops before another one."""

    before: Any
    loc: Any

    def rows(self, op: Operation) -> Any:
        """The data that a device sends in a collective: a row for each receiver."""
        value = op.operands[0]
        if op.name not in TO_EACH:
            return self.reshaped(value, [1, prod(shape_of(value))])
        d, n, shape = dimension(op, TO_EACH[op.name]), count(op), shape_of(value)
        split = self.reshaped(value, [*shape[:d], n, shape[d] // n, *shape[d + 1 :]])
        order = [d, *(e for e in range(len(shape) + 1) if e != d)]
        return self.reshaped(self.transposed(split, order), [n, prod(shape) // n])

    def matrices(self, rows: Any, columns: int) -> Any:
        """Rows as matrices with this many columns."""
        count, width = shape_of(rows)
        return self.reshaped(rows, [count, width // columns, columns])

    def unfolded(self, op: Operation, part: Value) -> Any:
        """The result of a collective from the rows that arrived, one from each device."""
        shape = shape_of(op.results[0])
        part = self.as_type(part, element_of(op.results[0]))
        if op.name not in FROM_EACH:
            return self.reshaped(part, shape)
        d, n = dimension(op, FROM_EACH[op.name]), count(op)
        split = self.reshaped(part, [n, *shape[:d], shape[d] // n, *shape[d + 1 :]])
        order = [*range(1, d + 1), 0, *range(d + 1, len(shape) + 1)]
        return self.reshaped(self.transposed(split, order), shape)

    def along_first(self, op: Operation, value: Value, type_: Any) -> Any:
        """The result of a collective that treats rows of a value like another collective treats a dimension.
        It combines in the same way."""
        attributes = {a: integer(0) if a in DIMENSIONS else v for a, v in op.attributes.items()}
        return self.one(op.name, [value], type_, attributes, op)

    def type(self, shape: Sequence[int], like: Any) -> Any:
        return ir.RankedTensorType.get(list(shape), element_of(like))

    def of_one_type(self, values: Sequence[Any]) -> list[Any]:
        """Values with one element type, from values whose elements have the same number of bits."""
        elements = {element_of(value) for value in values}
        if len(elements) == 1:
            return list(values)
        bits = ir.IntegerType.get_unsigned(bits_of(str(elements.pop())))
        return [self.as_type(value, bits) for value in values]

    def as_type(self, value: Value, element: ir.Type) -> Any:
        """The bits of a value as another element type."""
        if element_of(value) == element:
            return value
        type_ = ir.RankedTensorType.get(shape_of(value), element)
        return self.one("stablehlo.bitcast_convert", [value], type_, {})

    def reshaped(self, value: Value, shape: Sequence[int]) -> Any:
        same = shape_of(value) == list(shape)
        return value if same else self.one("stablehlo.reshape", [value], self.type(shape, value), {})

    def transposed(self, value: Value, order: Sequence[int]) -> Any:
        if list(order) == list(range(len(order))):
            return value
        shape, given = shape_of(value), {"permutation": ir.DenseI64ArrayAttr.get(list(order))}
        return self.one("stablehlo.transpose", [value], self.type([shape[d] for d in order], value), given)

    def concatenated(self, values: Sequence[Any]) -> Any:
        if len(values) == 1:
            return values[0]
        first, _, *rest = shape_of(values[0])
        type_ = self.type([first, sum(shape_of(value)[1] for value in values), *rest], values[0])
        return self.one("stablehlo.concatenate", list(values), type_, {"dimension": integer(1)})

    def columns(self, value: Value, start: int, end: int) -> Any:
        first, width, *rest = shape_of(value)
        if end - start == width:
            return value
        given = {
            "start_indices": ir.DenseI64ArrayAttr.get([0, start, *[0] * len(rest)]),
            "limit_indices": ir.DenseI64ArrayAttr.get([first, end, *rest]),
            "strides": ir.DenseI64ArrayAttr.get([1] * (2 + len(rest))),
        }
        return self.one("stablehlo.slice", [value], self.type([first, end - start, *rest], value), given)

    def where(self, listed: npt.NDArray[np.bool_], device: str, value: Value, other: Value) -> Any:
        """A value on the listed devices, and another one elsewhere. ``device`` is the op that returns the
        device's number."""
        i32 = ir.IntegerType.get_signless(32)
        scalar = ir.RankedTensorType.get([], i32)
        table = dense(listed.astype(np.int32))
        unsigned = ir.RankedTensorType.get([], ir.IntegerType.get_unsigned(32))
        place = self.one("stablehlo.convert", [self.one(device, [], unsigned, {})], scalar, {})
        held = self.one("stablehlo.constant", [], table.type, {"value": table})
        one = {"slice_sizes": ir.DenseI64ArrayAttr.get([1])}
        picked = self.one("stablehlo.dynamic_slice", [held, place], ir.RankedTensorType.get([1], i32), one)
        answer = ir.RankedTensorType.get([], ir.IntegerType.get_signless(1))
        here = self.one(
            "stablehlo.convert", [self.one("stablehlo.reshape", [picked], scalar, {})], answer, {}
        )
        return self.one("stablehlo.select", [here, value, other], value.type, {})

    def zeros(self, type_: Any) -> Any:
        return self.constant(zero(type_.element_type), type_)

    def neutral(self, combine: str, element: ir.Type) -> Any:
        type_ = ir.RankedTensorType.get([], element)
        if not isinstance(element, ir.ComplexType):
            return self.constant(neutral(combine, element), type_)
        real = ir.RankedTensorType.get([], ir.ComplexType(element).element_type)
        return self.one("stablehlo.convert", [self.constant(neutral(combine, element), real)], type_, {})

    def constant(self, number: str, type_: ir.Type) -> Any:
        value = ir.Attribute.parse(f"dense<{number}> : {type_}")
        return self.one("stablehlo.constant", [], type_, {"value": value})

    def one(
        self, name: str, operands: list[Any], type_: Any, attributes: dict[str, Any], body: Any = None
    ) -> Any:
        """The result of an op. It takes over the region of ``body``, if that has one."""
        regions, ip = 0 if body is None else len(body.regions), ir.InsertionPoint(self.before)
        op = ir.Operation.create(name, [type_], operands, attributes, None, regions, loc=self.loc, ip=ip)
        if regions:
            body.regions[0].blocks[0].append_to(op.regions[0])
        return op.results[0]
