"""The inputs that the recorder and the writer share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jaxlib.mlir import ir

from ...program.mlir.modules import main_function, symbols
from ...program.shardings import Shardings
from ..choice.choosing import Chooser
from ..forms import Form
from ..layouts import Axes
from ..preparing.calls import Unshared
from ..reshards.planning import Planner
from ..reshards.prices import TaskId
from .kinds import Kinds


@dataclass(frozen=True, eq=False)
class Annotated:
    """An annotated module as it was ``prepared``: its shardings and their axes, the chooser of ways, the
    planner of reshards, and the form in which XLA takes the device program."""

    prepared: Unshared
    shardings: Shardings
    axes: Axes
    chooser: Chooser
    planner: Planner
    form: Form = "sdy-manual"

    @property
    def module(self) -> ir.Module:
        """The module."""
        return self.prepared.module

    @property
    def kinds(self) -> Kinds:
        """Its ops by number."""
        return self.prepared.kinds

    @cached_property
    def tasks(self) -> Callable[[int], TaskId] | None:
        """The tasks of its ops, by number; None without a machine."""
        tasks, listing = self.planner.prices.tasks, self.kinds.listing
        return None if tasks is None else tasks.of(self.module, listing, self.chooser.reader)

    @cached_property
    def functions(self) -> dict[str, Any]:
        """The functions of the module by name."""
        return symbols(self.module, "func.func")

    @cached_property
    def main(self) -> str:
        """The name of the main function."""
        return main_function(self.functions)
