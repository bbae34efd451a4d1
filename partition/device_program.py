"""The program that each device runs: the module, and what it moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..program.function import RESULT_SHARDING
from ..program.modules import boundary_attributes, bytecode_of, ops_in
from ..program.shardings import Sharding, Shardings
from ..rulebook.book import RuleBook
from .building import Form, Sent
from .choosing import Chooser
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


def partition(
    module: ir.Module,
    shardings: Shardings,
    book: RuleBook,
    modes: Sequence[str] = (),
    form: Form = "sdy-manual",
) -> DeviceProgram:
    """Partitions an annotated module, every value as its sharding says. ``modes`` are those of the run.

    Raises ShardlogError for ops that cannot run on each device.
    """
    with module.context, ir.Location.unknown():
        axes = Axes(shardings.meshes, _used(module, shardings))
        planner = Planner(axes)
        chooser = Chooser(book, axes, planner, modes)
        made, sent = Partitioner(module, shardings, axes, chooser, planner, form).run()
        made.operation.verify()
    return DeviceProgram(made, sent, axes, form)


def _used(module: ir.Module, shardings: Shardings) -> Sequence[Sharding]:
    """All shardings of a module, in order."""
    found: dict[Any, Sharding] = {}

    def read(attribute: Any) -> None:
        if attribute not in found:
            found[attribute] = shardings.read(attribute)

    for op in ops_in(module):
        attributes = op.attributes
        for label in ("sdy.sharding", "in_shardings", "out_shardings"):
            if label in attributes:
                for sharding in sdy.TensorShardingPerValueAttr(attributes[label]).shardings:
                    read(sharding)
        for label in RESULT_SHARDING:
            if op.operation.name.startswith("sdy.") and label in attributes:
                read(attributes[label])
        if op.operation.name == "func.func":
            for label in ("arg_attrs", "res_attrs"):
                for entry in boundary_attributes(op, label):
                    if "sdy.sharding" in entry:
                        read(entry["sdy.sharding"])
    return list(found.values())
