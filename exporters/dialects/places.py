"""Numbers that a program computes from the number of its device, for all devices at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir

from ...program.mlir.types import Value

Numbers = npt.NDArray[np.int64]
_ARITHMETIC: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "stablehlo.add": np.add,
    "stablehlo.subtract": np.subtract,
    "stablehlo.multiply": np.multiply,
    "stablehlo.divide": np.floor_divide,
    "stablehlo.remainder": np.remainder,
}
_SAME = ("stablehlo.convert", "stablehlo.reshape")
_DEVICE = ("stablehlo.partition_id", "stablehlo.replica_id")


class DeviceValues:
    """Values of a program for ``count`` devices, by device, where they follow from constants and the number
    of the device."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._known: dict[Any, Numbers | None] = {}

    def of(self, value: Value) -> Numbers | None:
        """A scalar for each device; None where that is not known."""
        if value not in self._known:
            self._known[value] = self._find(value)
        return self._known[value]

    def _find(self, value: Value) -> Numbers | None:
        if isinstance(value.owner, ir.Block):
            return None
        op = value.owner.operation
        if op.name in _DEVICE:
            return np.arange(self.count)
        if op.name in _ARITHMETIC:
            one, other = map(self.of, op.operands)
            return None if one is None or other is None else _ARITHMETIC[op.name](one, other)
        if op.name in _SAME:
            return self.of(op.operands[0])
        if op.name == "stablehlo.constant":
            held = np.asarray(op.attributes["value"])
            return np.full(self.count, held.reshape(-1)[0], np.int64) if held.size == 1 else None
        if op.name == "stablehlo.dynamic_slice":  # of a table
            table, at = op.operands[0], self.of(op.operands[1]) if len(op.operands) == 2 else None
            if at is None or isinstance(table.owner, ir.Block):
                return None
            if table.owner.operation.name != "stablehlo.constant":
                return None
            entries = np.asarray(table.owner.operation.attributes["value"]).astype(np.int64)
            return entries[at] if entries.ndim == 1 and (at < len(entries)).all() else None
        return None
