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


def gather(site: LocalSite, operands: list[Value]) -> list[Any]:
    """A device looks up positions in its part of the operand, and has zeros for others."""
    builder, (operand, indices) = site.builder, operands
    operand, numbers = builder.fenced(operand), "dimension_numbers"
    columns = site.items(f"{numbers}.start_index_map")
    shared = {f for f, _ in site.taken.factors if f in site.knowledge.partial}
    dims = [d for d, factors in enumerate(site.knowledge.maps[0]) if shared.intersection(factors)]
    if not dims:
        return parts(site, [operand, indices])
    vector = _vector_dim(site, numbers)
    indices = _wide(builder, indices)
    local, insides = {}, []
    for dim in dims:
        place = _column(builder, indices, vector, columns.index(dim))
        size, pieces = site.size(0, dim), site.pieces(0, dim)
        inside, at = _own_places(builder, _clamped(builder, place, size - 1), size, pieces)
        local[columns.index(dim)] = at
        insides.append(inside)
    indices = _with_columns(builder, indices, vector, local)
    (result,) = parts(site, [operand, indices])
    inside = _all(builder, insides)
    offsets = site.items(f"{numbers}.offset_dims")
    shape = shape_of(result)
    loops = [d for d in range(len(shape)) if d not in offsets]
    inside = builder.one(
        "stablehlo.reshape", [inside], builder.tensor([shape[d] for d in loops], element_of(inside))
    )
    attributes = {"broadcast_dimensions": builder.integers(loops)}
    inside = builder.one(
        "stablehlo.broadcast_in_dim", [inside], builder.tensor(shape, element_of(inside)), attributes
    )
    return [builder.select(inside, result, builder.zero(element_of(result), shape))]


def scatter(site: LocalSite, operands: list[Value]) -> list[Any]:
    """A device writes the updates in its part. Others are out of bounds, and XLA skips these."""
    builder, numbers = site.builder, "scatter_dimension_numbers"
    slot = len(site.op.results)  # of the indices
    columns = site.items(f"{numbers}.scattered_dims_to_operand_dims")
    written = {factor for factors in site.knowledge.maps[slot + 1] for factor in factors}  # with the updates
    indices, vector = operands[slot], _vector_dim(site, numbers)
    split = [d for d in columns if site.pieces(0, d) and written.isdisjoint(site.knowledge.maps[0][d])]
    padded = [
        d
        for d in range(len(shape_of(indices)))
        if site.pieces(slot, d)
        and shape_of(indices)[d] * builder.axes.product(site.pieces(slot, d)) != site.size(slot, d)
    ]
    windows = {d: window for d, window in _windows(site).items() if d in split}
    sizes = {d: site.size(slot + 1, window) for d, window in windows.items()}
    outside = str(-max(sizes.values(), default=1))  # of the tensor, with each row of a window
    if split or padded:
        indices = _wide(builder, indices)
    if split:
        local = {}
        for d in split:
            place = _column(builder, indices, vector, columns.index(d))
            if sizes.get(d, 1) > 1:  # XLA skips a window that is partly outside
                inside = _within(builder, place, site.size(0, d) - sizes[d])
                place = builder.select(
                    inside, place, builder.splat(outside, element_of(place), shape_of(place))
                )
            local[columns.index(d)] = _relative(builder, place, site.size(0, d), site.pieces(0, d))
        indices = _with_columns(builder, indices, vector, local)
    for d in padded:
        fill = builder.splat(outside, element_of(indices))
        indices = builder.mask(indices, site.size(slot, d), site.pieces(slot, d), d, fill)
    first, *others = operands[:slot]
    operands = [builder.fenced(first), *others, indices, *operands[slot + 1 :]]
    windows = {d: window for d, window in windows.items() if sizes[d] > 1}
    return _by_rows(site, operands, windows) if windows else parts(site, operands)


def _windows(site: LocalSite) -> dict[int, int]:
    """For each dimension of the operand in which windows of a scatter lie: their dimension of the updates."""
    numbers = _SCATTER(site.op.attributes["scatter_dimension_numbers"])
    points = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    dims = [d for d in range(len(site.knowledge.shapes[0] or ())) if d not in points]
    return dict(zip(dims, numbers.update_window_dims, strict=True))


