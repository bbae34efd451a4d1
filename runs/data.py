"""The data that a run leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

from ..exporters.module import FunctionWriter
from ..exporters.shardings import FinalShardings
from ..importers.program import ImportedModule
from ..importers.sources.text import Text
from ..program.ids import Item
from ..propagation.fixpoint import Fixpoint, StageStatistics
from ..propagation.schedules.schedule import Applied
from ..rulebook.book import RuleBook
from .options import Options

if TYPE_CHECKING:
    from ..exporters.relations import FunctionNames
    from ..propagation.completion.completing import Completion


@dataclass(frozen=True)
class UnknownOp:
    """An op without a rule: shardings stop there.

    ``count`` is how often it occurs, ``location`` and ``stack`` say where first, and ``reason`` says why it
    has no rule, if the rules tell.
    """

    name: str
    count: int
    location: str
    reason: str = ""
    stack: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class RunData:
    """The data that a run leaves behind."""

    module: ir.Module
    stages: tuple[StageStatistics, ...]
    unknown_ops: tuple[UnknownOp, ...]
    tactics: tuple[Applied, ...]
    source: Text
    book: RuleBook
    program: ImportedModule
    fixpoint: Fixpoint
    written: FinalShardings
    bodies: tuple[FunctionWriter, ...]
    options: Options
    completion: Completion | None = None  # None: the program was not completed
    names_read: Mapping[str, FunctionNames] | None = None  # None: they are read when they are asked for

    @cached_property
    def names(self) -> Mapping[str, FunctionNames]:
        """The names of values and the places of ops, in the program as it was read, by function."""
        if self.names_read is not None:
            return self.names_read
        from ..exporters.relations import read_names

        functions = (instance.function for instance in self.program.graph.instances)
        return read_names(self.source, self.options.mesh, functions)

    @cached_property
    def items(self) -> dict[Any, Item]:
        """The items of the ops of the annotated module that were in the program.

        An op that is written once for several calls stands for the first of them.
        """
        items: dict[Any, Item] = {}
        for body in self.bodies:
            for node, op in body.alive.items():
                items.setdefault(op.operation, Item(body.instance.item + node))
        return items

    @cached_property
    def facts(self) -> dict[str, list[tuple[Any, ...]]]:
        """The relations of ``shardlog query`` by name, as sorted tuples; see ``docs/facts.md``."""
        from ..exporters.relations import relations

        return relations(self.program, self.written, self.names)
