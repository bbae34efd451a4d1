"""How a tensor lies on the devices of a mesh."""

from __future__ import annotations

from collections.abc import Collection, Container, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations, pairwise
from math import prod
from typing import NamedTuple, NewType

import numpy as np
import numpy.typing as npt

from ..program.meshes import Mesh, Meshes, SubAxis, axis_text
from ..program.reductions import COMBINED_BY
from ..program.shardings import Dimension, Sharding

PieceId = NewType("PieceId", int)  # of a piece in ``Axes.every``
Pieces = tuple[PieceId, ...]
PieceSet = frozenset[PieceId]
Dims = tuple[Pieces, ...]
Shape = tuple[int, ...]
_Cuts = dict[tuple[int, str], list[int]]  # the cuts of the axes of meshes


class Layout(NamedTuple):
    """Where the elements of a tensor are: for each dimension, the pieces of mesh axes that it is split on,
    major to minor.

    A dimension of size N in n parts has parts of ceil(N / n) elements; elements past the end are padding. A
    value that is ``partial`` on pieces must still be combined, by the op ``combine``, over the devices along
    them.
    """

    dims: Dims
    partial: Pieces = ()
    combine: str = ""

    @property
    def pieces(self) -> Iterator[PieceId]:
        """All pieces that the layout uses."""
        for dim in self.dims:
            yield from dim
        yield from self.partial

    @property
    def whole(self) -> bool:
        """Whether every device has the whole tensor."""
        return not self.partial and not any(self.dims)

    @property
    def complete(self) -> Layout:
        """The layout after its partial values are combined."""
        return Layout(self.dims)

    def without(self, pieces: Collection[PieceId]) -> Layout:
        """The layout without these pieces: not split on them, and not partial on them."""
        dims = tuple(tuple(p for p in dim if p not in pieces) for dim in self.dims)
        partial = tuple(p for p in self.partial if p not in pieces)
        return Layout(dims, partial, self.combine if partial else "")


def numbered(numbers: Iterable[int]) -> Pieces:
    """The pieces of some numbers."""
    return tuple(map(PieceId, numbers))


@cache
def replicated(rank: int) -> Layout:
    """The layout of a tensor that every device has as a whole."""
    return Layout(((),) * rank)


@dataclass(frozen=True)
class Piece:
    """A sub-axis that layouts are made of: one digit of a device's position along its axis."""

    mesh: int
    axis: str
    pre: int
    size: int


class _Part(NamedTuple):
    """A part of a mesh axis, from one place to another."""

    axis: str
    low: int
    high: int


