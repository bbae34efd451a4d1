"""``#sdy.sharding`` attributes to and from contents: the facts that a cell of the agenda holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy, stablehlo

from ..errors import ShardlogError, closest
from .meshes import Mesh, Meshes, SubAxis, axis_text, divisors, quoted, symbol
from .mlir.types import Operation
from .reductions import UNREDUCED

Facts = dict[str, list[tuple[Any, ...]]]

_MOST_DIVISORS = 100  # the work for an axis grows with the cube of their number


@dataclass(frozen=True)
class Dimension:
    """The sharding of one dimension: its axes from major to minor, whether it is closed, its priority
    (None: 0)."""

    axes: tuple[SubAxis, ...] = ()
    closed: bool = False
    priority: int | None = None


@dataclass(frozen=True)
class Sharding:
    """A tensor sharding on mesh number ``mesh``: one entry per dimension, and explicit axes.

    Along ``unreduced`` axes the value is the ``reduction``, "sum", "max" or "min", of the devices' parts.
    """

    mesh: int
    dimensions: tuple[Dimension, ...]
    replicated: tuple[SubAxis, ...] = ()
    unreduced: tuple[SubAxis, ...] = ()
    reduction: str = "sum"  # also where nothing is unreduced

    @staticmethod
    def open(mesh: int, rank: int) -> Sharding:
        """The sharding without axes, all dimensions open."""
        return Sharding(mesh, (Dimension(),) * rank)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:  # shardings are looked up more often than made
        return hash((self.mesh, self.dimensions, self.replicated, self.unreduced, self.reduction))

    @property
    def empty(self) -> bool:
        """Fully open and without axes: equivalent to no sharding."""
        return not (self.replicated or self.unreduced) and self.dimensions_empty

    @property
    def plainly_open(self) -> bool:
        """It has dimensions, all of them open and without axes or priorities, and nothing else."""
        return bool(self.dimensions) and self == Sharding.open(self.mesh, len(self.dimensions))

    @property
    def dimensions_empty(self) -> bool:
        """Its dimensions are open and without axes, which in a sharding group counts as no sharding."""
        return not any(d.axes or d.closed for d in self.dimensions)

    @property
    def fixed(self) -> dict[str, tuple[SubAxis, ...]]:
        """The explicit axes by kind: "replicated", or as in ``UNREDUCED``."""
        named = {"replicated": self.replicated, UNREDUCED[self.reduction]: self.unreduced}
        return {why: axes for why, axes in named.items() if axes}


class Shardings:
    """Reads and writes the shardings of one module; equal attributes are read once, equal contents written
    once."""

    def __init__(self, meshes: Meshes, names: dict[str, int]) -> None:
        self.meshes = meshes
        self.names = names  # mesh symbol -> mesh number
        self.units = False  # axes of size 1 are kept
        self._inlined: dict[ir.Attribute, int] = {}
        self._read: dict[ir.Attribute, Sharding] = {}
        self._written: dict[tuple[Sharding, bool], ir.Attribute] = {}

    @property
    def has_unreduced(self) -> bool:
        """Whether any sharding that was read or written is unreduced on an axis."""
        return any(s.unreduced for s in (*self._read.values(), *(s for s, _ in self._written)))

    def read(self, attribute: ir.Attribute, where: str = "") -> Sharding:
        """The sharding that a ``#sdy.sharding`` attribute says. Axes of size 1 are left out.

        Raises ShardlogError for meshes and axes that do not exist.
        """
        sharding = self._read.get(attribute)
        if sharding is None:
            sharding = self._read[attribute] = self._parse(sdy.TensorShardingAttr(attribute), where)
        return sharding

    def _parse(self, attribute: Any, where: str) -> Sharding:
        mesh = self._mesh(attribute.mesh_or_ref, where)
        dimensions = []
        for entry in map(sdy.DimensionShardingAttr, attribute.dimension_shardings):
            axes = self._axes(mesh, entry.axes, where)
            priority = None if entry.is_closed and not axes else entry.priority
            dimensions.append(Dimension(axes, entry.is_closed, priority))
        return Sharding(
            mesh,
            tuple(dimensions),
            self._axes(mesh, attribute.replicated_axes, where),
            unreduced := self._axes(mesh, attribute.unreduced_axes, where),
            reduction_of(attribute) if unreduced else "sum",
        )

    def _mesh(self, reference: ir.Attribute, where: str) -> int:
        if isinstance(reference, ir.FlatSymbolRefAttr):
            if reference.value not in self.names:
                raise ShardlogError(
                    f"unknown mesh {symbol(reference.value)}",
                    where=where,
                    hint=closest(reference.value, list(self.names)),
                )
            return self.names[reference.value]
        if reference not in self._inlined:
            self._inlined[reference] = self.lift(read_mesh("", reference, where))
        return self._inlined[reference]

    def lift(self, mesh: Mesh) -> int:
        """The number of an inlined mesh: the number of an equal mesh, or of a new ``sdy.mesh``, whose name
        no kept mesh has."""
        taken = set[str]()
        for number, other in enumerate(self.meshes.meshes):
            if (other.axes, other.device_ids) == (mesh.axes, mesh.device_ids):
                return number
            taken.add(other.name)
        base = f"maximal_mesh_{mesh.device_ids[0]}" if mesh.maximal else "mesh" if mesh.axes else "empty_mesh"
        name, suffix = base, 0
        while name in taken:
            name, suffix = f"{base}_{suffix}", suffix + 1
        number = self.meshes.add(Mesh(name, mesh.axes, mesh.device_ids))
        self.names.setdefault(name, number)
        return number

    def _axes(self, mesh: int, attributes: Any, where: str) -> tuple[SubAxis, ...]:
        axes = _axes_of(self.meshes.meshes[mesh], attributes, sdy, where)
        return axes if self.units else tuple([axis for axis in axes if axis.size > 1])

    def grouped(self, attribute: ir.Attribute, where: str = "") -> tuple[Mesh, tuple[SubAxis, ...]]:
        """The mesh, and the axes of it along which devices that a collective brings together differ, as a
        ``#stablehlo.replica_group_mesh_axes`` attribute says. Raises ShardlogError as ``read`` does."""
        groups: Any = stablehlo.ReplicaGroupMeshAxesAttr(attribute)
        if isinstance(groups.mesh, ir.FlatSymbolRefAttr):
            mesh = self.meshes.meshes[self._mesh(groups.mesh, where)]
        else:
            mesh = inlined_mesh(groups.mesh)
        axes = _axes_of(mesh, groups.axes, stablehlo, where)
        for axis in axes:
            if mesh.sizes[axis.name] % (axis.pre * axis.size):  # MLIR looks only at those of shardings
                text = f"{quoted(axis.name)}:({axis.pre}){axis.size}"
                hint = f"the axis has size {mesh.sizes[axis.name]}"
                raise ShardlogError(f"no sub-axis: {text}", where=where, hint=hint)
        return mesh, axes

    def facts(self, sharding: Sharding) -> Facts:
        """The content that a cell with this sharding holds, without priorities."""
        split = self.meshes.split
        return {
            "mesh": [(self.meshes.same[sharding.mesh],)],
            "sharded": [
                (d, p, x)
                for d, dimension in enumerate(sharding.dimensions)
                for p, x in enumerate(x for axis in dimension.axes for x in split(sharding.mesh, axis))
            ],
            "closed": [(d,) for d, dimension in enumerate(sharding.dimensions) if dimension.closed],
            "fixed": [
                (x, why)
                for why, axes in sharding.fixed.items()
                for axis in axes
                for x in split(sharding.mesh, axis)
            ],
        }

    def sharding(self, facts: Mapping[str, list[tuple[Any, ...]]], rank: int) -> Sharding | None:
        """The sharding of a tensor of this rank whose cell holds ``facts``; None where it holds nothing."""
        if not facts.get("mesh"):
            return None
        mesh = facts["mesh"][0][0]
        if self.meshes.meshes[mesh].maximal:
            return Sharding(mesh, ())  # on one device, whatever the rank
        lists: list[list[int]] = [[] for _ in range(rank)]
        for d, _, x in sorted(facts.get("sharded", [])):
            lists[d].append(x)
        closed = {d for (d,) in facts.get("closed", [])}
        merge = self.meshes.merge
        fixed = {
            why: tuple(merge(sorted(x for x, reason in facts.get("fixed", []) if reason == why)))
            for why in ("replicated", *UNREDUCED.values())
        }
        dimensions = tuple(Dimension(tuple(merge(atoms)), d in closed) for d, atoms in enumerate(lists))
        reduction = next((kind for kind, why in UNREDUCED.items() if fixed[why]), "sum")
        return Sharding(mesh, dimensions, fixed["replicated"], fixed[UNREDUCED[reduction]], reduction)

    def attribute(self, sharding: Sharding, *, closed: bool) -> ir.Attribute:
        """The ``#sdy.sharding`` attribute of ``sharding``, with every dimension closed if ``closed``."""
        key = (sharding, closed)
        if key not in self._written:
            if sharding.unreduced:
                check_writable(sharding.reduction)
            self._written[key] = ir.Attribute.parse(self.text(sharding, closed=closed))
        return self._written[key]

    def text(self, sharding: Sharding, *, closed: bool = False) -> str:
        """``#sdy.sharding<...>`` as text."""
        dimensions = []
        for dimension in sharding.dimensions:
            entries = [self._axis_text(sharding.mesh, axis) for axis in dimension.axes]
            if not (dimension.closed or closed):
                entries.append("?")
            none = dimension.priority is None or (closed and not entries)  # which has nothing to come later
            priority = "" if none else f"p{dimension.priority}"
            dimensions.append("{" + ", ".join(entries) + "}" + priority)
        text = f"#sdy.sharding<{symbol(self.meshes.meshes[sharding.mesh].name)}, [{', '.join(dimensions)}]"
        kind = "" if sharding.reduction == "sum" else sharding.reduction
        for label, axes in (("replicated=", sharding.replicated), (f"unreduced={kind}", sharding.unreduced)):
            if axes and not (
                closed and axes is sharding.replicated
            ):  # closed: no word on other axes is needed
                text += f", {label}{{{self.axes_text(sharding.mesh, axes)}}}"
        return text + ">"

    def axes_text(self, mesh: int, axes: Iterable[SubAxis]) -> str:
        """Axes of a mesh, with commas."""
        return ", ".join(self._axis_text(mesh, axis) for axis in axes)

    def _axis_text(self, mesh: int, axis: SubAxis) -> str:
        return axis_text(axis, self.meshes.meshes[mesh], quoted(axis.name))


