"""Meshes of sdy as grids, whose axes have numbers instead of names, and shardings as lists of these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from jaxlib.mlir import ir

from ...errors import ShardlogError
from ...program.carried import AXES, DYNAMIC
from ...program.meshes import Mesh, Meshes, SubAxis, axis_text, quoted, symbol
from ...program.shardings import Sharding


@dataclass(frozen=True)
class MeshGrid:
    """A grid: its name, and the parts of axes of a mesh that its axes are, in order. ``unknown`` are those
    whose sizes are not known."""

    name: str
    mesh: Mesh
    axes: tuple[SubAxis, ...]
    unknown: tuple[int, ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return tuple(axis.size for axis in self.axes)

    def numbers(self, axes: Iterable[SubAxis]) -> list[int]:
        """The axes of the grid that a list of axes of the mesh is."""
        numbers = list[int]()
        for axis in axes:
            end = axis.pre * axis.size
            numbers += [
                i
                for i, own in enumerate(self.axes)
                if own.name == axis.name and axis.pre <= own.pre and own.pre * own.size <= end
            ]
        return numbers

    def attributes(self) -> dict[str, ir.Attribute]:
        """The attributes of its op."""
        sizes = [DYNAMIC if i in self.unknown else size for i, size in enumerate(self.sizes)]
        attributes = {"sym_name": ir.StringAttr.get(self.name), "shape": ir.DenseI64ArrayAttr.get(sizes)}
        names = [axis_text(axis, self.mesh) for axis in self.axes]
        if names != [str(i) for i in range(len(names))]:
            attributes[AXES] = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in names])
        return attributes


def grids_of(
    meshes: Meshes, shardings: Iterable[Sharding], places: dict[str, str], unknown: dict[str, Any]
) -> list[MeshGrid]:
    """A grid for each mesh. An axis becomes several axes if shardings use parts of it. ``places`` are the
    places of the meshes, for messages.

    Raises ShardlogError for a mesh with its own order of devices, and for parts that no single cut of the
    axis gives.
    """
    cuts: dict[tuple[int, str], set[int]] = {}
    for sharding in shardings:
        lists = [d.axes for d in sharding.dimensions]
        for axis in (a for axes in (*lists, sharding.replicated, sharding.unreduced) for a in axes):
            cuts.setdefault((sharding.mesh, axis.name), set()).update((axis.pre, axis.pre * axis.size))
    grids = []
    for number, mesh in enumerate(meshes.meshes):
        if mesh.device_ids:
            hint = "a grid lists its devices row by row; give the mesh no device_ids"
            message = f"mesh {symbol(mesh.name)} has device_ids, which a grid cannot express"
            raise ShardlogError(message, where=places[mesh.name], hint=hint)
        axes = list[SubAxis]()
        for name, size in mesh.axes:
            ends = sorted({1, size} | cuts.get((number, name), set()))
            if any(high % low for low, high in pairwise(ends)):
                message = (
                    f"the axis {quoted(name)} is used in parts that overlap, which a grid cannot express"
                )
                hint = f"parts that end at {', '.join(map(str, ends[1:-1]))} do not divide one another"
                raise ShardlogError(message, where=places[mesh.name], hint=hint)
            parts = [SubAxis(name, low, high // low) for low, high in pairwise(ends)]
            axes += parts or [SubAxis(name, 1, size)]
        grids.append(MeshGrid(mesh.name, mesh, tuple(axes), tuple(unknown.get(mesh.name, ()))))
    return grids


def lists_attribute(lists: Sequence[Sequence[int]], dialect: str) -> ir.Attribute:
    """The attribute that says the axes of each dimension."""
    inside = ", ".join(f"[{', '.join(map(str, axes))}]" for axes in lists)
    return ir.Attribute.parse(f"#{dialect}<axisarray[{inside}]>")
