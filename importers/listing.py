"""The ops of a module as arrays: their kinds and operands.

MLIR writes bytecode of the module, from which the core reads the arrays. Without the core they come through
MLIR's bindings.
"""

from __future__ import annotations

import io
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir

from ..program.mlir.modules import operations_in
from ..program.signature import attributes, text_of

Ints = npt.NDArray[np.int32]
_VERSION = 6  # of the format of the bytecode
_NONE = -1


@dataclass(frozen=True, eq=False)
class Listing:
    """The ops, values and regions of a module, numbered in the order of its text. An op comes before those
    in its regions, and its results come before the values in them. -1 stands for none.

    The ops are there as long as the module is.
    """

    ops: list[ir.Operation]
    # By op. Those are of one kind whose names, attributes and types are equal, and in whose regions blocks
    # take and return equally many values.
    kinds: Ints
    parents: Ints  # the op around
    regions: Ints  # the region that it is in
    ends: Ints  # the first op behind all that is inside
    operand_offsets: Ints
    operands: Ints  # values, by op; -1: one that comes later
    first_results: Ints  # values
    results: Ints  # how many
    # By value.
    types: Ints
    definers: Ints  # ops; -1: an argument of a block
    # By region.
    owners: Ints  # ops
    blocks: Ints  # how many
    first_arguments: Ints  # values, of the first block
    arguments: Ints  # how many
    inner_first: Ints  # the ops, those in the regions of an op before the op itself

    @cached_property
    def functions(self) -> dict[str, int]:
        """The ops that are functions, by their names."""
        by_name = {}
        for op in np.nonzero(self.parents == 0)[0].tolist():
            if self.ops[op].name == "func.func":
                by_name[text_of(self.ops[op].attributes["sym_name"])] = op
        return by_name

    def value(self, number: int) -> Any:
        """The value with a number."""
        definer = int(self.definers[number])
        if definer >= 0:
            return self.ops[definer].results[number - int(self.first_results[definer])]
        region = self._region_of(number)
        owner = int(self.owners[region])
        block = self.ops[owner].regions[int(np.count_nonzero(self.owners[:region] == owner))].blocks[0]
        return block.arguments[number - int(self.first_arguments[region])]

    def type_of(self, number: int) -> tuple[ir.Type, ir.Operation]:
        """The type of a value, and the op that makes it or has it in a region of its own."""
        definer = int(self.definers[number])
        owner = definer if definer >= 0 else int(self.owners[self._region_of(number)])
        return self.value(number).type, self.ops[owner]

    def _region_of(self, argument: int) -> int:
        """The region with a value that no op makes."""
        return int(np.searchsorted(self.first_arguments, argument, side="right")) - 1


def listing_of(module: ir.Module, written: bytes = b"", ops: Sequence[Any] | None = None) -> Listing:
    """The ops of a module as arrays. ``written`` is its ``bytecode``, and ``ops`` those in it, in order,
    where these are there already."""
    try:
        from ._core import read_bytecode
    except ImportError:  # it is not built
        return through_bindings(module)
    arrays = read_bytecode(written or bytecode(module))
    return Listing([module.operation, *(operations_in(module) if ops is None else ops)], **arrays)


def bytecode(module: ir.Module) -> bytes:
    """A module as bytecode of the version that the core reads."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer, _VERSION)
    return buffer.getvalue()


def through_bindings(module: ir.Module) -> Listing:
    """The listing of a module without the core; kinds and types have other numbers."""
    walk = _ListingWalk()
    walk.op(module.operation, _NONE, _NONE)
    walk.columns["operand_offsets"].append(len(walk.columns["operands"]))
    return Listing(walk.ops, **{name: np.asarray(list_, np.int32) for name, list_ in walk.columns.items()})


class _ListingWalk:
    """A walk over a module that lists its ops."""

    def __init__(self) -> None:
        names = [name for name in Listing.__dataclass_fields__ if name != "ops"]
        self.columns: dict[str, list[int]] = {name: [] for name in names}
        self.ops: list[ir.Operation] = []
        self.values: dict[ir.Value[Any], int] = {}
        self.types: dict[ir.Type, int] = {}
        self.kinds: dict[Hashable, int] = {}

    def op(self, op: ir.Operation, parent: int, region: int) -> None:
        columns, number = self.columns, len(self.ops)
        self.ops.append(op)
        for name, value in (("kinds", _NONE), ("parents", parent), ("regions", region), ("ends", _NONE)):
            columns[name].append(value)
        columns["operand_offsets"].append(len(columns["operands"]))
        operands = [self.values.get(value, _NONE) for value in op.operands]
        columns["operands"] += operands
        columns["first_results"].append(len(columns["types"]))
        columns["results"].append(len(op.results))
        results = [self.value(result, number) for result in op.results]
        inside = tuple(self.region(inner, number) for inner in op.regions)
        types = [[columns["types"][v] if v >= 0 else _NONE for v in values] for values in (operands, results)]
        held = attributes(op)
        unread = "" if len(held) == len(op.attributes) else str(op)  # complex elements are in no object
        kind = (op.name, frozenset(held), unread, *map(tuple, types), inside)
        columns["kinds"][number] = self.kinds.setdefault(kind, len(self.kinds))
        columns["ends"][number] = len(self.ops)
        columns["inner_first"].append(number)

    def value(self, value: ir.Value[Any], definer: int) -> int:
        number = self.values[value] = len(self.columns["types"])
        self.columns["types"].append(self.types.setdefault(value.type, len(self.types)))
        self.columns["definers"].append(definer)
        return number

    def region(self, region: ir.Region, owner: int) -> tuple[int, int, int]:
        """Lists a region. Returns its number of blocks, and the arguments and returned values of the
        first."""
        columns, number, blocks = self.columns, len(self.columns["owners"]), list(region.blocks)
        arguments = len(blocks[0].arguments) if blocks else 0
        columns["owners"].append(owner)
        columns["blocks"].append(len(blocks))
        columns["first_arguments"].append(len(columns["types"]))
        columns["arguments"].append(arguments)
        returned = 0
        for block in blocks:
            for argument in block.arguments:
                self.value(argument, _NONE)
            for op in block.operations:
                self.op(op.operation, owner, number)
                if block == blocks[0]:
                    returned = len(op.operation.operands)
        return len(blocks), arguments, returned
