"""A partitioned run: the program that each device runs, what it moves, and running it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..partition.device_program import DeviceProgram
from .collectives import Collective, OpNames, collectives

if TYPE_CHECKING:
    from .executable import Executable
    from .records.record import Op
    from .result import Result


class Partitioned(DeviceProgram):
    """The program that each device runs; see ``docs/partitioning.md``."""

    def __init__(self, result: Result, program: DeviceProgram) -> None:
        super().__init__(program.module, program.sent, program.axes, program.form)
        self.result = result

    @cached_property
    def collectives(self) -> tuple[Collective, ...]:
        """What the program moves, in its order."""
        return collectives(self._names, self)

    @cached_property
    def _names(self) -> OpNames:
        return OpNames(self.result.record)

    def op_of(self, purpose: Any) -> Op | None:
        """The op that a collective serves, where it was in the program as it was read."""
        return self._names.op(purpose)

    def cost(self, topology: str = "v5e") -> Any:
        """What the program costs on a machine, by its name or as a TOML file describes it: a ``Cost``; see
        ``docs/cost.md``. Raises ShardlogError for a machine that is none."""
        return self.result.cost_of(self, topology)

    def why(self, number: int) -> Any:
        """Why the program has the collective with this number, a ``Moved``; see ``docs/partitioning.md``.

        Raises ShardlogError where it has none.
        """
        return self.result.why_collective(self, number)

    def compile(self, devices: Sequence[Any] | None = None) -> Executable:
        """Compiles the program for the devices of its mesh, or ``devices``, as ``Result.compile``.

        What is returned is called as the function was, with whole arrays, and returns such.
        """
        from .executable import compiled

        return compiled(self.result, devices, self)
