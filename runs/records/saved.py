"""A saved run, as explanations read it: answers are look-ups in the columns of its file (see ``save``)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from itertools import groupby, takewhile
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...engine.evaluate.program import LoadedProgram
from ...engine.plan.plan import Source
from ...engine.provenance.proof import Proof
from ...errors import ShardlogError
from ...outputs import temporary_folder
from ...program.ids import Cell, Content, Item, Place, first_place
from ...program.meshes import Mesh, Meshes
from ...program.mlir.origins import Origin
from ...program.mlir.origins import origin as origin_of
from ...program.mlir.places import NameScope
from ...rulebook.book import reasons
from ...version import __version__
from .columns import GainColumns, rows, same
from .record import (
    Annotation,
    Change,
    Facts,
    Key,
    Op,
    Row,
    RunRecord,
    SlotColumns,
    Stage,
    TensorValue,
    Way,
    is_file,
)
from .saved_file import AGAIN, Database
from .saved_relations import saved_relation

if TYPE_CHECKING:
    from ...importers.given import Given
    from ..result import Result


def open_saved(path: str | Path) -> Saved:
    """Opens a saved run.

    Raises ShardlogError for a file that is not a saved run, is damaged, or is from another version.
    """
    try:
        return Saved(Path(path))
    except (ShardlogError, OSError):
        raise
    except Exception:
        check_saved(Path(path))
        raise


def check_saved(path: Path) -> None:
    """Raises ShardlogError unless shardlog writes this very file for the module in it.

    A file made by hand can have a right checksum, and anything in its tables.
    """
    from .save import save

    file = Database(path)
    with temporary_folder() as folder:
        again = folder / "again"
        try:
            save(Saved(path)._again(folder), again)
            same = again.read_bytes() == path.read_bytes()
        except ImportError:  # of what it would be run with
            raise
        except Exception as error:  # whatever the tables hold
            raise file.damaged("its program does not run again") from error
    if not same:
        raise file.damaged("its tables do not belong to its module")


class Saved(RunRecord):
    """The record in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = Database(path)
        self._all, self._column = self._file.all, self._file.columns.__getitem__
        about = dict(self._all("SELECT name, value FROM run"))
        self.name, self.strategy, self.version = about["module"], about["strategy"], about["shardlog"]
        self.end, self.items = int(about["changes"]), int(about["items"])
        self.meshes = Meshes(
            Mesh(name, tuple((axis, size) for axis, size in json.loads(axes)), tuple(json.loads(devices)))
            for name, axes, devices in self._all("SELECT name, axes, devices FROM mesh ORDER BY number")
        )
        stages = self._all("SELECT * FROM stage ORDER BY number")
        self.stages = tuple(Stage(*row[1:4]) for row in stages)
        self.statistics = tuple((turns, distinct, changes) for *_, turns, distinct, changes in stages)
        self.stage_of = tuple(stage for (stage,) in self._all("SELECT stage FROM pass ORDER BY number"))
        unknown = self._all("SELECT * FROM unknown_op ORDER BY rowid")
        names = ("name", "count", "location", "reason", "stack")
        self.unknown_ops = tuple(dict(zip(names, row, strict=True)) for row in unknown)
        self._rows: dict[tuple[str, int], Any] = {}
        self._values: dict[int, TensorValue] = {}
        self._ops: dict[Item, Op] = {}
        self._slots: dict[Item, list[Place]] = {}
        self._statics: dict[int, Mapping[int, int]] = {}
        self._proofs: dict[Key, Mapping[Row, Proof]] = {}
        self._sources: dict[int, Source] = {}

    def _one(self, query: str, *arguments: object) -> tuple[Any, ...] | None:
        answers = self._all(query, *arguments)
        return answers[0] if answers else None

    @property
    def identity(self) -> tuple[bytes, str]:
        """The bytes of the module as it is packed, and as text all else that tells the run from others."""
        ((data, options),) = self._all("SELECT data, options FROM module")
        files = self._all("SELECT name, text FROM rule_file ORDER BY rowid")
        return data, repr((self._file.checksum, self.name, options, files))

    # ---- Columns ----------------------------------------------------------------------------------------

    def _text(self, column: str, row: int) -> str:
        """The text in a row of a column of texts."""
        return self._file.texts[self._column(column)[row]]

    def _json(self, table: str, number: int) -> Any:
        """The value in a row of a table of JSON."""
        if (table, number) not in self._rows:
            ((text,),) = (self._all(f"SELECT * FROM {table} WHERE number = ?", number)[0][1:],)
            self._rows[table, number] = json.loads(text)
        return self._rows[table, number]

    # ---- Values and ops ---------------------------------------------------------------------------------

    def named(self, name: str) -> list[TensorValue]:
        return [self.value(number) for number in sorted(self._numbered(self._file.texts.find(name)))]

    def _numbered(self, text: int) -> list[int]:
        """The values with a name, by the number of its text."""
        numbers = self._column("name.value")
        return [numbers[row] for row in same(self._column("name.text"), text)] if text >= 0 else []

    def _first_of_names(self, rows: range) -> Iterator[tuple[str, int, int]]:
        """The names in rows, each with its first value, and its place among all names."""
        texts, numbers, ranks = (self._column(f"name.{name}") for name in ("text", "value", "rank"))
        for text, same_name in groupby(rows, key=texts.__getitem__):
            same_rows = list(same_name)
            name = self._file.texts[text]
            yield name, min(numbers[row] for row in same_rows), min(ranks[row] for row in same_rows)

    def names(self) -> Mapping[str, int]:
        first = self._first_of_names(range(len(self._column("name.text"))))
        return {name: number for name, number, _ in sorted(first, key=itemgetter(2))}

    def numbered(self, start: str) -> list[int]:
        # The texts that start so are those up to it with its last character raised by one.
        column, texts = self._column("name.text"), self._file.texts
        ends = (texts.first(start), texts.first(f"{start[:-1]}{chr(ord(start[-1]) + 1)}"))
        rows = range(*(same(column, end).start for end in ends))
        matches = [(name[len(start) :], number) for name, number, _ in self._first_of_names(rows)]
        return [number for _, number in sorted((int(end), n) for end, n in matches if end.isdecimal())]

    def value(self, number: int) -> TensorValue:
        if number not in self._values:
            self._values[number] = self._value(number)
        return self._values[number]

    def _value(self, number: int) -> TensorValue:
        name, where, stack = (self._text(f"value.{column}", number) for column in ("name", "where", "stack"))
        type_, shape = self._types[self._column("value.type")[number]]
        place = Place(self._column("value.place")[number])
        return TensorValue(number, name, place, type_, shape, where, self._manual.get(number, ()), stack)

    def type_of(self, number: int) -> str:
        return self._types[self._column("value.type")[number]][0]

    @cached_property
    def _types(self) -> dict[int, tuple[str, tuple[int, ...]]]:
        rows = self._all("SELECT number, text, shape FROM type")
        return {number: (text, tuple(json.loads(shape))) for number, text, shape in rows}

    @cached_property
    def _manual(self) -> dict[int, tuple[tuple[str, str], ...]]:
        rows = self._all("SELECT value, axes FROM manual")
        return {number: tuple(map(tuple, json.loads(axes))) for number, axes in rows}

    def values(self) -> Iterator[TensorValue]:
        return map(self.value, self._tensors)

    @property
    def _tensors(self) -> Iterator[int]:
        return (number for number, axes in enumerate(self._column("value.axes")) if axes >= 0)

    def _of_ops(self, items: Collection[int]) -> list[TensorValue]:
        """The tensors that some ops make."""
        makers, items = self._column("value.op"), set(items)
        return [self.value(number) for number in self._tensors if makers[number] in items]

    def _from_origins(self, origins: Collection[int]) -> list[TensorValue]:
        return self._of_ops([op for op, origin in enumerate(self._column("op.origin")) if origin in origins])

    def from_line(self, file: str, line: int) -> list[TensorValue]:
        files, origins = self._files(file), self._column("frame.origin")
        of = self._column("frame.file")
        origins_there = {origins[row] for row in rows(self._column("frame.line"), line) if of[row] in files}
        return self._from_origins(origins_there) if origins_there else []

    def lines(self, file: str) -> list[int]:
        files, lines = self._files(file), self._column("frame.line")
        return sorted({lines[row] for row, of in enumerate(self._column("frame.file")) if of in files})

    def _files(self, file: str) -> set[int]:
        """The texts of the files that a name stands for."""
        files = set(self._column("frame.file"))
        return {text for text in files if is_file(self._file.texts[text], file)}

    def axes(self, number: int) -> tuple[tuple[int, ...], ...]:
        return tuple(map(tuple, self._json("axes", self._column("value.axes")[number])))

    def op(self, item: Item) -> Op:
        if item not in self._ops:
            self._ops[item] = self._op(item)
        return self._ops[item]

    def _op(self, item: Item) -> Op:
        name, where, stack = (self._text(f"op.{column}", item) for column in ("name", "where", "stack"))
        values = self._slot_values(item)
        names = tuple(self._text("value.name", value) for value in values)
        return Op(name, where, values, names, self._roles(item), stack)

    def _roles(self, item: Item) -> tuple[str, ...]:
        return tuple(self._json("roles", self._column("op.roles")[item]))

    def _slot_values(self, item: Item) -> tuple[int, ...]:
        start, end = self._column("op.slots")[item : item + 2]
        return tuple(self._column("slot.value")[start:end])

    def ops(self) -> Iterator[tuple[Item, Op]]:
        items = (Item(item) for item, class_ in enumerate(self._column("op.class")) if class_ >= 0)
        return ((item, self.op(item)) for item in takewhile(lambda item: item < self.items, items))

    def in_scope(self, scope: NameScope) -> list[TensorValue]:
        texts, has = self._file.texts, cache(scope.has)
        paths = enumerate(self._column("origin.path"))
        origins = {origin for origin, path in paths if has(texts[path])}
        return self._from_origins(origins) if origins else []

    def origin(self, item: Item) -> Origin | None:
        source = self._column("op.source")[item]
        return None if source < 0 else origin_of(self._file.texts[source])

    def order(self) -> list[Item]:
        return [Item(item) for item in self._column("order")]

    def relation(self, name: str, among: Collection[str | int] | None = None) -> list[Row]:
        return saved_relation(self._file, name, among)

    # ---- The agenda -------------------------------------------------------------------------------------

    def slots(self, item: Item) -> list[Place]:
        if item not in self._slots:
            places = self._column("value.place")
            self._slots[item] = [Place(places[value]) for value in self._slot_values(item)]
        return self._slots[item]

    def turns(self, cell: Cell) -> list[tuple[Item, int]]:
        items, slots = self._column("held.item"), self._column("held.slot")
        matches = same(self._column("held.cell"), cell)
        return sorted((Item(items[row]), slots[row]) for row in matches)

    def slot_columns(self) -> SlotColumns:
        import numpy as np  # which takes longer to load than most answers take

        return SlotColumns(*(np.asarray(self._column(name)) for name in _SLOTS))

    def cell(self, place: Place) -> Cell:
        return Cell(self._column("value.cell")[place])

    def contents(self, cell: Cell) -> tuple[Content, Content]:
        return Content(self._column("cell.first")[cell]), Content(self._column("cell.last")[cell])

    def facts(self, content: Content) -> Facts:
        ((facts,),) = self._all("SELECT facts FROM content WHERE number = ?", content)
        return _facts(facts)

    def class_of(self, item: Item) -> int:
        return self._column("op.class")[item]

    def statics(self, class_: int) -> Mapping[int, int]:
        if class_ not in self._statics:
            query = "SELECT pass, static FROM turn WHERE class = ? ORDER BY pass"
            self._statics[class_] = dict(self._all(query, class_))
        return self._statics[class_]

    def given(self, static: int, slots: int) -> Facts:
        ((facts,),) = self._all("SELECT facts FROM static WHERE number = ?", static)
        return _facts(facts)

    def op_facts(self, item: Item) -> Facts:
        return _rows(self._json("known", self._column("op.known")[item]))

    def at_end(self) -> Iterator[tuple[Item, Key]]:
        last, starts = len(self.stage_of) - 1, self._column("op.slots")
        cells, contents = self._column("slot.cell"), self._column("cell.last")
        for item, class_ in enumerate(self._column("op.class")):
            static = self.statics(class_).get(last) if class_ >= 0 and item < self.items else None
            if static is not None:
                held = (contents[cell] for cell in cells[starts[item] : starts[item + 1]])
                yield Item(item), (static, *held)

    def changes(self, cell: Cell) -> list[int]:
        order = self._column("change.by_cell")
        return [order[row] for row in same(order, cell, self._column("change.cell").__getitem__)]

    def change(self, number: int) -> Change:
        turns, item, slot, cell, old, new = (self._column(f"change.{name}")[number] for name in _CHANGE)
        return Change(turns, Item(item), slot, Cell(cell), Content(old), Content(new))

    def way(self, cell: Cell, dim: int, atom: int) -> Way | None:
        changes, dims, atoms, before = (self._column(f"gain.{name}") for name in _GAIN)
        for change in reversed(self.changes(cell)):
            for gain in same(changes, change):
                if (dims[gain], atoms[gain]) == (dim, atom):
                    origin, number, length, needs = (
                        self._column(f"gain.{name}")[gain] for name in ("origin", "way", "length", "needs")
                    )
                    gains = GainColumns(changes, dims, before, gain, length)
                    return Way(Cell(origin), number, gains, self._needed(needs))
        return Way(cell, -1 - cell, (), frozenset([cell]))

    def _needed(self, number: int) -> frozenset[Cell] | None:
        answers = self._all("SELECT cells FROM needs WHERE number = ?", number)
        return frozenset(map(Cell, json.loads(answers[0][0]))) if answers else None

    def annotation(self, cell: Cell) -> Annotation:
        query = "SELECT value, location, cell, sharding, given_by, stack FROM annotation WHERE cell = ?"
        row = self._one(query, cell)
        if row is None:
            value = self.value(first_place(cell))
            return Annotation(value.name, value.where, cell, "", stack=value.stack)
        return Annotation(*row)

    def given_shardings(self) -> list[Annotation]:
        query = "SELECT value, location, cell, sharding, given_by, stack FROM annotation ORDER BY cell"
        return [Annotation(*row) for row in self._all(query)]

    # ---- Turns ------------------------------------------------------------------------------------------

    def rules(self) -> LoadedProgram:
        return self._program

    @cached_property
    def _program(self) -> LoadedProgram:
        ((data,),) = self._all("SELECT data FROM plan")
        rules = self._all(f"SELECT {_RULE} FROM rule ORDER BY number")
        plan = reasons().plan
        if self._file.unpacked(data) != replace(plan, sources=()).to_json().encode():
            raise self._other("the rules of turns are others than those it was saved with")
        if len(rules) != len(plan.sources):
            raise self._file.damaged("it has other rules than its plan")
        return LoadedProgram(replace(plan, sources=tuple(_source(*rule) for rule in rules)))

    def proofs(self, key: Key) -> Mapping[Row, Proof]:
        if key not in self._proofs:
            query = "SELECT steps FROM proof WHERE neighbourhood = ?"
            ((steps,),) = self._all(query, ",".join(map(str, key)))
            self._proofs[key] = self._read(json.loads(steps))
        return self._proofs[key]

    def _read(self, kept: dict[str, Any]) -> Mapping[Row, Proof]:
        proofs: list[Proof] = []
        for relation, row, *step in kept["steps"]:
            if not step:
                proofs.append(Proof(relation, tuple(row)))
                continue
            rule, premises, counted, bindings = step
            source = None if rule < 0 else self._source(rule)
            direct, aggregated = (tuple(proofs[n] for n in numbers) for numbers in (premises, counted))
            bound = tuple((name, value) for name, value in bindings)
            proofs.append(Proof(relation, tuple(row), source, direct, aggregated, bound))
        return {tuple(row): proofs[number] for row, number in kept["of"]}

    def lost(self, number: int) -> list[tuple[Row, Proof]]:
        lost = self._column("change.lost")[number]
        rows = [] if lost < 0 else self._json("loss", lost)
        return [(tuple(row), self._lost(tuple(row), *says)) for row, *says in rows]

    def _lost(self, row: Row, rule: int, bindings: list[list[Any]]) -> Proof:
        source, bound = self._source(rule), tuple((name, value) for name, value in bindings)
        return Proof("denied", row, source, bindings=bound)

    def _source(self, number: int) -> Source:
        if number not in self._sources:
            (rule,) = self._all(f"SELECT {_RULE} FROM rule WHERE number = ?", number)
            self._sources[number] = _source(*rule)
        return self._sources[number]

    # ---- The run again ----------------------------------------------------------------------------------

    @cached_property
    def result(self) -> Result:
        """The run in memory. Raises ShardlogError where it does not come out as it was saved."""
        result = self.again()
        if result.record.end != self.end or self._changed(result):
            raise self._other("the run does not come out as it was saved: the rules or shardlog have changed")
        return result

    def _other(self, message: str) -> ShardlogError:
        """The error for a file of another shardlog."""
        hint = f"it was saved by shardlog {self.version}, this is {__version__}; {AGAIN}"
        return ShardlogError(message, where=str(self.path), hint=hint)

    def again(
        self, annotate: Given = (), without: Collection[Cell] = (), sharding_options: Sequence[str] = ()
    ) -> Result:
        """The run with more annotations and sharding options, and without the annotations of some cells.

        Raises what ``run_with`` does.
        """
        with temporary_folder() as folder:
            return self._again(folder, annotate, without, sharding_options)

    def _again(
        self,
        folder: Path,
        annotate: Given = (),
        without: Collection[Cell] = (),
        sharding_options: Sequence[str] = (),
    ) -> Result:
        """The run again, with its rule files in a folder."""
        from ...importers.given import Several
        from ...importers.sources.text import Text
        from ...importers.sources.vetting import vetted
        from ..options import Options
        from ..running import run_with

        ((data, options),) = self._all("SELECT data, options FROM module")
        given = json.loads(options)
        files = []
        for i, (name, text) in enumerate(self._all("SELECT name, text FROM rule_file ORDER BY rowid")):
            files.append(folder / str(i) / Path(name).name)  # names may be equal
            files[-1].parent.mkdir()
            files[-1].write_text(text, encoding="utf-8")
        given["annotate"] = Several((given["annotate"], annotate)) if annotate else given["annotate"]
        given["sharding_option"] = (*given["sharding_option"], *sharding_options)
        # The module may come from anywhere, whatever the checksum of the file says.
        text = Text(vetted(self._file.unpacked(data), self.name), self.name)
        return run_with(text, Options(**given, rules=tuple(files)), dropped=without, names=True)

    def _changed(self, result: Result) -> bool:
        """Whether the log of a run differs from the file's."""
        columns = (self._column(f"change.{name}") for name in _CHANGE)
        return any(
            list(mine) != theirs for mine, theirs in zip(columns, result.record.log_columns(), strict=True)
        )


_RULE = "file, line, text, sentence, types"
_CHANGE = ("pass", "op", "slot", "cell", "old", "new")
_SLOTS = ("held.cell", "held.item", "held.slot", "op.slots", "slot.cell", "op.class", "cell.last")
_GAIN = ("change", "dim", "atom", "before")


def _source(file: str, line: int, text: str, sentence: str, types: str) -> Source:
    return Source(file, line, text, sentence, tuple((name, type_) for name, type_ in json.loads(types)))


def _facts(text: str) -> Facts:
    return _rows(json.loads(text))


def _rows(tables: dict[str, Any]) -> Facts:
    return {name: list(map(tuple, rows)) for name, rows in tables.items()}
