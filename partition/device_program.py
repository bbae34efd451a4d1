"""The device program: the module that each device runs, and its collectives."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..collector import no_collections
from ..program.function import RESULT_SHARDING
from ..program.mlir.modules import boundary_attributes, bytecode_of, copy_of, ops_in
from ..program.shardings import Sharding, Shardings
from ..rulebook.book import RuleBook
from .building import Form, Sent
from .calls import put_in_place_of_calls, unshared
from .choice.choosing import Chooser
from .choice.homes import NOTHING, Found
from .finishing.collective_matmul import Window, write
from .finishing.combining import combine, sent_once
from .finishing.cpus import suit_cpus
from .finishing.tpus import suit_tpus
from .improving import Aim, Improving
from .kinds import Kinds
from .layouts import Axes, Layout
from .program import Partitioner
from .reshards.planning import Planner


class DeviceProgram:
    """The program that each device runs. ``sent`` are its collectives, in order; ``found`` is what the choice
    of homes found, where there was one, and ``homes`` those that values have instead of propagation's, each
    once: in each call of a function a value may have another.
    ``boundary`` are the layouts of its arguments and its results, and ``windows`` are collectives that go on
    beside products."""

    def __init__(
        self,
        module: ir.Module,
        sent: list[Sent],
        axes: Axes,
        form: Form,
        boundary: tuple[list[Layout], list[Layout]],
        found: Found | None = None,
        homes: Mapping[Any, tuple[Layout, ...]] | None = None,
    ) -> None:
        self.module, self.sent, self.axes, self.form, self.found = module, sent, axes, form, found
        self.boundary, self.homes = boundary, homes or {}
        self.windows: Sequence[Window] = ()

    @cached_property
    def combined(self) -> ir.Module:
        """The module as it is written, and compiled for CPUs: collectives over equal groups that do not need
        each other are one op, also those of several calls, and windows are written part by part."""
        made, windows = self._with_windows()
        combine(made, windows)
        # Behind that, for what a function sends at once is found best where nothing else is around.
        if self.sent and put_in_place_of_calls(made, windows):
            combine(made, windows)
        return made

    def module_for(self, platform: str) -> ir.Module:
        """The module as it is compiled for "cpu", "tpu" or others: XLA for accelerators combines collectives
        itself, without putting side by side what they send; that for CPUs copies what it need not, and that
        for TPUs sends some of it twice."""
        if platform == "cpu":
            return self._for_cpus
        made, windows = self._with_windows()
        if platform == "tpu":
            suit_tpus(made, windows)
        return made

    @cached_property
    def _for_cpus(self) -> ir.Module:
        """The module as it is written, but for what XLA for CPUs would copy at length."""
        made = copy_of(self.combined)
        suit_cpus(made)
        return made

    def _with_windows(self) -> tuple[ir.Module, set[Any]]:
        """The module with windows written part by part, and the ops of these."""
        made, windows = copy_of(self.module), set[Any]()
        if self.windows:
            with made.context, ir.Location.unknown():
                parts = {op for window in self.windows for op in window.ops}
                # No others are held in Python: those in an op that is erased would be left behind there.
                copies = {
                    op.operation: copy.operation
                    for op, copy in zip(ops_in(self.module), ops_in(made), strict=True)
                    if op.operation in parts
                }
                channel = max(_channel(each.op) for each in self.sent)
                windows = write(self.windows, copies, self.axes, self.form, channel)
        return made, windows

    def text(self) -> str:
        """The module as MLIR text."""
        return str(self.combined.operation.get_asm(assume_verified=True))

    def bytecode(self) -> bytes:
        """The module as MLIR bytecode."""
        return bytecode_of(self.combined)


_OF_VALUES = ("sdy.sharding", "in_shardings", "out_shardings")


@no_collections()
def partition(
    module: ir.Module,
    shardings: Shardings,
    book: RuleBook,
    modes: Sequence[str] = (),
    form: Form = "sdy-manual",
    aim: Aim | None = None,
    *,
    refuse: bool = True,
) -> DeviceProgram:
    """Partitions an annotated module, every value as its sharding says, or as ``aim`` wants it. ``modes`` are
    those of the run.

    Raises ShardlogError for ops that cannot run on each device, unless ``refuse`` is false: what is
    returned then is for asking what it moves, and not for running. And where no program was found that needs
    as little memory as the aim says.
    """
    aim = aim or Aim()
    with module.context, ir.Location.unknown():
        used, channel = _used(kinds := Kinds(module), shardings)
        axes = Axes(shardings.meshes, [*used, *aim.pins.values()])
        own = unshared(module, cut=aim.move and not aim.pins)
        if own.originals:
            kinds = Kinds(own.module)
        pins = {copy: given for value, given in aim.pins.items() for copy in own.copies(value)}
        pinned = {value: axes.layout(given, tuple(value.type.shape)) for value, given in pins.items()}
        planner = Planner(axes, aim.prices)
        chooser = Chooser(book, axes, planner, modes)

        def write(found: Found = NOTHING, **options: bool) -> Partitioner:
            homes, ways = {**found.homes, **pinned}, found.ways
            walk = Partitioner(
                own.module,
                shardings,
                axes,
                chooser,
                planner,
                form,
                channel,
                homes,
                ways,
                pinned,
                kinds=kinds,
                **options,
            )
            walk.refuses = refuse
            return walk

        best = Improving(write(recording=aim.move), write, replace(aim, pins=pins)).best()
        made = best.finished
        listed = sent_once(made, best.sent)  # of what several ops compute alike
        made.operation.verify()
        homes = own.homes(best.walk.moved)
        for sent in listed:
            for purpose in sent.purposes:
                own.name(purpose)
        found = None if best.found is None else own.found(best.found)
    return DeviceProgram(made, listed, axes, form, best.walk.boundary, found, homes)


def _used(kinds: Kinds, shardings: Shardings) -> tuple[Sequence[Sharding], int]:
    """All shardings of a module, in order, and the last channel of its collectives."""
    found: dict[Any, Sharding] = {}
    channels = [0]

    def read(attribute: Any) -> None:
        if attribute not in found:
            found[attribute] = shardings.read(attribute)

    for op in kinds.examples():
        attributes = op.attributes
        for label in _OF_VALUES:
            if label in attributes:
                for sharding in sdy.TensorShardingPerValueAttr(attributes[label]).shardings:
                    read(sharding)
        channels.append(_channel(op))
        if op.name.startswith("sdy."):
            for label in RESULT_SHARDING:
                if label in attributes:
                    read(attributes[label])
        elif op.name == "func.func":
            for label in ("arg_attrs", "res_attrs"):
                for entry in boundary_attributes(op.opview, label):
                    if "sdy.sharding" in entry:
                        read(entry["sdy.sharding"])
    return list(found.values()), max(channels)


def _channel(op: Any) -> int:
    """The channel of a collective; zero if it has none."""
    attributes = op.attributes
    if "channel_handle" not in attributes:
        return 0
    return int(re.findall(r"handle = (\d+)", str(attributes["channel_handle"]))[0])
