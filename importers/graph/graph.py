"""The graph of a whole module, as the agenda takes it: items, places, cells and who is pushed when a place
changes.

A call counts as the callee's body in its place. So every call has its own instance of the function, with
data-flow edges from the call's operands to the arguments, and from the returned values to the results.
Values of an instance are *places*; all arrays are numbered over the instances.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...engine.agenda.retirement import Retirement, joined
from ...program.classes import Classes
from ...program.columns import widths
from ...program.function import Function
from ..passes.structure import Structure
from .layout import GraphLayout, lay_out

Ints = npt.NDArray[np.int32]


@dataclass(eq=False)
class Instance:
    """The body of a root function, or of a function at one of its calls: where its places and items start."""

    number: int
    function: Function
    layout: GraphLayout
    place: int  # value v is place + v
    item: int  # node n is item + n
    cloned: bool
    children: dict[int, Instance] = field(default_factory=dict)  # call node -> instance


@dataclass(frozen=True, eq=False)
class Graph:
    """Arrays for the agenda. ``order`` has the items in program order; func-result items are apart."""

    instances: tuple[Instance, ...]  # main first, then depth first in program order
    roots: tuple[Instance, ...]  # main and the other functions that nothing calls, in their order
    classes: Ints  # item -> class
    slot_offsets: Ints
    slots: Ints  # places, by item
    order: Ints
    neighbour_offsets: Ints
    neighbours: Ints  # items, by place, in push order
    retirement: Retirement | None
    places: int
    result_items: Ints  # exchange between a value that main returns and the function result
    result_places: Ints  # the places of main's function results

    @property
    def main(self) -> Instance:
        return self.instances[0]

    @cached_property
    def calls(self) -> tuple[tuple[int, int], ...]:
        """For each instance, which call of its function it is, and of how many."""
        seen: Counter[int] = Counter()
        number = []
        for instance in self.instances:
            seen[id(instance.function)] += 1
            number.append(seen[id(instance.function)])
        return tuple((n, seen[id(i.function)]) for n, i in zip(number, self.instances, strict=True))


class _Builder:
    def __init__(
        self, functions: dict[str, Function], structures: dict[str, Structure], classes: Classes
    ) -> None:
        self.functions, self.structures, self.classes = functions, structures, classes
        self.layouts: dict[tuple[str, bool], GraphLayout] = {}
        self.called: set[str] = set()
        self.instances: list[Instance] = []
        self.places = 0
        self.items = 0

    def layout(self, name: str, *, cloned: bool) -> GraphLayout:
        key = (name, cloned)
        if key not in self.layouts:
            self.layouts[key] = lay_out(
                self.functions[name], self.structures[name], self.classes, cloned=cloned
            )
        return self.layouts[key]

    def instantiate(self, name: str, *, cloned: bool) -> Instance:
        layout = self.layout(name, cloned=cloned)
        function = self.functions[name]
        instance = Instance(len(self.instances), function, layout, self.places, self.items, cloned)
        self.places += len(function.types)
        self.items += len(layout.classes)
        self.instances.append(instance)
        return instance

    def instantiate_all(self, name: str) -> Instance:
        """An instance of a function, and of all that it calls, depth first."""
        root = self.instantiate(name, cloned=False)
        waiting = [(root, node) for node in reversed(root.layout.result_items)]
        while waiting:  # calls may nest more deeply than Python's stack
            caller, node = waiting.pop()
            callee = caller.function.calls[node]
            again = callee in self.called
            self.called.add(callee)
            copied = caller.cloned or again or node in caller.function.originals
            caller.children[node] = instance = self.instantiate(callee, cloned=copied)
            waiting.extend((instance, inner) for inner in reversed(instance.layout.result_items))
        return root

    def order(self, root: Instance) -> list[Ints]:
        parts: list[Ints] = []
        waiting: list[tuple[Instance, Ints | int]] = [(root, part) for part in reversed(root.layout.order)]
        while waiting:
            instance, part = waiting.pop()
            if isinstance(part, int):
                child = instance.children[part]
                waiting.extend((child, inner) for inner in reversed(child.layout.order))
            else:
                parts.append(part + instance.item)
        return parts


def build_graph(
    functions: dict[str, Function],
    structures: dict[str, Structure],
    main: str,
    roots: Sequence[str],
    classes: Classes,
) -> Graph:
    """The graph of the functions in ``roots``, which include ``main``, and of all that they call."""
    builder = _Builder(functions, structures, classes)
    built = {name: builder.instantiate_all(name) for name in dict.fromkeys((main, *roots))}
    instances = builder.instances
    slots = [i.layout.slots + i.place for i in instances]
    neighbours = [i.layout.neighbours + i.item for i in instances]
    for caller in instances:
        for node, child in caller.children.items():
            _connect(caller, node, child, slots, neighbours)
    entry = instances[0]
    values = entry.function.operands[entry.function.terminator]
    returned = [entry.place + int(entry.layout.place[v]) for v in values]
    types = [entry.function.types[v] for v in values]
    first_place, first_item = builder.places, builder.items
    result_places = np.arange(first_place, first_place + len(returned), dtype=np.int32)
    result_items = np.arange(first_item, first_item + len(returned), dtype=np.int32)
    result_classes = np.asarray([classes.identity("func.result", 1, t) for t in types], np.int32)
    result_slots = np.column_stack([np.asarray(returned, np.int32), result_places]).ravel().astype(np.int32)
    lengths = [widths(i.layout.slot_offsets) for i in instances] + [np.full(len(returned), 2, np.int32)]
    neighbour_lengths = [widths(i.layout.neighbour_offsets) for i in instances]
    neighbour_lengths.append(np.zeros(len(returned), np.int32))
    classes_of = [*(i.layout.classes for i in instances), result_classes]
    return Graph(
        instances=tuple(instances),
        roots=tuple(built[name] for name in roots),
        classes=_join(classes_of),
        slot_offsets=_offsets(lengths),
        slots=_join([*slots, result_slots]),
        order=_join([part for name in roots for part in builder.order(built[name])]),
        neighbour_offsets=_offsets(neighbour_lengths),
        neighbours=_join(neighbours),
        retirement=joined([*(i.layout.retirement for i in instances), None], classes_of),
        places=first_place + len(returned),
        result_items=result_items,
        result_places=result_places,
    )


def _connect(caller: Instance, node: int, child: Instance, slots: list[Ints], neighbours: list[Ints]) -> None:
    """Connects both sides of a call.

    The sources of data-flow edges of arguments and results are values of the other side. A use by the return
    pushes the edge of the call's result.
    """
    operands = caller.function.operands[node]
    returned = child.function.operands[child.function.terminator]
    for slot, argument in child.layout.argument_sources:
        slots[child.number][slot] = caller.place + caller.layout.place[operands[argument]]
    for slot, result in caller.layout.result_sources[node]:
        slots[caller.number][slot] = child.place + child.layout.place[returned[result]]
    for at, result in child.layout.return_uses:
        neighbours[child.number][at] = caller.item + caller.layout.result_items[node][result]


def _join(parts: Sequence[npt.NDArray[np.int32]]) -> Ints:
    return np.concatenate([np.zeros(0, np.int32), *parts]).astype(np.int32)


def _offsets(lengths: Sequence[npt.NDArray[np.int32]]) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(lengths), dtype=np.int64)]).astype(
        np.int32
    )
