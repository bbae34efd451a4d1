"""The plan of a partitioned program, for people: by the names of values, ops and axes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from jaxlib.mlir import ir

from ..outputs import write
from ..partition.choice.choosing import Way
from ..partition.choice.purposes import Purpose
from ..partition.device_program import DeviceProgram
from ..partition.forms import PlanFile
from ..partition.layouts import Axes, Layout
from ..partition.plan import Reshard
from ..partition.reshards.moves import Step
from ..partition.saved import saved
from ..program.factors import PICKING, factor_name
from ..program.ids import Slot
from ..program.mlir.origins import at
from .collectives import OpNames
from .records.record import Op
from .table import plural, table


@dataclass(frozen=True)
class Home:
    """A value whose sharding differs from the annotated module's: a text per layout.

    ``first`` is the layout in which it is made for other uses, empty if that is its own.
    """

    value: str
    layout: str
    first: str = ""


@dataclass(frozen=True)
class OpWay:
    """An op that is computed in parts: the op, its first result, its place, and the axes of each factor."""

    op: str
    value: str
    where: str
    way: str


@dataclass(frozen=True)
class PlannedReshard:
    """A reshard of a plan: the value, its layouts before and after, the steps, and the purpose.

    ``before`` is empty if the value is computed once more instead.
    """

    value: str
    before: str
    after: str
    steps: str
    purpose: str


@dataclass(frozen=True)
class ProgramPlan:
    """The plan of a program. Its text is the output of ``shardlog partition --show-plan``.

    Two plans are equal if their files are.
    """

    file: PlanFile
    homes: tuple[Home, ...] = field(compare=False)
    ways: tuple[OpWay, ...] = field(compare=False)
    reshards: tuple[PlannedReshard, ...] = field(compare=False)

    @classmethod
    def of(cls, program: DeviceProgram, module: ir.Module, names: OpNames) -> ProgramPlan:
        """The plan of a program of an annotated module, whose ops have these names."""
        return _Naming(program, module, names).plan()

    def save(self, path: str | Path) -> None:
        """Writes the plan to a file, which ``Session.partition(plan=path)`` and ``--plan`` read.

        Raises ShardlogError if it cannot be written.
        """
        write(path, self.file.text.encode())

    def __str__(self) -> str:
        lines = list[str]()
        if self.homes:
            rows = [(home.value, home.layout, home.first or "-") for home in self.homes]
            lines += [table(("value", "layout", "made first in"), rows), ""]
        if self.ways:
            rows_of_ways = [(way.op, way.value, way.way, way.where) for way in self.ways]
            lines += [table(("op", "value", "way", "place"), rows_of_ways), ""]
        if self.reshards:
            rows_of_reshards = [
                (r.value, r.before or "-", r.after, r.steps, r.purpose) for r in self.reshards
            ]
            lines += [table(("value", "before", "after", "steps", "for"), rows_of_reshards), ""]
        homes = plural(len(self.homes), "value") + " with another sharding than propagation's"
        ways = plural(len(self.ways), "op") + " computed in parts"
        return "\n".join([*lines, f"{homes}, {ways}, {plural(len(self.reshards), 'reshard')}"])


class _Naming:
    """Names for the values and ops of a plan."""

    def __init__(self, program: DeviceProgram, module: ir.Module, names: OpNames) -> None:
        self._program, self._axes, self._module, self._names = program, program.axes, module, names
        self._own, self._kinds = program.prepared, program.prepared.kinds

    def plan(self) -> ProgramPlan:
        """The plan of the program."""
        decided = self._program.decided
        copies = decided.copies
        homes = [
            Home(self._value(value), _layout(self._axes, home), _copy(self._axes, copies.get(value)))
            for value, home in sorted(decided.homes.items())
        ]
        ways = [self._way(value, way) for value, way in sorted(decided.ways.items()) if way]
        reshards = [self._reshard(reshard) for reshard in decided.reshards or ()]
        return ProgramPlan(
            saved(decided, self._axes, self._module, cut=self._program.cut),
            tuple(homes),
            tuple(ways),
            tuple(reshards),
        )

    def _way(self, value: int, way: Way) -> OpWay:
        op = self._op(self._kinds.definer(value))
        return OpWay(op.name, op.slots[-1] or "-", op.where, way_text(self._axes, way))

    def _reshard(self, reshard: Reshard) -> PlannedReshard:
        purpose = Purpose(self._kinds.ops[reshard.op], reshard.slot, self._kinds.listing.value(reshard.value))
        self._own.name(purpose)
        op, slot = self._names.of(purpose)
        served = f"{op.roles[slot]} of {op.name}{at(op.where, op.stack)}"
        if reshard.role == "handed on":
            served += ", which hands it on"
        elif reshard.role == "shared":
            served = f"several uses of {op.slots[-1] or 'a value'} of {op.name}{at(op.where, op.stack)}"
        before = "" if reshard.start is None else _layout(self._axes, reshard.start)
        steps = ", ".join(map(self._step, reshard.steps))
        if reshard.start is None:
            steps = "computed once more"
        value = self._value(reshard.value)
        return PlannedReshard(value, before, _layout(self._axes, reshard.goal), steps or "-", served)

    def _step(self, step: Step) -> str:
        kind, along = step.kind.replace("_", "-"), ",".join(self._axes.names(step.pieces))
        return f"{kind} over {along}" if along else kind

    def _op(self, number: int) -> Op:
        purpose = Purpose(self._kinds.ops[number], Slot(0), None)
        self._own.name(purpose)
        return self._names.of(purpose)[0]

    def _value(self, number: int) -> str:
        """The name of a value in the program that was read."""
        value = self._own.original(self._kinds.listing.value(number))
        if isinstance(value.owner, ir.Block):
            around, n = value.owner.owner.operation, value.arg_number
            if (op := self._names.as_read(around)) is not None and n < len(op.slots):
                return f"{op.slots[n] or 'a value'} in {op.name}"
            return str(value.get_name())
        op = self._names.as_read(value.owner.operation)
        slot = len(value.owner.operands) + value.result_number
        if op is None or slot >= len(op.slots):
            return "a value"
        return op.slots[slot] or "a value"


def way_text(axes: Axes, way: Way) -> str:
    """The factors of a way to compute an op, each with its axes."""
    return ", ".join(f"{_factor(factor)} on {','.join(axes.names(pieces))}" for factor, pieces in way)


def _factor(factor: int) -> str:
    if factor <= PICKING:
        return f"{factor_name(PICKING - factor)} picked"
    return "partial sums passed on" if factor < 0 else factor_name(factor)


def _layout(axes: Axes, layout: Layout) -> str:
    dims = ", ".join("{" + ",".join(axes.names(pieces)) + "}" for pieces in layout.dims)
    partial = f", partial over {','.join(axes.names(layout.partial))}" if layout.partial else ""
    return f"[{dims}]{partial}"


def _copy(axes: Axes, layout: Layout | None) -> str:
    return "" if layout is None else _layout(axes, layout)
