"""The values of a run in memory, their names and their places in the source."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cache, cached_property
from itertools import chain
from typing import NamedTuple

from ...exporters.relations import value_names
from ...importers.graph.graph import Instance
from ...importers.graph.inside import values_inside
from ...importers.sources.text import parse_module
from ...program.function import Function
from ...program.ids import Item, Place
from ...program.mlir.modules import symbols
from ...program.mlir.origins import NOWHERE, Origin, location_text, place_text, tell_apart
from ...program.mlir.origins import origin as origin_of
from ...program.mlir.places import NameScope, argument_path, result_path
from ..data import RunData
from .live_turns import LiveTurns
from .record import TensorValue, is_file


class _Index(NamedTuple):
    """Values of a function -> their numbers as arguments, the ops whose regions they are arguments of, and
    the constraints on them, in order."""

    arguments: dict[int, int]
    around: dict[int, int]
    constraints: dict[int, list[int]]


class LiveValues(LiveTurns):
    """The part of a run's record about values: their names, and the places of values and ops."""

    def __init__(self, run: RunData) -> None:
        super().__init__(run.fixpoint, run.book, len(run.program.graph.classes))
        self.run = run
        self._program = run.program
        self._graph = graph = run.program.graph
        self._values: dict[int, TensorValue] = {}
        self._indices: dict[str, _Index] = {}
        self._places = [i.place for i in graph.instances]
        self._items = [i.item for i in graph.instances]
        self._first_result = int(graph.places) - len(graph.result_places)
        self._wheres: dict[tuple[int, int], tuple[str, str]] = {}
        self._arounds: dict[int, Origin] = {}

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

    def _name(self, number: int) -> str:
        if number >= self._first_result:
            return f"result#{number - self._first_result}"
        instance, v = self._owner(number)
        return self.value_names[instance.number][v]