def _by_rows(site: LocalSite, operands: list[Value], windows: Mapping[int, int]) -> list[Any]:
    """A scatter whose windows are taken apart along some dimensions, into rows with an index each. So a
    device writes the rows in its part and skips the others."""
    builder, slot = site.builder, len(site.op.results)
    numbers = _SCATTER(site.op.attributes["scatter_dimension_numbers"])
    indices, vector = operands[slot], numbers.index_vector_dim
    columns, batches = numbers.scattered_dims_to_operand_dims, numbers.scatter_indices_batching_dims
    kept = [u for u in numbers.update_window_dims if u not in windows.values()]
    loops = [u for u in range(len(shape_of(operands[slot + 1]))) if u not in kept]
    for d, window in sorted(windows.items(), key=lambda item: item[1]):
        at = loops.index(window)
        at += at > vector
        dims = [i + (i >= at) for i in range(len(shape_of(indices)))]
        vector, batches = vector + (at <= vector), [dims[i] for i in batches]
        shape = shape_of(indices)
        shape.insert(at, site.size(slot + 1, window))
        attributes = {"broadcast_dimensions": builder.integers(dims)}
        element = element_of(indices)
        indices = builder.one(
            "stablehlo.broadcast_in_dim", [indices], builder.tensor(shape, element), attributes
        )
        column = columns.index(d)
        first = _column(builder, indices, vector, column)
        rows = builder.places(shape_of(first), at, builder.zero(element), element)
        places = builder.binary("stablehlo.add", first, rows)
        indices = _with_columns(builder, indices, vector, {column: places})
    inserted = sorted([*numbers.inserted_window_dims, *windows])
    by_rows = _SCATTER.get(kept, inserted, numbers.input_batching_dims, batches, columns, vector)
    attributes = {"scatter_dimension_numbers": by_rows, "indices_are_sorted": ir.BoolAttr.get(False)}
    return clone(site, [*operands[:slot], indices, *operands[slot + 1 :]], attributes)


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
    places[dim] = _clamped(builder, begin, rows - size)
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
        place = _clamped(builder, _wide(builder, starts[d]), size - rows)
        value = own(site, value, d, _relative(builder, place, size, site.pieces(0, d)), rows)
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
        place = _clamped(builder, _wide(builder, start), site.size(0, d) - site.size(1, d))
        if d in split:
            relative = _relative(builder, place, site.size(0, d), site.pieces(0, d))
            place = _clamped(builder, relative, shape[d] - sizes[d])
            ahead[d] = builder.binary("stablehlo.subtract", place, relative)
        elif site.pieces(0, d):
            place = builder.zero(element_of(place))
        places.append(place)
    inside = _all(builder, _among(site, ahead, sizes))
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
            starts[d] = _clamped(builder, builder.binary("stablehlo.add", ahead[d], more), shape[d] + size)
    return builder.cut(builder.pad(part, margin, margin), _alike(builder, starts), sizes)


def _all(builder: Builder, predicates: Iterable[Value]) -> Any:
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


def _vector_dim(site: LocalSite, numbers: str) -> int:
    attribute: Any = site.op.attributes[numbers]
    kind = _GATHER if _GATHER.isinstance(attribute) else _SCATTER
    return int(kind(attribute).index_vector_dim)


def _wide(builder: Builder, indices: Value) -> Any:
    """Indices in a type that can be subtracted: signed, of at least 32 bits."""
    text = str(element_of(indices))
    if text in ("i32", "i64"):
        return indices
    wide = builder.i64 if text in ("ui32", "ui64") else builder.i32
    return builder.one("stablehlo.convert", [indices], builder.tensor(shape_of(indices), wide))


def _column(builder: Builder, indices: Any, vector: int, column: int) -> Any:
    """A component of the index vectors. Their dimension, if any, remains with size one."""
    return indices if vector == len(shape_of(indices)) else builder.rows(indices, vector, column, 1)


def _with_columns(builder: Builder, indices: Value, vector: int, columns: Mapping[int, Any]) -> Any:
    shape = shape_of(indices)
    if vector == len(shape):
        return columns[0]
    parts = [
        columns[j] if j in columns else _column(builder, indices, vector, j) for j in range(shape[vector])
    ]
    if len(parts) == 1:
        return parts[0]
    attributes = {"dimension": builder.integer(vector)}
    return builder.one("stablehlo.concatenate", parts, indices.type, attributes)


def _clamped(builder: Builder, places: Value, last: int) -> Any:
    shape, element = shape_of(places), element_of(places)
    low, high = builder.zero(element), builder.splat(str(max(last, 0)), element)
    return builder.one("stablehlo.clamp", [low, places, high], builder.tensor(shape, element))


def _within(builder: Builder, places: Value, last: int) -> Any:
    """Whether places are among the first ones, up to the last."""
    shape, element = shape_of(places), element_of(places)
    after = builder.compare("GE", places, builder.zero(element, shape))
    return builder.binary(
        "stablehlo.and", after, builder.compare("LT", places, builder.splat(str(last + 1), element, shape))
    )


def _relative(builder: Builder, places: Value, size: int, pieces: Pieces) -> Any:
    """Indices relative to the start of this device's part of a dimension."""
    start = _start(builder, size, pieces, element_of(places))
    return builder.binary("stablehlo.subtract", places, builder.spread(start, shape_of(places)))


def _start(builder: Builder, size: int, pieces: Pieces, element: ir.Type) -> Any:
    """The start of this device's part of a dimension."""
    start = builder.start(size, pieces)
    if element == builder.i32:
        return start
    return builder.one("stablehlo.convert", [start], builder.tensor((), element))


def _own_places(builder: Builder, places: Value, size: int, pieces: Pieces) -> tuple[Any, Any]:
    """Whether indices are in this device's part, and their position in it (0 if not)."""
    shape, element = shape_of(places), element_of(places)
    tile = builder.axes.tile(size, pieces)
    local = _relative(builder, places, size, pieces)
    inside = _within(builder, local, tile - 1)
    return inside, builder.select(inside, local, builder.zero(element, shape))


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
    "gather": gather,
    "scatter": scatter,
    "dynamic_slice": dynamic_slice,
    "update": update,
    "transform": transform,
    "collective": parts,
    "device": parts,
}
