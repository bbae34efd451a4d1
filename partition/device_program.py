"""The device program: the module that each device runs, and its collectives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..program.function import RESULT_SHARDING
from ..program.modules import boundary_attributes, bytecode_of
from ..program.shardings import Sharding, Shardings
from ..rulebook.book import RuleBook
from .building import Form, Sent
from .choosing import Chooser
from .executions import Executions
from .homes import Homes, Spot
from .layouts import Axes
from .planning import Planner
from .program import Partitioner


class DeviceProgram:
    """The program that each device runs. ``sent`` are its collectives, in order."""

    def __init__(self, module: ir.Module, sent: list[Sent], axes: Axes, form: Form) -> None:
        self.module, self.sent, self.axes, self.form = module, sent, axes, form

    def text(self) -> str:
        """The module as MLIR text."""
        return str(self.module)

    def bytecode(self) -> bytes:
        """The module as MLIR bytecode."""
        return bytecode_of(self.module)


_OF_VALUES = ("sdy.sharding", "in_shardings", "out_shardings")


def partition(
    module: ir.Module,
    shardings: Shardings,
    book: RuleBook,
    modes: Sequence[str] = (),
    form: Form = "sdy-manual",
    move: bool = False,
    *,
    refuse: bool = True,
) -> DeviceProgram:
    """Partitions an annotated module, every value as its sharding says. ``modes`` are those of the run.

    With ``move``, values that no constraint binds may get other homes than propagation chose, if less moves
    so.

    Raises ShardlogError for ops that cannot run on each device, unless ``refuse`` is false: what is
    returned then is for asking what it moves, and not for running.
    """
    with module.context, ir.Location.unknown():
        used, channel = _used(module, shardings)
        axes = Axes(shardings.meshes, used)
        planner = Planner(axes)
        chooser = Chooser(book, axes, planner, modes)
        first = Partitioner(module, shardings, axes, chooser, planner, form, channel, recording=move)
        first.refuses = refuse
        made, sent = first.run()
        if move:
            made, sent = _moved(first, made, sent, channel)
        made.operation.verify()
    return DeviceProgram(made, sent, axes, form)


def _moved(
    first: Partitioner, made: ir.Module, sent: list[Sent], channel: int
) -> tuple[ir.Module, list[Sent]]:
    """The program with homes chosen by all ops together, if that moves less."""
    counts = Executions(first.old)

    def often(op: Any) -> float:
        found = counts.of(op)
        return float(_TURNS if found is None else found)

    spots = [
        Spot(known, (*op.operands, *op.results), held, free, often(op))
        for op, known, held, free in first.spots
    ]
    needs = [replace(need, weight=often(op)) for op, need in first.needs]
    homes = Homes(first.chooser, first.planner, spots, needs).find()
    if not homes:
        return made, sent
    second = Partitioner(
        first.old,
        first.shardings,
        first.axes,
        first.chooser,
        first.planner,
        first.form,
        channel,
        homes,
    )
    other, others = second.run()
    return (other, others) if _bytes(other, others) < _bytes(made, sent) else (made, sent)


def _bytes(module: ir.Module, sent: Iterable[Sent]) -> float:
    """The bytes that a device sends in total."""
    counts = Executions(module)
    return sum(each.bytes * (_TURNS if (n := counts.of(each.op)) is None else n) for each in sent)


_TURNS = 8  # of a loop that does not say how many it takes


def _used(module: ir.Module, shardings: Shardings) -> tuple[Sequence[Sharding], int]:
    """All shardings of a module, in order, and the last channel of its collectives."""
    found: dict[Any, Sharding] = {}
    seen: set[Any] = set()
    channels = [0]

    def read(attribute: Any) -> None:
        if attribute not in found:
            found[attribute] = shardings.read(attribute)

    def look(op: Any) -> None:
        attributes = op.attributes
        for label in _OF_VALUES:
            if label in attributes and (attribute := attributes[label]) not in seen:
                seen.add(attribute)
                for sharding in sdy.TensorShardingPerValueAttr(attribute).shardings:
                    read(sharding)
        if "channel_handle" in attributes:
            channels.append(int(re.findall(r"handle = (\d+)", str(attributes["channel_handle"]))[0]))
        name = op.name
        if name.startswith("sdy."):
            for label in RESULT_SHARDING:
                if label in attributes:
                    read(attributes[label])
        elif name == "func.func":
            for label in ("arg_attrs", "res_attrs"):
                for entry in boundary_attributes(op.opview, label):
                    if "sdy.sharding" in entry:
                        read(entry["sdy.sharding"])
        for region in op.regions:
            for block in region:
                for inner in block:
                    look(inner.operation)

    look(module.operation)
    return list(found.values()), max(channels)
