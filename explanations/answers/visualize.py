"""The devices that hold the parts of a tensor: a grid of text for one and two dimensions, a table for any."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, product
from math import prod
from typing import TYPE_CHECKING, Any

from ...errors import ShardlogError
from ...markup import Html, element, joined

if TYPE_CHECKING:
    from ...program.meshes import Mesh, SubAxis
    from ...runs.records.record import RunRecord, TensorValue

_WIDTH = 100  # characters of a line
_MOST_ROWS = 64  # rows of a grid, above which a table is printed
_MESH_NAME = re.compile(r"\s*<@(\w+)")
Axis = tuple[str, int, int]  # the name of a mesh axis, and the sub-axis of it: pre and size


@dataclass(frozen=True)
class Tile:
    """A part of a tensor: its number in each dimension, the elements there, and the devices that hold it.

    ``slices`` is empty if the shape is not known.
    """

    shard: tuple[int, ...]
    slices: tuple[tuple[int, int], ...]
    devices: tuple[int, ...]


@dataclass(frozen=True)
class Picture:
    """The devices that hold the parts of a tensor.

    ``mesh`` has the axes with their sizes, and ``dims`` the sub-axes of each dimension. ``shape`` is None if
    it is unknown. ``device_ids`` are the devices in the order of the mesh. ``str()`` is a grid or table of
    text.
    """

    mesh: tuple[tuple[str, int], ...]
    dims: tuple[tuple[Axis, ...], ...]
    shape: tuple[int, ...] | None
    device_ids: tuple[int, ...]

    @property
    def shards(self) -> tuple[int, ...]:
        """The number of parts of every dimension."""
        return tuple(prod(size for _, _, size in axes) for axes in self.dims)

    @cached_property
    def tiles(self) -> tuple[Tile, ...]:
        """The parts of the tensor, row-major."""
        held: dict[tuple[int, ...], list[int]] = {}
        coordinates = product(*(range(size) for _, size in self.mesh))
        for device, coordinate in zip(self.device_ids, coordinates, strict=True):
            at = dict(zip((name for name, _ in self.mesh), coordinate, strict=True))
            held.setdefault(tuple(self._part(axes, at) for axes in self.dims), []).append(device)
        return tuple(
            Tile(shard, self._slices(shard), tuple(sorted(devices)))
            for shard, devices in sorted(held.items())
        )

    def _part(self, axes: Sequence[Axis], at: Mapping[str, int]) -> int:
        """The part of a dimension that the device at a coordinate of the mesh holds."""
        sizes, part = dict(self.mesh), 0
        for name, pre, size in axes:
            part = part * size + at[name] // (sizes[name] // (pre * size)) % size
        return part

    def _slices(self, shard: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """The elements of a part; where a dimension is not divided evenly, its last parts are smaller."""
        if self.shape is None:
            return ()
        steps = [-(-size // n) for size, n in zip(self.shape, self.shards, strict=True)]
        rows = zip(shard, steps, self.shape, strict=True)
        return tuple((min(i * step, size), min((i + 1) * step, size)) for i, step, size in rows)

    # ---- Views ------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        grid = self._grid() if 0 < len(self.dims) <= 2 else None
        return f"{self._title()}\n{grid or self._table()}"

    def __repr__(self) -> str:
        return str(self)

    def _title(self) -> str:
        mesh = ", ".join(f"{name}={size}" for name, size in self.mesh)
        sizes = self.shape or ["?"] * len(self.dims)
        parts = (
            f"{size}{'/' + '·'.join(map(_axis_text(self.mesh), axes)) if axes else ''}"
            for size, axes in zip(sizes, self.dims, strict=True)
        )
        return f"[{', '.join(parts)}] on {len(self.device_ids)} devices ({mesh})"

    def _cells(self) -> list[list[str]]:
        """The devices of every tile, by rows; a tensor of one dimension is one row."""
        columns = self.shards[-1]
        texts = [ranges(tile.devices) for tile in self.tiles]
        return [texts[i : i + columns] for i in range(0, len(texts), columns)]

    def _grid(self) -> str | None:
        """The tiles as they lie in the tensor; None if that does not fit a screen."""
        rows = self._cells()
        width = max(len(text) for row in rows for text in row) + 2
        columns = len(rows[0])
        if (width + 1) * columns + 1 > _WIDTH or len(rows) > _MOST_ROWS:
            return None

        def rule(left: str, middle: str, right: str) -> str:
            return left + middle.join(["─" * width] * columns) + right

        lines = [f"│{'│'.join(text.center(width) for text in row)}│" for row in rows]
        inner = f"\n{rule('├', '┼', '┤')}\n"
        return f"{rule('┌', '┬', '┐')}\n{inner.join(lines)}\n{rule('└', '┴', '┘')}"

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (*map(self._extent, range(len(self.dims)), [t] * len(self.dims)), ranges(t.devices))
            for t in self.tiles
        ]

    def _extent(self, dim: int, tile: Tile) -> str:
        if tile.slices:
            return "{}:{}".format(*tile.slices[dim])
        return f"{tile.shard[dim] + 1} of {self.shards[dim]}"

    def _names(self) -> tuple[str, ...]:
        return (*(f"dim {d}" for d in range(len(self.dims))), "devices")

    def _table(self) -> str:
        from ...runs.table import table

        return table(self._names(), self._rows())

    def _repr_html_(self) -> str:
        """For notebooks: the grid with a colour for each part, or the table."""
        border = "border:1px solid #8888;padding:.3em .6em;text-align:center"
        colours = {
            tile.shard: f"hsl({360 * i // len(self.tiles)} 70% 55% / .35)"
            for i, tile in enumerate(self.tiles)
        }

        def cell(tile: Tile, text: str, **more: str) -> Html:
            return element("td", text, style=f"{border};background:{colours[tile.shard]}", **more)

        if 0 < len(self.dims) <= 2:
            rows = [
                element("tr", *(cell(tile, ranges(tile.devices), title=self._extents(tile)) for tile in row))
                for _, row in groupby(self.tiles, lambda tile: tile.shard[:-1])
            ]
        else:
            rows = [element("tr", *(element("th", name) for name in self._names()))]
            for tile, texts in zip(self.tiles, self._rows(), strict=True):
                rows.append(element("tr", *(cell(tile, text) for text in texts)))
        table = element("table", joined(*rows, by="\n"), style="border-collapse:collapse")
        return element("div", element("code", self._title()), table)

    def _extents(self, tile: Tile) -> str:
        return ", ".join(f"dim {d}: {self._extent(d, tile)}" for d in range(len(self.dims)))


def visualize(sharding: object, shape: Sequence[int] | None = None, mesh: object = None) -> Picture:
    """A picture of the devices that hold each part of a tensor.

    ``sharding`` is a ``jax.sharding.NamedSharding``, or a text such as ``[{"data"}, {}]`` or ``<@mesh,
    [{"data"}, {}]>`` with a ``mesh``: ``"data=2,model=4"`` or ``{"data": 2, "model": 4}``. ``shape`` is the
    shape of the whole tensor; without it, parts are numbered. The picture shows as text, and as HTML in
    notebooks.

    Raises ShardlogError for anything else, and for a shape of another rank.
    """
    size = None if shape is None else tuple(map(int, shape))
    picture = _from_text(sharding, size, mesh) if isinstance(sharding, str) else _named(sharding, size)
    if picture.shape is not None and len(picture.shape) != len(picture.dims):
        message = f"the sharding has {len(picture.dims)} dimensions, but the shape has {len(picture.shape)}"
        raise ShardlogError(message, where="visualize", hint="give the shape of the whole tensor")
    return picture


def picture_of(run: RunRecord, value: TensorValue) -> Picture:
    """The picture of a tensor of a run. Raises ShardlogError if the module has no mesh."""
    if not run.meshes.meshes:
        raise ShardlogError("the module has no mesh", where=run.name, hint="give it one, as in --mesh data=2")
    held = run.facts(run.contents(run.cell(value.place))[1]).get("mesh")
    mesh = run.meshes.meshes[held[0][0] if held else 0]
    axes = (run.meshes.merge(atoms) for atoms in run.axes(value.number))
    return _picture(axes, mesh, value.shape)


def _picture(dims: Iterable[Iterable[SubAxis]], mesh: Mesh, shape: tuple[int, ...] | None) -> Picture:
    axes_of_dims = tuple(tuple((axis.name, axis.pre, axis.size) for axis in axes) for axes in dims)
    devices = mesh.device_ids or tuple(range(prod(size for _, size in mesh.axes)))
    return Picture(mesh.axes, axes_of_dims, shape, devices)


def ranges(numbers: Sequence[int], least: int = 3) -> str:
    """Sorted numbers as text: ``0-3,8``. ``least`` is the fewest numbers in a row that are a range."""
    runs = [[n for _, n in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) >= least else ",".join(map(str, run)) for run in runs)


def _axis_text(mesh: Sequence[tuple[str, int]]) -> Any:
    sizes = dict(mesh)
    return lambda axis: axis[0] if axis[2] == sizes[axis[0]] else f"{axis[0]}:({axis[1]}){axis[2]}"


def _named(sharding: object, shape: tuple[int, ...] | None) -> Picture:
    if not hasattr(sharding, "spec") or not hasattr(sharding, "mesh"):
        raise ShardlogError(
            f"cannot show a {type(sharding).__name__}",
            where="visualize",
            hint="give a jax.sharding.NamedSharding, or a text with a mesh",
        )
    from jax.sharding import AbstractMesh

    axes = tuple((str(name), int(size)) for name, size in sharding.mesh.shape.items())
    sizes = dict(axes)
    entries = [
        () if entry is None else entry if isinstance(entry, tuple) else (entry,) for entry in sharding.spec
    ]
    entries += [()] * (len(shape or ()) - len(entries))
    dims = tuple(tuple((str(name), 1, sizes[name]) for name in entry if sizes[name] > 1) for entry in entries)
    abstract = isinstance(sharding.mesh, AbstractMesh)
    ids = range(prod(sizes.values())) if abstract else [int(d.id) for d in sharding.mesh.devices.flat]
    return Picture(axes, dims, shape, tuple(ids))


def _from_text(text: str, shape: tuple[int, ...] | None, mesh: Any) -> Picture:
    from jaxlib.mlir import ir

    from ...importers.annotations import replace_mesh, valid_sharding
    from ...importers.sources.text import make_context
    from ...program.meshes import Meshes
    from ...program.mlir.modules import symbols
    from ...program.shardings import Shardings, read_mesh

    where = f"visualize {text}"
    if mesh is None:
        hint = """give its axes, as in visualize('[{"data"}, {}]', (8, 4), mesh="data=2,model=4")"""
        raise ShardlogError("no mesh", where=where, hint=hint)
    axes = mesh if isinstance(mesh, str) else ",".join(f"{name}={size}" for name, size in mesh.items())
    called = _MESH_NAME.match(text)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse("module {}")
        replace_mesh(module, f"{called[1]}: {axes}" if called and ":" not in axes else axes)
        ((name, op),) = symbols(module, "sdy.mesh").items()
        read = read_mesh(name, op.attributes["mesh"])
        shardings = Shardings(Meshes([read]), {name: 0})
        parsed = shardings.read(
            valid_sharding(module, text.strip(), where, None if shape is None else len(shape)), where
        )
    return _picture((d.axes for d in parsed.dimensions), read, shape)
