"""A partitioned run: the program that each device runs, what it moves, and running it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

from ...partition.device_program import DeviceProgram
from ..choice import ProgramChoice
from ..options import TOPOLOGY
from .collectives import Collective, OpNames, collectives
from .plans import ProgramPlan

if TYPE_CHECKING:
    from ...partition.finishing.collective_matmul import Window
    from ...partition.improving import Aim
    from ..result import Result
    from .executable import Executable


class Partitioned(DeviceProgram):
    """The program that each device runs; see ``docs/partitioning.md``.

    ``Result.partition`` makes it. ``module`` is an ``ir.Module`` with the local shapes of one device,
    ``result`` the run that it carries out, and ``choice`` the options that chose it. ``exceeds`` is the
    memory in bytes that a device needs if that is more than the machine has, else 0.
    """

    def __init__(self, result: Result, program: DeviceProgram, choice: ProgramChoice) -> None:
        super().__init__(
            program.module,
            program.sent,
            program.traits,
            program.axes,
            program.form,
            program.boundary,
            program.found,
            program.homes,
            program.prepared,
        )
        self.exceeds, self.decided, self.cut = program.exceeds, program.decided, program.cut
        self.result, self.choice = result, choice
        self.besides: dict[int, Any] = {}  # the times of collectives that go on beside products, by number

    def put_beside(self, windows: Sequence[tuple[Window, Any]], aim: Aim) -> None:
        """Overlaps collectives with products.

        If the program then needs more memory than the aim allows, only those stay that save most time: half
        of them, a quarter, and so on.
        """
        numbers = {sent.op: number for number, sent in enumerate(self.sent)}
        best = sorted(windows, key=lambda each: each[1].beside - each[1].apart)
        while True:
            kept = sorted(best, key=lambda each: numbers[each[0].sent.op])
            self.windows = [window for window, _ in kept]
            self.besides = {numbers[window.sent.op]: times for window, times in kept}
            if not best or aim.memory is None or aim.peak is None or aim.peak(self) <= aim.memory:
                return
            best = best[: len(best) // 2]

    @cached_property
    def combined(self) -> ir.Module:
        """The module with collectives combined; see ``DeviceProgram.combined``.

        Raises ShardlogError where the module is not valid.
        """
        with self.result.source.places():
            return super().combined

    def text(self) -> str:
        """The module as MLIR text, in the form that was chosen.

        Raises ShardlogError where a dialect cannot say it.
        """
        if self.choice.form != "shard":
            return super().text()
        from ...exporters.dialects.text import local_text

        with self.result.source.places():
            version, whole = self.choice.dialect_version, self.choice.whole_arguments
            return local_text(self.module, self.axes, version, whole_arguments=whole)

    def module_for(self, platform: str) -> ir.Module:
        """The module for a platform; see ``DeviceProgram.module_for``.

        Raises ShardlogError where the module is not valid.
        """
        with self.result.source.places():
            return super().module_for(platform)

    @cached_property
    def collectives(self) -> tuple[Collective, ...]:
        """The collectives of the program in its order, each with its bytes and its causes."""
        found, causes = collectives(self.names, self), self.result.causes_of(self)
        return tuple(replace(each, causes=given) for each, given in zip(found, causes, strict=True))

    @cached_property
    def names(self) -> OpNames:
        """The names of ops and values in the program as it was read."""
        return OpNames(self.result.record)

    @cached_property
    def plan(self) -> ProgramPlan:
        """The plan of the program: the layouts and ways that were chosen, and each reshard."""
        return ProgramPlan.of(self)

    @property
    def topology(self) -> str | None:
        """The machine whose time is minimised; None if bytes are."""
        return self.choice.topology

    def cost(self, topology: str = TOPOLOGY) -> Any:
        """The ``Cost`` of the program for one device, in seconds and bytes; see ``docs/cost.md``.

        ``topology`` is a machine, by name or as a TOML file. Raises ShardlogError for an unknown machine.
        """
        return self.result.cost_of(self, topology)

    def compile_ahead(self, target: str) -> Any:
        """What a compiler makes of the program, an ``Ahead``; see ``docs/cost.md``.

        ``target`` is such as "tpu:v5e:2x4"; its devices need not be there. Raises ShardlogError for an
        unknown target, and where its compiler is not installed.
        """
        return self.result.ahead_of(self, target)

    def why(self, number: int) -> Any:
        """Why the program has collective ``number``, a ``Moved``; see ``docs/partitioning.md``.

        Raises ShardlogError where it has none.
        """
        return self.result.why_collective(self, number)

    def compile(self, devices: Sequence[Any] | None = None) -> Executable:
        """Compiles the program for the devices of its mesh, or for ``devices``.

        Returns an ``Executable``, which is called as the function was, with whole arrays, and returns whole
        arrays. Where its boundary is unreduced it takes and returns unreduced arrays:
        ``jax.sharding.reshard`` makes them whole. Raises ShardlogError as ``Result.compile`` does.
        """
        from .executable import compiled

        return compiled(self.result, devices, self)
