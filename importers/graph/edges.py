"""The data-flow edges of a function as items of the agenda."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...program.classes import Classes
from ...program.function import Function
from ..passes.structure import Structure


@dataclass
class Edges:
    """Data-flow edges, numbered after the nodes of a function. Edges of its arguments come first, if it is
    called; then those of ops with bodies, then those of the results of calls.

    The slots of an edge are its sources, then the value that owns it. A source on the other side of a call is
    not known yet: it is -1 - k, for argument or result number k.
    """

    function: Function
    classes: Classes
    class_of: list[int] = field(default_factory=list)
    slots: list[tuple[int, ...]] = field(default_factory=list)
    of_owner: dict[int, int] = field(default_factory=dict)  # value -> its edge
    of_use: dict[tuple[int, int], int] = field(default_factory=dict)  # node, operand -> the edge it pushes
    arguments: list[int] = field(default_factory=list)
    inside: dict[int, list[int]] = field(default_factory=dict)  # node -> edges at the front of its body
    after: dict[int, list[int]] = field(default_factory=dict)  # node -> edges right after it
    results: dict[int, list[int]] = field(default_factory=dict)  # call node -> the edge of each result

    def add(self, owner: int, sources: tuple[int, ...]) -> int:
        """A new edge; returns its number."""
        function = self.function
        manual = function.manual.get(owner)
        inside = 0 if function.definer[owner] >= 0 else len(sources)  # the slot inside of the computation
        more = manual.facts_of(inside) if manual else ()
        type_ = function.types[owner]
        self.class_of.append(self.classes.identity("sdy.data_flow_edge", len(sources), type_, more))
        self.slots.append((*sources, owner))
        number = self.of_owner[owner] = len(function.ops) + len(self.slots) - 1
        return number


def edges_of(
    function: Function, structure: Structure, classes: Classes, place: npt.NDArray[np.int32]
) -> Edges:
    """The edges of a prepared function; ``place`` is the value that holds the sharding of each value."""
    edges = Edges(function, classes)
    if structure.callee:
        edges.arguments = [edges.add(v, (-1 - k,)) for k, v in enumerate(function.arguments)]
    for edge in structure.edges:
        sources = tuple(int(place[function.operands[node][index]]) for node, index in edge.sources)
        number = edges.add(edge.owner, sources)
        in_body = function.definer[edge.owner] < 0
        (edges.inside if in_body else edges.after).setdefault(edge.node, []).append(number)
        for source in edge.sources:
            if not (in_body and source[0] == edge.node):
                edges.of_use[source] = number
    for node in function.calls_in_order:
        edges.results[node] = [edges.add(v, (-1 - k,)) for k, v in enumerate(function.results[node])]
    return edges
