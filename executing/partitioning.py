"""The program of each device for a choice: with least bytes or time, within the memory of a machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from math import prod
from typing import TYPE_CHECKING, Any

from ..cost.exchange import prices
from ..cost.inlining import inlined
from ..cost.machine import Allocation, Machine, machine
from ..cost.memory import memory_of_all, peak_memory
from ..errors import ShardlogError
from ..partition.device_program import DeviceProgram
from ..partition.forms import PlanFile, form_of
from ..partition.improving import Aim, within
from ..partition.partitioning import partition
from ..partition.preparing.preparing import Preparing
from ..partition.reshards.prices import Prices
from ..partition.saved import SavedPlan
from ..program.shardings import Sharding
from ..runs.choice import ProgramChoice
from ..runs.custom_partitioning import computations
from ..runs.options import machine_of_costs
from ..runs.result import Result

if TYPE_CHECKING:
    from ..cost.beside import Beside
    from ..partition.finishing.collective_matmul import Window


class Partitioning:
    """Makes the programs of a run."""

    def __init__(self, result: Result) -> None:
        self.result = result

    def program(
        self, choice: ProgramChoice, pins: Mapping[Any, Sharding], *, refuse: bool, bounded: bool = True
    ) -> tuple[DeviceProgram, Mapping[int, Beside]]:
        """The program of a choice, and the times of its collectives that go on beside products, by number.

        ``pins`` are shardings by value of the annotated module. If it is not ``bounded``, it may need any
        memory; if that is within the choice's limit, it is the same program. Raises ShardlogError where the
        program cannot be made; without ``refuse``, ops that cannot run on each device stay in it.
        """
        result = self.result
        with result.source.places():
            plan = SavedPlan(choice.plan) if isinstance(choice.plan, PlanFile) else None
            begins = {} if choice.keep_shardings or plan else self._further
            aim = replace(_aim(result, choice), pins=pins, begins=begins)
            aim = aim if bounded else replace(aim, memory=None)
            make = partial(
                partition,
                self._prepare,
                result.program.shardings,
                result.book,
                result.options.modes,
                form_of(choice.form),
                refuse=refuse,
                given=plan,
            )
            program = within(aim, make)
            if not choice.collective_matmul:
                return program, {}
            return program, put_beside(program, windows_of(result, program, choice.topology), aim)

    @cached_property
    def _further(self) -> dict[Any, Sharding]:
        """The shardings that values of the annotated module would have with propagation into calls."""
        further = self.result.fixpoint.further
        return {value: sharding for body in self.result.bodies for value, sharding in body.held(further)}

    @cached_property
    def _prepare(self) -> Preparing:
        """The annotated module, prepared once for all programs. The user's functions for the computation of
        some ops on each device are called once, too."""
        return Preparing(self.result.module, self.result.book.traits, computations(self.result))


def machine_of(program: DeviceProgram, topology: str) -> Machine:
    """The machine that a program runs on. Raises ShardlogError for one that is not known."""
    axes = [name for name, _ in program.axes.mesh.axes] if program.axes.mesh else ()
    return machine(topology, axes, program.axes.count)


def _aim(result: Result, choice: ProgramChoice) -> Aim:
    """The aim of a program, without its pins.

    If values may move, the memory of the machine bounds it; without a machine and a bound, little more memory
    than with the shardings of propagation.
    """
    meshes, traits = result.program.shardings.meshes.meshes, result.book.traits
    axes = {name for mesh in meshes for name, _ in mesh.axes}
    devices = max((prod(size for _, size in mesh.axes) for mesh in meshes), default=1)
    topology, memory, move = choice.topology, choice.memory, not choice.keep_shardings
    assert memory is None or isinstance(memory, int)
    counted = machine(machine_of_costs(topology), sorted(axes), devices)
    collective_prices, allocation, most = Prices(), Allocation(), memory
    if topology is not None:
        collective_prices, allocation = prices(counted, traits), counted.allocation
        most = counted.memory if memory is None and move else memory

    def peak(program: DeviceProgram) -> int:
        """The bytes that a device needs at most, or more where they are within the bound anyhow."""
        every = memory_of_all(program.module, allocation)
        if every <= (most or 0):
            return every
        return peak_memory(inlined(program.module_for(allocation.platform), traits), allocation, traits)

    modest = move and topology is None and memory is None
    bound = memory is not None
    return Aim(move, collective_prices, most, bound, modest, peak, choice.seconds, order=choice.order)


def windows_of(result: Result, program: DeviceProgram, topology: str | None) -> list[tuple[Window, Beside]]:
    """The collectives of a program that overlap products on a machine.

    Raises ShardlogError without a topology.
    """
    from ..cost.beside import beside
    from ..cost.pricing import Pricing
    from ..partition.facts.knowledge import RuleReader

    if topology is None:
        hint = "give a topology, such as v5e: the gain depends on the machine"
        raise ShardlogError("no machine is given", where="--collective-matmul", hint=hint)
    pricing = Pricing(machine_of(program, topology), RuleReader(result.book))
    with program.module.context:
        return beside(program, pricing)


def put_beside(program: DeviceProgram, windows: list[tuple[Window, Beside]], aim: Aim) -> dict[int, Beside]:
    """Overlaps collectives of a program with products; returns their times, by number.

    If the program then needs more memory than the aim allows, only those stay that save most time: half of
    them, a quarter, and so on.
    """
    numbers = {sent.op: number for number, sent in enumerate(program.sent)}
    best = sorted(windows, key=lambda each: each[1].beside - each[1].apart)
    while True:
        kept = sorted(best, key=lambda each: numbers[each[0].sent.op])
        program.windows = [window for window, _ in kept]
        if not best or aim.memory is None or aim.peak is None or aim.peak(program) <= aim.memory:
            return {numbers[window.sent.op]: times for window, times in kept}
        best = best[: len(best) // 2]
