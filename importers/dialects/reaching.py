"""Refuses collectives that some devices of their group may not reach, by ``rules/dialects/alike.dl``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ...errors import ShardlogError
from ...notations.gspmd.tiles import groups_along
from ...program.devices import Devices, Table
from ...program.function import location
from ...program.meshes import symbol
from ...program.mlir.modules import operations_in, symbols
from ...program.mlir.origins import location_text, origin
from ...program.mlir.types import FunctionOp, Operation, Value
from ...program.shardings import Shardings, declared
from ...rulebook.shipped import shipped
from .grids import axis_lists, integers

_HINT = (
    "reduce what it depends on first: shard.all_reduce along that axis, with reduction = max if one device "
    "is enough, or min if all must agree"
)
_HINT_OF_JAX = (
    "reduce what it depends on first: jax.lax.pmax over that axis if one device is enough, or pmin if all "
    "must agree"
)


@cache
def _exchanges() -> frozenset[str]:
    """The names of the ops at which devices wait for each other."""
    return frozenset(name for (name,) in shipped("dialects/alike").evaluate({})["exchanges"])


def exchanges_inside(function: FunctionOp) -> bool:
    """Whether the program of a device has a collective in a branch or a loop."""
    names, ops = _exchanges(), operations_in(function.operation)
    return any(op.name in names and op.operation.parent != function.operation for op in ops)


def check_reached(function: FunctionOp, sizes: Sequence[int], alike: Sequence[Collection[int]]) -> None:
    """Checks the program of each device of a grid with axes of these sizes. Devices along the axes ``alike``
    are given the same, by argument.

    Raises ShardlogError for a collective in a branch or loop that depends on a value which may differ
    between devices that wait for each other there.
    """
    if exchanges_inside(function):
        differs = [[axis for axis in range(len(sizes)) if axis not in axes] for axes in alike]
        names = [str(axis) for axis in range(len(sizes))]
        _Check(function.operation, names, sizes, symbol(function.name.value), _HINT).run(differs)


def check_computations(module: ir.Module) -> None:
    """Checks the manual computations of a module, as ``check_reached`` does programs of each device."""
    if not any(op.name in _exchanges() for op in operations_in(module)):
        return
    shardings = declared(symbols(module, "sdy.mesh"))
    functions = symbols(module, "func.func")
    for op in operations_in(module):
        if op.name == _COMPUTATION and not _is_inside(op):
            _check_computation(op, shardings, functions)


_COMPUTATION = "sdy.manual_computation"


def _is_inside(op: Operation) -> bool:
    """Whether a manual computation is in another one."""
    around = op.operation.parent
    while around is not None and around.name != _COMPUTATION:
        around = around.parent
    return around is not None


def _check_computation(op: Operation, shardings: Shardings, functions: Mapping[str, Any]) -> None:
    references = [each.mesh_or_ref for label in _BOUNDARY for each in _shardings(op, label)]
    used = {each.value for each in references if isinstance(each, ir.FlatSymbolRefAttr)}
    meshes = [mesh for mesh in shardings.meshes.meshes if mesh.name in used]
    named = [mesh for mesh in meshes if mesh.axes]
    if len(named) != 1 or named[0].device_ids:  # numbers of devices say nothing about their places then
        return
    names, sizes = [name for name, _ in named[0].axes], [size for _, size in named[0].axes]
    what = f"the manual computation{_line(op)}"
    _Check(op.operation, names, sizes, what, _HINT_OF_JAX, shardings, functions).run(_differs(op, names))


_BOUNDARY = ("in_shardings", "out_shardings")


def _shardings(op: Operation, label: str) -> list[Any]:
    """The shardings at the boundary of a manual computation."""
    each = sdy.TensorShardingPerValueAttr(op.attributes[label]).shardings
    return [sdy.TensorShardingAttr(sharding) for sharding in each]


def _differs(op: Operation, names: Sequence[str]) -> list[list[int]]:
    """The axes along which devices are given something else, by argument of a manual computation."""
    differs = list[list[int]]()
    for each in _shardings(op, "in_shardings"):
        entries = map(sdy.DimensionShardingAttr, each.dimension_shardings)
        axes = [axis for entry in entries for axis in entry.axes] + [*each.unreduced_axes]
        named = {sdy.AxisRefAttr(axis).name for axis in axes}
        differs.append([axis for axis, name in enumerate(names) if name in named])
    return differs


@dataclass
class _Check:
    """A program of each device: the op whose region it is. ``axes`` are the names of axes, ``what`` is that
    of the program."""

    program: Operation
    axes: Sequence[str]
    sizes: Sequence[int]
    what: str
    hint: str
    shardings: Shardings = field(default_factory=lambda: declared({}))
    functions: Mapping[str, Any] = field(default_factory=dict)
    ops: list[Operation] = field(default_factory=list)  # by number; those of a function once for each call
    values: list[Value] = field(default_factory=list)  # by number
    facts: dict[str, list[tuple[Any, ...]]] = field(default_factory=lambda: defaultdict(list))

    def run(self, differs: Sequence[Collection[int]]) -> None:
        """``differs``: the axes along which devices are given something else, by argument."""
        self.devices = Devices(self.sizes)
        facts, step = self.facts, self.devices.count
        for axis, size in enumerate(self.sizes):
            if size > 1:
                facts["axis"].append((axis,))
                facts["stride"].append((axis, step // size, step))
            step //= size
        known = dict[Value, int]()
        block = self.program.regions[0].blocks[0]
        self.note_given(block, differs, known)
        self.read_block(block, None, known, ())
        found = shipped("dialects/alike").evaluate(facts)
        if found["blocked"]:
            outer, axis, op = min(found["blocked"])
            source = min(value for other, along, value in found["because"] if (other, along) == (outer, axis))
            self.refuse(outer, op, axis, source)

    def note_given(
        self, block: ir.Block, differs: Sequence[Collection[int]], known: dict[Value, int]
    ) -> None:
        """Notes along which axes the arguments of a block differ."""
        for value, axes in zip(block.arguments, differs, strict=True):
            number = self.of(value, known)
            self.facts["given"] += [(number, axis) for (axis,) in self.facts["axis"] if axis in axes]

    def of(self, value: Value, known: dict[Value, int]) -> int:
        """The number of a value."""
        if value not in known:
            known[value] = len(self.values)
            self.values.append(value)
        return known[value]

    def read_block(
        self, block: ir.Block, outer: int | None, known: dict[Value, int], called: tuple[str, ...]
    ) -> None:
        for op in block.operations:
            self.read(op.operation, outer, known, called)

    def read(
        self, op: Operation, outer: int | None, known: dict[Value, int], called: tuple[str, ...]
    ) -> None:
        """Notes the facts about an op, and about those in its regions."""
        facts, number = self.facts, len(self.ops)
        self.ops.append(op)
        facts["op"].append((number, op.name))
        facts["operand"] += [(number, i, self.of(value, known)) for i, value in enumerate(op.operands)]
        facts["result"] += [(number, i, self.of(value, known)) for i, value in enumerate(op.results)]
        if outer is not None:
            facts["inside"].append((number, outer))
        listed = self.listed(op, number)
        facts["listed"] += [(number, position, axis) for position, axis in enumerate(listed)]
        facts["lists_axes"] += [(number,)] * bool(listed)
        if "has_side_effect" in op.attributes and ir.BoolAttr(op.attributes["has_side_effect"]).value:
            facts["has_effect"].append((number,))
        if 0 < (constant := _constant(op)) <= self.devices.count:
            facts["constant"].append((self.of(op.results[0], known), constant))
        regions = [(region, known) for region in op.regions]
        if op.name == "func.call":
            callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
            if callee in self.functions and callee not in called:
                regions, called = [(self.functions[callee].operation.regions[0], {})], (*called, callee)
        if op.name == _COMPUTATION:  # in another one
            self.note_given(op.regions[0].blocks[0], _differs(op, self.axes), known)
        for r, (region, inner) in enumerate(regions):
            facts["region"].append((number, r))
            for block in region.blocks:
                taken = enumerate(block.arguments)
                facts["taken"] += [(number, r, i, self.of(value, inner)) for i, value in taken]
                self.read_block(block, number, inner, called)
                handed = [value for end in list(block.operations)[-1:] for value in end.operation.operands]
                facts["handed"] += [(number, r, i, self.of(value, inner)) for i, value in enumerate(handed)]

    def listed(self, op: Operation, number: int) -> list[int]:
        """The axes that an op on a grid names, outermost first; those along which devices of its groups
        differ, for a collective of StableHLO."""
        if _GROUPS in op.attributes:
            groups = self.groups(op)
            places = np.stack(
                np.unravel_index(np.clip(groups, 0, self.devices.count - 1), self.devices.sizes)
            )
            axes = [axis for axis, each in enumerate(places) if (each != each[:, :1]).any()]
            if not np.array_equal(np.sort(np.sort(groups), 0), np.sort(np.sort(self.devices.along(axes)), 0)):
                self.facts["incomplete"].append((number,))
            return axes
        if "grid" not in op.attributes:
            return []
        if op.name in _exchanges() and "split_axes" in op.attributes:  # neighbours exchange halos
            return [axis for axes in axis_lists(op.attributes["split_axes"]) for axis in axes]
        return [axis for label in ("grid_axes", "axes") for axis in integers(op.attributes.get(label))]

    def groups(self, op: Operation) -> Table:
        """The devices that a collective of StableHLO brings together, a row per group."""
        attribute = op.attributes[_GROUPS]
        if isinstance(attribute, ir.DenseIntElementsAttr):
            return np.asarray(attribute)
        return np.asarray(groups_along(*self.shardings.grouped(attribute, location(op))))

    def refuse(self, outer: int, op: int, axis: int, source: int) -> None:
        """Raises ShardlogError for a collective in a branch or loop that depends on a value."""
        waiting = f"{self.ops[op].name}{_line(self.ops[op])} waits for them"
        message = (
            f"devices along axis {self.axes[axis]} may decide differently, and {waiting}: it depends on "
        )
        raise ShardlogError(message + self.name(source), where=location(self.ops[outer]), hint=self.hint)

    def name(self, number: int) -> str:
        """What a value is, for a message."""
        value = self.values[number]
        arguments = list(self.program.regions[0].blocks[0].arguments)
        if value in arguments:
            return f"argument {arguments.index(value)} of {self.what}"
        op = value.owner.operation  # values begin to differ nowhere else
        return f"{op.name}{_line(op)}"


_GROUPS = "replica_groups"


def _constant(op: Operation) -> int:
    """The number that an op gives; 0 for others."""
    value = op.attributes["value"] if "value" in op.attributes and not len(op.operands) else None
    if not isinstance(value, ir.DenseIntElementsAttr) or not value.is_splat:
        return 0
    return int(ir.IntegerAttr(value.get_splat_value()).value)


def _line(op: Operation) -> str:
    """The line of an op in the program, if known."""
    frames = origin(location_text(op)).frames
    return f" in line {frames[0].line}" if frames else ""
