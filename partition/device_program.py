"""The device program: the module that each device runs, and its collectives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from jaxlib.mlir import ir

from ..program.mlir.modules import bytecode_of, copy_of
from ..rulebook.traits import OpTraits
from .choice.homes import FoundHomes
from .finishing import passes
from .finishing.collective_matmul import Window
from .finishing.passes import Draft, Pass
from .forms import Form
from .layouts import Axes, Layout
from .plan import AS_DECIDED
from .preparing.calls import Unshared
from .writing.building import Sent


class DeviceProgram:
    """The program that each device runs.

    ``sent`` are its collectives in order, and ``traits`` the traits of its ops. ``found`` is the result of
    the search for layouts, if there was one. ``boundary`` has the layouts of arguments and results.
    ``decided`` is the plan that the program follows, for the module as it was ``prepared``; ``cut`` says
    whether slices of concatenations were read from their parts, as in a saved plan. ``windows`` are the
    collectives that overlap products. ``exceeds`` is the memory in bytes that a device needs, if its machine
    has less.
    """

    def __init__(
        self,
        module: ir.Module,
        sent: Sequence[Sent],
        traits: OpTraits,
        axes: Axes,
        form: Form,
        boundary: tuple[list[Layout], list[Layout]],
        found: FoundHomes | None = None,
        prepared: Unshared | None = None,
    ) -> None:
        self.module, self.sent, self.axes, self.form, self.found = module, sent, axes, form, found
        self.traits, self.boundary = traits, boundary
        self.decided, self.cut, self.prepared = AS_DECIDED, False, prepared
        self._windows: Sequence[Window] = ()
        self.exceeds = 0

    @cached_property
    def homes(self) -> dict[Any, tuple[Layout, ...]]:
        """The layouts of values of the annotated module that differ from propagation's.

        A value of a function may have one for each call.
        """
        if self.prepared is None:
            return {}
        value_of = self.prepared.kinds.listing.value
        return self.prepared.homes({value_of(n): home for n, home in self.decided.homes.items()})

    @cached_property
    def others(self) -> dict[Any, tuple[tuple[Layout, float], ...]]:
        """The layouts that lost for each of these values, and the extra cost of each."""
        if self.prepared is None or self.found is None:
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
