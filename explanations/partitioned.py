"""The partitioned programs of a run, which answer questions about themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ..errors import ShardlogError
from ..executing.partitioning import Partitioning, machine_of
from ..partition.device_program import DeviceProgram
from ..partition.walk import RefusedError
from ..program.shardings import Sharding
from ..runs.choice import ProgramChoice
from ..runs.collectives import Causes, Collective
from ..runs.options import TOPOLOGY, machine_of_costs
from ..runs.partitioned import PartitionedRun
from ..runs.result import Result

if TYPE_CHECKING:
    from ..cost.ahead import Ahead
    from ..cost.beside import Beside
    from ..cost.cost import Cost
    from ..executing.executable import Executable
    from .answers.collective import Moved
    from .answers.conflicts import Conflict, Conflicts
    from .questions.collective import Asked
    from .questions.why import Explainer


class Partitioned(PartitionedRun):
    """The program that each device runs; see ``docs/partitioning.md``.

    ``Session.partition`` makes it. ``module`` is an ``ir.Module`` with the local shapes of one device,
    ``result`` the run that it carries out, and ``choice`` the options that chose it. ``exceeds`` is the
    memory in bytes that a device needs if that is more than the machine has, else 0.
    """

    def __init__(
        self,
        explains: Callable[[], Explainer],
        result: Result,
        program: DeviceProgram,
        choice: ProgramChoice,
        besides: Mapping[int, Beside],
    ) -> None:
        super().__init__(result, program, choice, besides)
        self._explains = explains

    @cached_property
    def collectives(self) -> tuple[Collective, ...]:
        """The collectives of the program in its order, each with its bytes and its causes."""
        return tuple(
            replace(each, causes=Causes(partial(self._causes, each.number))) for each in super().collectives
        )

    def _causes(self, number: int) -> Iterator[str]:
        return map(str, dict.fromkeys(annotation for _, annotation in self._asked.origins(number)))

    @cached_property
    def _asked(self) -> Asked:
        from .questions.collective import Asked

        return Asked(self._explains(), self)

    def cost(self, topology: str = TOPOLOGY, *, step: bool = True) -> Cost:
        """The ``Cost`` of the program for one device, in seconds and bytes; see ``docs/cost.md``.

        ``topology`` is a machine, by name or as a TOML file. Without ``step`` it has no timeline.
        Raises ShardlogError for an unknown machine.
        """
        from ..cost.cost import cost

        return cost(self, machine_of(self, topology), step=step)

    def compile_ahead(self, target: str) -> Ahead:
        """The program compiled for a target, as an ``Ahead``; see ``docs/cost.md``.

        ``target`` is such as "tpu:v5e:2x4"; its devices need not be present. Raises ShardlogError for an
        unknown target, and if its compiler is not installed.
        """
        from ..cost.ahead import ahead

        return ahead(self, target)

    def why(self, number: int) -> Moved:
        """Why the program has collective ``number``, a ``Moved``; see ``docs/partitioning.md``.

        Raises ShardlogError if it has none.
        """
        return self.whys([number])[0]

    def whys(self, numbers: Iterable[int]) -> tuple[Moved, ...]:
        """Why the program has each of some collectives. Raises ShardlogError as ``why``."""
        from .questions.collective import why_collectives

        return tuple(why_collectives(self._explains(), self, numbers))

    def compile(self, devices: Sequence[Any] | None = None) -> Executable:
        """Compiles the program for the devices of its mesh, or for ``devices``.

        Returns an ``Executable``, which is called as the function was, with whole arrays, and returns whole
        arrays. Where its boundary is unreduced it takes and returns unreduced arrays:
        ``jax.sharding.reshard`` makes them whole. Raises ShardlogError as ``Session.compile`` does.
        """
        from ..executing.executable import compiled

        return compiled(self.result, devices, self)


class Programs:
    """The programs of a run, each made once.

    ``explains`` returns the explainer of the run in memory, which is made on demand.
    """

    def __init__(self, result: Result, explains: Callable[[], Explainer]) -> None:
        self.result, self._explains = result, explains
        self._partitioning = Partitioning(result)
        self._programs: dict[tuple[ProgramChoice, bytes, bool], Partitioned] = {}
        self._conflicts: dict[tuple[ProgramChoice, bytes], Conflicts] = {}

    @property
    def explainer(self) -> Explainer:
        """The explainer of the run in memory."""
        return self._explains()

    def of(self, choice: ProgramChoice, *, refuse: bool = True) -> Partitioned:
        """The written program of a choice.

        Raises ShardlogError as ``Session.partition`` does.
        """
        program = self._planned(choice, refuse=refuse)
        _ = program.written
        return program

    def asked(self, choice: ProgramChoice) -> Partitioned:
        """The program of a choice, for questions about its communication and cost.

        It is planned, and written when its module is first needed. Ops that cannot run on each device remain
        in it. Raises ShardlogError if it cannot be partitioned.
        """
        try:
            return self._planned(choice)
        except RefusedError:
            return self._planned(choice, refuse=False)

    def _planned(self, choice: ProgramChoice, *, refuse: bool = True) -> Partitioned:
        key = choice, choice.machine, refuse
        if key not in self._programs:
            self._programs[key] = self._made(choice, self.pins(choice), refuse=refuse)
        return self._programs[key]

    def pins(self, choice: ProgramChoice) -> dict[Any, Sharding]:
        """The pins of a choice, by value of the annotated module. Raises ShardlogError as ``read_pins``."""
        if not choice.pins:
            return {}
        from .questions.pin_texts import read_pins

        return {value: sharding for value, (_, sharding) in read_pins(self.result, choice.pins).items()}

    def made(
        self, choice: ProgramChoice, pins: Mapping[Any, Sharding] | None = None, *, refuse: bool = True
    ) -> Partitioned:
        """The program of a choice, made and written anew.

        ``pins`` are shardings of values of the annotated module. They replace the pins of the choice.
        """
        program = self._made(choice, self.pins(choice) if pins is None else pins, refuse=refuse)
        _ = program.written
        return program

    def _made(self, choice: ProgramChoice, pins: Mapping[Any, Sharding], *, refuse: bool) -> Partitioned:
        program, besides = self._partitioning.program(choice, pins, refuse=refuse)
        return Partitioned(self._explains, self.result, program, choice, besides)

    def conflicts(self, choice: ProgramChoice) -> Conflicts:
        """The tensors that must be resharded in the program of a choice, most bytes first.

        Raises ShardlogError if it cannot be partitioned.
        """
        from .questions.conflicts import conflicts

        key = choice, choice.machine
        if key not in self._conflicts:
            self._conflicts[key] = conflicts(self.explainer, self.asked(choice))
        return self._conflicts[key]

    def conflicts_or_error(self, choice: ProgramChoice) -> tuple[tuple[Conflict, ...], ShardlogError | None]:
        """The conflicts of a choice, or none and the error where the program cannot be partitioned."""
        try:
            return self.conflicts(choice), None
        except ShardlogError as error:
            return (), error

    def cost(self, choice: ProgramChoice) -> Cost:
        """The cost of the program of a choice; without a topology, on a v5e.

        Raises ShardlogError for an unknown machine.
        """
        return self.asked(choice).cost(machine_of_costs(choice.topology))
