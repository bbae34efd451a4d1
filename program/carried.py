"""What a module says of shardings that sdy has no words for: see ``importers/dialects/normal.py``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir

from ..errors import ShardlogError
from .function import location
from .meshes import symbol
from .mlir.modules import boundary_attributes, entries_of, operations_in, symbols

DYNAMIC = -(1 << 63)  # among numbers of an attribute: `?`, which is not known or which an operand has
UNKNOWN = "shard.unknown"  # on a mesh: the axes whose sizes are not known
AXES = "shard.axes"  # on a grid: a name for each axis; "x:(2)4" is a part of an axis
HALO, OFFSETS, PARTIAL = "shard.halo", "shard.offsets", "shard.partial"  # as the dialects have them
ENTRIES = "shard.entries"  # of how many dimensions an annotation speaks, where not of all
SAID = "shard.said"  # on an annotation: all that sdy says, as text
INSERTED = "shard.inserted"  # on a constraint that completion has put before an op, or behind it
SPELLING = "shard.spelling"  # on a module: it is of one of the sharding dialects of MLIR, spelled like this
LOCAL = (
    "shard.local"  # on a module that came as the program of one device: a row of each tensor is what one has
)
_CARRIED = {PARTIAL: "a partial result of this reduction"}


def has_unknown_sizes(module: ir.Module) -> bool:
    """Whether a mesh of a module has axes of unknown size."""
    return any(UNKNOWN in op.attributes for op in symbols(module, "sdy.mesh").values())


def check_sizes(module: ir.Module, what: str, otherwise: str = "") -> None:
    """Raises ShardlogError for a mesh with axes of unknown size; ``what`` cannot do without. ``otherwise`` is
    added to the advice."""
    for name, op in symbols(module, "sdy.mesh").items():
        if UNKNOWN in op.attributes and f"<{symbol(name)}," in str(module):  # and its sizes matter
            (axis, *_) = ir.DenseI64ArrayAttr(op.attributes[UNKNOWN])
            hint = f"give the sizes of all of its axes, as in --mesh {name}=2x3{otherwise}"
            message = f"axis {axis} of {symbol(name)} has no size, which {what} needs"
            raise ShardlogError(message, where=location(op), hint=hint)


def check_carried(module: ir.Module, what: str) -> None:
    """Raises ShardlogError where a module says of a value what ``what`` does not honour; also as
    ``check_sizes``."""
    if SPELLING not in module.operation.attributes:
        return
    check_sizes(module, what)
    for op in operations_in(module):
        for label, attribute in _said(op):
            if label in _CARRIED:
                message = f"{_CARRIED[label]} is not supported by {what}: {label} = {attribute}"
                hint = "leave it out: results are then whole"
                raise ShardlogError(message, where=location(op), hint=hint)


def _said(op: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of an op, and of the arguments and results of a function."""
    yield from ((label, op.attributes[label]) for label in op.attributes)
    if op.name == "func.func":
        for label in ("arg_attrs", "res_attrs"):
            for entry in boundary_attributes(op.opview, label) if label in op.attributes else ():
                yield from entries_of(entry).items()
