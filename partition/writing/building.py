"""Builds the ops and collectives of the device program."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, reduce
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from ...program.elements import bits_of
from ...program.mlir.types import Operation, Value
from ...rulebook.traits import OpTraits
from ..choice.purposes import Purpose
from ..forms import Form
from ..layouts import Axes, Digit, Pieces, PieceSet, digits
from .neutral import neutral, zero

CHANNEL = "channel_handle"
PAIRS, GROUPS = "source_target_pairs", "replica_groups"  # of permutations, and of other collectives
OUTSIDE = ("sdy.sharding", "sdy.sharding_rule", "mhlo.sharding")  # attributes that are not part of an op


@dataclass
class Scope:
    """The local values that are available in a block and in the blocks nested in it, by key."""

    block: Any
    parent: Scope | None = None
    before: Any = None  # the op before which ops are written; None: at the end of the block
    values: dict[Any, Any] = field(default_factory=dict)
    _end: Any = None

    @property
    def end(self) -> Any:
        """The place where ops are written."""
        if self._end is None:
            self._end = ir.InsertionPoint(self.block if self.before is None else self.before)
        return self._end

    def move(self, before: Any) -> None:
        """From now on, ops are written before this one, or at the end."""
        self.before, self._end = before, None

    def pass_by(self, op: Operation) -> None:
        """From now on, ops are written after this one."""
        self._end = ir.InsertionPoint.after(op.operation)

    def find(self, key: Any) -> Any:
        """The value under a key in this scope or an outer one, or None."""
        scope: Scope | None = self
        while scope is not None:
            if key in scope.values:
                return scope.values[key]
            scope = scope.parent
        return None


@dataclass
class Sent:
    """A collective in the program: the op, its kind, and the pieces of axes that it runs over (none for a
    permutation of parts). ``group`` is the number of devices in a group, ``bytes`` what each of them sends.
    The caller names its ``purposes``. Merged permutations have several."""

    op: ir.Operation
    kind: str
    pieces: Pieces
    group: int
    bytes: int
    purposes: tuple[Purpose, ...] = ()

    @property
    def purpose(self) -> Purpose:
        """Its first purpose."""
        return self.purposes[0]

    @property
    def also(self) -> tuple[Purpose, ...]:
        """Its other purposes."""
        return self.purposes[1:]

    @property
    def permutes(self) -> bool:
        """Whether it is a permutation."""
        return PAIRS in self.op.attributes


class Builder:
    """Appends ops to the current block, and records the collectives among them."""

    def __init__(self, axes: Axes, form: Form, channel: int, traits: OpTraits) -> None:
        self.axes, self.form, self.traits = axes, form, traits
        self.scope = Scope(None)
        self.loc: Any = ir.Location.unknown()
        self.sent: list[Sent] = []
        self.channel = channel
        self.i32 = ir.IntegerType.get_signless(32)
        self.i64 = ir.IntegerType.get_signless(64)
        self.scalar = ir.RankedTensorType.get([], self.i32)
        self.manual: PieceSet = frozenset()  # the pieces of surrounding manual computations
        self.looked_up: set[Any] = set()  # results of lookups at positions known at run time
        self._groups: dict[Any, Any] = {}
        self._collectives: dict[Any, Sent] = {}  # the first of each kind
        self.reshards: dict[Any, Sent] = {}  # those that are parts of one collective
        self._attributes: dict[Any, Any] = {}
        self._types: dict[Any, Any] = {}
        self.types_of: dict[Any, list[Any]] = {}  # the results of equal ops

    # ---- Ops --------------------------------------------------------------------------------------------

    def op(
        self,
        name: str,
        operands: Sequence[Any],
        types: Sequence[Any],
        attributes: dict[str, Any] | None = None,
        regions: int = 0,
    ) -> Any:
        """An op at the end of the block."""
        return ir.Operation.create(
            name,
            results=types,
            operands=operands,
            attributes=attributes,
            regions=regions,
            loc=self.loc,
            ip=self.scope.end,
        )

    def copy(self, op: Operation) -> Any:
        """A clone of an op, without the attributes that only the annotated module needs."""
        copied = op.operation.clone(self.scope.end)
        for name in OUTSIDE:
            if name in copied.attributes:
                del copied.attributes[name]
        return copied

    def copy_of(self, op: Operation, operands: Sequence[Value]) -> Any:
        """The result of a clone of an op with one result, on other operands."""
        copied = self.copy(op)
        for i, operand in enumerate(operands):
            copied.operands[i] = operand
        return copied.results[0]

    def one(
        self, name: str, operands: Sequence[Any], type_: Any, attributes: dict[str, Any] | None = None
    ) -> Any:
        """Appends an op with one result, and returns the result."""
        return self.op(name, operands, [type_], attributes).results[0]

    def tensor(self, shape: Sequence[int], element: ir.Type) -> Any:
        """A tensor type."""
        key = tuple(shape), element
        if key not in self._types:
            self._types[key] = ir.RankedTensorType.get(list(shape), element)
        return self._types[key]

    def integers(self, values: Sequence[int]) -> Any:
        """A list of integers as an attribute."""
        key = tuple(values)
        if key not in self._attributes:
            self._attributes[key] = ir.DenseI64ArrayAttr.get(list(values))
        return self._attributes[key]

    def integer(self, value: int) -> Any:
        """An integer attribute."""
        return ir.IntegerAttr.get(self.i64, value)

    # ---- Constants and places ---------------------------------------------------------------------------

    def shared(self, key: Any, make: Callable[[], Any]) -> Any:
        """The value under a key in the current scope; ``make`` builds it the first time."""
        value = self.scope.find(key)
        if value is None:
            value = self.scope.values[key] = make()
        return value

    def splat(self, text: str, element: ir.Type, shape: Sequence[int] = ()) -> Any:
        """A splat constant; ``text`` is the element as MLIR writes it."""
        type_ = self.tensor(shape, element)

        def make() -> Any:
            if isinstance(element, ir.ComplexType):  # whose attributes have no class in Python
                real = self.splat(text, ir.ComplexType(element).element_type, shape)
                return self.one("stablehlo.convert", [real], type_)
            value = ir.Attribute.parse(f"dense<{text}> : {type_}")
            return self.one("stablehlo.constant", [], type_, {"value": value})

        return self.shared(("splat", text, type_), make)

    def zero(self, element: ir.Type, shape: Sequence[int] = ()) -> Any:
        """Zeros, or false."""
        return self.splat(zero(element), element, shape)

    def number(self, value: int) -> Any:
        """A scalar of type i32."""
        return self.splat(str(value), self.i32)

    def neutral(self, combine: str, element: ir.Type, shape: Sequence[int] = ()) -> Any:
        """The neutral element of a combining op, as a constant. Raises KeyError if it has none."""
        return self.splat(neutral(combine, element), element, shape)

    def lookup(self, table: npt.NDArray[np.int64]) -> Any:
        """The entry of a table for this device, i32. It is computed from digits of the device's number if
        possible, which is faster on accelerators than a lookup."""

        def make() -> Any:
            terms, first = digits(table), int(table[0])
            if terms is None:
                values: Any = dense(table.astype(np.int32))
                held = self.one("stablehlo.constant", [], values.type, {"value": values})
                sizes = {"slice_sizes": self.integers([1])}
                one = self.tensor((1,), self.i32)
                place = self.digit(Digit(1, len(table), 1), len(table))
                picked = self.one("stablehlo.dynamic_slice", [held, place], one, sizes)
                return self.one("stablehlo.reshape", [picked], self.scalar)
            start = [self.number(first)] if first or not terms else []
            values = start + [self.digit(term, len(table)) for term in terms]
            return reduce(partial(self.binary, "stablehlo.add"), values)

        return self.shared(("table", table.tobytes()), make)

    def device_id(self, type_: ir.Type, name: str = "stablehlo.partition_id") -> Any:
        """The number of the device that runs this; the op has this ``name`` if devices are partitions."""
        if self.form == "replica":
            return self.one("stablehlo.replica_id", [], type_)
        # XLA refuses it unless it or its user is marked as a part.
        manual = {"mhlo.sharding": ir.StringAttr.get("{manual}")} if self.form == "manual" else None
        return self.one(name, [], type_, manual)

    def digit(self, term: Digit, count: int) -> Any:
        """A digit of the number of the device that runs this, one of ``count``, times its step, i32."""
        element = ir.IntegerType.get_unsigned(32)
        value = self.shared("device", lambda: self.device_id(self.tensor((), element)))
        if term.place > 1:
            value = self.binary("stablehlo.divide", value, self.splat(str(term.place), element))
        if term.place * term.size < count:
            value = self.binary("stablehlo.remainder", value, self.splat(str(term.size), element))
        value = self.one("stablehlo.convert", [value], self.scalar)
        return value if term.step == 1 else self.binary("stablehlo.multiply", value, self.number(term.step))

    def start(self, size: int, pieces: Pieces) -> Any:
        """Where this device's part of a dimension starts, i32."""
        return self.lookup(self.axes.index(pieces) * self.axes.tile(size, pieces))

    # ---- Small programs ---------------------------------------------------------------------------------

    def cut(self, value: Value, starts: Sequence[Any], sizes: Sequence[int]) -> Any:
        """A slice of a tensor, from starts that are integers, or scalars of type i32."""
        type_ = ir.RankedTensorType(value.type)
        if all(isinstance(start, int) for start in starts):
            if list(sizes) == list(type_.shape):
                return value
            ends = [start + size for start, size in zip(starts, sizes, strict=True)]
            attributes = {
                "start_indices": self.integers(starts),
                "limit_indices": self.integers(ends),
                "strides": self.integers([1] * len(sizes)),
            }
            return self.one("stablehlo.slice", [value], self.tensor(sizes, type_.element_type), attributes)
        places = [self.number(start) if isinstance(start, int) else start for start in starts]
        attributes = {"slice_sizes": self.integers(sizes)}
        result = self.tensor(sizes, type_.element_type)
        return self.one("stablehlo.dynamic_slice", [value, *places], result, attributes)

    def rows(self, value: Value, dim: int, start: Any, count: int) -> Any:
        """This many rows of a dimension, from a start that is an integer, or a scalar of type i32."""
        starts, sizes = [start if d == dim else 0 for d in range(len(shape_of(value)))], shape_of(value)
        sizes[dim] = count
        return self.cut(value, starts, sizes)

    def fenced(self, value: Value, cut: Collection[int] | None = None) -> Any:
        """A value, before an op looks up positions in it, or before the result of a lookup is sliced. XLA
        merges a slice of a slice into one, and loses the clamping of the first position. That does not matter
        for a slice of other dimensions, if only the sliced ones are looked up (``cut``)."""
        if value not in self.looked_up:
            if not self.is_slice(value):
                return value
            sizes = zip(shape_of(value.owner.operands[0]), shape_of(value), strict=True)
            if cut is not None and all(n == part or d not in cut for d, (n, part) in enumerate(sizes)):
                return value
        return self.barrier(value)

    @staticmethod
    def is_slice(value: Value) -> bool:
        """Whether a value is a slice with a computed start."""
        return (
            not isinstance(value.owner, ir.Block) and value.owner.operation.name == "stablehlo.dynamic_slice"
        )

    def barrier(self, value: Value) -> Any:
        """A value that XLA keeps separate from its operands, and does not merge with any other."""
        return self.one("stablehlo.optimization_barrier", [value], value.type)

    def put(self, value: Value, part: Any, starts: Sequence[Any]) -> Any:
        """A tensor with a part of it overwritten."""
        places = [self.number(start) if isinstance(start, int) else start for start in starts]
        return self.one("stablehlo.dynamic_update_slice", [value, part, *places], value.type)

    def pad(self, value: Value, low: Sequence[int], high: Sequence[int], fill: Any = None) -> Any:
        """A tensor padded before and after each dimension."""
        if not any(low) and not any(high):
            return value
        type_ = ir.RankedTensorType(value.type)
        shape = [a + n + b for a, n, b in zip(low, type_.shape, high, strict=True)]
        fill = self.zero(type_.element_type) if fill is None else fill
        attributes = {
            "edge_padding_low": self.integers(low),
            "edge_padding_high": self.integers(high),
            "interior_padding": self.integers([0] * len(shape)),
        }
        return self.one("stablehlo.pad", [value, fill], self.tensor(shape, type_.element_type), attributes)

    def filled_up(self, value: Value, dim: int, more: int) -> Any:
        """A tensor with this many more rows of zeros at the end of a dimension."""
        rank = len(shape_of(value))
        return self.pad(value, [0] * rank, [more if d == dim else 0 for d in range(rank)])

    def part(self, value: Value, dim: int, tile: int, pieces: Pieces) -> Any:
        """This device's part, with this many rows, of a dimension that is split on pieces. Rows past the end
        of the dimension are zero."""
        value = self.filled_up(value, dim, tile * self.axes.product(pieces) - shape_of(value)[dim])
        return self.rows(value, dim, self.lookup(self.axes.index(pieces) * tile), tile)

    def binary(self, name: str, a: Any, b: Any) -> Any:
        """An op of two operands of one type."""
        return self.one(name, [a, b], a.type)

    def compare(self, direction: str, a: Value, b: Value) -> Any:
        """An elementwise comparison of integers, by its direction: LT, GE, EQ ..."""
        kind = ir.RankedTensorType(a.type)
        unsigned = "UNSIGNED" if str(kind.element_type).startswith("ui") else "SIGNED"
        attributes = {
            "comparison_direction": ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>"),
            "compare_type": ir.Attribute.parse(f"#stablehlo<comparison_type {unsigned}>"),
        }
        type_ = self.tensor(kind.shape, ir.IntegerType.get_signless(1))
        return self.one("stablehlo.compare", [a, b], type_, attributes)

    def spread(self, scalar: Value, shape: Sequence[int]) -> Any:
        """A scalar, broadcast to a shape."""
        type_ = self.tensor(shape, ir.RankedTensorType(scalar.type).element_type)
        if not shape:
            return scalar
        attributes = {"broadcast_dimensions": self.integers([])}
        return self.one("stablehlo.broadcast_in_dim", [scalar], type_, attributes)

    def select(self, where: Any, one: Any, other: Any) -> Any:
        """Elements of ``one`` where the predicate holds, elsewhere of ``other``."""
        return self.one("stablehlo.select", [where, one, other], one.type)

    def within(self, places: Value, size: int) -> Any:
        """Whether places are from 0 up to a size."""
        type_ = ir.RankedTensorType(places.type)
        zero = self.zero(type_.element_type, type_.shape)
        end = self.splat(str(size), type_.element_type, type_.shape)
        first, last = self.compare("GE", places, zero), self.compare("LT", places, end)
        return self.binary("stablehlo.and", first, last)

    def places(self, shape: Sequence[int], dim: int, start: Any = None, element: Any = None) -> Any:
        """The index of every element along a dimension, from ``start`` on, or from 0."""
        type_ = self.tensor(shape, element or self.i32)
        attributes = {"iota_dimension": self.integer(dim)}
        iota = self.one("stablehlo.iota", [], type_, attributes)
        return iota if start is None else self.binary("stablehlo.add", iota, self.spread(start, shape))

    def mask(self, value: Value, size: int, pieces: Pieces, dim: int, fill: Value) -> Any:
        """A part whose padding along a dimension is filled with ``fill``, a scalar."""
        shape = ir.RankedTensorType(value.type).shape
        if shape[dim] * self.axes.product(pieces) == size:
            return value
        places = self.places(shape, dim, self.start(size, pieces))
        inside = self.compare("LT", places, self.splat(str(size), self.i32, shape))
        return self.select(inside, value, self.spread(fill, shape))

    # ---- Collectives ------------------------------------------------------------------------------------

    def collective(
        self,
        kind: str,
        value: Value,
        type_: ir.Type,
        pieces: Pieces,
        sends: float,
        attributes: dict[str, Any] | None = None,
        combine: str = "",
        pairs: npt.NDArray[np.int64] | None = None,
    ) -> Any:
        """The result of a collective over the groups along pieces, or between pairs of devices. ``sends``: in
        elements."""
        around = tuple((attributes or {}).items()), None if pairs is None else pairs.tobytes()
        key = kind, value.type, type_, pieces, combine, around
        if (earlier := self._collectives.get(key)) is not None:
            return self.again(earlier, value)
        narrow = element_of(value)
        if bits_of(str(narrow)) in (2, 4) and isinstance(narrow, ir.IntegerType):  # XLA packs narrow elements
            wide = ir.IntegerType.get_unsigned(8) if narrow.is_unsigned else ir.IntegerType.get_signless(8)
            value = self.one("stablehlo.convert", [value], self.tensor(shape_of(value), wide))
            sizes = ir.RankedTensorType(type_).shape
            result = self.collective(
                kind, value, self.tensor(sizes, wide), pieces, sends, attributes, combine, pairs
            )
            return self.one("stablehlo.convert", [result], type_)
        attributes = dict(attributes or {})
        if pairs is None:
            groups = self.axes.groups(pieces)
            attributes[GROUPS] = self.dense(groups)
            group = groups.shape[1]
        else:
            attributes[PAIRS] = self.dense(pairs)
            group = len(pairs)
        if self.form != "replica":
            attributes[CHANNEL] = self.next_channel()
            if kind in ("all_gather", "all_reduce", "reduce_scatter"):
                attributes["use_global_device_ids"] = ir.UnitAttr.get()
        op = self.op(f"stablehlo.{kind}", [value], [type_], attributes, 1 if combine else 0)
        if combine:
            self.combination(op.regions[0], combine, narrow)
        sent = Sent(op, kind, pieces, group, round(sends * bytes_of(narrow)))
        self._collectives[key] = sent
        self.sent.append(sent)
        return op.results[0]

    def all_gather(self, value: Value, pieces: Pieces, dim: int, sends: float) -> Any:
        """The parts of the devices along pieces, concatenated along a dimension. ``sends``: in elements."""
        sizes = shape_of(value)
        sizes[dim] *= self.axes.product(pieces)
        attributes = {"all_gather_dim": self.integer(dim)}
        type_ = self.tensor(sizes, element_of(value))
        return self.collective("all_gather", value, type_, pieces, sends, attributes)

    def again(self, earlier: Sent, value: Any) -> Any:
        """The result of a collective like an earlier one, on another value."""
        op = earlier.op.clone(self.scope.end).operation
        op.operands[0], op.location = value, self.loc
        if self.form != "replica":
            op.attributes[CHANNEL] = self.next_channel()
        self.sent.append(Sent(op, earlier.kind, earlier.pieces, earlier.group, earlier.bytes))
        return op.results[0]

    def adopt(self, op: Operation, groups: npt.NDArray[np.int64], purpose: Purpose) -> None:
        """Adds a collective that the user wrote, over groups or pairs of devices, to those of the device
        program."""
        if self.form == "replica":
            for label in (CHANNEL, "use_global_device_ids"):
                if label in op.attributes:
                    del op.attributes[label]
        kind, paired = op.name.partition(".")[2], PAIRS in op.attributes
        op.attributes[PAIRS if paired else GROUPS] = self.dense(groups)  # it may have no mesh
        pieces = self.axes.between(groups) if paired else self.axes.along(groups)
        sizes = [prod(shape_of(v)) * bytes_of(element_of(v)) for v in op.operands]
        sends, group = sends_of(kind, sum(sizes), groups, paired=paired)
        self.sent.append(Sent(op.operation, kind, pieces, group, round(sends), (purpose,)))

    @contextmanager
    def serving(self, purpose: Callable[[], Purpose]) -> Iterator[None]:
        """Collectives in this context have a purpose, unless another one is named. The purpose is computed
        only if something is sent."""
        before = len(self.sent)
        yield
        unasked = [sent for sent in self.sent[before:] if not sent.purposes]
        if unasked:
            purposes = (purpose(),)  # one object, which identifies the steps of one reshard
            for sent in unasked:
                sent.purposes = purposes

    def next_channel(self) -> Any:
        """An unused channel."""
        self.channel += 1
        return stablehlo.ChannelHandle.get(self.channel, 1)

    def combination(self, region: ir.Region, combine: str, element: ir.Type) -> None:
        """A region that combines two scalars by an op."""
        scalar = self.tensor((), element)
        block = region.blocks.append(scalar, scalar, arg_locs=[self.loc, self.loc])
        ip = ir.InsertionPoint(block)
        done = ir.Operation.create(
            combine, results=[scalar], operands=list(block.arguments), loc=self.loc, ip=ip
        )
        ir.Operation.create("stablehlo.return", operands=list(done.results), loc=self.loc, ip=ip)

    def dense(self, table: npt.NDArray[np.int64]) -> Any:
        """A table of integers as an attribute."""
        key = table.shape, table.tobytes()
        if key not in self._groups:
            self._groups[key] = dense(np.ascontiguousarray(table))
        return self._groups[key]


