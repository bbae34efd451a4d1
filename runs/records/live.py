"""A run in memory, as explanations read it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache, cached_property
from typing import Any

import numpy as np

from ...engine import LoadedProgram
from ...importers.graph.graph import Instance
from ...program.ids import Cell, Item, Place, first_place
from ...program.mlir.origins import Origin
from ...propagation.completion.visits import Held
from ...rulebook.book import reasons
from ..data import RunData
from .live_values import LiveValues
from .record import Annotation, Facts, Key, Op, Sketch, Stage, Visited

_OP_FACTS = ("factor", "maps", "elementwise", "kind", "blocked", "known", "no_rule", "same_value")
_NO_FACTS: Facts = {}


@cache
def _roles(operands: int, results: int) -> tuple[str, ...]:
    """The roles of the slots of an op with this many operands and results."""
    of_results = (f"result {i}" if results > 1 else "result" for i in range(results))
    return (*(f"operand {i}" for i in range(operands)), *of_results)


class Live(LiveValues):
    """The record of a run in memory."""

    def __init__(self, run: RunData) -> None:
        super().__init__(run)
        fixpoint = run.fixpoint
        self.name = run.source.name
        self.strategy = fixpoint.strategy
        self.meshes = run.program.shardings.meshes
        self.stages = tuple(Stage(s.priority, s.level, s.strategy) for s in fixpoint.stages)
        self.statistics = tuple((s.turns, s.distinct, s.changes) for s in fixpoint.stages)
        self.unknown_ops = tuple(asdict(op) for op in run.unknown_ops)
        self.stage_of = fixpoint.stage_of
        self._op_rules = run.book.ops.solver(run.book.shared)
        self._op_facts: dict[int, Facts] = {}

    def relation(self, name: str, among: Collection[str | int] | None = None) -> list[tuple[Any, ...]]:
        return self.run.facts[name]

    # ---- Shardings --------------------------------------------------------------------------------------

    @cached_property
    def boundary(self) -> dict[int, bool]:
        """The values that arguments and results of functions are; whether of the main function."""
        boundary: dict[int, bool] = {}
        for instance in self._graph.instances:
            function, main = instance.function, instance is self._graph.main
            results = (v for node in function.calls for v in function.results[node])
            boundary |= {instance.place + v: False for v in results}
            boundary |= {instance.place + v: main for v in function.arguments}
        return boundary | {int(place): True for place in self._graph.result_places}

    def is_boundary(self, number: int) -> bool:
        """Whether a value is an argument or a result of the program."""
        return self.boundary.get(number, False)

    def axes(self, number: int) -> tuple[tuple[int, ...], ...]:
        value, written = self.value(number), self.run.written
        sharding = written.sharding(value.place, len(value.shape))
        if number in self.boundary:
            sharding = written.fitted(sharding, value.shape, entry=self.boundary[number])
        if sharding is None or not sharding.dimensions:
            return ((),) * len(value.shape)
        split, mesh = self.meshes.split, sharding.mesh
        return tuple(tuple(x for axis in d.axes for x in split(mesh, axis)) for d in sharding.dimensions)

    def given_shardings(self) -> list[Annotation]:
        return [self.annotation(Cell(cell)) for cell in sorted(self._program.initial)]

    @cached_property
    def _annotated(self) -> dict[Cell, tuple[str, str, str, str]]:
        """Cell -> the name of the value that was given a sharding, where (a line and a name stack), and by
        what."""
        annotated = dict[Cell, tuple[str, str, str, str]]()
        for instance in self._graph.instances:
            for v in instance.function.annotations:
                cell = self._cell(instance, v)
                given = self._annotation(instance, v)
                if cell not in annotated or annotated[cell][3] != "user":
                    annotated[cell] = given
        return annotated

    def _cell(self, instance: Instance, v: int) -> Cell:
        return self.cell(Place(instance.place + int(instance.layout.place[v])))

    def _annotation(self, instance: Instance, v: int) -> tuple[str, str, str, str]:
        """A constraint that became its operand's own sharding counts as the user's annotation."""
        function, names = instance.function, self.value_names[instance.number]
        if v in function.specs:
            node, spec = function.specs[v]
            return names[v], *self._told_apart(instance, node), spec
        held = self._held(instance, v)
        if held is not None and held.visit >= 0:
            return names[v], *self.born(Place(instance.place + v)), "completion"
        node = self._constraint(instance, v)
        if node >= 0:
            return names[function.results[node][0]], *self._told_apart(instance, node), "user"
        node = function.definer[v]
        if node in function.constraints and node not in function.created:
            return names[v], *self._told_apart(instance, node), "user"
        written = v in function.attributes or not function.annotations[v].empty
        return names[v], *self.born(Place(instance.place + v)), "user" if written else "import"

    def _constraint(self, instance: Instance, v: int) -> int:
        """The constraint that a value has its annotation from; -1: none."""
        function = instance.function
        if v not in function.attributes:
            for node in self._index(function).constraints.get(v, ()):
                same = function.annotations.get(function.results[node][0]) == function.annotations[v]
                if same and node not in function.created:
                    return node
        return -1

    def annotation(self, cell: Cell) -> Annotation:
        annotation = self._annotated.get(cell)
        if annotation is None:
            value = self.value(first_place(cell))
            annotation = value.name, value.where, value.stack, "user"
        sharding = self._program.initial.get(cell)
        text = self._program.shardings.text(sharding).removeprefix("#sdy.sharding") if sharding else ""
        name, where, stack, by = annotation
        return Annotation(name, where, cell, text, by, stack)

    # ---- Completion -------------------------------------------------------------------------------------

    def _held(self, instance: Instance, v: int) -> Held | None:
        """The annotation that completion knows of a value, or of the constraint that it has it from."""
        given = self._given(instance)
        if given is None:
            return None
        function = instance.function
        node, arguments = function.definer[v], self._index(function).arguments
        if node < 0 and v not in arguments:
            return None
        held_here = given.get((node, arguments[v] if node < 0 else function.results[node].index(v)))
        node = -1 if held_here is not None else self._constraint(instance, v)
        return held_here if node < 0 else given.get((node, 0))

    def _given(self, instance: Instance) -> Mapping[tuple[int, int], Held] | None:
        completion = self.run.completion
        return None if completion is None else completion.given[instance.function.name].annotated

    def visited(self, cell: Cell) -> Visited | None:
        return self._visited.get(cell)

    @cached_property
    def _visited(self) -> dict[Cell, Visited]:
        visited: dict[Cell, Visited] = {}
        for instance in self._graph.instances if self.run.completion is not None else ():
            for v in instance.function.annotations:
                held = self._held(instance, v)
                if held is not None and held.visit >= 0:
                    visited.setdefault(self._cell(instance, v), self._visit(instance, held))
        return visited

    def _visit(self, instance: Instance, held: Held) -> Visited:
        completion = self.run.completion
        assert completion is not None
        visit, instance = completion.visits[held.visit], self._near(instance, held.function)
        item = Item(instance.item + completion.given[visit.function].node(visit.node))
        return Visited(held.visit, instance.number, item, held.slot, visit.direction, visit.chosen.facts)

    def _near(self, instance: Instance, function: str) -> Instance:
        """The closest instance of a function: this one, one that it calls, or one around it or beside."""
        while True:
            inside = [instance]
            while inside:
                one = inside.pop()
                if one.function.name == function:
                    return one
                inside += one.children.values()
            instance, _ = self._callers[instance.number]

    def saw(self, visited: Visited, slot: int) -> tuple[int, Visited | Cell]:
        completion, instance = self.run.completion, self._graph.instances[visited.instance]
        assert completion is not None
        function, visit = instance.function, completion.visits[visited.number]
        given, held = completion.given[visit.function], dict(visit.seen)[slot]
        value = self.op(visited.item).values[slot]
        node = function.definer[value - instance.place]
        if (held.function, held.node) != (visit.function, visit.node) and node in dict(given.added_nodes()):
            value = instance.place + function.operands[node][0]  # the constraint came later
        if held.visit >= 0:
            return value, self._visit(instance, held)
        instance, given = self._near(instance, held.function), completion.given[held.function]
        function = instance.function
        node, i = given.node(held.node), held.slot
        if given.annotations.get((held.node, i), held) != held:
            # Completion gave the op another annotation, and a constraint behind it has the program's.
            ends = ((node, 0) for node, added in given.added_nodes() if added.held == held)
            node, i = next(ends, (node, i))
        return value, self._cell(instance, function.arguments[i] if node < 0 else function.results[node][i])

    # ---- The agenda -------------------------------------------------------------------------------------

    def _read_op(self, item: Item) -> Op:
        places = self.slots(item)
        if item >= self.items:
            value = self.value(places[0])
            return Op("annotation", value.where, (places[0],), (value.name,), ("annotation",), value.stack)
        if item >= self.items - len(self._graph.result_items):
            return self._op("func.return", ("", ""), places, ("returned value", "function result"))
        instance = self._graph.instances[bisect_right(self._items, item) - 1]
        function, node = instance.function, item - instance.item
        if node >= len(function.ops):
            roles = [f"source {i}" for i in range(len(places) - 1)]
            target = self.value(places[-1])
            return self._op("data flow", (target.where, target.stack), places, (*roles, "target"))
        operands, results = function.operands[node], function.results[node]
        where, stack = self._where(instance, node)
        names, values = self.value_names[instance.number], (*operands, *results)
        slots, numbers = tuple([names[v] for v in values]), tuple([instance.place + v for v in values])
        return Op(function.names[node], where, numbers, slots, _roles(len(operands), len(results)), stack)

    def ops(self) -> Iterator[tuple[Item, Op]]:
        return ((item, self.op(item)) for item in self.present())

    def present(self) -> Iterable[Item]:
        return map(Item, np.flatnonzero(np.asarray(self._graph.classes) >= 0).tolist())

    def values_of(self, item: Item) -> tuple[int, ...]:
        if item >= self.items - len(self._graph.result_items):
            return self.op(item).values
        instance, node = self._node(item)
        function, place = instance.function, instance.place
        if node >= len(function.ops):
            return self.op(item).values
        return tuple([place + v for v in (*function.operands[node], *function.results[node])])

    def sketches(self, items: Iterable[Item]) -> Iterator[Sketch]:
        type_of, end = cache(self.type_of), self.items - len(self._graph.result_items)
        looks: dict[int, tuple[str, ...]] = {}  # ops of a signature have one
        main = self._graph.main
        for instance, node, item in self._nodes(items):
            function = instance.function
            if item >= end or node >= len(function.ops) or instance is not main:
                yield self._sketch(item, type_of)
                continue
            signature, operands = function.signature[node], function.operands[node]
            look = looks.get(signature)
            if look is None:
                look = looks[signature] = self._sketch(item, type_of).look
            alone = not operands and len(function.results[node]) == 1
            yield Sketch(look, self._own(instance, node), alone, "")

    def _nodes(self, items: Iterable[Item]) -> Iterator[tuple[Instance, int, Item]]:
        """The instances with some items, and their numbers there."""
        instances, starts = self._graph.instances, [*self._items, self.items]
        first = end = n = 0
        for item in items:
            if not first <= item < end:
                n = bisect_right(self._items, item) - 1
                first, end = starts[n], starts[n + 1]
            yield instances[n], item - first, item

    def origin(self, item: Item) -> Origin | None:
        instance, node = self._node(item)
        return self._own(instance, node) if node < len(instance.function.ops) else None

    def location(self, item: Item) -> str:
        """The location of an op, as MLIR writes it."""
        instance, node = self._node(item)
        function = instance.function
        return self.run.names[function.name].places[function.source(node)].location

    def whole_origins(self, items: Iterable[Item]) -> Iterator[Origin | None]:
        """The origin of each item that is an op, and of the calls around it; None for other items."""
        for instance, node, _ in self._nodes(items):
            yield self._origin(instance, node) if node < len(instance.function.ops) else None

    def entering(self, item: Item, operand: int) -> Place | None:
        """The place of an operand of a ``shard_map`` inside of it; None for other ops."""
        instance, node = self._node(item)
        function = instance.function
        node, operand = function.created.get(node, (node, operand))
        if node not in function.manual_axes:
            return None
        inside = function.regions[node][0].arguments[operand]
        return Place(instance.place + int(instance.layout.place[inside]))

    def order(self) -> list[Item]:
        return [*self._graph.order.tolist(), *self._graph.result_items.tolist()]

    def _op(self, name: str, place: tuple[str, str], values: Sequence[int], roles: tuple[str, ...]) -> Op:
        where, stack = place
        return Op(name, where, tuple(values), tuple(self._name(v) for v in values), roles, stack)

    def op_facts(self, item: Item) -> Facts:
        if item >= self.items - len(self._graph.result_items):
            return _NO_FACTS
        instance = self._graph.instances[bisect_right(self._items, item) - 1]
        node = item - instance.item
        if node >= len(instance.function.ops):
            return _NO_FACTS
        signature = instance.function.signature[node]
        if signature not in self._op_facts:
            facts = self._program.classes.facts(signature)
            tensor = [(t, role) for t, role, _, _ in facts.get("slot", ())]
            answers = self._op_rules.solve(facts, _OP_FACTS)
            self._op_facts[signature] = {**answers, "tensor": tensor}
        return self._op_facts[signature]

    # ---- Turns ------------------------------------------------------------------------------------------

    def rules(self) -> LoadedProgram:
        return reasons()

    def proofs(self, key: Key) -> None:
        return None

    def lost(self, number: int) -> None:
        return None
