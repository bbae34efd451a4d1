"""The device program: the module that each device runs, and its collectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from jaxlib.mlir import ir

from ..program.mlir.modules import bytecode_of, copy_of
from ..rulebook.traits import OpTraits
from .building import Sent
from .choice.homes import Found
from .finishing import passes
from .finishing.collective_matmul import Window
from .finishing.passes import Draft, Pass
from .forms import Form
from .layouts import Axes, Layout


class DeviceProgram:
    """The program that each device runs. ``sent`` are its collectives, in order; ``traits`` are those of the
    ops in it; ``found`` is what the choice
    of homes found, where there was one, and ``homes`` those that values have instead of propagation's, each
    once: in each call of a function a value may have another.
    ``boundary`` are the layouts of its arguments and its results, and ``windows`` are collectives that go on
    beside products. ``exceeds`` are the bytes that a device needs, where its machine has not as many."""

    def __init__(
        self,
        module: ir.Module,
        sent: Sequence[Sent],
        traits: OpTraits,
        axes: Axes,
        form: Form,
        boundary: tuple[list[Layout], list[Layout]],
        found: Found | None = None,
        homes: Mapping[Any, tuple[Layout, ...]] | None = None,
    ) -> None:
        self.module, self.sent, self.axes, self.form, self.found = module, sent, axes, form, found
        self.traits, self.boundary, self.homes = traits, boundary, homes or {}
        self._windows: Sequence[Window] = ()
        self.exceeds = 0

    @property
    def windows(self) -> Sequence[Window]:
        """The collectives that go on beside products."""
        return self._windows

    @windows.setter
    def windows(self, windows: Sequence[Window]) -> None:
        self._windows = windows
        for written in ("combined", "_for_cpus"):  # it is written otherwise now
            self.__dict__.pop(written, None)

    @cached_property
    def combined(self) -> ir.Module:
        """The module as it is written, and compiled for CPUs: collectives over equal groups that do not need
        each other are one op, also those of several calls, and windows are written part by part. Raises
        MLIRError where it is not valid, as ``module_for`` does."""
        return self._copy(self.module, passes.COMBINED)

    def module_for(self, platform: str) -> ir.Module:
        """The module as it is compiled for "cpu", "tpu" or others: XLA for accelerators combines collectives
        itself, without putting side by side what they send; that for CPUs copies what it need not, and that
        for TPUs sends some of it twice."""
        if platform == "cpu":
            return self._for_cpus
        return self._copy(self.module, passes.TPU if platform == "tpu" else passes.OTHERS)

    @cached_property
    def _for_cpus(self) -> ir.Module:
        """The module as it is written, but for what XLA for CPUs would copy at length."""
        return self._copy(self.combined, passes.CPU)

    def _copy(self, module: ir.Module, then: Sequence[Pass]) -> ir.Module:
        """A copy of a module after some passes, which MLIR has verified."""
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