def _axes_of(mesh: Mesh, refs: Iterable[Any], dialect: Any, where: str) -> tuple[SubAxis, ...]:
    """Axes of a mesh that attributes of a dialect refer to, or parts of them."""
    axes = list[SubAxis]()
    for axis in map(dialect.AxisRefAttr, refs):
        if axis.name not in mesh.sizes:
            message = f"unknown axis {quoted(axis.name)} in mesh {symbol(mesh.name)}"
            raise ShardlogError(message, where=where, hint=closest(axis.name, list(mesh.sizes)))
        part = axis.sub_axis_info and dialect.SubAxisInfoAttr(axis.sub_axis_info)
        pre, size = (part.pre_size, part.size) if part else (1, mesh.sizes[axis.name])
        axes.append(SubAxis(axis.name, pre, size))
    return tuple(axes)


def reduction_of(attribute: ir.Attribute) -> str:
    """The reduction, a key of ``UNREDUCED``, that a ``sdy.TensorShardingAttr`` says; "sum" with a jaxlib
    whose attribute has none."""
    return str(getattr(attribute, "reduction_op", "sum"))


def reduction_numbered(attribute: ir.Attribute | None) -> str:
    """The reduction, a key of ``UNREDUCED``, that an op of sdy says as ``reduction_op``: "sum" if none."""
    return "sum" if attribute is None else [*UNREDUCED][ir.IntegerAttr(attribute).value]


