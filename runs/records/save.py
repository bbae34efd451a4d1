"""Writing a run to one file: an SQLite database that ``saved`` reads.

The tables, for those who look into the file with other tools:

    run(name, value)                              the module's name, the strategy, the version of shardlog
    module(data, options)                         what was read (zlib), and what was asked for (JSON)
    rule_file(name, text)                         files with more rules
    rule(number, file, line, text, sentence, types)   the rules of a turn; plan(data): how they are evaluated
    relation(name, rows)                          what queries see (zlib)
    mesh(number, name, axes, devices)             atom(number, mesh, axis, low, high)
    stage(number, priority, level, strategy, turns, distinct_turns, changes)      pass(number, stage)
    unknown_op(name, count, location, reason, stack)     ops without a rule
    column(name, width, numbers)                  columns of numbers, see below
    type(number, text, shape)                     axes(number, atoms): of the dimensions of values
    sharding(number, rows)                        what queries see of values, without their names
    manual(value, axes)                           see ``TensorValue``
    roles(number, names)                          of the slots of ops
    op_rows(number, rows)                         what queries see of ops, without their numbers
    known(number, facts)                          what the op rules say of an op
    content(number, facts)                        what cells held
    annotation(cell, value, location, sharding, given_by, stack)
    static(number, facts)                         turn(pass, class, static): of ops of a class in a pass
    needs(number, cells)                          the annotated cells that an axis rests on
    loss(number, steps)                           what lost in the turn of a change
    proof(neighbourhood, steps)                   why the turns of the log changed what they did

Columns have a number for each value, op and so on, little-endian, one, two, four or eight bytes wide
(``width`` is ``b``, ``h``, ``i`` or ``q``). Those of texts have the numbers of texts, which are distinct and
sorted, one after the other as UTF-8 in ``text``; ``text.end`` says where each ends. -1 is none.

    value.  name where stack (texts) place type cell op axes rows       of each value, by its number
    name.   text (SSA names, result#0 and JAX paths, sorted) value rank
    op.     name where stack source (texts) origin known roles rows class slots (where they start)
    slot.   value cell                            held.cell .item .slot: the slots in the order of their cells
    origin.path (texts)                           frame.origin .file (texts) .line: where ops come from
    order                                         the ops in the order of the program
    annotated                                     the values that queries see as such
    cell.   first last                            what cells held at first and at last
    change. pass op slot cell old new lost        the log; by_cell: the changes in the order of their cells
    gain.   change dim atom before length origin way needs      what changes gave, see ``save_ways``

Shapes, facts and steps are JSON. The same run gives the same bytes. A checksum stands behind the database.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ...collector import no_collections
from ...engine.plan.plan import Source
from ...engine.provenance.proof import Proof
from ...errors import ShardlogError
from ...exporters.relations import boundary_relations
from ...outputs import output
from ...propagation.schedules.tactics import schedule_text
from ...rulebook.notations.priorities import compile_priorities
from ...version import __version__
from ..result import Result
from .history import History
from .live import Live
from .obstacles import Obstacles
from .record import Key, Row, rule_file
from .save_columns import SaveColumns
from .save_ways import Ways
from .saved_file import APPLICATION, FORMAT, TABLES, seal


@no_collections()
def save(result: Result, path: Path, progress: Callable[[str, float], None] | None = None) -> None:
    """Writes a run to a file, completely or not at all. ``progress``: see ``run``.

    Raises ShardlogError if it cannot be written.
    """
    try:
        with output(path) as written:
            _write(result, written, progress or (lambda stage, done: None))
    except sqlite3.Error as error:
        raise ShardlogError(f"cannot write the run: {error}", where=str(path)) from error


def _write(result: Result, path: Path, tell: Callable[[str, float], None]) -> None:
    tables, database = _Tables(result), sqlite3.connect(path, isolation_level=None)
    try:
        execute = database.execute
        if tables.record.items >= _MANY:
            execute(f"PRAGMA page_size = {_PAGE}")
        execute(f"PRAGMA application_id = {APPLICATION}")
        execute(f"PRAGMA user_version = {FORMAT}")
        execute("PRAGMA synchronous = OFF")
        execute("PRAGMA journal_mode = OFF")
        execute("BEGIN")
        for table in TABLES:
            execute(table)
        tell("saving", 0.0)
        for position, (table, rows) in enumerate(tables.all()):
            tell("saving", position / len(TABLES))
            listed = list(rows)
            if listed:
                marks = ", ".join("?" * len(listed[0]))
                database.executemany(f"INSERT INTO {table} VALUES ({marks})", listed)
        execute("COMMIT")
    finally:
        database.close()
    seal(path)


class _Tables:
    def __init__(self, result: Result) -> None:
        self.result, self.record = result, Live(result)
        self.history = History(self.record)

    def all(self) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
        """The rows of every table."""
        result, record = self.result, self.record
        meshes, plan = record.meshes, record.rules().plan
        facts = {"module": record.name, "strategy": record.strategy, "shardlog": __version__}
        yield "run", [*facts.items(), ("changes", str(record.end)), ("items", str(record.items))]
        yield "module", [(zlib.compress(result.source.data, _LEVEL), self.options())]
        yield "rule_file", self.rule_files()
        rules = [replace(source, file=rule_file(source)) for source in plan.sources]
        columns = ((r.file, r.line, r.text, r.sentence, _json(r.types)) for r in rules)
        yield "rule", ((i, *row) for i, row in enumerate(columns))
        yield "plan", [(zlib.compress(replace(plan, sources=()).to_json().encode()),)]
        boundary = boundary_relations(result.program, result.names)
        yield "relation", ((name, zlib.compress(_json(rows).encode())) for name, rows in boundary.items())
        yield (
            "mesh",
            ((i, m.name, _json(m.axes), _json(m.device_ids)) for i, m in enumerate(meshes.meshes)),
        )
        yield "atom", ((atom.id, atom.mesh, atom.axis, atom.lo, atom.hi) for atom in meshes.atoms)
        stages = zip(record.stages, record.statistics, strict=True)
        yield "stage", ((i, s.priority, s.level, s.strategy, *n) for i, (s, n) in enumerate(stages))
        yield "pass", enumerate(record.stage_of)
        yield "unknown_op", (tuple(op.values()) for op in record.unknown_ops)
        saved = SaveColumns(result, record)
        yield from saved.tables.items()
        yield from self.cells()
        yield from self.statics()
        shapes = result.program.classes.signatures.shapes
        ways = Ways(record, self.history, max((len(shape or ()) for shape in shapes), default=0))
        for name, column in ways.columns.items():
            saved.column(f"gain.{name}", column)
        yield "needs", ((number, _json(cells)) for number, cells in enumerate(ways.needs or ()))
        numbers = {source: i for i, source in enumerate(plan.sources)}
        yield "proof", self.proofs(ways.gained, numbers)
        lost, kinds = self.lost(ways.keys, saved.numbers["op.known"].tolist(), numbers)
        saved.column("change.lost", lost)
        yield "loss", ((number, steps) for steps, number in kinds.items())
        yield "column", saved.written()

    def rule_files(self) -> Iterator[tuple[str, str]]:
        options = self.result.options
        for file in options.files:
            yield file.name, file.read_text(encoding="utf-8")
        if options.op_priorities is not None:
            order = Path(options.op_priorities)
            yield f"{order.name}.dl", compile_priorities(str(order), order.read_text(encoding="utf-8"))

    def options(self) -> str:
        options = self.result.options
        files = {"rules", "op_priorities"}  # see ``rule_files``
        given = {f.name: getattr(options, f.name) for f in fields(options) if f.name not in files}
        return json.dumps(given | {"schedule": schedule_text(options.steps) or ()})

    def cells(self) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
        record, fixpoint = self.record, self.result.fixpoint
        first, last = fixpoint.initial.tolist(), fixpoint.outcome.contents.tolist()
        used = {*first, *last, *fixpoint.outcome.log.old.tolist(), *fixpoint.outcome.log.new.tolist()}
        yield "content", ((content, _json(record.facts(content))) for content in sorted(used))
        annotations = record.given_shardings()
        yield "annotation", ((a.cell, a.value, a.where, a.text, a.by, a.stack) for a in annotations)

    def statics(self) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
        graph = self.result.fixpoint.graph
        lengths = (graph.slots.offsets[1:] - graph.slots.offsets[:-1]).tolist()
        slots = dict(zip(graph.classes.tolist(), lengths, strict=True))  # class -> its number of slots
        statics = {class_: self.record.statics(class_) for class_ in sorted(slots)}
        facts = {static: slots[class_] for class_, given in statics.items() for static in given.values()}
        yield "static", ((s, _json(self.record.given(s, n))) for s, n in sorted(facts.items()))
        rows = ((turns, class_, s) for class_, given in statics.items() for turns, s in given.items())
        yield "turn", rows

    # ---- Proofs -----------------------------------------------------------------------------------------

    def proofs(
        self, gained: Mapping[Key, Collection[Row]], rules: Mapping[Source, int]
    ) -> Iterator[tuple[str, str]]:
        """The proofs of the gains of slots, for every neighbourhood that changed."""
        for key, rows in sorted(gained.items()):
            proofs = {row: self.history.proof_in(key, row) for row in sorted(rows)}
            yield ",".join(map(str, key)), _json(_steps(proofs, rules))

    def lost(
        self, keys: Sequence[Key], known: Sequence[int], rules: Mapping[Source, int]
    ) -> tuple[list[int], dict[str, int]]:
        """For each change the number of the axes that lost in its turn (-1: none), and the number of each."""
        obstacles, graph, log = (
            Obstacles(self.history),
            self.result.fixpoint.graph,
            self.result.fixpoint.outcome.log,
        )
        classes, prioritised = graph.classes.tolist(), len(graph.classes) > self.record.items
        numbers, kinds, by_turn = list[int](), dict[str, int](), dict[Any, int]()
        for number, (key, slot, item) in enumerate(
            zip(keys, log.slot.tolist(), log.item.tolist(), strict=True)
        ):
            # Annotations with priorities of the tensors matter too.
            turn = number if prioritised else (key, slot, classes[item], known[item])
            if turn not in by_turn:
                losses = obstacles.losses(self.history.event(number))
                rows = [(row, rules[says.source], says.bindings) for row, says in losses if says.source]
                by_turn[turn] = kinds.setdefault(_json(rows), len(kinds)) if rows else -1
            numbers.append(by_turn[turn])
        return numbers, kinds


def _steps(proofs: dict[Row, Proof], rules: Mapping[Source, int]) -> dict[str, Any]:
    """Proofs as a table, premises before what follows from them, and the number of the proof of each row."""
    numbers: dict[int, int] = {}
    steps: list[Any] = []

    def add(proof: Proof) -> int:
        if id(proof) not in numbers:
            premises, counted = [add(p) for p in proof.premises], [add(p) for p in proof.counted]
            numbers[id(proof)] = len(steps)
            rule = -1 if proof.source is None else rules[proof.source]
            step = [proof.relation, proof.row, rule, premises, counted, proof.bindings]
            steps.append(step if rule >= 0 or premises else step[:2])
        return numbers[id(proof)]

    return {"of": [[row, add(proof)] for row, proof in proofs.items()], "steps": steps}


_MANY = 10_000  # items, from which on pages are large: a long column is read in fewer steps
_PAGE = 1 << 14  # bytes
_LEVEL = 1  # of zlib, for the module: others take three times as long for a few per cent
_json = json.JSONEncoder(separators=(",", ":")).encode