class Axes:
    """The meshes of a module, with their axes cut into the pieces that shardings use.

    If two cuts of an axis do not divide each other, the pieces between them are not sub-axes (2 and 3 of 6).
    A sharding whose cut does not fit earlier ones is followed only up to that cut.

    ``every`` has these pieces and their parts of prime size (``primes``, by piece), which some reshards pass
    through.
    """

    def __init__(self, meshes: Meshes, shardings: Iterable[Sharding]) -> None:
        self.meshes = meshes
        self._counts = [prod(size for _, size in mesh.axes) for mesh in meshes.meshes]
        used = [n for n, mesh in enumerate(meshes.meshes) if mesh.axes]
        self.main = max(used, key=lambda n: self._counts[n]) if used else -1
        self.count = self._counts[self.main] if used else 1
        cuts: _Cuts = {}
        for number, mesh in enumerate(meshes.meshes):
            if meshes.same[number] == number:
                cuts |= {(number, axis): [1, size] for axis, size in mesh.axes}
        for sharding in shardings:
            mesh_number = meshes.same[sharding.mesh]
            for axis in (*chain(*(d.axes for d in sharding.dimensions)), *sharding.unreduced):
                bounds = cuts[mesh_number, axis.name]
                for cut in (axis.pre, axis.pre * axis.size):
                    if cut not in bounds and all(cut % c == 0 or c % cut == 0 for c in bounds):
                        bounds.append(cut)
        written = self._written_on_main(cuts)
        self.pieces: list[Piece] = []
        self._runs: dict[tuple[int, str], list[PieceId]] = {}
        for (number, name), bounds in cuts.items():
            if (number, name) in written:
                continue
            run = [Piece(number, name, low, high // low) for low, high in _between(bounds)]
            self._runs[number, name] = list(numbered(range(len(self.pieces), len(self.pieces) + len(run))))
            self.pieces.extend(run)
        for key, parts in written.items():
            self._runs[key] = [p for part in parts for p in self._inside(self.main, *part)]
        self.every = list(self.pieces)
        self.primes: list[Pieces] = []
        for number, piece in zip(self.numbers, self.pieces, strict=True):
            run, pre = list[Piece](), piece.pre
            for prime in _primes(piece.size):
                run.append(Piece(piece.mesh, piece.axis, pre, prime))
                pre *= prime
            first = len(self.every)
            self.primes.append(numbered(range(first, first + len(run))) if len(run) > 1 else (number,))
            self.every += run if len(run) > 1 else []
        self.primes += [(number,) for number in numbered(range(len(self.pieces), len(self.every)))]
        self.sizes = [piece.size for piece in self.every]
        self._groups: dict[Pieces, npt.NDArray[np.int64]] = {}
        self._indices: dict[Pieces, npt.NDArray[np.int64]] = {}

    @property
    def numbers(self) -> Pieces:
        """The numbers of the pieces that shardings use."""
        return numbered(range(len(self.pieces)))

    @property
    def key(self) -> Hashable:
        """Equal for axes with the same cuts."""
        return tuple(self.meshes.meshes), tuple(self.meshes.same), tuple(self.pieces)

    @property
    def named(self) -> Hashable:
        """Equal for axes of the same names and as many devices, if none is cut, whatever sizes they have."""
        names = tuple((piece.mesh, piece.axis) for piece in self.pieces)
        return self.count, names if len({*names}) == len(names) else self.key

    @property
    def mesh(self) -> Mesh | None:
        """The mesh with the most devices; of several, the first."""
        return self.meshes.meshes[self.main] if self.main >= 0 else None

    def _written_on_main(self, cuts: _Cuts) -> dict[tuple[int, str], list[_Part]]:
        """Axes of other meshes as parts of axes of the main mesh, if the same devices lie along both:
        ``"z"=8`` is ``"a"=2, "b"=4``. A tensor that is sharded on one is then sharded on the other. The main
        mesh is cut where the others need it."""
        parts_of: dict[tuple[int, str], list[_Part]] = {}
        same, main = self.meshes.same, self.main
        others = [n for n, count in enumerate(self._counts) if n == same[n] != main and count == self.count]
        main_digits = self._digits(main, cuts) if others else {}
        for number in others:
            own = self._digits(number, cuts, main_digits)
            if not own.keys() <= main_digits.keys():
                continue
            for axis, _ in self.meshes.meshes[number].axes:
                parts_of[number, axis] = []
                for low, high in _between(cuts[number, axis]):
                    inside = (key for key, p in own.items() if p.axis == axis and low <= p.low < high)
                    parts_of[number, axis] += _merged(main_digits[key] for key in inside)
                for part in parts_of[number, axis]:
                    cuts[main, part.axis] += [part.low, part.high]
        return parts_of

    def _digits(self, mesh: int, cuts: _Cuts, like: Container[bytes] = ()) -> dict[bytes, _Part]:
        """The parts of prime size of a mesh's axes, major to minor, by their stride in device numbers; in an
        order ``like`` another one, if possible."""
        digits_by_place, step = dict[bytes, _Part](), self._counts[mesh]
        order = np.argsort(self.meshes.meshes[mesh].device_ids or range(step))
        for axis, _ in self.meshes.meshes[mesh].axes:
            for low, high in _between(cuts[mesh, axis]):
                while low < high:
                    ways = {(order // (step // p) % p).tobytes(): p for p in _primes(high // low)}
                    places = next((places for places in ways if places in like), next(iter(ways)))
                    digits_by_place[places] = _Part(axis, low, low * ways[places])
                    low, step = low * ways[places], step // ways[places]
        return digits_by_place

    def at(self, mesh: int, axis: str, place: int) -> PieceId | None:
        """The piece at a place of an axis: the product of the sizes before it."""
        return next((p for p, low, high in self._placed(mesh, axis) if low <= place < high), None)

    def of_axes(self, mesh: int, names: Iterable[str]) -> Pieces:
        """The pieces of whole axes of a mesh."""
        return tuple(p for name in names for p in self._runs[self.meshes.same[mesh], name])

    def _inside(self, mesh: int, axis: str, low: int, high: int) -> list[PieceId]:
        """The pieces of a part of an axis, on any mesh."""
        return [p for p, start, end in self._placed(mesh, axis) if low <= start and end <= high]

    def _placed(self, mesh: int, axis: str) -> Iterator[tuple[PieceId, int, int]]:
        """The pieces of an axis, each with its begin and end."""
        place = 1
        for p in self._runs[self.meshes.same[mesh], axis]:
            yield p, place, place * self.pieces[p].size
            place *= self.pieces[p].size

    def of(self, mesh: int, axes: Sequence[SubAxis]) -> tuple[Pieces, bool]:
        """The pieces of a list of sub-axes, and whether they cover the whole list."""
        pieces: list[PieceId] = []
        for axis in axes:
            inside = self._inside(mesh, axis.name, axis.pre, axis.pre * axis.size)
            if self.product(inside) != axis.size:
                return tuple(pieces), False
            pieces.extend(inside)
        return tuple(pieces), True

    def layout(self, sharding: Sharding | None, shape: Shape) -> Layout:
        """The layout of a tensor with a sharding. On a mesh with fewer devices than the program it is
        whole."""
        if sharding is None or len(sharding.dimensions) != len(shape):
            return replicated(len(shape))
        if self._counts[sharding.mesh] != self.count:
            return replicated(len(shape))
        dims = tuple(self.of(sharding.mesh, dimension.axes)[0] for dimension in sharding.dimensions)
        partial = tuple(sorted(self.of(sharding.mesh, sharding.unreduced)[0]))
        return Layout(dims, partial, COMBINED_BY[sharding.reduction] if partial else "")

    def sharding(self, layout: Layout) -> Sharding:
        """The sharding of a layout, with closed dimensions. A whole tensor is on the main mesh."""
        mesh = next((self.every[p].mesh for p in layout.pieces), self.main)
        dims = [Dimension(tuple(self.sub_axes(pieces)), closed=True) for pieces in layout.dims]
        unreduced = tuple(self.sub_axes(layout.partial))
        reduction = next((kind for kind, op in COMBINED_BY.items() if op == layout.combine), "sum")
        return Sharding(mesh, tuple(dims), (), unreduced, reduction)

    def elsewhere(self, sharding: Sharding) -> str:
        """The mesh of a sharding and its devices, if the program runs on more; otherwise empty."""
        count = self._counts[sharding.mesh]
        return "" if count == self.count else f"@{self.meshes.meshes[sharding.mesh].name} of {count} devices"

    def on_main(self, layout: Layout) -> bool:
        """Whether a layout is on the main mesh."""
        main = self.meshes.same[self.main] if self.main >= 0 else -1
        return all(self.every[p].mesh == main for p in layout.pieces)

    def product(self, pieces: Iterable[PieceId]) -> int:
        """The number of parts that pieces make."""
        return prod([self.sizes[p] for p in pieces])

    def tile(self, size: int, pieces: Iterable[PieceId]) -> int:
        """The number of elements in a part of a dimension."""
        return -(-size // self.product(pieces))

    def local(self, shape: Shape, dims: Dims) -> Shape:
        """The shape of the part that a device holds."""
        return tuple(
            self.tile(size, pieces) if pieces else size for size, pieces in zip(shape, dims, strict=True)
        )

    def sub_axes(self, pieces: Sequence[PieceId]) -> list[SubAxis]:
        """The sub-axes that pieces form, with adjacent ones merged."""
        merged: list[SubAxis] = []
        for piece in (self.every[p] for p in pieces):
            last = merged[-1] if merged else None
            if last is not None and last.name == piece.axis and last.pre * last.size == piece.pre:
                merged[-1] = SubAxis(last.name, last.pre, last.size * piece.size)
            else:
                merged.append(SubAxis(piece.axis, piece.pre, piece.size))
        return merged

    def names(self, pieces: Sequence[PieceId]) -> tuple[str, ...]:
        """The sub-axes that pieces form, as text: ``data``, ``model:(1)2``."""
        if not pieces:
            return ()
        mesh = self.meshes.meshes[self.every[pieces[0]].mesh]
        return tuple(axis_text(axis, mesh) for axis in self.sub_axes(pieces))

    def finely(self, pieces: Iterable[PieceId]) -> Pieces:
        """The pieces of prime size that form these pieces."""
        return tuple([q for p in pieces for q in self.primes[p]])

    # ---- Devices ----------------------------------------------------------------------------------------

    def positions(self, mesh: int) -> npt.NDArray[np.int64]:
        """The devices of a mesh, by position."""
        return np.asarray(self.meshes.meshes[mesh].device_ids or range(self.count), dtype=np.int64)

    def grid(self, mesh: int) -> tuple[npt.NDArray[np.int64], Pieces]:
        """The devices of a mesh as an array with a dimension for each piece of prime size; and these
        pieces."""
        axes = self.meshes.meshes[mesh].axes
        pieces = self.finely([p for axis, _ in axes for p in self._runs[self.meshes.same[mesh], axis]])
        return self.positions(mesh).reshape([self.sizes[p] for p in pieces]), pieces

    def groups(self, pieces: Pieces) -> npt.NDArray[np.int64]:
        """The groups of devices that differ only along these pieces: a row per group, in the order of the
        pieces."""
        if not pieces:
            return self.positions(self.main)[:, None]
        if pieces not in self._groups:
            grid, order = self.grid(self.every[pieces[0]].mesh)
            primes = self.finely(pieces)
            moved = np.moveaxis(grid, [order.index(p) for p in primes], range(-len(primes), 0))
            self._groups[pieces] = _constant(moved.reshape(-1, self.product(pieces)))
        return self._groups[pieces]

    def along(self, table: npt.NDArray[np.int64]) -> Pieces:
        """The pieces along which the devices of each group differ. None for other groups."""
        wanted = {frozenset(group) for group in table.tolist()}
        for mesh in {piece.mesh for piece in self.pieces}:
            held = [p for p in self.numbers if self.pieces[p].mesh == mesh]
            for count in range(1, len(held) + 1):
                for some in combinations(held, count):
                    fits = self.product(some) == table.shape[1]
                    if fits and wanted == {frozenset(group) for group in self.groups(some).tolist()}:
                        return some
        return ()

    def between(self, pairs: npt.NDArray[np.int64]) -> Pieces:
        """The fewest pieces that contain the difference of any pair of devices."""
        by_mesh = list[Pieces]()
        for mesh in sorted({piece.mesh for piece in self.pieces}):
            held = [p for p in self.numbers if self.pieces[p].mesh == mesh]
            places = [(p, self.index((p,))[pairs]) for p in held]
            by_mesh.append(tuple(p for p, ends in places if (ends[:, 0] != ends[:, 1]).any()))
        return min(by_mesh, key=len, default=())

    def index(self, pieces: Pieces) -> npt.NDArray[np.int64]:
        """For each device, its part of a dimension that is split on pieces."""
        if pieces not in self._indices:
            index = np.zeros(self.count, dtype=np.int64)
            if pieces:
                grid, order = self.grid(self.every[pieces[0]].mesh)
                for p in self.finely(pieces):
                    digit = np.indices(grid.shape)[order.index(p)]
                    index[grid.ravel()] = index[grid.ravel()] * self.sizes[p] + digit.ravel()
            self._indices[pieces] = _constant(index)
        return self._indices[pieces]


class Digit(NamedTuple):
    """A digit of a number, times a step: at ``place`` (1, 10, 100 in decimal), with this many values (10)."""

    place: int
    size: int
    step: int


def digits(table: npt.NDArray[np.int64]) -> list[Digit] | None:
    """The digits of the index whose sum is the difference of a table's entry from the first one. None if the
    table is not such a sum."""
    digits_of, place, count = list[Digit](), 1, len(table)
    sums = np.full(count, table[0])
    while place < count:
        column = table[::place]
        step = int(column[1] - column[0])
        regular = column == column[0] + step * np.arange(len(column))
        reach = len(column) if regular.all() else int(np.argmin(regular))
        size = max(n for n in range(1, reach + 1) if len(column) % n == 0)
        if size == 1:
            return None
        sums += np.arange(count) // place % size * step
        digits_of += [Digit(place, size, step)] if step else []
        place *= size
    return digits_of if (sums == table).all() else None


def _between(cuts: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The intervals between the cuts of an axis."""
    return ((low, high) for low, high in pairwise(sorted(set(cuts))) if high > low)


def _merged(parts: Iterable[_Part]) -> list[_Part]:
    """Parts of axes in order, with adjacent ones merged."""
    merged: list[_Part] = []
    for part in parts:
        if merged and merged[-1].axis == part.axis and merged[-1].high == part.low:
            merged[-1] = merged[-1]._replace(high=part.high)
        else:
            merged.append(part)
    return merged


def _primes(number: int) -> Iterator[int]:
    """The prime factors of a number, in ascending order."""
    factor = 2
    while number > 1:
        while number % factor == 0:
            yield factor
            number //= factor
        factor += 1


def _constant(array: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    array.flags.writeable = False
    return array
