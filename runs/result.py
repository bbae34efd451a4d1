"""The result of a run: all that it decided, as data, and the record by which it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..program.ids import Item
from .data import RunData

if TYPE_CHECKING:
    from ..exporters.relations import FunctionNames
    from .records.live import Live


@dataclass(frozen=True, eq=False, repr=False)
class Result(RunData):
    """The decisions of a run.

    ``module`` is the annotated module, an ``ir.Module``. ``stages`` are the statistics of every stage.
    ``unknown_ops`` are the ops without a rule, one entry per name. ``tactics`` are the tactics of the
    schedule as they were applied. ``docs/propagation.md`` describes the method. A ``Session`` answers
    questions about it.
    """

    def __repr__(self) -> str:
        return f"<Result of {self.described}>"

    @property
    def described(self) -> str:
        """The program's name, the number of its arguments and results, and its meshes."""
        function = self.program.graph.main.function
        arguments, results = len(function.arguments), len(function.operands[function.terminator])
        meshes = "; ".join(
            f"mesh @{mesh.name}: {', '.join(f'{name}={size}' for name, size in mesh.axes)}"
            for mesh in self.program.shardings.meshes.meshes
            if mesh.axes
        )
        size = f"{arguments:,} arguments, {results:,} results"
        return f"{self.source.name}: {size}; {meshes or 'no mesh'}"

    @cached_property
    def record(self) -> Live:
        """The run as explanations read it. It does not refer to the result: both end with their last user."""
        from .records.live import Live

        return Live(RunData(*(getattr(self, field.name) for field in fields(RunData))))

    @property
    def names(self) -> Mapping[str, FunctionNames]:
        """The names of values and the places of ops, in the program as it was read, by function."""
        return self.record.run.names

    @property
    def items(self) -> dict[Any, Item]:
        """The ops of the annotated module that were in the program as it was read, as items."""
        return self.record.run.items

    @property
    def facts(self) -> dict[str, list[tuple[Any, ...]]]:
        """The relations of ``shardlog query`` by name, as sorted tuples; see ``docs/facts.md``."""
        return self.record.run.facts
