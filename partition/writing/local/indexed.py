"""Writes the local form of gathers and scatters, whose places are known only at run time."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from ....program.ids import Factor
from ....program.mlir.types import Value
from ..building import Builder, element_of, shape_of
from .local import LocalSite, clamped, clone, conjunction, parts, relative, wide

_GATHER, _SCATTER = stablehlo.GatherDimensionNumbers, stablehlo.ScatterDimensionNumbers


@dataclass(slots=True)
class _Indices:
    """Index vectors: their dimension, the dimension of the operand for each of their components, and the
    dimensions that are batches."""

    builder: Builder
    value: Any
    vector: int
    dims: Sequence[int]
    batches: list[int]

    def column(self, dim: int) -> Any:
        """The places along a dimension of the operand. The dimension of vectors, if any, has size one."""
        return self._nth(self.dims.index(dim))

    def _nth(self, n: int) -> Any:
        scalars = self.vector == len(shape_of(self.value))
        return self.value if scalars else self.builder.rows(self.value, self.vector, n, 1)

    def replace(self, columns: Mapping[int, Any]) -> None:
        """Sets the places along some dimensions of the operand."""
        if not columns:
            return
        shape = shape_of(self.value)
        if self.vector == len(shape):
            (self.value,) = columns.values()
            return
        all_columns = [columns[d] if d in columns else self._nth(n) for n, d in enumerate(self.dims)]
        self.value, *others = all_columns
        if others:
            attributes = {"dimension": self.builder.integer(self.vector)}
            type_ = self.builder.tensor(shape, element_of(self.value))
            self.value = self.builder.one("stablehlo.concatenate", all_columns, type_, attributes)

    def spread(self, dim: int, loop: int, size: int) -> None:
        """Takes windows apart along a dimension of the operand: each row gets an index of its own. The rows
        are this loop of the slices."""
        at, element = loop + (loop > self.vector), element_of(self.value)
        shape = shape_of(self.value)
        moved = [i + (i >= at) for i in range(len(shape))]
        shape.insert(at, size)
        self.vector, self.batches = self.vector + (at <= self.vector), [moved[i] for i in self.batches]
        attributes = {"broadcast_dimensions": self.builder.integers(moved)}
        type_ = self.builder.tensor(shape, element)
        self.value = self.builder.one("stablehlo.broadcast_in_dim", [self.value], type_, attributes)
        first = self.column(dim)
        rows = self.builder.places(shape_of(first), at, self.builder.zero(element), element)
        self.replace({dim: self.builder.binary("stablehlo.add", first, rows)})


def gather(site: LocalSite, operands: list[Value]) -> list[Any]:
    """A device looks up places in its part of the operand, and has zeros for others. It looks up windows over
    several parts row by row."""
    builder, (operand, starts) = site.builder, operands
    operand, numbers = builder.fenced(operand), _GATHER(site.op.attributes["dimension_numbers"])
    sizes, rank = site.items("slice_sizes"), len(site.knowledge.shapes[-1] or ())
    single = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    picked = _along(site, site.knowledge.picks)
    windows = {d: w for d, w in _windows(site, single, numbers.offset_dims).items() if d in picked}
    taken = {factor for factor, _ in site.taken.factors}
    looked_up = [*_along(site, taken & site.knowledge.partial), *windows]
    if not looked_up:
        return parts(site, [operand, starts])
    batches = list(numbers.start_indices_batching_dims)
    indices = _Indices(
        builder, wide(builder, starts), numbers.index_vector_dim, numbers.start_index_map, batches
    )
    places = {d: clamped(builder, indices.column(d), site.size(0, d) - sizes[d]) for d in looked_up}
    indices.replace(places)
    offsets = _by_rows(indices, numbers.offset_dims, rank, windows, sizes)
    insides = {}
    for d in looked_up:
        insides[d], places[d] = _own_places(site, indices.column(d), d)
    indices.replace(places)
    attributes = site.attributes()
    if windows:
        collapsed = sorted([*numbers.collapsed_slice_dims, *windows])
        attributes["dimension_numbers"] = _GATHER.get(
            offsets, collapsed, numbers.operand_batching_dims, indices.batches, indices.dims, indices.vector
        )
        local_sizes = attributes.get("slice_sizes", sizes)
        attributes["slice_sizes"] = builder.integers(
            [1 if d in windows else n for d, n in enumerate(local_sizes)]
        )
    (result,) = clone(site, [operand, indices.value], attributes)
    inside, shape = conjunction(builder, insides.values()), shape_of(result)
    loops = [d for d in range(rank) if d not in offsets]
    type_ = builder.tensor([shape[d] for d in loops], element_of(inside))
    inside = builder.one("stablehlo.reshape", [inside], type_)
    across = {"broadcast_dimensions": builder.integers(loops)}
    inside = builder.one(
        "stablehlo.broadcast_in_dim", [inside], builder.tensor(shape, element_of(inside)), across
    )
    return [builder.select(inside, result, builder.zero(element_of(result), shape))]


def scatter(site: LocalSite, operands: list[Value]) -> list[Any]:
    """A device writes the updates in its part. Others are out of bounds, and XLA skips these. Windows over
    several parts are written row by row."""
    builder, slot = site.builder, len(site.op.results)  # of the indices
    numbers = _SCATTER(site.op.attributes["scatter_dimension_numbers"])
    dims, shape = numbers.scattered_dims_to_operand_dims, shape_of(operands[slot])
    written = {factor for factors in site.knowledge.maps[slot + 1] for factor in factors}  # with the updates
    split = [d for d in dims if site.pieces(0, d) and written.isdisjoint(site.knowledge.maps[0][d])]
    padded = [
        d
        for d in range(len(shape))
        if shape[d] * builder.axes.product(site.pieces(slot, d)) != site.size(slot, d)
    ]
    single = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    windows = {d: w for d, w in _windows(site, single, numbers.update_window_dims).items() if d in split}
    sizes = {d: site.size(slot + 1, window) for d, window in windows.items()}
    windows = {d: window for d, window in windows.items() if sizes[d] > 1}
    outside = str(-max([1, *sizes.values()]))  # the place of a window without a row in the tensor
    batches = list(numbers.scatter_indices_batching_dims)
    indices = _Indices(builder, operands[slot], numbers.index_vector_dim, dims, batches)
    if split or padded:
        indices.value = wide(builder, indices.value)
    places = {d: indices.column(d) for d in split}
    for d in windows:  # XLA skips windows that are partly outside
        inside = builder.within(places[d], site.size(0, d) - sizes[d] + 1)
        far = builder.splat(outside, element_of(places[d]), shape_of(places[d]))
        places[d] = builder.select(inside, places[d], far)
    indices.replace(
        {d: relative(builder, place, site.size(0, d), site.pieces(0, d)) for d, place in places.items()}
    )
    for d in padded:
        fill = builder.splat(outside, element_of(indices.value))
        indices.value = builder.mask(indices.value, site.size(slot, d), site.pieces(slot, d), d, fill)
    first, *others = operands[:slot]
    operands = [builder.fenced(first), *others, indices.value, *operands[slot + 1 :]]
    if not windows:
        return parts(site, operands)
    kept = _by_rows(indices, numbers.update_window_dims, len(shape_of(operands[slot + 1])), windows, sizes)
    operands[slot], inserted = indices.value, sorted([*numbers.inserted_window_dims, *windows])
    by_rows = _SCATTER.get(kept, inserted, numbers.input_batching_dims, indices.batches, dims, indices.vector)
    attributes = {"scatter_dimension_numbers": by_rows, "indices_are_sorted": ir.BoolAttr.get(False)}
    return clone(site, operands, attributes)


def _along(site: LocalSite, factors: Container[Factor]) -> list[int]:
    """The dimensions of operand 0 that are in parts along one of these factors."""
    maps = site.knowledge.maps[0]
    return [d for d, along in enumerate(maps) if site.pieces(0, d) and any(f in factors for f in along)]


def _windows(site: LocalSite, single: Container[int], windows: Sequence[int]) -> dict[int, int]:
    """For each dimension of operand 0 in which windows lie, and not single elements: their dimension of the
    slices."""
    dims = [d for d in range(len(site.knowledge.shapes[0] or ())) if d not in single]
    return dict(zip(dims, windows, strict=True))


def _by_rows(
    indices: _Indices,
    all_windows: Sequence[int],
    rank: int,
    windows: Mapping[int, int],
    sizes: Mapping[int, int] | Sequence[int],
) -> list[int]:
    """Takes windows apart along some dimensions. Returns the dimensions of the slices that remain windows."""
    kept = [w for w in all_windows if w not in windows.values()]
    loops = [w for w in range(rank) if w not in kept]
    for dim, window in sorted(windows.items(), key=lambda item: item[1]):
        indices.spread(dim, loops.index(window), sizes[dim])
    return kept


def _own_places(site: LocalSite, places: Value, dim: int) -> tuple[Any, Any]:
    """Whether places are in this device's part of operand 0, and their place in it (0 if not)."""
    builder, size, pieces = site.builder, site.size(0, dim), site.pieces(0, dim)
    local = relative(builder, places, size, pieces)
    inside = builder.within(local, builder.axes.tile(size, pieces))
    return inside, builder.select(inside, local, builder.zero(element_of(local), shape_of(local)))


INDEXED: dict[str, Callable[[LocalSite, list[Any]], list[Any]]] = {"gather": gather, "scatter": scatter}
