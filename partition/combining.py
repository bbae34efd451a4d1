"""Collectives over equal groups become one where neither needs what the other gives.

A collective can stand anywhere from where its operand is made to where its result is used first. Those of one
kind, over the same groups, of which these stretches have a place in common are written there as one op, up to
a size: each step of a collective takes time, whatever it carries. What they send is put side by side, for
XLA's partitioner takes no collectives of several tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from jaxlib.mlir import ir

from ..program.elements import size_of
from ..program.mlir.modules import ops_in

_MOST = 1 << 20  # bytes of the results of one op: to copy more costs as much as the steps of a collective
_WINDOW = 256  # ops by which a collective is moved at most: what it takes or gives lives longer
_KINDS = frozenset(
    f"stablehlo.{kind}" for kind in ("all_gather", "all_reduce", "reduce_scatter", "collective_permute")
)


@dataclass
class _Movable:
    """A collective of a block: the places before which it can stand are those from ``first`` to ``last``."""

    op: Any
    first: int
    last: int
    size: int


def combine(module: ir.Module, apart: Collection[Any] = ()) -> None:
    """Combines the collectives of a module, but for those that stay ``apart``."""
    with module.context, ir.Location.unknown():
        blocks = dict.fromkeys(op.operation.block for op in ops_in(module) if op.operation.name in _KINDS)
        for block in blocks:
            operations = [op.operation for op in block.operations]
            groups = sorted(_groups(operations, apart), key=lambda pair: pair[1])
            leaving = {op for group, _ in groups for op in group}
            for group, place in groups:
                while operations[place] in leaving:
                    place += 1
                _combine(group, operations[place])
            for op in leaving:
                op.erase()


def _groups(operations: list[Any], apart: Collection[Any]) -> Iterator[tuple[list[Any], int]]:
    """The collectives of a block that become one, and the place of the op before which that stands."""
    place = {op: n for n, op in enumerate(operations)}
    alike: dict[Hashable, list[_Movable]] = {}
    for n, op in enumerate(operations):
        if op.name in _KINDS and len(op.operands) == 1 and op not in apart:
            alike.setdefault(_key(op), []).append(_movable(n, operations, place))
    for some in alike.values():
        waiting = sorted(some, key=lambda each: each.last)
        while waiting:
            at, total, group, rest = waiting[0].last, 0, list[Any](), list[_Movable]()
            for each in waiting:
                if each.first <= at and (not group or total + each.size <= _MOST):
                    group.append(each.op)
                    total += each.size
                else:
                    rest.append(each)
            waiting = rest
            if len(group) > 1:
                yield sorted(group, key=place.__getitem__), at


def _movable(n: int, operations: list[Any], place: dict[Any, int]) -> _Movable:
    """Where a collective may stand. What another collective makes or takes keeps it where it is: that one may
    move itself."""
    op = operations[n]
    owner = op.operands[0].owner
    made = -1 if isinstance(owner, ir.Block) else place.get(owner, -1)
    uses = [_in_block(use.owner, place) for use in op.results[0].uses]
    last = min(uses, default=n + 1)
    first = n + 1 if made >= 0 and operations[made].name in _KINDS else made + 1
    if any(operations[use].name in _KINDS for use in uses):
        last = n + 1
    size = size_of(str(op.results[0].type))
    return _Movable(op, max(first, n - _WINDOW), min(last, n + _WINDOW), size)


def _in_block(op: Any, place: dict[Any, int]) -> int:
    """The place of the op of a block that an op is, or stands in."""
    operation = op.operation
    while operation not in place:
        operation = operation.parent.operation
    return place[operation]


def _key(op: Any) -> Hashable:
    """Equal for collectives that can become one: the kind, the groups, how they combine, and the type of
    elements."""
    left_out = _DIMENSIONS | {"channel_handle"}
    attributes = tuple((a, v) for a, v in op.attributes.items() if a not in left_out)
    body: Hashable = ""
    if len(op.regions):
        combining, *rest = (inner.operation for inner in op.regions[0].blocks[0])
        both = [isinstance(value.owner, ir.Block) for value in combining.operands] == [True, True]
        plain = both and len(rest) == 1 and not len(combining.attributes)
        body = combining.name if plain else id(op)  # one of its own
    element = ir.RankedTensorType(op.operands[0].type).element_type
    return op.name, attributes, body, element


# ---- One op in place of several -------------------------------------------------------------------------


def _combine(group: list[Any], before: Any) -> None:
    """Writes the collective of a group of them: what each sends lies in rows, one for each device that it is
    for, side by side."""
    write = _Writer(before, group[0].location)
    first = group[0]
    rows = [_rows(write, op) for op in group]
    widths = [_shape(row)[1] for row in rows]
    together = write.concatenated(rows)
    given = _count(first) if first.name == "stablehlo.all_gather" else 1
    attributes: dict[str, Any] = {a: v for a, v in first.attributes.items() if a not in _DIMENSIONS}
    attributes |= _DIMENSIONS_OF_ROWS.get(first.name, dict)()
    made = ir.Operation.create(
        first.name,
        results=[write.type([given, sum(widths)], together)],
        operands=[together],
        attributes=attributes,
        regions=len(first.regions),
        loc=first.location,
        ip=ir.InsertionPoint(before),
    )
    if len(first.regions):
        first.regions[0].blocks[0].append_to(made.regions[0])
    at = 0
    for op, width in zip(group, widths, strict=True):
        part = write.columns(made.results[0], at, at + width)
        op.results[0].replace_all_uses_with(_unfolded(write, op, part))
        at += width


def _integer(value: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


_DIMENSIONS = frozenset(
    {"all_gather_dim", "scatter_dimension", "split_dimension", "concat_dimension", "split_count"}
)
_DIMENSIONS_OF_ROWS: dict[str, Callable[[], dict[str, Any]]] = {
    "stablehlo.all_gather": lambda: {"all_gather_dim": _integer(0)},
    "stablehlo.reduce_scatter": lambda: {"scatter_dimension": _integer(0)},
}


def _count(op: Any) -> int:
    """The devices of a group."""
    found: int = ir.ShapedType(op.attributes["replica_groups"].type).shape[1]
    return found


def _dimension(op: Any, name: str) -> int:
    found: int = ir.IntegerAttr(op.attributes[name]).value
    return found


def _rows(write: _Writer, op: Any) -> Any:
    """What a device sends in a collective: a row for each device that it is for."""
    value = op.operands[0]
    if op.name != "stablehlo.reduce_scatter":
        return write.reshaped(value, [1, prod(_shape(value))])
    d, n, shape = _dimension(op, "scatter_dimension"), _count(op), _shape(value)
    split = write.reshaped(value, [*shape[:d], n, shape[d] // n, *shape[d + 1 :]])
    order = [d, *(e for e in range(len(shape) + 1) if e != d)]
    return write.reshaped(write.transposed(split, order), [n, prod(shape) // n])


def _unfolded(write: _Writer, op: Any, part: Any) -> Any:
    """The result of a collective, of what came in rows, one from each device."""
    shape = _shape(op.results[0])
    if op.name != "stablehlo.all_gather":
        return write.reshaped(part, shape)
    d, n = _dimension(op, "all_gather_dim"), _count(op)
    split = write.reshaped(part, [n, *shape[:d], shape[d] // n, *shape[d + 1 :]])
    order = [*range(1, d + 1), 0, *range(d + 1, len(shape) + 1)]
    return write.reshaped(write.transposed(split, order), shape)


def _shape(value: Any) -> list[int]:
    return list(ir.RankedTensorType(value.type).shape)


@dataclass
class _Writer:
    """Writes ops before another one."""

    before: Any
    loc: Any

    def type(self, shape: Sequence[int], like: Any) -> Any:
        return ir.RankedTensorType.get(list(shape), ir.RankedTensorType(like.type).element_type)

    def reshaped(self, value: Any, shape: Sequence[int]) -> Any:
        same = _shape(value) == list(shape)
        return value if same else self._one("stablehlo.reshape", [value], self.type(shape, value), {})

    def transposed(self, value: Any, order: Sequence[int]) -> Any:
        if list(order) == list(range(len(order))):
            return value
        shape, given = _shape(value), {"permutation": ir.DenseI64ArrayAttr.get(list(order))}
        return self._one("stablehlo.transpose", [value], self.type([shape[d] for d in order], value), given)

    def concatenated(self, values: Sequence[Any]) -> Any:
        width = sum(_shape(value)[1] for value in values)
        made = self.type([_shape(values[0])[0], width], values[0])
        return self._one("stablehlo.concatenate", list(values), made, {"dimension": _integer(1)})

    def columns(self, value: Any, start: int, end: int) -> Any:
        rows = _shape(value)[0]
        given = {
            "start_indices": ir.DenseI64ArrayAttr.get([0, start]),
            "limit_indices": ir.DenseI64ArrayAttr.get([rows, end]),
            "strides": ir.DenseI64ArrayAttr.get([1, 1]),
        }
        return self._one("stablehlo.slice", [value], self.type([rows, end - start], value), given)

    def _one(self, name: str, operands: list[Any], type_: Any, attributes: dict[str, Any]) -> Any:
        ip = ir.InsertionPoint(self.before)
        made = ir.Operation.create(name, [type_], operands, attributes, loc=self.loc, ip=ip)
        return made.results[0]
