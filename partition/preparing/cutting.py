"""A slice of a concatenation becomes a concatenation of slices of its operands.

So the slice that a stencil takes of a padded tensor is the tensor itself, moved by a row. The padded tensor
is never made, and few rows change devices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from jaxlib.mlir import ir

from ...program.mlir.types import Operation, Value
from ...rulebook.traits import OpTraits
from ..writing.building import shape_of

_NARROW = 4  # an operand this many times as large as the slice makes it narrow
Cut = tuple[tuple[int, int], ...]  # for each dimension its first row, and the one after its last


def cut_before_joining(
    ops: Sequence[Operation], traits: OpTraits, mark: Callable[[Any, Any, bool], None]
) -> bool:
    """Applies slices among some ops before concatenations. Returns whether there are any. ``mark`` is told of
    each new op, the slice that it was made for, and whether it computes all of that slice."""
    cuts = cuts_of_joined(ops, traits)
    cutting = _Cutting(_Cuts(traits), mark)
    for op in cuts:
        op.results[0].replace_all_uses_with(cutting.instead(op))
    return bool(cuts)


def cuts_of_joined(ops: Sequence[Operation], traits: OpTraits) -> list[Any]:
    """Those of some ops that slice a concatenation."""
    slices = _Cuts(traits)
    cuts = [op for op in ops if traits.lowering(op.name) == "slice"]
    each = ((op, slices.cut_of(op), slices.is_narrow(op)) for op in cuts)
    return [op for op, cut, narrow in each if cut and slices.reaches(op.operands[0], cut, narrow=narrow)]


def maker(value: Value, traits: OpTraits) -> str:
    """The lowering of the op that makes a value; empty for arguments."""
    return "" if isinstance(value.owner, ir.Block) else traits.lowering(value.owner.operation.name)


@dataclass(frozen=True)
class _Cuts:
    """The ops that slice a value, and how much they drop."""

    traits: OpTraits

    def reaches(self, value: Value, wanted: Cut, *, narrow: bool) -> bool:
        """Whether a slice drops rows of a concatenation, or of a value that is sliced elsewhere. A ``narrow``
        slice drops part of each operand."""
        how = maker(value, self.traits)
        if how == "concatenate":
            dim = joined_along(value.owner)
            return narrow or wanted[dim] != (0, shape_of(value)[dim])
        before = self.cut_of(value.owner.operation) if how == "slice" else None
        if before is None:
            return False
        beside = _beside(value.owner, before, wanted)
        return self.reaches(value.owner.operands[0], beside, narrow=narrow)

    def is_narrow(self, op: Operation) -> bool:
        """Whether an op keeps little of its operand, and not for an op that concatenates it with others along
        the same dimension, as in a rotation: that op reads the common source."""
        sizes = [prod(shape_of(value)) for value in (op.results[0], op.operands[0])]
        users = [use.owner.operation for use in op.results[0].uses]
        cut = [d for d, n in enumerate(shape_of(op.operands[0])) if n != shape_of(op.results[0])[d]]
        rotates = all(
            self.traits.lowering(user.name) == "concatenate" and [joined_along(user)] == cut for user in users
        )
        return sizes[0] * _NARROW <= sizes[1] and not rotates

    def cut_of(self, op: Operation) -> Cut | None:
        """The rows that an op slices from its operand, without gaps between them; None for other ops, and for
        empty slices."""
        if self.traits.lowering(op.name) != "slice" or any(n != 1 for n in op.attributes["strides"]):
            return None
        rows = tuple(zip(op.attributes["start_indices"], op.attributes["limit_indices"], strict=True))
        return rows if all(low < high for low, high in rows) else None


def _is_whole(value: Value, cut: Cut) -> bool:
    """Whether a slice takes all of a value."""
    return all(each == (0, size) for each, size in zip(cut, shape_of(value), strict=True))


def joined_along(join: Operation) -> int:
    """The dimension of a concatenation."""
    dim: int = ir.IntegerAttr(join.attributes["dimension"]).value
    return dim


def _beside(op: Operation, before: Cut, wanted: Cut) -> Cut:
    """The part of a slice along other dimensions than those of the slice ``before`` it."""
    each = zip(before, wanted, shape_of(op.operands[0]), strict=True)
    return tuple(cut if held == (0, size) else (0, size) for held, cut, size in each)


@dataclass
class _Cutting:
    """Writes slices of values, each once per block, before the ``op`` that slices."""

    cuts: _Cuts
    mark: Callable[[Any, Any, bool], None]
    op: Any = None
    narrow: bool = False
    replacements: dict[tuple[Any, Any, Cut, bool], Any] = field(default_factory=dict)

    def instead(self, op: Operation) -> Any:
        """A replacement for the result of a slicing op."""
        self.op, self.narrow, wanted = op, self.cuts.is_narrow(op), self.cuts.cut_of(op)
        assert wanted is not None
        value = self.of(op.operands[0], wanted)
        if not isinstance(value.owner, ir.Block):
            self.mark(value.owner, op, True)
        return value

    def of(self, value: Value, wanted: Cut) -> Any:
        """A slice of a value."""
        key = self.op.block, value, wanted, self.narrow
        if key not in self.replacements:
            self.replacements[key] = self._of(value, wanted)
        return self.replacements[key]

    def _of(self, value: Value, wanted: Cut) -> Any:
        if _is_whole(value, wanted) or not self.cuts.reaches(value, wanted, narrow=self.narrow):
            return self._cut(value, wanted)
        if maker(value, self.cuts.traits) == "concatenate":
            return self._joined(value.owner.operation, wanted)
        before, source = self.cuts.cut_of(value.owner.operation), value.owner.operands[0]
        assert before is not None
        first = self.of(source, _beside(value.owner, before, wanted))
        each = zip(before, wanted, shape_of(source), strict=True)
        rows = [
            (low + cut[0], low + cut[1]) if (low, high) != (0, size) else (0, cut[1] - cut[0])
            for (low, high), cut, size in each
        ]
        return self._cut(first, tuple(rows))

    def _joined(self, join: Operation, wanted: Cut) -> Any:
        """A slice of a concatenation. Its other dimensions are sliced first, once for all."""
        dim = joined_along(join)
        (low, high), at, parts = wanted[dim], 0, list[Any]()
        for operand in join.operands:
            shape = shape_of(operand)
            start, end = max(low - at, 0), min(high - at, shape[dim])
            at += shape[dim]
            if start < end:
                others = [(0, shape[dim]) if d == dim else cut for d, cut in enumerate(wanted)]
                rows = [(start, end) if d == dim else (0, b - a) for d, (a, b) in enumerate(wanted)]
                parts.append(self._cut(self.of(operand, tuple(others)), tuple(rows)))
        if len(parts) == 1:
            return parts[0]
        sizes = [high - low for low, high in wanted]
        return self._created(join.name, parts, sizes, {"dimension": join.attributes["dimension"]})

    def _cut(self, value: Value, wanted: Cut) -> Any:
        """A slice of a value, whatever makes it."""
        if _is_whole(value, wanted):
            return value
        starts, ends = ([cut[end] for cut in wanted] for end in (0, 1))
        attributes = {
            "start_indices": _integers(starts),
            "limit_indices": _integers(ends),
            "strides": _integers([1] * len(wanted)),
        }
        sizes = [high - low for low, high in wanted]
        return self._created(self.op.name, [value], sizes, attributes)

    def _created(
        self, name: str, operands: list[Any], sizes: Sequence[int], attributes: dict[str, Any]
    ) -> Any:
        if "sdy.sharding" in self.op.attributes:
            attributes["sdy.sharding"] = self.op.attributes["sdy.sharding"]
        type_ = ir.RankedTensorType.get(sizes, operands[0].type.element_type)
        ip, loc = ir.InsertionPoint(self.op), self.op.location
        op = ir.Operation.create(name, [type_], operands, attributes, loc=loc, ip=ip)
        self.mark(op, self.op, False)
        return op.results[0]


def _integers(values: Sequence[int]) -> Any:
    return ir.DenseI64ArrayAttr.get([*values])
