"""What the op rules say of the ops of a graph: of ops of one kind once."""

from __future__ import annotations

from ..partition.facts.knowledge import Knowledge, RuleReader
from .graph import Graph


class Known:
    """Asks a reader about the ops of a graph, by their numbers."""

    def __init__(self, reader: RuleReader, graph: Graph) -> None:
        self.reader, self.graph = reader, graph
        self._kinds: dict[int, Knowledge] = {}

    def of(self, op: int) -> Knowledge:
        """The answers of the rules about an op."""
        kind, graph = self.graph.kinds[op], self.graph
        found = self._kinds.get(kind)
        if found is None:
            found = self.reader.knowledge(graph.ops[op])
            # What is in its regions, or around it, is not of its kind.
            if graph.ends[op] == op + 1 and not self.reader.looks_around(graph.ops[op]):
                self._kinds[kind] = found
        return found
