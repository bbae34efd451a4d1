"""A partitioned run: the program that each device runs, in the names of the program that was read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

from ..errors import ShardlogError
from ..partition.device_program import DeviceProgram, Planned, Written
from ..partition.forms import LOCAL
from .choice import ProgramChoice
from .collectives import Collective, OpNames, collectives
from .result import Result
from .table import plural

if TYPE_CHECKING:
    from .plans import ProgramPlan


class PartitionedRun(DeviceProgram):
    """The program that each device runs, and the run that it carries out.

    ``choice`` are the options that chose it. ``besides`` are the times of collectives that go on beside
    products, by number.
    """

    def __init__(
        self, result: Result, program: DeviceProgram, choice: ProgramChoice, besides: Mapping[int, Any]
    ) -> None:
        def write() -> Written:
            with result.source.places():
                return program.written

        planned = Planned(program.decided, program.prepared, program.sends, write, program.in_turn)
        super().__init__(planned, program.traits, program.axes, program.form)
        self.found, self.cut = program.found, program.cut
        self.exceeds, self.windows = program.exceeds, program.windows
        self.result, self.choice, self.besides = result, choice, besides

    def __repr__(self) -> str:
        counted = plural(len(self.movements), "collective")
        return f"<{type(self).__name__} of {self.result.record.name}: {self.choice}, {counted}>"

    @cached_property
    def combined(self) -> ir.Module:
        """The module with collectives combined; see ``DeviceProgram.combined``.

        Raises ShardlogError if the module is not valid.
        """
        with self.result.source.places():
            return super().combined

    def text(self) -> str:
        """The module as MLIR text, in the form that was chosen.

        Raises ShardlogError if a dialect cannot say it.
        """
        form = self.choice.form
        if form not in LOCAL:
            return super().text()
        from ..exporters.dialects.text import local_text

        with self.result.source.places():
            version, whole = self.choice.dialect_version, self.choice.whole_arguments
            return local_text(self.module, self.axes, form, version, whole_arguments=whole)

    def bytecode(self) -> bytes:
        """The module as MLIR bytecode. Raises ShardlogError for dialects, which only have text."""
        if self.choice.form in LOCAL:
            message = f"a program in {self.choice.form} is written as text"
            raise ShardlogError(message, where="partition", hint="name the file .mlir")
        return super().bytecode()

    def module_for(self, platform: str) -> ir.Module:
        """The module for a platform; see ``DeviceProgram.module_for``.

        Raises ShardlogError if the module is not valid.
        """
        with self.result.source.places():
            return super().module_for(platform)

    @cached_property
    def collectives(self) -> tuple[Collective, ...]:
        """The collectives of the program in its order, each with its bytes."""
        return collectives(self.names, self)

    @cached_property
    def names(self) -> OpNames:
        """The names of ops and values in the program as it was read."""
        return OpNames(self.result.record)

    @cached_property
    def plan(self) -> ProgramPlan:
        """The plan of the program: the layouts and ways that were chosen, and each reshard."""
        from .plans import ProgramPlan

        return ProgramPlan.of(self, self.result.module, self.names)

    @property
    def topology(self) -> str | None:
        """The machine whose time is minimised; None if bytes are."""
        return self.choice.topology