def is_writable(reduction: str) -> bool:
    """Whether the installed jaxlib has a notation for partial results of a reduction."""
    writable = ("sum", "max", "min") if hasattr(sdy.TensorShardingAttr, "reduction_op") else ("sum",)
    return reduction in writable


def check_writable(reduction: str) -> None:
    """Raises ShardlogError if the installed jaxlib has no notation for partial results of that reduction."""
    if not is_writable(reduction):
        raise ShardlogError(
            f"the installed jaxlib has no notation for {reduction!r} of partial results",
            hint="install jaxlib 0.11 or later, or select the Shardy that is installed",
        )


def changed(sharding: Any, **parts: Sequence[Any]) -> ir.Attribute:
    """A ``sdy.TensorShardingAttr`` with other ``dimension_shardings`` or ``unreduced_axes``, otherwise
    unchanged."""
    labels = ("dimension_shardings", "replicated_axes", "unreduced_axes", "reduction_op")
    held = {label: getattr(sharding, label) for label in labels if hasattr(sharding, label)}
    attribute: ir.Attribute = sdy.TensorShardingAttr.get(sharding.mesh_or_ref, **held | parts)
    return attribute


def read_mesh(name: str, attribute: ir.Attribute, where: str = "") -> Mesh:
    """The mesh that a ``#sdy.mesh`` attribute says. Raises ShardlogError at ``where`` for axes that cannot be
    cut into atoms."""
    mesh = sdy.MeshAttr(attribute)
    axes = tuple((axis.name, axis.size) for axis in map(sdy.MeshAxisAttr, mesh.axes))
    for axis, size in axes:
        if size >= 1 << 31:
            hint = "expected a number of devices"
            raise ShardlogError(f"the axis {quoted(axis)} has size {size:,}", where=where, hint=hint)
        if (count := len(divisors(size))) > _MOST_DIVISORS:
            message = (
                f"the axis {quoted(axis)} of size {size:,} has {count} divisors, each of them a sub-axis"
            )
            hint = f"at most {_MOST_DIVISORS}; split the axis into two"
            raise ShardlogError(message, where=where, hint=hint)
    return Mesh(name, axes, tuple(mesh.device_ids))


