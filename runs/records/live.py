"""A run in memory, as explanations read it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache, cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ...engine import LoadedProgram
from ...exporters.relations import value_names
from ...importers.graph.graph import Instance
from ...importers.graph.inside import values_inside
from ...importers.sources.text import parse_module
from ...program.function import Function
from ...program.ids import Cell, Item, Place, first_place
from ...program.mlir.modules import symbols
from ...program.mlir.origins import NOWHERE, Origin, location_text, place_text, tell_apart
from ...program.mlir.origins import origin as origin_of
from ...program.mlir.places import NameScope, argument_path, result_path
from ...propagation.completion.visits import Held
from ...rulebook.book import reasons
from ..data import RunData
from .live_turns import LiveTurns
from .record import Annotation, Facts, Key, Op, Sketch, Stage, TensorValue, Visited, is_file

_OP_FACTS = ("factor", "maps", "elementwise", "kind", "blocked", "known", "no_rule", "same_value")


_NO_FACTS: Facts = {}


class _Index(NamedTuple):
    """Values of a function -> their numbers as arguments, the ops whose regions they are arguments of, and
    the constraints on them, in order."""

    arguments: dict[int, int]
    around: dict[int, int]
    constraints: dict[int, list[int]]


@cache
def _roles(operands: int, results: int) -> tuple[str, ...]:
    """The roles of the slots of an op with this many operands and results."""
    of_results = (f"result {i}" if results > 1 else "result" for i in range(results))
    return (*(f"operand {i}" for i in range(operands)), *of_results)


class Live(LiveTurns):
    """The record of a run in memory."""

    def __init__(self, run: RunData) -> None:
        super().__init__(run.fixpoint, run.book, len(run.program.graph.classes))
        self.run = run
        self._program = program = run.program
        self._graph = graph = program.graph
        fixpoint = run.fixpoint
        self._values: dict[int, TensorValue] = {}
        self._indices: dict[str, _Index] = {}
        self._places = [i.place for i in graph.instances]
        self._items = [i.item for i in graph.instances]
        self._first_result = int(graph.places) - len(graph.result_places)
        self.name = run.source.name
        self.strategy = fixpoint.strategy
        self.meshes = program.shardings.meshes
        self.stages = tuple(Stage(s.priority, s.level, s.strategy) for s in fixpoint.stages)
        self.statistics = tuple((s.turns, s.distinct, s.changes) for s in fixpoint.stages)
        self.unknown_ops = tuple(asdict(op) for op in run.unknown_ops)
        self.stage_of = fixpoint.stage_of
        self._op_rules = run.book.ops.solver(run.book.shared)
        self._op_facts: dict[int, Facts] = {}
        self._wheres: dict[tuple[int, int], tuple[str, str]] = {}
        self._arounds: dict[int, Origin] = {}

    def relation(self, name: str, among: Collection[str | int] | None = None) -> list[tuple[Any, ...]]:
        return self.run.facts[name]

    # ---- Names ------------------------------------------------------------------------------------------

    @cached_property
    def value_names(self) -> list[list[str]]:
        """The names of the values of each instance."""
        return [
            value_names(self._program, i, self.run.names[i.function.name].values)
            for i in self._graph.instances
        ]

    @cached_property
    def _types(self) -> dict[int, str]:
        return {number: str(type_) for type_, number in self._program.classes.signatures.types.items()}

    @cached_property
    def _tensor_types(self) -> frozenset[int]:
        shapes = self._program.classes.signatures.shapes
        return frozenset(number for number, shape in enumerate(shapes) if shape is not None)

    @cached_property
    def tensors(self) -> list[int]:
        """The values that are tensors, and still there."""
        shapes, tensors = self._program.classes.signatures.shapes, list[int]()
        for instance, names in zip(self._graph.instances, self.value_names, strict=True):
            function = instance.function
            for v in range(len(names)):
                if shapes[function.types[v]] is not None and function.definer[v] not in function.removed:
                    tensors.append(instance.place + v)
        types = self._graph.main.function.types
        return tensors + [
            self._first_result + i for i, v in enumerate(self._returned) if shapes[types[v]] is not None
        ]

    @cached_property
    def by_name(self) -> dict[str, list[int]]:
        """The tensors by name. Regions beside each other may use a name twice."""
        main, by_name = self._graph.main, dict[str, list[int]]()
        for v, argument in zip(main.function.arguments, main.function.op.arguments, strict=True):
            if path := argument_path(argument.location):
                by_name.setdefault(path, [main.place + v])
        for i in range(len(self._returned)):
            by_name.setdefault(self._result_path(i), [self._first_result + i])
        tensors = set(self.tensors)
        by_name = {name: numbers for name, numbers in by_name.items() if tensors.issuperset(numbers)}
        names = list(chain.from_iterable(self.value_names))
        for number in self.tensors:
            name = names[number] if number < self._first_result else self._name(number)
            same = by_name.get(name)
            if same is None:
                by_name[name] = [number]
            elif same[0] != number:  # it may be there by its path; thousands share a name
                same.append(number)
        for name, v in self.run.names[main.function.name].also.items():
            if main.place + v in tensors:
                by_name.setdefault(name, [main.place + v])
        return by_name

    @cached_property
    def _returned(self) -> tuple[int, ...]:
        function = self._graph.main.function
        return function.operands[function.terminator]

    def named(self, name: str) -> list[TensorValue]:
        return [self.value(number) for number in self.by_name.get(name, ())]

    def absent(self, name: str) -> str:
        function = name.partition(":")[0].removeprefix("@").partition("#")[0]
        if ":" in name and function in symbols(parse_module(self.run.source), "func.func"):
            called = {instance.function.name for instance in self._graph.instances}
            if function not in called:
                return f"nothing calls @{function}"
        for instance, names in zip(self._graph.instances, self.value_names, strict=True):
            if name not in names:
                continue
            if instance.function.types[names.index(name)] not in self._tensor_types:
                return "it is not a tensor"
            return "no result depends on it, so it is dead"
        return ""

    def names(self) -> dict[str, int]:
        return {name: numbers[0] for name, numbers in self.by_name.items()}

    def numbered(self, start: str) -> list[int]:
        matches = [(name[len(start) :], n[0]) for name, n in self.by_name.items() if name.startswith(start)]
        return [number for _, number in sorted((int(end), n) for end, n in matches if end.isdecimal())]

    # ---- Values -----------------------------------------------------------------------------------------

    def value(self, number: int) -> TensorValue:
        if number not in self._values:
            self._values[number] = self._value(number)
        return self._values[number]

    def _value(self, number: int) -> TensorValue:
        instance, v = self._owner(number)
        if number >= self._first_result:
            i = number - self._first_result
            name, where, place = f"result#{i}", self._result_path(i), Place(number)
            where, stack = "" if where == name else where, ""
        else:
            name = self.value_names[instance.number][v]
            place = Place(instance.place + int(instance.layout.place[v]))
            where, stack = self.born(place)
        type_ = instance.function.types[v]
        shape = self._program.classes.signatures.shapes[type_] or ()
        manual = self.manual.get(number, ())
        return TensorValue(number, name, place, self._types[type_], shape, where, manual, stack)

    @cached_property
    def manual(self) -> dict[int, tuple[tuple[str, str], ...]]:
        """The axes that are manual around values, see ``TensorValue``."""
        wheres = cache(lambda item: place_text(*self._told_apart(*self._node(item))))
        inside = values_inside(self._graph)
        return {number: tuple((a, wheres(item)) for a, item in axes) for number, axes in inside.items()}

    def values(self) -> Iterator[TensorValue]:
        return map(self.value, self.tensors)

    def type_of(self, number: int) -> str:
        instance, v = self._owner(number)
        return self._types[instance.function.types[v]]

    def _owner(self, number: int) -> tuple[Instance, int]:
        """The instance with a value, and its number there; for a result, the number of the returned
        value."""
        if number >= self._first_result:
            return self._graph.main, self._returned[number - self._first_result]
        instance = self._graph.instances[bisect_right(self._places, number) - 1]
        return instance, number - instance.place

    def _result_path(self, i: int) -> str:
        return result_path(self._graph.main.function.op, i) or f"result#{i}"

    def born(self, place: Place) -> tuple[str, str]:
        """The line and the name stack that a value comes from."""
        instance, v = self._owner(place)
        function = instance.function
        node = function.definer[v]
        if node >= 0:
            return self._where(instance, node)
        index = self._index(function)
        if v not in index.arguments:  # an operand of a computation comes from the place of its maker
            return self._where(instance, index.around[v])
        argument = function.op.arguments[index.arguments[v]]
        if line := origin_of(location_text(argument)).line:
            return self.run.source.place(line), ""
        caller = self._callers.get(instance.number)
        path = argument_path(argument.location)
        return (path, "") if path or not caller else self._where(*caller)

    @cached_property
    def _callers(self) -> dict[int, tuple[Instance, int]]:
        """The callers of instances: by instance, the calling instance and its call node."""
        instances = self._graph.instances
        return {child.number: (i, node) for i in instances for node, child in i.children.items()}

    def _index(self, function: Function) -> _Index:
        """The index of a function, made once."""
        if function.name not in self._indices:
            regions = ((node, region) for node, inside in function.regions.items() for region in inside)
            constraints: dict[int, list[int]] = {}
            for node in function.constraints:
                for v in function.operands[node]:
                    constraints.setdefault(v, []).append(node)
            self._indices[function.name] = _Index(
                {v: i for i, v in enumerate(function.arguments)},
                {v: node for node, region in regions for v in region.arguments},
                constraints,
            )
        return self._indices[function.name]

    def from_line(self, file: str, line: int) -> list[TensorValue]:
        return [self.value(v) for v, (path, n) in self._lines if n == line and is_file(path, file)]

    def lines(self, file: str) -> list[int]:
        return sorted({n for _, (path, n) in self._lines if is_file(path, file)})

    @property
    def _lines(self) -> Iterator[tuple[int, tuple[str, int]]]:
        """Tensors with the frames of their locations."""
        for number in self.tensors:
            if (item := self.definer(number)) >= 0:
                for frame in self._origin(*self._node(item)).frames:
                    yield number, (frame.file, frame.line)

    def _node(self, item: Item) -> tuple[Instance, int]:
        """The instance with an item, and its number there."""
        instance = self._graph.instances[bisect_right(self._items, item) - 1]
        return instance, item - instance.item

    def definer(self, number: int) -> Item:
        """The op that makes a value; -1: none does."""
        instance, v = self._owner(number)
        node = -1 if number >= self._first_result else instance.function.definer[v]
        return Item(instance.item + node if node >= 0 else -1)

    def in_scope(self, scope: NameScope) -> list[TensorValue]:
        has = cache(scope.has)
        makers = ((number, self.definer(number)) for number in self.tensors)
        values = (v for v, item in makers if item >= 0 and has(self._origin(*self._node(item)).path))
        return [self.value(number) for number in values]

    def _where(self, instance: Instance, node: int) -> tuple[str, str]:
        """The line and the name stack of an op."""
        own = self._own(instance, node)
        key = instance.number, id(own)
        if key not in self._wheres:
            self._wheres[key] = self._origin(instance, node).place
        return self._wheres[key]

    def _origin(self, instance: Instance, node: int) -> Origin:
        """Where an op comes from, and the calls around it."""
        return self._own(instance, node).within(self.around(instance.number))

    def around(self, number: int) -> Origin:
        """Where the calls around an instance come from."""
        waiting = list[int]()
        while number not in self._arounds and number in self._callers:
            waiting.append(number)
            number = self._callers[number][0].number
        around = self._arounds.get(number, NOWHERE)
        for inner in reversed(waiting):
            around = self._arounds[inner] = self._own(*self._callers[inner]).within(around)
        return around

    def _own(self, instance: Instance, node: int) -> Origin:
        function = instance.function
        return self.run.names[function.name].places[function.source(node)].origin

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

    def _told_apart(self, instance: Instance, node: int) -> tuple[str, str]:
        """The place of a constraint or ``shard_map``, with a suffix if others have the same line and name
        stack."""
        place = where, stack = self._where(instance, node)
        apart = tell_apart(self._origin(instance, node), self._givers.get(place, ()))
        return f"{where} {apart}" if apart else where, stack

    @cached_property
    def _givers(self) -> dict[tuple[str, str], list[Origin]]:
        """The origins of constraints and ``shard_map``s by their place."""
        origins: dict[tuple[str, str], list[Origin]] = {}
        for instance in self._graph.instances:
            for node in (*instance.function.constraints, *instance.function.boundaries):
                origin = self._origin(instance, node)
                origins.setdefault(self._where(instance, node), []).append(origin)
        return origins

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

    def _name(self, number: int) -> str:
        if number >= self._first_result:
            return f"result#{number - self._first_result}"
        instance, v = self._owner(number)
        return self.value_names[instance.number][v]

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
