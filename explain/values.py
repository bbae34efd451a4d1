"""Values as people name them, and places as they read them."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from ..api import Result
from ..errors import ShardlogError
from ..exporters.relations import Names, read_names, value_names
from ..importers.graph import Instance

_FRAME = re.compile(r'([^\s()"]+)"?:(\d+):(\d+)')
_SOURCE = re.compile(r"(?P<file>[^:]+\.\w+):(?P<line>\d+)")


@dataclass(frozen=True)
class Value:
    """A tensor: its name, the place that holds its sharding, its type and dimensions."""

    name: str
    place: int
    type: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Op:
    """An item of the agenda: what it is called, where it comes from, and the names of its slots."""

    name: str
    where: str
    slots: tuple[str, ...]
    roles: tuple[str, ...]  # "operand 0", "result"


def source_location(location: Any) -> str:
    """Where the user wrote what an MLIR location stands for: ``file:line``; empty where it does not say."""
    frames = _FRAME.findall(str(location))
    return f"{frames[0][0]}:{frames[0][1]}" if frames else ""


class Values:
    """The values and ops of a run by name, by place and by item."""

    def __init__(self, result: Result) -> None:
        self._result = result
        self._program = result.program
        self._graph = result.program.graph
        self._places = [i.place for i in self._graph.instances]
        self._items = [i.item for i in self._graph.instances]
        self._first_result = int(self._graph.places) - len(self._graph.result_places)

    @cached_property
    def _read(self) -> dict[str, Names]:
        return read_names(self._result.source, (i.function for i in self._graph.instances))

    @cached_property
    def _names(self) -> list[list[str]]:
        return [
            value_names(self._program, i, self._read[i.function.name].values) for i in self._graph.instances
        ]

    @cached_property
    def _types(self) -> dict[int, str]:
        return {number: str(type_) for type_, number in self._program.classes.signatures.types.items()}

    # ---- From names to values ---------------------------------------------------------------------------

    def find(self, name: str) -> list[Value]:
        """The values that ``name`` stands for: an SSA name, ``result#0``, a JAX path, or ``file:line``.

        Raises ShardlogError with the nearest names where there is none.
        """
        found = self._by_name.get(name)
        if found is not None:
            return [found]
        match = _SOURCE.fullmatch(name)
        if match:
            return self._born_at(match["file"], int(match["line"]))
        near = get_close_matches(name, self._by_name, n=3, cutoff=0.5) or list(self._by_name)[:5]
        raise ShardlogError(
            f"there is no value {name}",
            where=self._result.source.name,
            hint=f"the nearest are: {', '.join(near)}",
        )

    def all(self) -> list[Value]:
        """Every value, once under each of its names."""
        return list(self._by_name.values())

    @cached_property
    def _by_name(self) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for instance, names in zip(self._graph.instances, self._names, strict=True):
            for v, name in enumerate(names):
                value = self._value(instance, v, name)
                if value is not None:
                    found[name] = value
        main = self._graph.main
        function = main.function
        for v, argument in zip(function.arguments, function.op.arguments, strict=True):
            value, location = found.get(self._names[0][v]), argument.location
            if value is not None and not source_location(location) and str(location) != "loc(unknown)":
                found.setdefault(_path(location), value)
        returned = function.operands[function.terminator]
        for i, (place, v) in enumerate(zip(self._graph.result_places, returned, strict=True)):
            value = self._value(main, v, f"result#{i}")
            if value is not None:
                result = Value(value.name, int(place), value.type, value.shape)
                found[result.name] = result
                found.setdefault(self._result_path(i), result)
        return found

    def _result_path(self, i: int) -> str:
        attributes = self._graph.main.function.op.attributes
        entry = attributes["res_attrs"][i] if "res_attrs" in attributes else {}
        return str(entry["jax.result_info"].value) if "jax.result_info" in entry else f"result#{i}"

    def _value(self, instance: Instance, v: int, name: str) -> Value | None:
        """A value that is a tensor and still there."""
        function = instance.function
        shape = self._program.classes.signatures.shapes[function.types[v]]
        if shape is None or function.definer[v] in function.removed:
            return None
        place = instance.place + int(instance.layout.place[v])
        return Value(name, place, self._types[function.types[v]], shape)

    def _born_at(self, file: str, line: int) -> list[Value]:
        found, lines = [], set()
        for instance, names in zip(self._graph.instances, self._names, strict=True):
            function = instance.function
            for node in function.order:
                for path, number, _ in _FRAME.findall(self._location(instance, node)):
                    if path == file or path.endswith(f"/{file}"):
                        lines.add(int(number))
                        if int(number) == line:
                            values = (self._value(instance, v, names[v]) for v in function.results[node])
                            found += [v for v in values if v is not None]
                            break
        if not found:
            near = sorted(sorted(lines, key=lambda n: abs(n - line))[:3])
            hint = (
                f"values are born at the lines {', '.join(map(str, near))} of {file}"
                if near
                else (f"the module has no locations in {file}")
            )
            raise ShardlogError(
                f"no value is born at {file}:{line}", where=self._result.source.name, hint=hint
            )
        return found

    # ---- From places and items to names ----------------------------------------------------------------

    def name(self, place: int) -> str:
        """The name of the value that holds its sharding in a place."""
        if place >= self._first_result:
            return f"result#{place - self._first_result}"
        number = bisect_right(self._places, place) - 1
        return self._names[number][place - self._places[number]]

    def born(self, place: int) -> str:
        """Where a value comes from: a line of the user's program or of the module, or a JAX path."""
        if place >= self._first_result:
            path = self._result_path(place - self._first_result)
            return "" if path == self.name(place) else path
        instance, v = self._owner(place)
        function = instance.function
        node = function.definer[v]
        if node >= 0:
            return self._where(instance, node)
        if v in function.arguments:
            return self._argument(function.op.arguments[function.arguments.index(v)].location)
        return ""

    def _argument(self, location: Any) -> str:
        """A JAX path, or a line of the module."""
        found = source_location(location)
        if found:
            return self._result.source.place(found)
        return "" if str(location) == "loc(unknown)" else _path(location)

    def type(self, place: int) -> str:
        """The type of the value that holds its sharding in a place."""
        if place >= self._first_result:
            main = self._graph.main
            v = main.function.operands[main.function.terminator][place - self._first_result]
            return self._types[main.function.types[v]]
        instance, v = self._owner(place)
        return self._types[instance.function.types[v]]

    def op(self, item: int) -> Op:
        """The op, data-flow edge, function result or annotation that takes turns as ``item``."""
        places = [int(p) for p in self._slots(item)]
        if item >= len(self._graph.classes):
            name = self.name(places[0])
            return Op("annotation", self.born(places[0]), (name,), ("annotation",))
        if item >= len(self._graph.classes) - len(self._graph.result_items):
            return Op("func.return", "", tuple(map(self.name, places)), ("returned value", "function result"))
        instance = self._graph.instances[bisect_right(self._items, item) - 1]
        function, node = instance.function, item - instance.item
        if node >= len(function.ops):
            roles = [f"source {i}" for i in range(len(places) - 1)]
            return Op("data flow", self.born(places[-1]), tuple(map(self.name, places)), (*roles, "target"))
        names = self._names[instance.number]
        operands, results = function.operands[node], function.results[node]
        roles = [f"operand {i}" for i in range(len(operands))]
        roles += [f"result {i}" if len(results) > 1 else "result" for i in range(len(results))]
        slots = tuple(names[v] for v in (*operands, *results))
        return Op(function.names[node], self._where(instance, node), slots, tuple(roles))

    def _slots(self, item: int) -> Any:
        offsets, places = self._result.fixpoint.graph.slots
        return places[offsets[item] : offsets[item + 1]]

    def _where(self, instance: Instance, node: int) -> str:
        location = self._location(instance, node)
        return source_location(location) or location

    def _location(self, instance: Instance, node: int) -> str:
        """Where an op of a function comes from, as MLIR has it."""
        function = instance.function
        return self._read[function.name].locations[function.originals.get(node, node)]

    def _owner(self, place: int) -> tuple[Instance, int]:
        instance = self._graph.instances[bisect_right(self._places, place) - 1]
        return instance, place - instance.place

    # ---- Annotations ------------------------------------------------------------------------------------

    @cached_property
    def annotated(self) -> dict[int, tuple[str, str]]:
        """Cell -> the name of the value that the user annotated, and where."""
        cells, found = self._program.cells, dict[int, tuple[str, str]]()
        for instance in self._graph.instances:
            function = instance.function
            for v in function.annotations:
                place = instance.place + int(instance.layout.place[v])
                found.setdefault(int(cells[place]), self._annotation(instance, v))
        for place in self._graph.result_places:
            found.setdefault(int(place), (self.name(int(place)), self.born(int(place))))
        return found

    def _annotation(self, instance: Instance, v: int) -> tuple[str, str]:
        """A constraint that became its operand's own sharding is what the user wrote."""
        function, names = instance.function, self._names[instance.number]
        if v not in function.attributes:
            for node in function.constraints:
                result = function.results[node][0]
                same = function.annotations.get(result) == function.annotations[v]
                if v in function.operands[node] and same:
                    return names[result], self._where(instance, node)
        return names[v], self.born(instance.place + v)


def _path(location: Any) -> str:
    """The name that a location is."""
    return str(location).removeprefix('loc("').removesuffix('")')
