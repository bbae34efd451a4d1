"""Collectives that list the devices they bring together. Since JAX 0.11 they may name axes of a mesh."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from ...program.function import location
from ...program.mlir.types import Operation
from ...program.shardings import Shardings
from .tiles import groups_along

_GROUPS = "replica_groups"


def list_devices(op: Operation, shardings: Shardings) -> None:
    """Gives a collective lists of devices in place of the axes of a mesh. All other ops stay unchanged.

    Raises ShardlogError where the mesh or an axis of it is unknown.
    """
    groups = op.attributes.get(_GROUPS)
    if groups is not None and not isinstance(groups, ir.DenseIntElementsAttr):
        listed: Any = groups_along(*shardings.grouped(groups, location(op)))
        op.attributes[_GROUPS] = ir.DenseElementsAttr.get(listed)
