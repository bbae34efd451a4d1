"""Prepared copies of an annotated module: made once for all programs of a run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from jaxlib.mlir import ir

from ...program.mlir.types import Operation
from ...rulebook.traits import OpTraits
from ..facts.kinds import Kinds
from .calls import Unshared, unshared
from .computations import Computation


class Preparing:
    """An annotated module, and its prepared copies. ``computations`` say what each device computes for some
    of its ops."""

    def __init__(
        self, module: ir.Module, traits: OpTraits, computations: Mapping[Operation, Computation] | None = None
    ) -> None:
        self.module, self.traits, self.computations = module, traits, computations or {}
        self._unshared: dict[bool, Unshared] = {}

    @cached_property
    def kinds(self) -> Kinds:
        """The ops of the module."""
        return Kinds(self.module)

    def unshared(self, *, cut: bool) -> Unshared:
        """The module in which calls have ops of their own; see ``calls.unshared``."""
        if cut not in self._unshared:
            copied = unshared(self.kinds, self.traits, cut=cut, computations=self.computations)
            self._unshared[cut] = copied
        return self._unshared[cut]
