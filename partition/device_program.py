"""The device program: the module that each device runs, and its collectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from ..program.mlir.modules import bytecode_of, copy_of
from ..rulebook.traits import OpTraits
from .choice.homes import FoundHomes
from .choice.purposes import Purpose
from .executions import Executions
from .facts.made import Sending
from .finishing import passes
from .finishing.collective_matmul import Window
from .finishing.passes import Draft, Pass
from .forms import Form
from .layouts import Axes, Layout, Pieces
from .plan import Plan
from .preparing.calls import Unshared
from .writing.building import Sent


class Written(NamedTuple):
    """A program that was written.

    It is the module that each device runs, its collectives in order, and the layouts of its boundary.
    """

    module: ir.Module
    sent: Sequence[Sent]
    boundary: tuple[list[Layout], list[Layout]]


class Planned(NamedTuple):
    """A program that was planned.

    ``plan`` is for the module as it was ``prepared``. ``sends`` are its collectives in the order of the
    program, None if the plan does not know them. ``write`` writes it. If they are ``in_turn``, they are all
    in the main block, and each needs the one before.
    """

    plan: Plan
    prepared: Unshared
    sends: Sequence[Sending] | None
    write: Callable[[], Written]
    in_turn: bool


class Movement(NamedTuple):
    """A collective of a program, planned or written.

    It has a kind, the pieces of axes that it runs over, the devices of a group, and the bytes that a device
    sends each time. ``executions`` is None inside a loop of unknown trip count; ``repeats`` is the number of
    executions if such loops had one iteration. Merged permutations have several purposes.
    """

    kind: str
    pieces: Pieces
    group: int
    bytes: int
    executions: int | None
    repeats: int
    purposes: tuple[Purpose, ...]

    @property
    def purpose(self) -> Purpose:
        """The first of its purposes."""
        return self.purposes[0]


class DeviceProgram:
    """The program that each device runs. It is written when it is first needed.

    ``traits`` are the traits of its ops. ``found`` is the result of the search for layouts, if there was one.
    ``decided`` is the plan that the program follows, for the module as it was ``prepared``; ``cut`` says
    whether slices of concatenations were read from their parts, as in a saved plan. ``sends`` are the
    collectives of the plan. ``windows`` are the collectives that overlap products. ``exceeds`` is the memory
    in bytes that a device needs, if its machine has less.
    """

    def __init__(self, planned: Planned, traits: OpTraits, axes: Axes, form: Form) -> None:
        self.traits, self.axes, self.form = traits, axes, form
        self.decided, self.prepared, self.sends, self._write, self.in_turn = planned
        self.found: FoundHomes | None = None
        self.cut, self.exceeds = False, 0
        self._windows: Sequence[Window] = ()

    @cached_property
    def written(self) -> Written:
        """The program as it was written. Raises ShardlogError and MLIRError if it cannot be."""
        written = self._write()
        del self._write  # with all that was planned for it
        for sent in written.sent:
            for purpose in sent.purposes:
                self.prepared.name(purpose)
        return written

    @property
    def module(self) -> ir.Module:
        """The module that each device runs."""
        return self.written.module

    @property
    def sent(self) -> Sequence[Sent]:
        """Its collectives, in order."""
        return self.written.sent

    @property
    def boundary(self) -> tuple[list[Layout], list[Layout]]:
        """The layouts of arguments and of results."""
        return self.written.boundary

    @cached_property
    def movements(self) -> tuple[Movement, ...]:
        """Its collectives in order: as planned, or as written if the plan does not know them."""
        if self.sends is None:
            counts = Executions(self.module, self.traits)
            return tuple(
                Movement(
                    *(each.kind, each.pieces, each.group, each.bytes),
                    *(counts.of(each.op), counts.often(each.op), each.purposes),
                )
                for each in self.sent
            )
        purposes = {each.purpose: (each.purpose(),) for each in self.sends}
        for (purpose,) in purposes.values():
            self.prepared.name(purpose)
        return tuple([Movement(*each[:-1], purposes[each.purpose]) for each in self.sends])

    @cached_property
    def homes(self) -> dict[Any, tuple[Layout, ...]]:
        """The layouts of values of the annotated module that differ from propagation's.

        A value of a function may have one for each call.
        """
        value_of = self.prepared.kinds.listing.value
        return self.prepared.homes({value_of(n): home for n, home in self.decided.homes.items()})

    @cached_property
    def others(self) -> dict[Any, tuple[tuple[Layout, float], ...]]:
        """For each value whose layout was chosen, the layouts that lost.

        Each has the increase of the total cost, in bytes, if this value alone had it. Empty without a search.
        """
        if self.found is None:
            return {}
        value_of = self.prepared.kinds.listing.value
        return self.prepared.by_original({value_of(n): lost for n, lost in self.found.others.items()})

    @property
    def windows(self) -> Sequence[Window]:
        """The collectives that overlap products."""
        return self._windows

    @windows.setter
    def windows(self, windows: Sequence[Window]) -> None:
        self._windows = windows
        for written in ("combined", "_for_cpus"):  # its text changes
            self.__dict__.pop(written, None)

    @cached_property
    def combined(self) -> ir.Module:
        """The module as it is printed.

        Independent collectives over equal groups are one op, also across calls, and windows are written part
        by part. Raises MLIRError if it is not valid.
        """
        if self.in_turn and not self.windows:  # no two are independent
            return self.module
        return self._copy(self.module, passes.COMBINED)

    def module_for(self, platform: str) -> ir.Module:
        """The module for "cpu", "tpu" or another platform.

        XLA for accelerators combines collectives itself, without copying their operands into one buffer. XLA
        for CPUs would make needless copies, and XLA for TPUs would send some data twice. Raises MLIRError if
        it is not valid.
        """
        if platform == "cpu":
            return self._for_cpus
        return self._copy(self.module, passes.TPU if platform == "tpu" else passes.OTHERS)

    @cached_property
    def _for_cpus(self) -> ir.Module:
        """The module, rewritten where XLA for CPUs would make large copies."""
        return self._copy(self.combined, passes.CPU)

    def _copy(self, module: ir.Module, then: Sequence[Pass]) -> ir.Module:
        """A copy of a module after some passes, verified by MLIR."""
        draft = Draft(
            copy_of(module), self.sent, self.traits, self.axes, self.form, source=module, windows=self.windows
        )
        draft.after(then).module.operation.verify()
        return draft.module

    def text(self) -> str:
        """The module as MLIR text."""
        return str(self.combined.operation.get_asm(assume_verified=True))

    def bytecode(self) -> bytes:
        """The module as MLIR bytecode."""
        return bytecode_of(self.combined)