def sends_of(kind: str, size: int, groups: npt.NDArray[np.int64], *, paired: bool) -> tuple[float, int]:
    """The bytes that a device sends in a collective of this size that the user wrote, over groups of devices
    or between ``paired`` ones; and the devices of a group."""
    n = groups.shape[1]
    share = {"reduce_scatter": (n - 1) / n, "all_to_all": (n - 1) / n}
    share |= {"all_reduce": 2 * (n - 1) / n, "all_gather": n - 1}
    return size * share.get(kind, 1), len(groups) if paired else n


def channel_of(op: Operation) -> int:
    """The channel of a collective; zero if it has none."""
    attributes = op.attributes
    if CHANNEL not in attributes:
        return 0
    return int(re.findall(r"handle = (\d+)", str(attributes[CHANNEL]))[0])


def pairs_of(op: Operation) -> npt.NDArray[np.int64]:
    """The pairs of sender and receiver in a permutation."""
    return np.asarray(op.attributes[PAIRS]).reshape(-1, 2)


def disjoint(group: Sequence[Any], op: Operation) -> bool:
    """Whether no sender, and no receiver, of a permutation is one in any permutation of a group."""
    sources, targets = pairs_of(op).T
    return not any(
        np.isin(s, sources).any() or np.isin(t, targets).any() for s, t in (pairs_of(o).T for o in group)
    )


def shape_of(value: Value) -> list[int]:
    """The shape of a tensor."""
    return list(ir.RankedTensorType(value.type).shape)


def element_of(value: Value) -> Any:
    """The type of a tensor's elements."""
    return ir.RankedTensorType(value.type).element_type


def bytes_of(element: ir.Type) -> int:
    """The bytes of an element."""
    return -(-bits_of(str(element)) // 8)


def dense(table: Any) -> Any:
    """An array of numbers as an attribute."""
    return ir.DenseElementsAttr.get(table)
