"""The relations of a finished run, for queries and for NumPy. They are described in ``docs/facts.md``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, groupby, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir

from ..importers.annotations import to_sdy
from ..importers.dialects.marks import may_have_shardings
from ..importers.graph.graph import Instance
from ..importers.program import ImportedModule
from ..importers.sources.text import Text, parse_module
from ..program.function import Function
from ..program.meshes import Mesh, axis_text
from ..program.mlir.modules import operations_in, symbols
from ..program.mlir.origins import UNKNOWN, Frame, Origin, frame, origin
from ..program.mlir.places import argument_path, result_path
from ..program.mlir.types import Operation
from ..program.shardings import Sharding
from .schema import SCHEMA
from .shardings import FinalShardings

if TYPE_CHECKING:
    from ..importers.dialects.names import ValueNames

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class FunctionNames:
    """The name of every value of a function, and the place of every op, in the order of their numbers.
    ``also`` maps further names to the numbers of values."""

    values: list[str]
    places: list[OpPlace]
    also: dict[str, int]


class OpPlace:
    """The place of an op: its ``location`` as MLIR writes it, the ``origin`` that this names, and the
    ``frame`` that is all of it, if one is. They are read when they are asked for: most answers name few ops.
    ``key`` tells locations of the module that was read apart (``Text.key_of``); None once that may be
    gone."""

    __slots__ = ("_frame", "_origin", "_source", "_text", "key")  # there is one for each op

    def __init__(self, key: Frame | ir.Attribute, source: Text) -> None:
        self.key: Frame | ir.Attribute | None = key
        self._source, self._text = source, ""
        self._frame = key if isinstance(key, Frame) else None
        self._origin: Origin | None = None

    @property
    def location(self) -> str:
        if isinstance(self.key, Frame):
            return f'"{self.key.file}":{self.key.line}:{self.key.column}'
        self._read()
        return self._text

    @property
    def frame(self) -> Frame | None:
        if self._frame is None:
            self._read()
        return self._frame

    @property
    def origin(self) -> Origin:
        if self._origin is None:
            self._origin = Origin((), (self._frame,)) if self._frame else origin(self.location)
        return self._origin

    def _read(self) -> None:
        """Reads the text of an attribute, and its frame, once."""
        if not self._text and not (self.key is None or isinstance(self.key, Frame)):
            self._text = self._source.text_of(self.key)
            self._frame = frame(self._text)

    def let_go(self) -> None:
        """Keeps the text alone: an attribute keeps its module."""
        self._text, self.key = self.location, None

    def __repr__(self) -> str:
        return f"OpPlace({self.location!r})"


def relations(
    program: ImportedModule, written: FinalShardings, names: Mapping[str, FunctionNames]
) -> dict[str, Rows]:
    """The relations of ``SCHEMA`` as sorted tuples. ``names`` has the names of each function, by its name."""
    rows: dict[str, Rows] = {name: [] for name in SCHEMA}
    rows |= boundary_relations(program, names)
    for instance in program.graph.instances:
        _instance(program, written, instance, names[instance.function.name], rows)
    # They are nearly in order, which a set would lose.
    return {name: [row for row, _ in groupby(sorted(unsorted))] for name, unsorted in rows.items()}


def boundary_relations(program: ImportedModule, names: Mapping[str, FunctionNames]) -> dict[str, Rows]:
    """The relations about meshes, arguments and results, sorted."""
    main = program.graph.main
    function, value_of = main.function, value_names(program, main, names[main.function.name].values)
    returned = function.operands[function.terminator]
    arguments = zip(
        function.arguments, map(argument_path, (a.location for a in function.op.arguments)), strict=True
    )
    results = ((v, result_path(function.op, i)) for i, v in enumerate(returned))
    relations: dict[str, Rows] = {
        "mesh_axis": [(m.name, axis, size) for m in program.shardings.meshes.meshes for axis, size in m.axes],
        "argument": [(value_of[v], i) for i, v in enumerate(function.arguments)],
        "returned": [(value_of[v], i) for i, v in enumerate(returned)],
        "path": [(value_of[v], path) for v, path in (*arguments, *results) if path],
    }
    return {name: sorted(set(rows)) for name, rows in relations.items()}


def value_names(program: ImportedModule, instance: Instance, names: Sequence[str]) -> list[str]:
    """A name for every value of an instance: ``%29``; ``@f#2:%29`` in the second call of a function.

    Values that import adds are named after others: the n-th copy of a constant ``%29`` is ``%29'n``, and so
    is a constraint on ``%29`` where it enters a computation.
    """
    function = instance.function
    prefix = ""
    if instance is not program.graph.main:
        number, calls = program.graph.calls[instance.number]
        prefix = f"@{function.name}:" if calls == 1 else f"@{function.name}#{number}:"
    listed = [prefix + name for name in names]
    copies: dict[int, int] = {}
    for value in range(len(names), len(function.types)):
        node = function.definer[value]
        if node in function.originals:
            original = function.results[function.originals[node]][value - function.results[node][0]]
        else:  # a constraint
            original = function.operands[node][0]
        copies[original] = copies.get(original, 0) + 1
        listed.append(f"{listed[original]}'{copies[original]}")
    for value in (v for node in function.split for v in function.results[node]):
        listed[value] += f"'{copies.get(value, 0) + 1}"
    return listed


def _instance(
    program: ImportedModule,
    written: FinalShardings,
    instance: Instance,
    names: FunctionNames,
    rows: dict[str, Rows],
) -> None:
    function, classes = instance.function, program.classes
    shapes, meshes = classes.signatures.shapes, program.shardings.meshes.meshes
    value_of = value_names(program, instance, names.values)
    rows_of: dict[Sharding | None, dict[str, Rows]] = {}
    type_texts = {number: str(type_) for type_, number in classes.signatures.types.items()}
    for v in live_values(function):
        name, shape = value_of[v], shapes[function.types[v]]
        rows["value"].append((name, type_texts[function.types[v]]))
        rows["dim"].extend((name, d, size) for d, size in enumerate(shape or ()))
        if v in function.annotations:
            rows["annotated"].append((name,))
        sharding = written.sharding(instance.place + int(instance.layout.place[v]), len(shape or ()))
        if sharding not in rows_of:
            rows_of[sharding] = sharding_rows(sharding, meshes)
        for relation, said_rows in rows_of[sharding].items():
            rows[relation].extend((name, *row) for row in said_rows)
    for node in function.order:
        op = instance.item + node
        rows["op"].append((op, function.names[node]))
        where = names.places[function.source(node)].location.replace('"', "")
        rows["location"].append((op, where if where != UNKNOWN else f"op {function.names[node]}"))
        rows["operand"].extend((op, i, value_of[v]) for i, v in enumerate(function.operands[node]))
        rows["result"].extend((op, i, value_of[v]) for i, v in enumerate(function.results[node]))
        static = classes.by_class[int(instance.layout.classes[node])].static
        rows["factor"].extend((op, *row) for row in static["factor"])
        rows["maps"].extend((op, *row) for row in static["maps"])


def live_values(function: Function) -> list[int]:
    """The values of a function that are in its relations."""
    live = {v for node in function.order for v in function.results[node]} | set(function.arguments)
    live |= {v for regions in function.regions.values() for region in regions for v in region.arguments}
    return sorted(live)


def sharding_rows(sharding: Sharding | None, meshes: Sequence[Mesh]) -> dict[str, Rows]:
    """The rows about a value with a sharding, without its name."""
    if sharding is None:
        return {}
    mesh = meshes[sharding.mesh]
    axes = [[axis_text(x, mesh) for x in d.axes] for d in sharding.dimensions]
    replicated = [(axis_text(x, mesh), "replicated") for x in sharding.replicated]
    unreduced = [axis_text(x, mesh) for x in sharding.unreduced]
    return {
        "mesh": [(mesh.name,)],
        "sharded": [(d, k, x) for d, along in enumerate(axes) for k, x in enumerate(along)],
        "closed": [(d,) for d, dimension in enumerate(sharding.dimensions) if dimension.closed],
        "fixed": [*replicated, *((x, "unreduced") for x in unreduced)],
        "partial": [(x, sharding.reduction) for x in unreduced],
    }


def arrays(rows: dict[str, Rows]) -> dict[str, npt.NDArray[Any]]:
    """The relations as structured NumPy arrays with one field per column; symbols are strings."""
    arrays = {}
    for name, columns in SCHEMA.items():
        texts = [i for i, (_, type_) in enumerate(columns) if type_ == "symbol"]
        width = max((len(row[i]) for row in rows[name] for i in texts), default=1)
        dtype = [(column, f"U{width}" if type_ == "symbol" else np.int64) for column, type_ in columns]
        arrays[name] = np.array(rows[name], dtype=dtype)
    return arrays


def read_names(text: Text, mesh: str | None, functions: Iterable[Function]) -> dict[str, FunctionNames]:
    """The names of the values and the places of the ops of each function, as ``text`` has them in sdy."""
    module = parse_module(text)
    to_sdy(module, text, mesh)
    names = names_in(module, text, functions)
    for each in names.values():
        for place in each.places:
            place.let_go()  # or the context of the module stays
    return names


def names_in(module: ir.Module, text: Text, functions: Iterable[Function]) -> dict[str, FunctionNames]:
    """The same of a module that was read from a text, and that nothing has changed since."""
    state = ir.AsmState(module.operation, use_local_scope=True)  # no aliases are sought
    names: dict[str, FunctionNames] = {}
    places: dict[Any, OpPlace] = {}  # locations are many an op's, and long

    def located(op: Operation) -> OpPlace:
        key = text.key_of(op.location)
        place = places.get(key)
        if place is None:
            place = places[key] = OpPlace(key, text)
        return place

    read_in = {function.name: function for function in functions}
    wanted, in_text = set(read_in), _names_in_text(text.data, module)
    for name, op in symbols(module, "func.func").items():
        if name in wanted:
            function, named = read_in[name], names.setdefault(name, FunctionNames([], [], {}))
            ops = function.ops if function.op == op else operations_in(op)
            _read_region(op.regions[0], named, state, located, iter(ops))
            if (names_in_text := in_text(op)) is not None:
                names[name].values[:] = names_in_text.of
                names[name].also.update(names_in_text.also)
            _name_inserted(read_in[name], names[name])
    return names


def _names_in_text(data: bytes, module: ir.Module) -> Callable[[Any], ValueNames | None]:
    if not may_have_shardings(data):
        return lambda function: None
    from ..importers.dialects.names import names_of

    return names_of(data, module)


def _name_inserted(function: Function, names: FunctionNames) -> None:
    """Names the constraints that completion has put into a function, by the values that they are of."""
    own = sum(
        node not in function.originals and node not in function.created for node in range(len(function.ops))
    )
    if own <= len(names.places):
        return
    taken = {*names.values}
    for node in sorted(function.inserted):
        (result,), (operand,) = function.results[node], function.operands[node]
        if (maker := function.definer[operand]) in function.originals:  # a copy of a constant
            (operand,) = function.results[function.source(maker)]
        copies = (f"{names.values[operand]}.{number}" for number in count(1))
        name = next(copy for copy in copies if copy not in taken)
        taken.add(name)
        names.values.insert(result, name)
        names.also.update({also: value + (value >= result) for also, value in names.also.items()})
        user = min(node, len(names.places) - 1)  # it stands where its user does
        names.places.insert(node, names.places[user])


def _read_region(
    region: ir.Region,
    names: FunctionNames,
    state: ir.AsmState,
    located: Callable[[Any], OpPlace],
    ops: Iterator[Any],
) -> None:
    """Reads a region, whose ``ops`` come first, those inside of others behind these."""
    # No function inside of another: one that calls itself is a cycle, which would keep the module.
    block = region.blocks[0]
    names.values.extend(argument.get_name(state) for argument in block.arguments)
    values, places = names.values, names.places
    for op in islice(ops, len(block.operations)):
        for result in op.results:
            values.append(result.get_name(state))
        places.append(located(op))
        if len(op.regions):
            for inner in op.regions:
                _read_region(inner, names, state, located, ops)
