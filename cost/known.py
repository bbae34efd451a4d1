"""What the op rules say of the ops of a graph: of ops of one kind once."""

from __future__ import annotations

from collections.abc import Hashable

from ..partition.facts.knowledge import Knowledge, RuleReader
from .graph import OpGraph


class Known:
    """Asks a reader about the ops of a graph, by their numbers."""

    def __init__(self, reader: RuleReader, graph: OpGraph) -> None:
        self.reader, self.graph = reader, graph
        self._kinds: dict[Hashable, Knowledge] = {}

    def of(self, op: int) -> Knowledge:
        """The answers of the rules about an op."""
        alike = self.graph.alike(op)
        knowledge = self._kinds.get(alike)
        if knowledge is None:
            knowledge = self.reader.knowledge(self.graph.ops[op])
            if not self.reader.looks_around(self.graph.ops[op]):
                self._kinds[alike] = knowledge
        return knowledge
