"""Reading the shardings at the boundaries of functions, and of computations with a body."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from jaxlib.mlir.dialects import sdy

from .function import Function, location, sharding_of
from .manual import Manual
from .meshes import Meshes, SubAxis
from .mlir.modules import boundary_attributes
from .mlir.types import FunctionOp, Operation
from .shardings import Dimension, Sharding, Shardings

Axes = tuple[SubAxis, ...]


def boundary_shardings(function: FunctionOp, label: str, shardings: Shardings) -> list[Sharding | None]:
    """The shardings of the arguments ("arg_attrs") or results ("res_attrs") of a func.func, or None."""
    attributes = map(sharding_of, boundary_attributes(function, label))
    where = location(function)
    return [None if attribute is None else shardings.read(attribute, where) for attribute in attributes]


def read_boundaries(function: Function, shardings: Shardings, *, clean: bool) -> None:
    """Reads the shardings at the boundaries of computations into the annotations of ``function``. Block
    arguments get theirs without manual axes.

    ``clean``: manual axes are sorted, and a sharding that does not use one is explicitly replicated on it, on
    the mesh of the others if its own is empty.
    """
    owners = set(function.flow_edges.values())
    for node in function.boundaries:
        op, body = function.ops[node], function.regions[node][0].arguments
        names = boundary_axes(op)
        outside: list[Sharding] = []
        mesh = _common_mesh(op, shardings) if clean and names else None
        for label, values in (("in_shardings", body), ("out_shardings", function.results[node])):
            if label not in op.attributes:
                continue
            entries = sdy.TensorShardingPerValueAttr(op.attributes[label]).shardings
            for index, (value, entry) in enumerate(zip(values, entries, strict=True)):
                outer = shardings.read(entry, location(op))
                if mesh is not None and _empty(outer, shardings.meshes):
                    outer = replace(outer, mesh=mesh)
                if clean:
                    outer = _with_all(outer, names, shardings.meshes)
                outside.append(outer)
                inner, manual = _parts(outer, names)
                if "manual_axes" in op.attributes:
                    facts = shardings.facts(manual)
                    settled = not any(d.priority for d in outer.dimensions)
                    rows = (
                        ("settled", ((),) * settled),
                        ("manual", tuple(facts["sharded"])),
                        ("manual_fixed", tuple(facts["fixed"])),
                        ("free_fixed", tuple(shardings.facts(inner)["fixed"])),
                        ("mesh", tuple(facts["mesh"])),  # also where the value inside has no sharding
                    )
                    stated = replace(outer, dimensions=manual.dimensions)
                    function.manual[value] = Manual(stated, rows)
                if value not in owners:
                    function.annotations[value] = inner if values is body else outer
                    if "manual_axes" in op.attributes:
                        function.specs[value] = node, spec_name(label, index)
                if clean and names:
                    sizes = shardings.meshes.meshes[outer.mesh].sizes
                    function.manual_axes[node] = [n for n in sizes if n in names]
        if "manual_axes" in op.attributes:
            function.entering[node] = tuple(outside[: len(body)])


def _common_mesh(op: Operation, shardings: Shardings) -> int | None:
    """The mesh at the boundary of a computation; None where all are empty."""
    labels = [label for label in ("in_shardings", "out_shardings") if label in op.attributes]
    entries = [e for label in labels for e in sdy.TensorShardingPerValueAttr(op.attributes[label]).shardings]
    all_shardings = (shardings.read(entry, location(op)) for entry in entries)
    return next((one.mesh for one in all_shardings if not _empty(one, shardings.meshes)), None)


def _empty(sharding: Sharding, meshes: Meshes) -> bool:
    """Whether a sharding is on a mesh without axes, of no device in particular."""
    mesh = meshes.meshes[sharding.mesh]
    return not mesh.axes and not mesh.device_ids


def boundary_axes(op: Operation) -> list[str]:
    """The manual axes of a computation with a body."""
    if "manual_axes" not in op.attributes:
        return []
    axes: Any = sdy.ManualAxesAttr(op.attributes["manual_axes"])
    return [*axes]


def spec_name(label: str, index: int) -> str:
    """The name that JAX's shard_map has for an entry of ``in_shardings`` or ``out_shardings``."""
    return f"{label.partition('_')[0]}_specs[{index}]"


def _with_all(sharding: Sharding, names: Sequence[str], meshes: Meshes) -> Sharding:
    """A sharding that is explicitly replicated on the axes of ``names`` that it does not use."""
    sizes = meshes.meshes[sharding.mesh].sizes
    used = [axis for dimension in sharding.dimensions for axis in dimension.axes]
    taken = {x for axis in (*used, *sharding.unreduced) for x in meshes.split(sharding.mesh, axis)}
    whole = [SubAxis(name, 1, sizes[name]) for name in names if name in sizes]
    rest = sharding.replicated + tuple(
        axis for axis in whole if taken.isdisjoint(meshes.split(sharding.mesh, axis))
    )
    return replace(sharding, replicated=_merged(rest, sharding.mesh, meshes))


def _merged(axes: Axes, mesh: int, meshes: Meshes) -> Axes:
    return tuple(meshes.merge(sorted({x for axis in axes for x in meshes.split(mesh, axis)})))


def without_manual(sharding: Sharding, names: Collection[str]) -> Sharding:
    """The sharding inside of a computation for a value with ``sharding`` outside, if the axes ``names`` are
    manual."""
    return _parts(sharding, names)[0]


def _parts(sharding: Sharding, names: Collection[str]) -> tuple[Sharding, Sharding]:
    """A sharding without the axes called ``names``, which come first in every dimension, and with only
    those."""

    def pick(axes: Axes, manual: bool) -> Axes:
        return tuple(axis for axis in axes if (axis.name in names) == manual)

    front = [tuple(takewhile(lambda axis: axis.name in names, d.axes)) for d in sharding.dimensions]
    free = tuple(replace(d, axes=d.axes[len(f) :]) for d, f in zip(sharding.dimensions, front, strict=True))

    def part(dimensions: tuple[Dimension, ...], manual: bool) -> Sharding:
        replicated, unreduced = pick(sharding.replicated, manual), pick(sharding.unreduced, manual)
        return replace(sharding, dimensions=dimensions, replicated=replicated, unreduced=unreduced)

    return part(free, False), part(tuple(Dimension(axes) for axes in front), True)
