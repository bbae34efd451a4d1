"""A saved run, as explanations read it: each answer is a look-up by an index of the file (see ``save``)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ...engine.evaluate.program import LoadedProgram
from ...engine.plan.plan import Source
from ...engine.provenance.proof import Proof
from ...errors import ShardlogError
from ...program.ids import Cell, Content, Item, Place, first_place
from ...program.meshes import Mesh, Meshes
from ...program.mlir.origins import Origin
from ...program.mlir.origins import origin as origin_of
from ...program.mlir.places import Scope
from ...rulebook.book import reasons
from ...version import __version__
from .record import Annotation, Change, Facts, Key, Op, Record, Row, Stage, Value
from .saved_file import AGAIN, Database

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
    with TemporaryDirectory() as folder:
        again = Path(folder, "again")
        try:
            save(Saved(path)._again(Path(folder)), again)
            same = again.read_bytes() == path.read_bytes()
        except ImportError:  # of what it would be run with
            raise
        except Exception as error:  # whatever the tables hold
            raise file.damaged("what is in it does not run again") from error
    if not same:
        raise file.damaged("its tables are not those of its module")


class Saved(Record):
    """The record in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = Database(path)
        self._all = self._file.all
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
        self._values: dict[int, tuple[Value, Cell]] = {}
        self._slots: dict[Item, list[Place]] = {}
        self._classes: dict[Item, int] = {}
        self._statics: dict[int, Mapping[int, int]] = {}
        self._proofs: dict[Key, Mapping[Row, Proof]] = {}
        self._sources: dict[int, Source] = {}

    def _one(self, query: str, *arguments: Any) -> tuple[Any, ...] | None:
        found = self._all(query, *arguments)
        return found[0] if found else None

    # ---- Values and ops ---------------------------------------------------------------------------------

    def named(self, name: str) -> list[Value]:
        query = f"{_VALUES} WHERE number IN (SELECT value FROM name WHERE name = ?) ORDER BY number"
        found = map(_value, self._all(query, name))
        return [self._values.setdefault(value.number, (value, cell))[0] for value, cell in found]

    def names(self) -> Mapping[str, int]:
        return dict(self._all("SELECT name, min(value) FROM name GROUP BY name ORDER BY min(rank)"))

    def numbered(self, start: str) -> list[int]:
        # The texts that start so are those up to it with its last character raised by one.
        query = "SELECT name, min(value) FROM name WHERE name >= ? AND name < ? GROUP BY name"
        rows = self._all(query, start, f"{start[:-1]}{chr(ord(start[-1]) + 1)}")
        found = [(name[len(start) :], number) for name, number in rows]
        return [number for _, number in sorted((int(end), n) for end, n in found if end.isdecimal())]

    def value(self, number: int) -> Value:
        return self._value(number)[0]

    def _value(self, number: int) -> tuple[Value, Cell]:
        """A value and its cell."""
        if number not in self._values:
            (row,) = self._all(f"{_VALUES} WHERE number = ?", number)
            self._values[number] = _value(row)
        return self._values[number]

    def values(self) -> Iterator[Value]:
        rows = self._all(f"{_VALUES} WHERE sharding IS NOT NULL ORDER BY number")
        return (_value(row)[0] for row in rows)

    def from_line(self, file: str, line: int) -> list[Value]:
        query = (
            f"{_VALUES} WHERE sharding IS NOT NULL AND op IN (SELECT number FROM op WHERE origin IN "
            f"(SELECT origin FROM frame WHERE line = ? AND {_FILE})) ORDER BY number"
        )
        return [_value(row)[0] for row in self._all(query, line, file, _ending(file))]

    def lines(self, file: str) -> list[int]:
        query = f"SELECT DISTINCT line FROM frame WHERE {_FILE} ORDER BY line"
        return [line for (line,) in self._all(query, file, _ending(file))]

    def axes(self, number: int) -> tuple[tuple[int, ...], ...]:
        ((found,),) = self._all("SELECT sharding FROM value WHERE number = ?", number)
        return tuple(map(tuple, json.loads(found)))

    def op(self, item: Item) -> Op:
        ((name, where, stack),) = self._all("SELECT name, location, stack FROM op WHERE number = ?", item)
        query = (
            "SELECT value, value.name, role FROM slot JOIN value ON value.number = value "
            "WHERE slot.op = ? ORDER BY slot"
        )
        rows = self._all(query, item)
        values, names, roles = zip(*rows, strict=True) if rows else ((), (), ())
        return Op(name, where, values, names, roles, stack)

    def ops(self) -> Iterator[tuple[Item, Op]]:
        query = (
            "SELECT op.number, op.name, op.location, op.stack, value, value.name, role FROM op "
            "JOIN slot ON slot.op = op.number JOIN value ON value.number = value "
            "WHERE op.number < ? ORDER BY op.number, slot"
        )
        for about, rows in groupby(self._all(query, self.items), key=itemgetter(0, 1, 2, 3)):
            item, name, where, stack = about
            values, names, roles = zip(*(row[4:] for row in rows), strict=True)
            yield item, Op(name, where, values, names, roles, stack)

    def in_scope(self, scope: Scope) -> list[Value]:
        numbers = [number for number, path in self._all("SELECT * FROM origin") if scope.has(path)]
        query = (
            f"{_VALUES} WHERE sharding IS NOT NULL AND op IN (SELECT number FROM op WHERE origin IN "
            "(SELECT value FROM json_each(?))) ORDER BY number"
        )
        return [_value(row)[0] for row in self._all(query, json.dumps(numbers))]

    def origin(self, item: Item) -> Origin | None:
        query = "SELECT text FROM op JOIN source ON source.number = source WHERE op.number = ?"
        found = self._one(query, item)
        return None if found is None else origin_of(found[0])

    def order(self) -> list[Item]:
        query = "SELECT number FROM op WHERE position IS NOT NULL ORDER BY position"
        return [item for (item,) in self._all(query)]

    def relation(self, name: str) -> list[Row]:
        ((data,),) = self._all("SELECT rows FROM relation WHERE name = ?", name)
        return list(map(tuple, json.loads(self._file.unpacked(data))))

    # ---- The agenda -------------------------------------------------------------------------------------

    def slots(self, item: Item) -> list[Place]:
        if item not in self._slots:
            query = "SELECT place FROM slot JOIN value ON number = value WHERE slot.op = ? ORDER BY slot"
            self._slots[item] = [Place(place) for (place,) in self._all(query, item)]
        return self._slots[item]

    def turns(self, cell: Cell) -> list[tuple[Item, int]]:
        query = "SELECT op, slot FROM slot WHERE cell = ? ORDER BY op, slot"
        return [(item, slot) for item, slot in self._all(query, cell)]

    def cell(self, place: Place) -> Cell:
        return self._value(place)[1]

    def contents(self, cell: Cell) -> tuple[Content, Content]:
        found = self._one("SELECT first, last FROM cell WHERE number = ?", cell)
        first, last = found or (0, 0)
        return Content(first), Content(last)

    def facts(self, content: Content) -> Facts:
        ((facts,),) = self._all("SELECT facts FROM content WHERE number = ?", content)
        return _facts(facts)

    def class_of(self, item: Item) -> int:
        if item not in self._classes:
            found = self._one("SELECT class FROM op WHERE number = ?", item)
            self._classes[item] = -1 if found is None else int(found[0])
        return self._classes[item]

    def statics(self, class_: int) -> Mapping[int, int]:
        if class_ not in self._statics:
            query = "SELECT pass, static FROM turn WHERE class = ? ORDER BY pass"
            self._statics[class_] = dict(self._all(query, class_))
        return self._statics[class_]

    def given(self, static: int, slots: int) -> Facts:
        ((facts,),) = self._all("SELECT facts FROM static WHERE number = ?", static)
        return _facts(facts)

    def op_facts(self, item: Item) -> Facts:
        query = "SELECT facts FROM op JOIN known ON known.number = known WHERE op.number = ?"
        ((facts,),) = self._all(query, item)
        return _facts(facts)

    def at_end(self) -> Iterator[tuple[Item, Key]]:
        query = (
            "SELECT op.number, static, ifnull(last, 0) FROM op JOIN turn USING (class) "
            "JOIN slot ON slot.op = op.number LEFT JOIN cell ON cell.number = slot.cell "
            "WHERE pass = ? AND op.number < ? ORDER BY op.number, slot"
        )
        rows = self._all(query, len(self.stage_of) - 1, self.items)
        for (item, static), group in groupby(rows, key=itemgetter(0, 1)):
            yield item, (static, *(content for _, _, content in group))

    def changes(self, cell: Cell) -> list[int]:
        return [n for (n,) in self._all("SELECT number FROM change WHERE cell = ? ORDER BY number", cell)]

    def change(self, number: int) -> Change:
        (columns,) = self._all(f"SELECT {_CHANGE} FROM change WHERE number = ?", number)
        return Change(*columns)

    def annotation(self, cell: Cell) -> Annotation:
        query = "SELECT value, location, cell, sharding, given_by, stack FROM annotation WHERE cell = ?"
        found = self._one(query, cell)
        if found is None:
            value = self.value(first_place(cell))
            return Annotation(value.name, value.where, cell, "", stack=value.stack)
        return Annotation(*found)

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
        query = "SELECT steps FROM change JOIN loss ON loss.number = lost WHERE change.number = ?"
        found = self._one(query, number)
        rows = [] if found is None else json.loads(found[0])
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

    def again(self, annotate: Given = (), without: Collection[Cell] = (), told: Sequence[str] = ()) -> Result:
        """The run with more annotations and sharding options, and without the annotations of some cells.

        Raises what ``run_with`` does.
        """
        with TemporaryDirectory() as folder:
            return self._again(Path(folder), annotate, without, told)

    def _again(
        self, folder: Path, annotate: Given = (), without: Collection[Cell] = (), told: Sequence[str] = ()
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
        given["sharding_option"] = (*given["sharding_option"], *told)
        # The module may come from anywhere, whatever the checksum of the file says.
        text = Text(vetted(self._file.unpacked(data), self.name), self.name)
        return run_with(text, Options(**given, rules=tuple(files)), dropped=without)

    def _changed(self, result: Result) -> bool:
        """Whether the log of a run differs from that of the file."""
        changes = self._all(f"SELECT {_CHANGE} FROM change ORDER BY number")
        return any(Change(*columns) != result.record.change(n) for n, columns in enumerate(changes))


_RULE = "file, line, text, sentence, types"
_CHANGE = "pass, op, slot, cell, old, new"
_FILE = "(file = ? OR file LIKE ? ESCAPE '!')"
_VALUES = "SELECT number, name, place, type, shape, location, manual, stack, cell FROM value"


def _value(row: tuple[Any, ...]) -> tuple[Value, Cell]:
    number, name, place, type_, shape, where, manual, stack, cell = row
    inside = tuple(map(tuple, json.loads(manual))) if manual else ()
    return Value(number, name, place, type_, tuple(json.loads(shape)), where, inside, stack), cell


def _source(file: str, line: int, text: str, sentence: str, types: str) -> Source:
    return Source(file, line, text, sentence, tuple((name, type_) for name, type_ in json.loads(types)))


def _facts(text: str) -> Facts:
    return {name: list(map(tuple, rows)) for name, rows in json.loads(text).items()}


def _ending(file: str) -> str:
    """A pattern of LIKE for the paths that end with a file."""
    return "%/" + "".join(f"!{c}" if c in "!%_" else c for c in file)
