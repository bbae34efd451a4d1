"""The columns of a saved run (see ``save``), made from a run in memory: arrays, not an object for each op."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ...exporters.relations import OpPlace, live_values, sharding_rows
from ...importers.graph.graph import Instance
from ...program.columns import numbers, spread_ranges, widths
from ...program.ids import Item, Place
from ...program.mlir.origins import NOWHERE, Frame, Origin
from ..result import Result
from .columns import WIDTHS
from .live import Live

Ints = npt.NDArray[np.signedinteger[Any]]
Row = tuple[Any, ...]
T = TypeVar("T")


class Distinct(dict[T, int]):
    """Distinct entries by number, in the order in which they first come."""

    def __missing__(self, entry: T) -> int:
        number = self[entry] = len(self)
        return number

    def of(self, entries: Iterable[T]) -> Ints:
        """The number of each entry."""
        return np.fromiter(map(self.__getitem__, entries), np.int32)


class Texts(dict[str, int]):
    """Texts by number. They are looked up once each, so some numbers are of no text."""

    end = 0  # the first number that is free

    def of(self, texts: Iterable[str]) -> Ints:
        """The number of each text."""
        texts_numbers = np.fromiter(map(self.setdefault, texts, count(self.end)), np.int32)
        self.end += len(texts_numbers)
        return texts_numbers

    def __missing__(self, text: str) -> int:
        (number,) = self.of([text]).tolist()
        return int(number)


@dataclass(frozen=True)
class _OpRows:
    """The rows of items: the numbers of their texts, and other columns.

    ``roles``, ``facts`` and ``statics`` number what several items share; ``of_signature`` and ``of_class``
    are the numbers of the facts of signatures and classes.
    """

    texts: dict[str, Ints]
    columns: dict[str, Ints]
    roles: Distinct[tuple[str, ...]] = field(default_factory=Distinct)
    facts: Distinct[str] = field(default_factory=Distinct)
    statics: Distinct[str] = field(default_factory=Distinct)
    of_signature: dict[int, int] = field(default_factory=dict)
    of_class: dict[int, int] = field(default_factory=dict)


class SaveColumns:
    """The columns ``numbers`` by name, and ``tables``: rows that many ops share."""

    def __init__(self, result: Result, record: Live) -> None:
        self.result, self.record, self.graph = result, record, result.program.graph
        self.agenda = result.fixpoint.graph
        self.numbers: dict[str, Ints] = {}
        self.tables: dict[str, list[Row]] = {}
        self._texts = Texts()
        self._of_texts = set[str]()  # the columns of texts
        self._origins = Distinct[Origin | Frame]()  # a frame alone stands for an origin of just that
        # By instance: the texts of the lines, name stacks and locations of nodes, and their origins.
        self._places = [self._located(instance) for instance in self.graph.instances]
        self._values()
        self._names()
        self._ops()
        self._cells()
        self.numbers["order"] = np.asarray(record.order(), np.int32)
        self._data, self._ends = self._number_texts()

    def column(self, name: str, values: object) -> None:
        """Adds a column of numbers."""
        self.numbers[name] = np.asarray(values)

    def texts(self, name: str, texts: Ints | Iterable[str]) -> None:
        """Adds a column of texts, or of their numbers so far; -1 is none."""
        self._of_texts.add(name)
        self.numbers[name] = texts if isinstance(texts, np.ndarray) else self._texts.of(texts)

    def written(self) -> list[tuple[str, str, bytes]]:
        """The name, the width and the bytes of every column."""
        columns = {**self.numbers, "text.end": self._ends}
        return [("text", "b", self._data), *((name, *_packed(c)) for name, c in columns.items())]

    def _number_texts(self) -> tuple[bytes, Ints]:
        """Gives columns of texts the numbers of these in order, and forgets the texts. Returns all of them
        in UTF-8, and where each ends."""
        texts = sorted(self._texts)
        rank = np.full(self._texts.end + 1, -1, np.int32)  # no text is none
        rank[np.fromiter(map(self._texts.__getitem__, texts), np.int32)] = np.arange(len(texts))
        self._texts.clear()
        for name in self._of_texts:
            self.numbers[name] = rank[self.numbers[name]]
        order = np.lexsort((self.numbers["name.value"], self.numbers["name.text"]))
        for name in ("name.text", "name.value", "name.rank"):
            self.numbers[name] = self.numbers[name][order]
        data = "".join(texts).encode()
        alone = map(len, texts) if data.isascii() else (len(text.encode()) for text in texts)
        return data, np.cumsum(np.fromiter(alone, np.int64, len(texts)))

    # ---- Values -----------------------------------------------------------------------------------------

    def _located(self, instance: Instance) -> tuple[Ints, Ints, Ints, Ints]:
        """The line, the name stack and the location of every node of an instance, as texts, and its origin,
        the calls around included."""
        around = self.record.around(instance.number)
        alone, places = around == NOWHERE, self._op_places(instance)
        wheres, stacks, sources, origins = list[str](), list[str](), list[str](), list[int]()
        which, seen = list[int](), dict[int, int]()  # many nodes may be at one place
        for place in places:
            if (number := seen.get(id(place), -1)) < 0:
                number = seen[id(place)] = len(seen)
                sources.append(place.location)
                if alone and (frame := place.frame):
                    where, stack = str(frame), ""
                    origins.append(self._origins[frame])
                else:
                    origin = place.origin.within(around)
                    where, stack = origin.place
                    origins.append(self._origins[_alone(origin) or origin])
                wheres.append(where)
                stacks.append(stack)
            which.append(number)
        nodes = np.asarray(which, np.int32)
        columns = [self._texts.of(texts)[nodes] for texts in (wheres, stacks, sources)]
        return columns[0], columns[1], columns[2], np.asarray(origins, np.int32)[nodes]

    def _op_places(self, instance: Instance) -> list[OpPlace]:
        """The place of every node of an instance."""
        return self._of_nodes(instance, self.result.names[instance.function.name].places)

    @staticmethod
    def _of_nodes(instance: Instance, in_module: list[T]) -> list[T]:
        """The places of the nodes of an instance, from the ops in the module."""
        function = instance.function
        if not function.originals and not function.created:
            return in_module[: len(function.ops)]
        return [in_module[function.source(node)] for node in range(len(function.ops))]

    def _values(self) -> None:
        record, types = self.record, self.result.program.classes.signatures
        parts: dict[str, list[Any]] = {name: [] for name in ("name", "place", "type", "where", "stack", "op")}
        for instance, names in zip(self.graph.instances, record.value_names, strict=True):
            definer, place = numbers(instance.function.definer), instance.layout.place
            where, stack = (self._born(of, definer[place]) for of in self._places[instance.number][:2])
            for v in np.flatnonzero(definer[place] < 0).tolist():
                texts = record.born(Place(instance.place + int(place[v])))
                where[v], stack[v] = self._texts[texts[0]], self._texts[texts[1]]
            parts["name"].append(self._texts.of(names))
            parts["place"].append(place + instance.place)
            parts["type"].append(numbers(instance.function.types))
            parts["where"].append(where)
            parts["stack"].append(stack)
            parts["op"].append(np.where(definer < 0, -1, definer + instance.item))
        results = [record.value(int(number)) for number in self.graph.result_places]
        main = self.graph.main.function
        parts["name"].append(self._texts.of(value.name for value in results))
        parts["place"].append(self.graph.result_places)
        parts["type"].append(numbers(main.types)[list(main.operands[main.terminator])])
        parts["where"].append(self._texts.of(value.where for value in results))
        parts["stack"].append(self._texts.of(value.stack for value in results))
        parts["op"].append(np.full(len(results), -1, np.int32))
        for name, each in parts.items():
            joined = np.concatenate(each).astype(np.int32)
            (self.texts if name in ("name", "where", "stack") else self.column)(f"value.{name}", joined)
        self.tables["type"] = [
            (number, str(type_), _json(types.shapes[number] or ())) for type_, number in types.types.items()
        ]
        self.column("value.cell", self.agenda.place_cell[self.numbers["value.place"]])
        self.tables["manual"] = [(number, _json(manual)) for number, manual in record.manual.items()]
        self._shardings()

    @staticmethod
    def _born(of_nodes: Ints, node: Ints) -> Ints:
        return of_nodes[np.maximum(node, 0)] if len(of_nodes) else np.zeros(len(node), np.int32)

    def _shardings(self) -> None:
        """The sharding of every tensor: as written in the module, and for queries."""
        record, written = self.record, self.result.written
        axes, seen = Distinct[str](), Distinct[str]()
        # Places whose sharding differs from their content.
        own = written.unchanged.keys() | written.returned.keys()
        place, types = (self.numbers[f"value.{name}"].tolist() for name in ("place", "type"))
        contents, shapes = written.contents.tolist(), self.result.program.classes.signatures.shapes
        shardings, rows = dict[Any, int](), dict[Any, int]()
        of_axes, of_rows = np.full(len(place), -1, np.int32), np.full(len(place), -1, np.int32)
        for number in record.tensors:
            at = place[number]
            key = at if at in own else (contents[at], types[number], record.boundary.get(number))
            if key not in shardings:
                shardings[key] = axes[_json(record.axes(number))]
            of_axes[number] = shardings[key]
        annotated = list[int]()
        for instance in self.graph.instances:
            for v in live_values(instance.function):
                number = instance.place + v
                at = place[number]
                key = at if at in own else (contents[at], types[number])
                if key not in rows:
                    sharding = written.sharding(at, len(shapes[types[number]] or ()))
                    rows[key] = seen[_json(sharding_rows(sharding, record.meshes.meshes))]
                of_rows[number] = rows[key]
                if v in instance.function.annotations:
                    annotated.append(number)
        self.column("value.axes", of_axes)
        self.column("value.rows", of_rows)
        self.column("annotated", np.asarray(annotated, np.int32))
        self.tables["axes"] = [(number, text) for text, number in axes.items()]
        self.tables["sharding"] = [(number, text) for text, number in seen.items()]

    def _names(self) -> None:
        by_name = self.record.by_name
        counts = np.fromiter(map(len, by_name.values()), np.int32, len(by_name))
        self.texts("name.text", self._texts.of(by_name).repeat(counts))
        self.column("name.value", np.fromiter(chain.from_iterable(by_name.values()), np.int32))
        self.column("name.rank", np.arange(len(by_name), dtype=np.int32).repeat(counts))

    # ---- Ops --------------------------------------------------------------------------------------------

    def _ops(self) -> None:
        """The columns of items that take turns, without removed ops: nodes of functions, data flow between
        them, function results, and annotations with priorities."""
        record, items = self.record, len(self.agenda.classes)
        offsets, slots = self.agenda.slots
        rows = _OpRows(
            {name: np.full(items, -1, np.int32) for name in ("name", "where", "stack", "source")},
            {name: np.full(items, -1, np.int32) for name in ("origin", "known", "roles", "rows")},
        )
        values, there = slots.astype(np.int32), np.ones(items, bool)
        there[: len(self.graph.classes)] = self.graph.classes >= 0
        no_nodes = there.copy()
        for instance in self.graph.instances:
            no_nodes[instance.item : instance.item + len(instance.function.ops)] = False
            self._nodes(instance, rows, values, there)
        nothing = rows.facts[_json({})]
        for item in np.flatnonzero(no_nodes).tolist():
            op = record.op(Item(item))
            for name, text in (("name", op.name), ("where", op.where), ("stack", op.stack)):
                rows.texts[name][item] = self._texts[text]
            rows.columns["roles"][item], rows.columns["known"][item] = rows.roles[op.roles], nothing
        for name, column in rows.texts.items():
            self.texts(f"op.{name}", column)
        for name, column in rows.columns.items():
            self.column(f"op.{name}", column)
        self.column("op.class", np.where(there, self.agenda.classes, -1))
        self.column("op.slots", offsets)
        self.column("slot.value", values)
        self.column("slot.cell", self.agenda.place_cell[slots])
        self._held(there)
        self.tables["known"] = [(number, facts) for facts, number in rows.facts.items()]
        self.tables["roles"] = [(number, _json(roles)) for roles, number in rows.roles.items()]
        self.tables["op_rows"] = [(number, facts) for facts, number in rows.statics.items()]
        self._frames()

    def _nodes(self, instance: Instance, rows: _OpRows, values: Ints, there: npt.NDArray[np.bool_]) -> None:
        """Fills in the rows of the nodes of a function, and their slots."""
        function, first = instance.function, instance.item
        nodes, text, columns = slice(first, first + len(function.ops)), rows.texts, rows.columns
        text["name"][nodes] = self._texts.of(function.names)
        text["where"][nodes], text["stack"][nodes], text["source"][nodes], columns["origin"][nodes] = (
            self._places[instance.number]
        )
        counts = np.column_stack([function.operands.counts, numbers(function.results.counts)])
        most = int(counts[:, 1].max(initial=0)) + 1
        pairs, which = np.unique(counts @ (most, 1), return_inverse=True)
        of_pairs = rows.roles.of(_roles(*divmod(pair, most)) for pair in pairs.tolist())
        columns["roles"][nodes] = of_pairs[which.reshape(-1)] if len(of_pairs) else 0
        self._slot_values(instance, counts, values, there)
        signatures, classes = function.signature.tolist(), instance.layout.classes.tolist()
        for node, signature in enumerate(signatures):
            if signature not in rows.of_signature and there[first + node]:
                facts = self.record.op_facts(Item(first + node))
                rows.of_signature[signature] = rows.facts[_json(facts)]
        columns["known"][nodes] = [rows.of_signature.get(signature, -1) for signature in signatures]
        order = numbers(function.order)
        for class_ in {classes[node] for node in function.order} - rows.of_class.keys():
            static = self.result.program.classes.by_class[class_].static
            relations = {name: static[name] for name in ("factor", "maps")}
            rows.of_class[class_] = rows.statics[_json(relations)]
        columns["rows"][first + order] = [rows.of_class[classes[node]] for node in order.tolist()]

    def _frames(self) -> None:
        """The source lines that ops come from."""
        self.texts("origin.path", ["" if isinstance(o, Frame) else o.path for o in self._origins])
        frames = [
            (number, *line)
            for origin, number in self._origins.items()
            for line in (
                ((origin.file, origin.line),)
                if isinstance(origin, Frame)
                else dict.fromkeys((f.file, f.line) for f in origin.frames)
            )
        ]
        self.column("frame.origin", np.array([number for number, _, _ in frames], np.int32))
        self.texts("frame.file", (file for _, file, _ in frames))
        self.column("frame.line", np.array([line for _, _, line in frames], np.int64))

    def _slot_values(
        self, instance: Instance, counts: Ints, values: Ints, there: npt.NDArray[np.bool_]
    ) -> None:
        """Puts the operands and results of nodes into their slots. The slots of items are places."""
        function, (offsets, _) = instance.function, self.agenda.slots
        first_item, end = instance.item, instance.item + len(function.ops)
        offsets, rows = offsets[first_item : end + 1], np.flatnonzero(there[first_item:end])
        starts, (operands, results) = offsets[rows], counts[rows].T
        assert (widths(offsets)[rows] == operands + results).all(), "a slot is an operand or a result"
        first = numbers(function.operands.offsets)[rows]
        at, which = spread_ranges(first, operands)
        used = numbers(function.operands.values)[at]
        values[starts[which] + at - first[which]] = used + instance.place
        first = numbers(function.results.first)[rows]
        at, which = spread_ranges(first, results)
        values[(starts + operands)[which] + at - first[which]] = at + instance.place

    def _held(self, there: npt.NDArray[np.bool_]) -> None:
        """The slots in the order of their cells."""
        cells, items, slots = self.record.by_cell
        kept = there[items]
        for name, column in (("cell", cells), ("item", items), ("slot", slots)):
            self.column(f"held.{name}", column[kept])

    # ---- Cells ------------------------------------------------------------------------------------------

    def _cells(self) -> None:
        fixpoint = self.result.fixpoint
        self.column("cell.first", fixpoint.initial)
        self.column("cell.last", fixpoint.outcome.contents)
        log = fixpoint.outcome.log
        for name, column in (("pass", log.number), ("op", log.item), ("slot", log.slot)):
            self.column(f"change.{name}", column)
        cells = self.agenda.place_cell[log.place] if len(log.place) else np.zeros(0, np.int32)
        self.column("change.cell", cells)
        self.column("change.old", log.old)
        self.column("change.new", log.new)
        self.column("change.by_cell", np.argsort(cells, kind="stable"))


def _alone(origin: Origin) -> Frame | None:
    """The frame that is all that there is of an origin."""
    return origin.frames[0] if not origin.names and len(origin.frames) == 1 else None


def _roles(operands: int, results: int) -> tuple[str, ...]:
    roles = [f"operand {i}" for i in range(operands)]
    return (*roles, *(f"result {i}" if results > 1 else "result" for i in range(results)))


def _packed(column: Ints) -> tuple[str, bytes]:
    """The width of a column, and its bytes: no more than its largest number needs."""
    low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    width = next(w for w in WIDTHS if np.iinfo(w).min <= low and high <= np.iinfo(w).max)
    return width, column.astype(f"<{width}").tobytes()


_json = json.JSONEncoder(separators=(",", ":")).encode
