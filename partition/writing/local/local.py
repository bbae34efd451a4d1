"""Writes the local form of ops: one function for each lowering that ``rules/partition/local.dl`` names.

Each takes the op with its chosen candidate, and its operands in the candidate's layouts. It returns the
results in theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from ....errors import ShardlogError
from ....program.function import location
from ....program.ids import Slot
from ....program.mlir.types import Value
from ....program.signature import attributes
from ...choice.choosing import Candidate
from ...choice.purposes import Computed, Purpose, purpose_of
from ...facts.knowledge import Knowledge
from ...layouts import Pieces
from ..building import Builder, element_of, shape_of


@dataclass(slots=True)
class LocalSite:
    """An op to lower: how it is computed, and how to get values that its regions capture. Collectives are for
    its results, unless another slot is named (``sends``)."""

    builder: Builder
    op: Any
    computed: Computed
    captured: Callable[[Any], Any | None]
    _purposes: dict[int, Purpose] = field(default_factory=dict)

    @property
    def knowledge(self) -> Knowledge:
        """The rules' knowledge of the op."""
        return self.computed.knowledge

    @property
    def taken(self) -> Candidate:
        """The chosen way to compute it."""
        return self.computed.choice.taken

    def types(self) -> list[Any]:
        """The types of the local parts of results; None if they are whole."""
        types_of = self.builder.types_of
        key = self.knowledge, id(self.taken)
        if key not in types_of:
            types_of[key] = self._types()
        return types_of[key]

    def _types(self) -> list[Any]:
        count, types = len(self.op.operands), list[Any]()
        for i, type_ in enumerate(self.op.results.types):
            shape, dims = self.knowledge.shapes[count + i], self.taken.layouts[count + i].dims
            if not shape or not any(dims):
                types.append(None)
                continue
            local = self.builder.axes.local(shape, dims)
            types.append(self.builder.tensor(local, ir.RankedTensorType(type_).element_type))
        return types

    def pieces(self, slot: int, dim: int) -> Pieces:
        """The pieces that a dimension of a slot is split on."""
        return self.taken.layouts[slot].dims[dim]

    def sends(self, slot: int) -> AbstractContextManager[None]:
        """Collectives in this context are for this slot."""
        return self.builder.serving(lambda: self._purpose(slot))

    def _purpose(self, slot: int) -> Purpose:
        if slot not in self._purposes:
            self._purposes[slot] = purpose_of(self.op, self.computed, Slot(slot))
        return self._purposes[slot]

    def size(self, slot: int, dim: int) -> int:
        """The size of a dimension of the whole tensor."""
        shape = self.knowledge.shapes[slot]
        assert shape is not None
        return shape[dim]

    def items(self, name: str) -> list[int]:
        """A list of integers of the op, as the rules call it."""
        container, _, field = name.partition(".")
        attribute: Any = self.op.attributes[container]
        if field:
            for kind in _NUMBERS:
                if kind.isinstance(attribute):
                    return list(getattr(kind(attribute), field))
        return list(attribute)

    def attributes(self) -> dict[str, Any]:
        """The sizes and counts of parts, as replacements for attributes of the op."""
        attributes: dict[str, ir.Attribute] = {}
        lists: dict[str, list[int]] = {}
        for name, index, slot, dim in self.knowledge.local_sizes:
            if self.pieces(slot, dim):
                values = lists.setdefault(name, list(self.op.attributes[name]))
                values[index] = self.builder.axes.tile(self.size(slot, dim), self.pieces(slot, dim))
        for name, values in lists.items():
            attributes[name] = self.builder.integers(values)
        for name, factor in self.knowledge.counts:
            if pieces := self.taken.of(factor):
                attribute: Any = self.op.attributes[name]
                count = self.builder.axes.tile(attribute.value, pieces)
                attributes[name] = ir.IntegerAttr.get(attribute.type, count)
        return attributes

    @property
    def plain(self) -> bool:
        """Whether the local op is just the op on the parts of its operands."""
        knowledge = self.knowledge
        if knowledge.names_functions or knowledge.looks_up or knowledge.sized_by:
            return False
        return not any(
            self.taken.of(factor) and self.size(slot, dim) % self.builder.axes.product(self.pieces(slot, dim))
            for (slot, factor) in knowledge.fills
            for dim, factors in enumerate(knowledge.maps[slot])
            if factor in factors
        )

    def filled(self, operands: list[Value], slot: int) -> Any:
        """An operand whose padding is filled with values that do not change the result."""
        value = operands[slot]
        for dim, factors in enumerate(self.knowledge.maps[slot]):
            for factor in factors:
                what = self.knowledge.fills.get((Slot(slot), factor))
                if what is not None and self.taken.of(factor):
                    fill = self._fill(what, operands, slot)
                    value = self.builder.mask(value, self.size(slot, dim), self.pieces(slot, dim), dim, fill)
        return value

    def _fill(self, what: str, operands: list[Value], slot: int) -> Any:
        element = element_of(operands[slot])
        if what != "initial":
            return self.builder.zero(element)
        if self.knowledge.combine:
            return self.builder.neutral(self.knowledge.combine, element)
        return operands[slot + len(operands) // 2]


_GATHER, _SCATTER = stablehlo.GatherDimensionNumbers, stablehlo.ScatterDimensionNumbers
_NUMBERS: tuple[Any, ...] = (_GATHER, _SCATTER, stablehlo.ConvDimensionNumbers)


def clone(
    site: LocalSite, operands: Sequence[Value], attributes: Mapping[str, Any] | None = None
) -> list[Any]:
    """The op on other operands, with other attributes; its results have their local shapes."""
    copy = copied(site)
    for i, value in enumerate(operands):
        copy.operands[i] = value
    held = copy.attributes
    results = list(copy.results)
    for result, type_ in zip(results, site.types(), strict=True):
        if type_ is not None:
            result.set_type(type_)
    for name, value in (attributes or {}).items():
        held[name] = value
    return results


def copied(site: LocalSite) -> Any:
    """A copy of the op. Outer values that its regions use are those of the new program, made before it."""
    op, outside = site.op.operation, dict[Any, Any]()

    def find(inner: Any) -> ir.WalkResult:
        for value in inner.operands if inner != op else ():
            if value not in outside and (local := site.captured(value)) is not None:
                outside[value] = local
        return ir.WalkResult.ADVANCE

    def replace(inner: Any) -> ir.WalkResult:
        for i, value in enumerate(inner.operands):
            if inner != copy.operation and value in outside:
                inner.operands[i] = outside[value]
        return ir.WalkResult.ADVANCE

    if len(op.regions):
        op.walk(find)
    copy = site.builder.copy(op)
    if outside:
        copy.operation.walk(replace)
    return copy


def parts(site: LocalSite, operands: list[Value]) -> list[Any]:
    """The same op on parts, with sizes of parts among its attributes."""
    if site.knowledge.fills:
        operands = [site.filled(operands, t) for t in range(len(operands))]
    if site.knowledge.sized_by and site.types()[0] is not None:
        operands = [_sizes(site, v) if t in site.knowledge.sized_by else v for t, v in enumerate(operands)]
    special = site.knowledge.local_sizes or site.knowledge.counts
    return clone(site, operands, site.attributes() if special else None)


def _sizes(site: LocalSite, value: Value) -> Any:
    """A constant like ``value``, with sizes of the first result, with the sizes of its part."""
    maker: Any = None if isinstance(value.owner, ir.Block) else value.owner.operation
    for name, attribute in attributes(maker) if maker is not None else ():
        if isinstance(attribute, ir.DenseElementsAttr):
            copy = site.builder.copy(maker)
            written = f"dense<{list(site.types()[0].shape)}> : {attribute.type}"
            copy.attributes[name] = ir.Attribute.parse(written)
            return copy.results[0]
    hint = "make them a constant, which has other sizes in a part"
    raise ShardlogError("sizes that are not known before it runs", where=location(site.op), hint=hint)


# ---- Reductions ------------------------------------------------------------------------------------------


def reduce(site: LocalSite, operands: list[Value]) -> list[Any]:
    """Each device reduces its part. If no collective can combine as the region does, all partial results are
    gathered and reduced once more."""
    results = parts(site, operands)
    partial = site.taken.layouts[len(operands)].partial
    if not partial or not site.knowledge.combined_by_itself:
        return results
    builder, all_parts = site.builder, list[Any]()
    for i, value in enumerate(results):
        row = builder.tensor([1, *shape_of(value)], element_of(value))
        with site.sends(len(operands) + i):
            all_parts.append(gathered(builder, builder.one("stablehlo.reshape", [value], row), partial, 0))
    initial = operands[len(operands) // 2 :]
    copy = copied(site)
    for i, value in enumerate([*all_parts, *initial]):
        copy.operands[i] = value
    copy.attributes["dimensions"] = builder.integers([0])
    for result, value in zip(copy.results, results, strict=True):
        result.set_type(value.type)
    return list(copy.results)


def gathered(builder: Builder, value: Value, pieces: Pieces, dim: int) -> Any:
    """The parts of devices along pieces, concatenated along a dimension."""
    sends = float(prod(shape_of(value))) * (builder.axes.product(pieces) - 1)
    return builder.all_gather(value, pieces, dim, sends)


def select(site: LocalSite, operands: list[Value]) -> list[Any]:
    """Each device selects from its part of the last dimension. The op then selects again from all selected
    elements, and returns their original positions."""
    picked = picked_dims(site)
    values, places = parts(site, operands)
    if not picked:
        return [values, places]
    builder, (dim,) = site.builder, picked
    pieces = site.pieces(0, dim)
    start = _start(builder, site.size(0, dim), pieces, element_of(places))
    places = builder.binary("stablehlo.add", places, builder.spread(start, shape_of(places)))
    with site.sends(len(operands)):
        values = gathered(builder, values, pieces, dim)
    with site.sends(len(operands) + 1):
        places = gathered(builder, places, pieces, dim)
    selected, at = clone(site, [values])
    return [selected, _along(builder, places, at)]


def _along(builder: Builder, value: Value, at: Any) -> Any:
    """The elements of each row at positions of its own."""
    *rows, _ = rank = range(len(shape_of(value)))
    numbers = _GATHER.get([], [rank[-1]], rows, rows, [rank[-1]], len(rank))
    attributes = {"dimension_numbers": numbers, "slice_sizes": builder.integers([1] * len(rank))}
    type_ = builder.tensor(shape_of(at), element_of(value))
    return builder.one("stablehlo.gather", [value, at], type_, attributes)


# ---- Places known at run time ----------------------------------------------------------------------------


def picked_dims(site: LocalSite) -> list[int]:
    """The dimensions of operand 0 along which each device gives its part of the slice."""
    count = len(site.op.operands)
    dims = range(len(site.knowledge.shapes[0] or ()))
    return [d for d in dims if site.pieces(0, d) and not site.pieces(count, d)]


def own(site: LocalSite, value: Value, dim: int, begin: Value, size: int) -> Any:
    """This device's share of this many rows from ``begin`` on, where its own rows begin at 0, with zeros for
    rows of other devices. A single row is sliced anyway, and masked if it belongs to another device. Several
    rows are sliced from the part with zeros around it. The slices begin inside, because XLA merges two slices
    as if they did."""
    builder, sizes, element = site.builder, shape_of(value), element_of(begin)
    rows, alone = sizes[dim], size == 1
    if not alone:
        margin = [size if d == dim else 0 for d in range(len(sizes))]
        value, rows = builder.pad(value, margin, margin), rows + 2 * size
        begin = builder.binary("stablehlo.add", begin, builder.splat(str(size), element))
    sizes[dim] = size
    places = [builder.zero(element) for _ in sizes]
    places[dim] = clamped(builder, begin, rows - size)
    cut = builder.cut(value, places, sizes)
    if not alone:
        return cut
    inside = builder.spread(builder.compare("EQ", begin, places[dim]), sizes)
    return builder.select(inside, cut, builder.zero(element_of(value), sizes))


def dynamic_slice(site: LocalSite, operands: list[Value]) -> list[Any]:
    """This device's share of the slice, with zeros for rows of other devices."""
    builder, (value, *starts) = site.builder, operands
    picked = picked_dims(site)
    cut = [d for d in range(len(starts)) if site.size(0, d) != site.size(len(operands), d)]
    fenced = builder.fenced(value, None if picked else cut)
    if fenced == value and builder.is_slice(
        value
    ):  # dimensions that are not sliced begin at zero, whatever their index
        starts = [start if d in cut else builder.zero(element_of(start)) for d, start in enumerate(starts)]
    value = fenced
    for d in picked:
        size, rows = site.size(0, d), site.size(len(operands), d)
        place = clamped(builder, wide(builder, starts[d]), size - rows)
        value = own(site, value, d, relative(builder, place, size, site.pieces(0, d)), rows)
        starts[d] = builder.zero(element_of(starts[d]))
    return parts(site, [value, *starts])


def update(site: LocalSite, operands: list[Value]) -> list[Any]:
    """The rows of the update in this device's part are written into a stretch of it, which is as long as the
    update if possible. The other rows of the stretch keep their values. So everything outside of the stretch
    can stay in place."""
    builder, (value, part, *starts) = site.builder, operands
    split = [d for d in range(len(starts)) if site.pieces(0, d) and site.size(0, d) != site.size(1, d)]
    if not split:
        return parts(site, operands)
    shape, sizes = shape_of(value), shape_of(part)
    sizes = [min(size, shape[d]) if d in split else size for d, size in enumerate(sizes)]
    places, ahead = (
        list[Any](),
        dict[int, Any](),
    )  # the first row of the stretch: in the part, and in the update
    for d, start in enumerate(starts):
        place = clamped(builder, wide(builder, start), site.size(0, d) - site.size(1, d))
        if d in split:
            first = relative(builder, place, site.size(0, d), site.pieces(0, d))
            place = clamped(builder, first, shape[d] - sizes[d])
            ahead[d] = builder.binary("stablehlo.subtract", place, first)
        elif site.pieces(0, d):
            place = builder.zero(element_of(place))
        places.append(place)
    inside = conjunction(builder, _among(site, ahead, sizes))
    rows = _stretch(builder, part, ahead, sizes)
    places = _alike(builder, places)
    kept = builder.cut(value, places, sizes)
    return [builder.put(value, builder.select(inside, rows, kept), places)]


def _among(site: LocalSite, ahead: Mapping[int, Any], sizes: Sequence[int]) -> Iterator[Any]:
    """The rows of a stretch that are rows of the update; the first row of the stretch is ``ahead`` in it."""
    builder = site.builder
    for d, first in ahead.items():
        element = element_of(first)
        rows = builder.places(sizes, d, first, element)
        yield builder.compare("GE", rows, builder.zero(element, sizes))
        yield builder.compare("LT", rows, builder.splat(str(site.size(1, d)), element, sizes))


def _stretch(builder: Builder, part: Value, ahead: Mapping[int, Any], sizes: Sequence[int]) -> Any:
    """A stretch of an update, whose first row is ``ahead`` in it, with zeros around it. A single row is in
    place, or not needed at all."""
    shape = shape_of(part)
    margin = [sizes[d] if d in ahead and n > 1 else 0 for d, n in enumerate(shape)]
    if not any(margin):
        return part
    starts = [builder.number(0) for _ in shape]
    for d, size in enumerate(margin):
        if size:
            more = builder.splat(str(size), element_of(ahead[d]))
            starts[d] = clamped(builder, builder.binary("stablehlo.add", ahead[d], more), shape[d] + size)
    return builder.cut(builder.pad(part, margin, margin), _alike(builder, starts), sizes)


def conjunction(builder: Builder, predicates: Iterable[Value]) -> Any:
    """The conjunction of some predicates."""
    inside, *others = predicates
    for other in others:
        inside = builder.binary("stablehlo.and", inside, other)
    return inside


def _alike(builder: Builder, places: Sequence[Any]) -> list[Any]:
    """Positions converted to one type."""
    if len({str(element_of(place)) for place in places}) == 1:
        return list(places)
    i64 = builder.tensor((), builder.i64)
    return [builder.one("stablehlo.convert", [place], i64) for place in places]


def wide(builder: Builder, indices: Value) -> Any:
    """Indices in a type that can be subtracted: signed, of at least 32 bits."""
    text = str(element_of(indices))
    if text in ("i32", "i64"):
        return indices
    wide = builder.i64 if text in ("ui32", "ui64") else builder.i32
    return builder.one("stablehlo.convert", [indices], builder.tensor(shape_of(indices), wide))


def clamped(builder: Builder, places: Value, last: int) -> Any:
    shape, element = shape_of(places), element_of(places)
    low, high = builder.zero(element), builder.splat(str(max(last, 0)), element)
    return builder.one("stablehlo.clamp", [low, places, high], builder.tensor(shape, element))


def relative(builder: Builder, places: Value, size: int, pieces: Pieces) -> Any:
    """Indices relative to the start of this device's part of a dimension."""
    start = _start(builder, size, pieces, element_of(places))
    return builder.binary("stablehlo.subtract", places, builder.spread(start, shape_of(places)))


def _start(builder: Builder, size: int, pieces: Pieces, element: ir.Type) -> Any:
    """The start of this device's part of a dimension."""
    start = builder.start(size, pieces)
    if element == builder.i32:
        return start
    return builder.one("stablehlo.convert", [start], builder.tensor((), element))


def transform(site: LocalSite, operands: list[Value]) -> list[Any]:
    """A Fourier transform of rows. XLA for CPUs requires the default order of dimensions in memory, but lays
    out the operand as it comes. A list of rows, or of elements, comes in the default order."""
    builder, (value,) = site.builder, operands
    result = site.types()[0] or site.op.results[0].type
    shape, whole = shape_of(value), list(result.shape)
    if len(shape) == 1:
        return clone(site, operands)
    along = len(list(site.op.attributes["fft_length"]))
    rows = [prod(shape[:-along])] if len(shape) > along else []
    value = _in_order(builder, value, [*rows, *shape[-along:]])
    copy = copied(site)
    copy.operands[0] = value
    (transformed,) = copy.results
    transformed.set_type(builder.tensor([*rows, *whole[-along:]], element_of(transformed)))
    return [_in_order(builder, transformed, whole)]


def _in_order(builder: Builder, value: Value, shape: list[int]) -> Any:
    """A value in another shape, with its elements in order before or after the reshape, as an argument of a
    block is."""
    element = element_of(value)
    if len(shape) == len(shape_of(value)):
        if isinstance(value.owner, ir.Block):
            return value
        flat = builder.one("stablehlo.reshape", [value], builder.tensor([prod(shape)], element))
        value = builder.barrier(flat)
    return builder.one("stablehlo.reshape", [value], builder.tensor(shape, element))


COMPUTED: dict[str, Callable[[LocalSite, list[Any]], list[Any]]] = {
    "parts": parts,
    "reduce": reduce,
    "select": select,
    "dynamic_slice": dynamic_slice,
    "update": update,
    "transform": transform,
    "collective": parts,
    "device": parts,
}
