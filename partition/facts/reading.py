"""Reads the layouts of values from the annotated module: their homes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ...errors import ShardlogError
from ...program.boundaries import boundary_axes
from ...program.carried import PARTIAL, with_partial
from ...program.function import RESULT_SHARDING, location
from ...program.meshes import Meshes
from ...program.mlir.modules import boundary_attributes
from ...program.mlir.types import FunctionOp, Operation
from ...program.shardings import Dimension, Sharding, Shardings
from ..layouts import Axes, Layout, PieceSet, Shape, replicated
from ..writing.building import GROUPS, PAIRS


@dataclass(slots=True, eq=False)
class TensorFacts:
    """Facts about a value of the module: its shape and its layout there. ``dataless``: it is made of no data,
    wherever it is needed. ``kept``: the copy of its op computes it on each device, at home, so its users have
    it already."""

    shape: Shape
    home: Layout
    dataless: bool
    kept: bool


class Reading:
    """The homes of values by their shardings. Each sharding is read once."""

    def __init__(self, shardings: Shardings, axes: Axes) -> None:
        self.shardings, self.axes = shardings, axes
        self.manual: list[PieceSet] = [frozenset()]  # the axes that surrounding bodies have cut already
        self._read: dict[ir.Attribute, Sharding] = {}
        self._known_homes: dict[Any, list[Layout]] = {}
        self._layouts: dict[Any, Layout] = {}
        self._boundaries: dict[Any, tuple[list[Layout], list[Layout]]] = {}

    def home(self, attribute: ir.Attribute | None, type_: ir.Type, where: Any, beside: Any = None) -> Layout:
        """The layout of a value with a sharding and attributes ``beside`` it, without the axes that
        surrounding bodies have cut."""
        partial = None if beside is None else attribute_or_none(beside, PARTIAL)
        key = attribute, type_, self.manual[-1], partial
        if key not in self._layouts:
            self._layouts[key] = self._home(attribute, static_shape(type_), type_, where, beside)
        return self._layouts[key]

    def _home(
        self, attribute: ir.Attribute | None, shape: Shape | None, type_: ir.Type, where: Any, beside: Any
    ) -> Layout:
        if attribute is None or shape is None:
            return replicated(rank(type_))
        if attribute not in self._read:
            self._read[attribute] = self.shardings.read(attribute, location(where))
        sharding = with_partial(self._read[attribute], beside, self.shardings)
        layout = self.axes.layout(sharding, shape)
        if self.manual[-1]:
            layout = layout.without(self.manual[-1])
        return layout

    def homes(self, op: Operation) -> list[Layout]:
        """The layouts of the results of an op."""
        attributes = op.attributes
        if "sdy.sharding" in attributes:
            partial = attribute_or_none(attributes, PARTIAL)
            key = attributes["sdy.sharding"], tuple(op.results.types), self.manual[-1], partial
            if key not in self._known_homes:
                self._known_homes[key] = self._read_homes(op)
            return self._known_homes[key]
        return self._read_homes(op)

    def _read_homes(self, op: Operation) -> list[Layout]:
        attributes, results = op.attributes, list(op.results)
        shardings: Sequence[Any] = [None] * len(results)
        if not results:  # one without results may have a sharding: the device on which it runs
            return []
        if "sdy.sharding" in attributes:
            shardings = list(sdy.TensorShardingPerValueAttr(attributes["sdy.sharding"]).shardings)
        else:
            for label in RESULT_SHARDING:
                if op.name.startswith("sdy.") and label in attributes:
                    shardings = [attributes[label]]
        return [self.home(s, r.type, op, attributes) for s, r in zip(shardings, results, strict=True)]

    def boundary(self, func: FunctionOp) -> tuple[list[Layout], list[Layout]]:
        """The layouts of a function's arguments and of its results."""
        key = func.operation, self.manual[-1]
        if key not in self._boundaries:
            type_ = func.type
            self._boundaries[key] = (
                self._boundary(func, "arg_attrs", type_.inputs),
                self._boundary(func, "res_attrs", type_.results),
            )
        return self._boundaries[key]

    def _boundary(self, func: Operation, label: str, types: Sequence[Any]) -> list[Layout]:
        return [
            self.home(attribute_or_none(attributes, "sdy.sharding"), type_, func, attributes)
            for attributes, type_ in zip(boundary_attributes(func, label), types, strict=True)
        ]

    def cut_by(self, op: Operation) -> PieceSet:
        """The pieces of the axes that a manual computation is over; none for other ops."""
        if not (names := set(boundary_axes(op))):
            return frozenset()
        mesh = next((sharding.mesh for sharding in self._at_ends(op)), self.axes.main)
        return frozenset(self.axes.of_axes(mesh, names))

    def around(self, op: Operation) -> tuple[PieceSet, list[Layout], list[Layout]]:
        """For a computation with a body: the pieces that it is over, and the layouts in which values enter
        and leave it. Raises ShardlogError for a manual computation over only some of the devices."""
        cut = self.cut_by(op)
        if "manual_axes" in op.attributes:
            self.check_mesh(op)
        entering, leaving = (
            [
                self.crossing(self.home(s, v.type, op), static_shape(v.type), cut)
                for s, v in zip(_ends_of(op, label, len(values)), values, strict=True)
            ]
            for label, values in (("in_shardings", op.operands), ("out_shardings", op.results))
        )
        return cut, entering, leaving

    def crossing(self, layout: Layout, shape: Shape | None, cut: PieceSet) -> Layout:
        """The layout in which a value enters or leaves a body. Parts of parts are parts of the whole only
        without padding. With padding the body's own axes are omitted."""
        if shape is None or not cut:
            return layout
        dims = tuple(
            pieces if size % self.axes.product(pieces) == 0 else tuple(p for p in pieces if p in cut)
            for size, pieces in zip(shape, layout.dims, strict=True)
        )
        return layout._replace(dims=dims)

    def groups(self, op: Operation) -> npt.NDArray[np.int64]:
        """The groups of devices of a collective. Its attribute lists them, or names the axes of a mesh along
        which they differ. A row per group, or per pair.

        Raises ShardlogError for devices that the program does not have, or that are in no group.
        """
        label = PAIRS if PAIRS in op.attributes else GROUPS
        attribute = op.attributes[label]
        if isinstance(attribute, ir.DenseIntElementsAttr):
            groups = np.asarray(attribute)
            self._check_devices(op, label, groups)
            return groups
        mesh, along = self.shardings.grouped(attribute, location(op))
        axes = Axes(Meshes([mesh]), [Sharding(0, (Dimension(along),))])
        return axes.groups(axes.of(0, along)[0])

    def _check_devices(self, op: Operation, label: str, listed: npt.NDArray[np.int64]) -> None:
        devices, named = range(self.axes.count), set(listed.ravel().tolist())
        if strange := sorted(named - {*devices, -1}):  # -1 fills a shorter group
            message = f"{label} of {op.name} has device {strange[0]}, which the program does not have"
            hint = f"its devices are 0 to {devices[-1]}"
            raise ShardlogError(message, where=location(op), hint=hint)
        if "use_global_device_ids" in op.attributes and (missing := sorted({*devices} - named)):
            message = f"{label} of {op.name} leaves out device {missing[0]}"
            hint = f"each of the devices 0 to {devices[-1]} is in one group, alone if need be"
            raise ShardlogError(message, where=location(op), hint=hint)

    def check_mesh(self, op: Operation) -> None:
        """Raises ShardlogError for a manual computation over only some of the devices."""
        for sharding in self._at_ends(op):
            if mesh := self.axes.elsewhere(sharding):
                message = f"a manual computation over {mesh}, in a program of {self.axes.count}"
                hint = "give all meshes of a program the same devices"
                raise ShardlogError(message, where=location(op), hint=hint)

    def _at_ends(self, op: Operation) -> Iterator[Sharding]:
        """The shardings of the operands and results of a manual computation."""
        for label in ("in_shardings", "out_shardings"):
            for attribute in sdy.TensorShardingPerValueAttr(op.attributes[label]).shardings:
                yield self.shardings.read(attribute, location(op))


def _ends_of(op: Operation, label: str, count: int) -> Sequence[Any]:
    """The shardings of values that enter or leave a computation with a body; none if it does not say."""
    if label not in op.attributes:
        return [None] * count
    return list(sdy.TensorShardingPerValueAttr(op.attributes[label]).shardings)


def rank(type_: ir.Type) -> int:
    """The rank of a tensor; 0 for values that are not tensors, or have no static shape."""
    shape = static_shape(type_)
    return 0 if shape is None else len(shape)


def static_shape(type_: ir.Type) -> Shape | None:
    """The shape of a tensor of static shape, or None."""
    if isinstance(type_, ir.RankedTensorType) and type_.has_static_shape:
        return tuple(type_.shape)
    return None


def attribute_or_none(attributes: Any, label: str) -> Any:
    """An attribute of an op or a dictionary by name, or None."""
    attribute: Any = attributes[label] if label in attributes else None  # noqa: SIM401 - not a dict
    return attribute
