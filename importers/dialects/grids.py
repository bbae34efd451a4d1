"""Grids of devices and shardings as the dialects say them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any

from jaxlib.mlir import ir

from ...errors import ShardlogError, closest
from ...program.carried import DYNAMIC

_ARRAY = re.compile(r"array<i\d+(?::([^>]*))?>")
_NUMBERS = re.compile(r"-?\d+")
_LISTS = re.compile(r"\[\s*((?:\[[^\[\]]*\]\s*,?\s*)*)\]")
_LIST = re.compile(r"\[([^\[\]]*)\]")
_PARTIAL = re.compile(r"(?:partial\s*=\s*)?(\w+)\s*\[([^\[\]]*)\]")


@dataclass(frozen=True)
class Grid:
    """A grid of devices. The size of an axis is None if unknown. ``word`` is the dialect's name for a
    grid."""

    name: str
    sizes: tuple[int | None, ...]
    word: str = "grid"

    def check(self, axes: Sequence[int], where: str) -> None:
        """Raises ShardlogError for axes that the grid does not have, or that are listed twice."""
        count = len(self.sizes)
        for axis in axes:
            if not 0 <= axis < count:
                has = f"the {self.word} has {counted(count, 'axis', 'axes')}"
                raise ShardlogError(f"axis {axis}, and {has}", where=where, hint=self.range_of_axes)
            if axes.count(axis) > 1:
                message, hint = f"axis {axis} is listed twice", "list every axis once"
                raise ShardlogError(message, where=where, hint=hint)

    @property
    def range_of_axes(self) -> str:
        """A hint that names the existing axes."""
        last = len(self.sizes) - 1
        if last < 1:
            return f"the only axis of @{self.name} is 0" if last == 0 else f"@{self.name} has no axes"
        return f"the axes of @{self.name} are 0 to {last}"

    def devices(self, axes: Iterable[int]) -> int | None:
        """How many devices a group over some axes has; None where that is not known."""
        sizes = [self.sizes[axis] for axis in axes]
        return None if None in sizes else prod(size for size in sizes if size is not None)


@dataclass(frozen=True)
class Spec:
    """A sharding of a tensor: the axes of each dimension, outermost first; those along which it is partial,
    and how that is reduced; halos and offsets, as the dialect has them."""

    grid: str
    axes: tuple[tuple[int, ...], ...]
    partial: tuple[int, ...] = ()
    reduction: str = "sum"
    halo: tuple[int, ...] = ()
    offsets: tuple[int, ...] = ()
    sdy_sharding: str = ""  # sdy's sharding, if that says more
    entries: int | None = None  # how many dimensions it speaks of, where it has fewer lists than dimensions

    def fit(self, grid: Grid, rank: int | None, where: str) -> Spec:
        """The sharding for a tensor, with an entry for each of its dimensions.

        Raises ShardlogError if it does not fit the tensor and the grid.
        """
        grid.check([axis for axes in (*self.axes, self.partial) for axis in axes], where)
        sharded = [i for i, axes in enumerate(self.axes) if axes]
        if self.halo and self.offsets:
            hint = "leave one of them out"
            raise ShardlogError("both halo sizes and offsets", where=where, hint=hint)
        if self.halo and len(self.halo) != 2 * len(sharded):
            sizes = counted(len(self.halo), "halo size")
            message = f"{sizes} for {counted(len(sharded), 'sharded dimension')}"
            hint = "give two for each of them, in front and behind" if sharded else "leave them out"
            raise ShardlogError(message, where=where, hint=hint)
        if any(size < 0 for size in self.halo if size != DYNAMIC):
            raise ShardlogError("a halo of negative size", where=where, hint="sizes are 0 or more")
        if rank is None:
            return self
        entries = len(self.axes) if len(self.axes) < rank else None
        return replace(self, axes=self._of_rank(rank, where), entries=entries)

    def _of_rank(self, rank: int, where: str) -> tuple[tuple[int, ...], ...]:
        if rank == 0 and self.axes == ((),):
            return ()  # LLVM has at least one list
        if len(self.axes) > rank:
            lists = counted(len(self.axes), "list of axes", "lists of axes")
            message = f"{lists} for a tensor of {counted(rank, 'dimension')}"
            raise ShardlogError(message, where=where, hint=f"give at most {rank}")
        return (*self.axes, *((),) * (rank - len(self.axes)))

    def lists(self) -> str:
        """The axes of its dimensions as the RFC writes them, with those along which it is partial, if any."""
        return str([[*axes] for axes in (*self.axes, *((self.partial,) if self.partial else ()))])

    def check_halo(self, shape: Sequence[int | None], where: str) -> None:
        """Raises ShardlogError for a halo of more rows than a tensor of this shape has."""
        split = [d for d, axes in enumerate(self.axes) if axes]
        for d, sizes in zip(split, zip(self.halo[::2], self.halo[1::2], strict=True), strict=False):
            rows, most = shape[d], max(sizes)
            if rows is not None and most > rows:
                message = f"a halo of {most} rows of dimension {d}, which has {rows}"
                raise ShardlogError(message, where=where, hint="a halo has rows of other devices")

    def check_offsets(self, grid: Grid, shape: Sequence[int | None], where: str) -> None:
        """Raises ShardlogError if the offsets do not fit a tensor of this shape."""
        given = list(self.offsets)
        sharded = [(i, grid.devices(axes)) for i, axes in enumerate(self.axes) if axes]
        if not given:
            return
        if any(count is None for _, count in sharded):
            hint = "give the axes of the grid sizes, or leave the offsets out"
            raise ShardlogError("offsets on axes of unknown size", where=where, hint=hint)
        wanted = sum(count + 1 for _, count in sharded if count is not None)
        if len(given) != wanted:
            parts = " and ".join(f"{count} parts of dimension {i}" for i, count in sharded)
            hint = f"give {wanted}: where each of {parts} begins, and where the last ends"
            hint = hint if sharded else "no dimension is sharded: leave them out"
            raise ShardlogError(counted(len(given), "offset"), where=where, hint=hint)
        for dimension, count in sharded:
            assert count is not None
            own, given = given[: count + 1], given[count + 1 :]
            self._check_offsets_of(
                dimension, own, shape[dimension] if dimension < len(shape) else None, where
            )

    def _check_offsets_of(self, dimension: int, own: list[int], size: int | None, where: str) -> None:
        of = f"of dimension {dimension}"
        static = [offset for offset in own if offset != DYNAMIC]
        hint = "offsets go from 0 to the size of the dimension"
        if any(offset < 0 for offset in static):
            raise ShardlogError(f"a negative offset {of}", where=where, hint=hint)
        if static != sorted(static):
            at = next(b for a, b in pairwise(static) if b < a)
            raise ShardlogError(f"offsets must not fall: {at} {of}", where=where, hint=hint)
        if own[0] not in (0, DYNAMIC):
            raise ShardlogError(f"offsets {of} begin at {own[0]}", where=where, hint=hint)
        if size is not None and own[-1] not in (size, DYNAMIC):
            where_to = "past the end" if own[-1] > size else "before the end"
            message = f"offsets {of} end at {own[-1]}, {where_to}: it has size {size}"
            raise ShardlogError(message, where=where, hint=hint)


def counted(number: int, one: str, several: str = "") -> str:
    """A number of things."""
    return f"{number} {one if number == 1 else several or f'{one}s'}"


def integers(attribute: Any) -> tuple[int, ...]:
    """The numbers of an array attribute, however it is written. Raises ValueError for another attribute."""
    if attribute is None:
        return ()
    if isinstance(attribute, ir.ArrayAttr):
        return tuple(number for entry in attribute for number in integers(entry))
    if isinstance(attribute, ir.IntegerAttr):
        return (attribute.value,)
    if isinstance(attribute, ir.DenseIntElementsAttr):
        return tuple(attribute[i] for i in range(len(attribute)))
    match = _ARRAY.fullmatch(str(attribute))
    if match is None:
        raise ValueError(attribute)
    return tuple(map(int, _NUMBERS.findall(match[1] or "")))


def axis_lists(attribute: Any) -> tuple[tuple[int, ...], ...]:
    """The lists of axes that an attribute says. Raises ValueError for another attribute."""
    if isinstance(attribute, ir.ArrayAttr):
        if any(isinstance(entry, ir.IntegerAttr) for entry in attribute):
            raise ValueError(attribute)
        return tuple(integers(entry) for entry in attribute)
    match = _LISTS.search(str(attribute))
    if match is None:
        raise ValueError(attribute)
    inner = [[entry.strip() for entry in each.split(",")] for each in _LIST.findall(match[1])]
    return tuple(tuple(map(int, filter(None, entries))) for entries in inner)


def kind_of(attribute: Any) -> str:
    """The kind of a reduction that an attribute says: "sum" if none."""
    if attribute is None:
        return "sum"
    if isinstance(attribute, ir.StringAttr):
        return str(attribute.value)
    text = str(attribute)
    if "<" not in text:
        raise ValueError(attribute)
    return text.partition("<")[2].rstrip(">").removeprefix("partial ").strip()


def check_kind(kind: str, kinds: Collection[str], where: str) -> str:
    """A kind of reduction. Raises ShardlogError for one that is not known."""
    if kind not in kinds:
        hint = f"{closest(kind, kinds)}"
        raise ShardlogError(f"no reduction is called {kind}", where=where, hint=hint)
    return kind


def read_partial(text: str) -> tuple[str, tuple[int, ...]]:
    """The kind and the axes that ``max[1]`` says; of no text, no axes."""
    match = _PARTIAL.search(text)
    if match is None:
        return "sum", ()
    return match[1], tuple(map(int, _NUMBERS.findall(match[2])))


def find(grids: dict[str, Grid], name: str, where: str) -> Grid:
    """The grid with a name. Raises ShardlogError if there is none."""
    if name not in grids:
        hint = (
            closest(f"@{name}", [f"@{n}" for n in grids])
            if grids
            else "declare it: shard.grid @name(shape = 2x3)"
        )
        raise ShardlogError(f"no grid @{name}", where=where, hint=hint)
    return grids[name]
