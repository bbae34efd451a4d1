"""Coordinates that a program computes, for all devices at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir

from ...program.devices import Devices
from .grids import integers

_NUMBER = re.compile(r"-?\d+")


class IndexValues:
    """Values of type index of a program, by device, where they follow from constants, tables and the place of
    the device in a grid of these sizes."""

    def __init__(self, count: int, sizes: Sequence[int]) -> None:
        self.count, self.sizes = count, sizes

    def of(self, value: Any) -> npt.NDArray[np.int64] | None:
        """A number for each device; None where that is not known."""
        if isinstance(value.owner, ir.Block):
            return None
        op = value.owner.operation
        if op.name == "shard.process_linear_index":
            return np.arange(self.count)
        if op.name == "shard.process_multi_index":
            axes = list(integers(op.attributes.get("axes"))) or list(range(len(self.sizes)))
            axis = axes[ir.OpResult(value).result_number]
            return np.asarray(np.unravel_index(np.arange(self.count), self.sizes)[axis])
        if op.name == "shard.grid_shape":
            axes = list(integers(op.attributes.get("axes"))) or list(range(len(self.sizes)))
            return np.full(self.count, self.sizes[axes[ir.OpResult(value).result_number]])
        if op.name == "shard.neighbors_linear_indices":
            return self._neighbour(op, 2 * ir.OpResult(value).result_number - 1)
        if op.name == "arith.index_cast":
            return self.of(op.operands[0])
        if op.name == "arith.constant" and isinstance(op.attributes["value"], ir.IntegerAttr):
            return np.full(self.count, ir.IntegerAttr(op.attributes["value"]).value)
        if op.name == "tensor.extract" and len(op.operands) == 2:
            table, at = op.operands[0], self.of(op.operands[1])
            if at is None or isinstance(table.owner, ir.Block):
                return None
            if table.owner.operation.name != "arith.constant":
                return None
            entries = np.asarray(integers_of(table.owner.operation.attributes["value"]))
            return entries[at] if ((at >= 0) & (at < len(entries))).all() else None
        return None

    def _neighbour(self, op: Any, step: int) -> npt.NDArray[np.int64] | None:
        """The device that is a step away from another one along axes, by device; -1 where there is none."""
        device = [each for operand in op.operands if (each := self.of(operand)) is not None]
        limits = zip(device, self.sizes, strict=False)
        if len(device) < len(op.operands) or any(((d < 0) | (d >= size)).any() for d, size in limits):
            return None
        devices, axes = Devices(self.sizes), list(integers(op.attributes["split_axes"]))
        numbers, groups = np.ravel_multi_index(tuple(device), self.sizes), devices.along(axes)
        rows = np.empty(self.count, np.int64)
        rows[groups] = np.arange(len(groups))[:, None]
        places, size = devices.index(axes)[numbers] + step, groups.shape[1]
        there = groups[rows[numbers], places.clip(0, size - 1)]
        return np.where((places >= 0) & (places < size), there, -1)


def integers_of(attribute: ir.Attribute) -> list[int]:
    """The elements of a constant of type index, which NumPy has no type for."""
    numbers = list(map(int, _NUMBER.findall(str(attribute).partition(" : ")[0])))
    return numbers * ir.RankedTensorType(attribute.type).shape[0] if len(numbers) == 1 else numbers