def declared(meshes: Mapping[str, Operation]) -> Shardings:
    """The shardings of a module in which ``sdy.mesh`` ops declare meshes, by name."""
    listed = [read_mesh(name, op.attributes["mesh"]) for name, op in meshes.items()]
    return Shardings(Meshes(listed), {mesh.name: i for i, mesh in enumerate(listed)})


def inlined_mesh(attribute: ir.Attribute) -> Mesh:
    """The mesh that a ``#stablehlo.mesh`` attribute says; it has no name."""
    mesh: Any = stablehlo.MeshAttr(attribute)
    named = [(axis.name, axis.size) for axis in map(stablehlo.MeshAxisAttr, mesh.axes)]
    devices: Any = mesh.device_ids and ir.DenseIntElementsAttr(mesh.device_ids)
    return Mesh("", tuple(named), tuple(devices or ()))


def mesh_attribute(mesh: Mesh) -> ir.Attribute:
    """``#sdy.mesh<...>``, in the current context."""
    axes = [sdy.MeshAxisAttr.get(name, size) for name, size in mesh.axes]
    attribute: ir.Attribute = sdy.MeshAttr.get(axes, mesh.device_ids)
    return attribute


def manual_axes(names: Iterable[str]) -> ir.Attribute:
    """``#sdy<manual_axes{...}>``, in the current context."""
    attribute: ir.Attribute = sdy.ManualAxesAttr.get([ir.StringAttr.get(name) for name in names])
    return attribute
