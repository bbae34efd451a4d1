"""Parts of unequal size, and parts with halos, become equal parts.

A dimension that is split at offsets, or whose parts have halos, is written as *blocks* of equal size. Block i
has the rows that devices of part i hold, followed by padding. Elementwise ops take blocks and give blocks.
For all other ops the rows are joined again, each from the part that owns it.

If parts are equal, only an elementwise op that has the halo of its operands computes on blocks: neighbours
exchange the rows. Other ops take parts without halos, and exchange the rows that they read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ...errors import ShardlogError
from ...program.carried import DYNAMIC, HALO, OFFSETS
from ...program.function import location
from ...program.meshes import Meshes
from ...program.mlir.modules import boundary_attributes, entries_of
from ...program.mlir.types import Operation, Value
from ...program.shardings import Shardings, read_mesh
from ...rulebook.traits import OpTraits
from ..writing.building import shape_of
from ..writing.neutral import zero
from .cutting import maker

_LABELS = (HALO, OFFSETS)
_CONSTRAINT, _FUNCTION = "sdy.sharding_constraint", "func.func"
Rows = tuple[tuple[int, int], ...]  # for each part its first row, and the one after its last


@dataclass(frozen=True)
class Blocks:
    """A dimension in blocks: the rows that each part owns, and those that it holds. With a halo these begin
    before the first row of the tensor, and end after the last."""

    dim: int
    own: Rows
    held: Rows

    @property
    def rows(self) -> int:
        """The rows of a block."""
        return max(end - first for first, end in self.held)

    @property
    def halo(self) -> tuple[int, int] | None:
        """How many rows before and after its own each part holds, if parts are equal; else None."""
        sizes = {end - first for first, end in self.own}
        halos = {
            (first - low, high - end) for (first, end), (low, high) in zip(self.own, self.held, strict=True)
        }
        if len(sizes) > 1 or len(halos) > 1 or not max(sizes):
            return None
        return max(halos)

    def owned(self) -> Iterator[tuple[int, int]]:
        """The places in the blocks of the rows that each part owns."""
        for i, ((first, end), (low, _)) in enumerate(zip(self.own, self.held, strict=True)):
            if first < end:
                yield i * self.rows + first - low, i * self.rows + end - low


def asks_for_blocks(op: Operation) -> bool:
    """Whether an op gives a value halos, or parts at offsets."""
    return any(label in held for held in _attributes_of(op) for label in _LABELS)


def put_in_blocks(
    ops: Sequence[Operation],
    traits: OpTraits,
    meshes: Mapping[str, Any],
    mark: Callable[[Any, Any, bool], None],
) -> None:
    """Puts values of some ops in blocks, as these say. ``meshes`` are those of the module, by name. ``mark``
    is told of each new op, the op that it was made for, and whether it computes all of that op.

    Raises ShardlogError for a size or an offset that is not known before the program runs.
    """
    _Putting(traits, meshes, mark).run(ops)


def _attributes_of(op: Operation) -> list[Any]:
    """The attributes of an op, and of the arguments of a function."""
    return boundary_attributes(op.opview, "arg_attrs") if op.name == _FUNCTION else [op.attributes]


class _Putting:
    def __init__(
        self, traits: OpTraits, meshes: Mapping[str, Any], mark: Callable[[Any, Any, bool], None]
    ) -> None:
        self.traits, self.mark = traits, mark
        read = [read_mesh(name, op.attributes["mesh"]) for name, op in meshes.items()]
        self.shardings = Shardings(Meshes(read), {name: i for i, name in enumerate(meshes)})
        self.blocks: dict[Any, tuple[Blocks, ...]] = {}  # by a value in blocks
        self.together: dict[Any, Any] = {}  # the joined rows of blocks -> the value in blocks
        self.halos: dict[
            Any, tuple[Blocks, ...]
        ] = {}  # by a value in equal parts: the blocks that are asked for
        self.shapes: dict[Any, list[int]] = {}  # of results that were put in blocks, before that
        self.op: Any = None
        self.ip: Any = None

    def run(self, ops: Sequence[Operation]) -> None:
        elementwise = self.traits.family("elementwise_op")
        for op in ops:
            if op.name == _FUNCTION:
                self.arguments(op)
                continue
            if op.name in elementwise:
                self.compute(op)
            if asks_for_blocks(op):
                self.result(op)
                for label in _LABELS:
                    if label in op.attributes:
                        del op.attributes[label]

    def arguments(self, function: Operation) -> None:
        """Puts the arguments of a function in blocks. At the boundary they have no halos, and dimensions
        with unequal parts are whole."""
        entries = boundary_attributes(function.opview, "arg_attrs")
        if not any(label in entry for entry in entries for label in _LABELS):
            return
        block = function.regions[0].blocks[0]
        self.op, self.ip = function, ir.InsertionPoint.at_block_begin(block)
        for number, entry in enumerate(entries):
            held = entries_of(entry, *_LABELS)
            if len(held) < len(entry):
                value, sharding = block.arguments[number], held["sdy.sharding"]
                blocks = self.read(value, sharding, entry)
                if blocks and _are_equal(blocks):
                    self.halos[value] = blocks
                elif blocks:
                    uses = _uses(value)
                    self.op = uses[0][0].operation if uses else function
                    self.hand_on(uses, self.put(value, blocks, sharding))
                    held["sdy.sharding"] = _whole(sharding, blocks)
            entries[number] = ir.DictAttr.get(held)
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(entries)

    def result(self, op: Operation) -> None:
        """Puts the result of an op in blocks."""
        (value,) = op.results
        self.op, sharding = op, _sharding(op)
        blocks = self.read(value, sharding, op.attributes)
        if not blocks or self.blocks.get(value) == blocks:
            return
        if _are_equal(blocks):
            there = self.together.get(op.operands[0]) if op.name == _CONSTRAINT else None
            if there is not None and self.blocks[there] == blocks:
                self.together[value] = there
            self.halos[value] = blocks
            return
        if op.name == _CONSTRAINT:
            self.ip = ir.InsertionPoint(op.operation)
            op.operands[0] = self.put(op.operands[0], blocks, sharding)
            self.give(op, blocks)
            return
        self.ip = ir.InsertionPoint.after(op.operation)
        if value in self.blocks:  # in other ones
            uses = [use for each in self.together if self.together[each] == value for use in _uses(each)]
            value = self.join(value)
        else:
            uses = _uses(value)
        self.hand_on(uses, self.put(value, blocks, sharding))

    def compute(self, op: Operation) -> None:
        """Lets an elementwise op compute on blocks, if its operands are in equal blocks, or constants."""
        if len(op.results) != 1 or len({tuple(shape_of(v)) for v in (*op.operands, *op.results)}) != 1:
            return
        self.op, self.ip = op, ir.InsertionPoint(op.operation)
        asked = self.read(op.results[0], _sharding(op), op.attributes) if HALO in op.attributes else ()
        held = [self.blocks[self.together[v]] if v in self.together else () for v in op.operands]
        if asked:
            held = [self.halos.get(value, there) for value, there in zip(op.operands, held, strict=True)]
        layouts = {there for there in held if there}
        if len(layouts) != 1 or (layouts != {asked} and any(map(_are_equal, layouts))):
            return
        pairs = [*zip(op.operands, held, strict=True)]
        if any(maker(value, self.traits) != "constant" for value, there in pairs if not there):
            return
        value = next(value for value, there in pairs if there)
        sharding = _sharding(op) if asked else _sharding(self.together[value].owner)
        if "sdy.sharding" in op.attributes and _dims(_sharding(op)) != _dims(sharding):
            return
        (blocks,) = layouts
        for i, (value, _) in enumerate(pairs):
            op.operands[i] = self.put(value, blocks, sharding)
        op.attributes["sdy.sharding"] = _of_one(sharding)
        self.give(op, blocks)

    def give(self, op: Operation, blocks: tuple[Blocks, ...]) -> None:
        """Records that an op gives blocks. Users of its result get the joined rows."""
        (value,) = op.results
        uses, shape = _uses(value), shape_of(value)
        self.shapes[value] = [*shape]
        for each in blocks:
            shape[each.dim] = each.rows * len(each.own)
        value.set_type(ir.RankedTensorType.get(shape, value.type.element_type))
        self.blocks[value], self.ip = blocks, ir.InsertionPoint.after(op.operation)
        self.hand_on(uses, value)

    def hand_on(self, uses: Sequence[tuple[Any, int]], value: Value) -> None:
        """Gives the users of a value in blocks its joined rows."""
        if uses:
            joined = self.join(value)
            for owner, number in uses:
                owner.operands[number] = joined

    def join(self, value: Value) -> Any:
        """The rows of a value in blocks, each from the part that owns it."""
        blocks, sharding = self.blocks[value], _sharding(value.owner)
        equal = _are_equal(blocks)
        joined = self.lie(value, sharding if equal else _whole(sharding, blocks))
        for each in blocks:
            if equal:
                joined = self.cut_off(joined, each, sharding)
            else:
                joined = self.beside([self.cut(joined, each.dim, *rows) for rows in each.owned()], each.dim)
        self.together[joined] = value
        return joined

    def cut_off(self, value: Value, blocks: Blocks, sharding: Any) -> Any:
        """Blocks without their halos: each device cuts off its own."""
        (before, _), (first, end), dim = blocks.halo or (0, 0), blocks.own[0], blocks.dim
        parts = self.by_part(value, blocks, sharding)
        parts = self.cut(parts, dim + 1, before, before + end - first, _by_part(sharding, dim))
        return self.of_parts(parts, dim, sharding)

    def extend(self, value: Value, blocks: Blocks, nothing: Any, sharding: Any) -> Any:
        """A value in equal parts, each with the rows of its neighbours that it holds."""
        before, after = blocks.halo or (0, 0)
        dim, shard_by_part = blocks.dim, _by_part(sharding, blocks.dim)
        own = self.by_part(value, blocks, sharding)
        count, size, parts = len(blocks.own), shape_of(own)[dim + 1], [own]
        reach = size * (count - 1)  # farther away there are no rows
        for distance in range(1, count):
            done = size * (distance - 1)
            if (rows := min(size, before - done)) > 0:
                last = self.cut(own, dim + 1, size - rows, size, shard_by_part)
                parts.insert(0, self.pad(last, nothing, dim, (distance, -distance), shard_by_part))
            if (rows := min(size, after - done)) > 0:
                first = self.cut(own, dim + 1, 0, rows, shard_by_part)
                parts.append(self.pad(first, nothing, dim, (-distance, distance), shard_by_part))
        beside = self.beside(parts, dim + 1, shard_by_part)
        if max(before, after) > reach:
            padding = max(before - reach, 0), max(after - reach, 0)
            beside = self.pad(beside, nothing, dim + 1, padding, shard_by_part)
        return self.of_parts(beside, dim, sharding)

    def by_part(self, value: Value, blocks: Blocks, sharding: Any) -> Any:
        """A value with a dimension for the parts, before that of their rows."""
        shape, dim, count = shape_of(value), blocks.dim, len(blocks.own)
        shape[dim : dim + 1] = [count, shape[dim] // count]
        held = _said_by(_by_part(sharding, dim))
        return self.one("stablehlo.reshape", [value], shape, value.type.element_type, held)

    def of_parts(self, value: Value, dim: int, sharding: Any) -> Any:
        """A value whose rows are those of its parts, one after the other."""
        shape = shape_of(value)
        shape[dim : dim + 2] = [shape[dim] * shape[dim + 1]]
        held = _said_by(sharding)
        return self.one("stablehlo.reshape", [value], shape, value.type.element_type, held)

    def put(self, value: Value, blocks: tuple[Blocks, ...], sharding: Any) -> Any:
        """A value in blocks, with zeros in the padding."""
        source = self.together.get(value)
        if source is not None and self.blocks[source] == blocks:
            return source
        element = value.type.element_type
        scalar = ir.RankedTensorType.get([], element)
        number = ir.Attribute.parse(f"dense<{zero(element)}> : {scalar}")
        nothing = self.one("stablehlo.constant", [], [], element, {"value": number})
        equal = _are_equal(blocks) and maker(value, self.traits) != "constant"
        padded = self.lie(value, sharding) if equal else value
        for each in blocks:
            if equal:
                padded = self.extend(padded, each, nothing, sharding)
                continue
            size, parts = shape_of(padded)[each.dim], list[Any]()
            for low, high in each.held:
                first, end = min(max(low, 0), size), max(min(high, size), 0)
                before = first - low if first < end else 0
                padding = before, each.rows - before - max(end - first, 0)
                part = self.cut(padded, each.dim, first, max(first, end))
                parts.append(self.pad(part, nothing, each.dim, padding))
            padded = self.beside(parts, each.dim)
        padded = self.lie(padded, sharding)
        self.blocks[padded] = blocks
        return padded

    # ---- What is said --------------------------------------------------------------------------------------

    def read(self, value: Value, attribute: ir.Attribute, held: Any) -> tuple[Blocks, ...]:
        """The dimensions of a value to put in blocks."""
        shape = self.shapes.get(value) or shape_of(value)
        dims = self.shardings.read(attribute).dimensions
        counts = [(d, prod(axis.size for axis in dim.axes)) for d, dim in enumerate(dims) if dim.axes]
        numbers = {label: [*ir.DenseI64ArrayAttr(held[label])] for label in _LABELS if label in held}
        if any(number == DYNAMIC for each in numbers.values() for number in each):
            what = "the size of a halo" if HALO in numbers else "where a part begins"
            message, hint = f"{what} is not known, which partitioning needs", "give a number in place of ?"
            raise ShardlogError(message, where=location(self.op), hint=hint)
        offsets, halo, blocks = numbers.get(OFFSETS, []), numbers.get(HALO, []), list[Blocks]()
        for i, (dim, count) in enumerate(counts):
            rows = -(-shape[dim] // count)
            equal = tuple((min(k * rows, shape[dim]), min((k + 1) * rows, shape[dim])) for k in range(count))
            if HALO in numbers:
                before, behind = halo[2 * i : 2 * i + 2]
                own = equal
                held_rows = tuple((k * rows - before, (k + 1) * rows + behind) for k in range(count))
            else:
                own = held_rows = tuple(pairwise(offsets[: count + 1]))
                offsets = offsets[count + 1 :]
            if held_rows != equal:
                blocks.append(Blocks(dim, own, held_rows))
        return tuple(blocks)

    # ---- Ops -----------------------------------------------------------------------------------------------

    def cut(self, value: Value, dim: int, first: int, end: int, sharding: Any = None) -> Any:
        """Rows of a value, in parts as a sharding says."""
        shape = [*shape_of(value)]
        ends = [end if d == dim else size for d, size in enumerate(shape)]
        starts = [first if d == dim else 0 for d in range(len(shape))]
        shape[dim] = end - first
        held = {"start_indices": starts, "limit_indices": ends, "strides": [1] * len(shape)}
        attributes = {label: ir.DenseI64ArrayAttr.get(numbers) for label, numbers in held.items()}
        return self.one(
            "stablehlo.slice", [value], shape, value.type.element_type, attributes | _said_by(sharding)
        )

    def pad(
        self, value: Value, nothing: Any, dim: int, padding: tuple[int, int], sharding: Any = None
    ) -> Any:
        """A value with this many rows before and after it; with fewer, if negative."""
        if padding == (0, 0):
            return value
        shape = [*shape_of(value)]
        shape[dim] += sum(padding)
        none = [0] * len(shape)
        low, high = ([*none[:dim], n, *none[dim + 1 :]] for n in padding)
        held = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": none}
        attributes = {label: ir.DenseI64ArrayAttr.get(numbers) for label, numbers in held.items()}
        attributes |= _said_by(sharding)
        return self.one("stablehlo.pad", [value, nothing], shape, value.type.element_type, attributes)

    def beside(self, parts: list[Any], dim: int, sharding: Any = None) -> Any:
        """Values concatenated along a dimension."""
        shape = [*shape_of(parts[0])]
        shape[dim] = sum(shape_of(part)[dim] for part in parts)
        attributes = {"dimension": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim)}
        attributes |= _said_by(sharding)
        return self.one("stablehlo.concatenate", parts, shape, parts[0].type.element_type, attributes)

    def lie(self, value: Value, sharding: ir.Attribute) -> Any:
        """A value with a sharding."""
        shape, element = shape_of(value), value.type.element_type
        return self.one(_CONSTRAINT, [value], shape, element, {"sharding": sharding})

    def one(self, name: str, operands: list[Any], shape: list[int], element: Any, attributes: Any) -> Any:
        type_ = ir.RankedTensorType.get(shape, element)
        op = ir.Operation.create(name, [type_], operands, attributes, loc=self.op.location, ip=self.ip)
        self.mark(op, self.op, False)
        return op.results[0]


def _uses(value: Value) -> list[tuple[Any, int]]:
    return [(use.owner, use.operand_number) for use in value.uses]


def _sharding(op: Operation) -> Any:
    """The sharding of the result of an op."""
    if op.operation.name == _CONSTRAINT:
        return sdy.TensorShardingAttr(op.attributes["sharding"])
    (sharding,) = sdy.TensorShardingPerValueAttr(op.attributes["sdy.sharding"]).shardings
    return sdy.TensorShardingAttr(sharding)


def _dims(sharding: Any) -> list[Any]:
    return [sdy.DimensionShardingAttr(dim).axes for dim in sharding.dimension_shardings]


def _are_equal(blocks: Sequence[Blocks]) -> bool:
    """Whether blocks are equal parts with halos of their neighbours."""
    return all(each.halo is not None for each in blocks)


def _of_one(sharding: Any) -> Any:
    """A sharding as an op with one result says it."""
    return sdy.TensorShardingPerValueAttr.get([sharding])


def _said_by(sharding: Any) -> dict[str, Any]:
    return {} if sharding is None else {"sdy.sharding": _of_one(sharding)}


def _by_part(attribute: Any, dim: int) -> Any:
    """A sharding of a value with a dimension for the parts of a dimension, before that of their rows."""
    sharding, whole = sdy.TensorShardingAttr(attribute), sdy.DimensionShardingAttr.get([], is_closed=True)
    dims = [*sharding.dimension_shardings]
    return sdy.TensorShardingAttr.get(sharding.mesh_or_ref, [*dims[: dim + 1], whole, *dims[dim + 1 :]])


def _whole(attribute: ir.Attribute, blocks: Sequence[Blocks]) -> Any:
    """A sharding that leaves dimensions whole."""
    sharding, whole = sdy.TensorShardingAttr(attribute), {each.dim for each in blocks}
    none = sdy.DimensionShardingAttr.get([], is_closed=True)
    dims = [none if d in whole else dim for d, dim in enumerate(sharding.dimension_shardings)]
    return sdy.TensorShardingAttr.get(sharding.mesh_or_ref, dims)
