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
    value(number, name, place, cell, type, shape, location, op, sharding, manual, stack)
                                                  sharding: atoms by dimension; manual: see ``Value``
    name(name, value, rank)                       SSA names, result#0 and JAX paths
    op(number, name, location, class, source, known, position, origin, stack)     what takes turns
    slot(op, slot, value, cell, role)             known(number, facts): what the op rules say of an op
    source(number, text)                          the locations of ops
    origin(number, path)                          frame(origin, file, line): where ops come from, with the
                                                  calls around them
    content(number, facts)                        cell(number, first, last): what cells held
    annotation(cell, value, location, sharding, given_by, stack)
    static(number, facts)                         turn(pass, class, static): of ops of a class in a pass
    change(number, pass, op, slot, cell, old, new, lost)                          the log
    loss(number, steps)                           what lost in the turn of a change
    proof(neighbourhood, steps)                   why the turns of the log changed what they did

Shapes, facts and steps are JSON. The same run gives the same bytes. A checksum stands behind the database.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from itertools import count, repeat
from pathlib import Path
from typing import Any

from ...engine.plan.plan import Source
from ...engine.provenance.proof import Proof
from ...errors import ShardlogError
from ...outputs import output
from ...program.ids import Item
from ...program.mlir.origins import Origin
from ...propagation.schedules.tactics import schedule_text
from ...rulebook.notations.priorities import compile_priorities
from ...version import __version__
from ..result import Result
from .history import History
from .live import Live
from .obstacles import Obstacles
from .record import Key, Row, rule_file
from .saved_file import APPLICATION, FORMAT, INDICES, TABLES, seal


def save(result: Result, path: Path, progress: Callable[[str, float], None] | None = None) -> None:
    """Writes a run to a file, which appears whole or not at all. ``progress`` is that of ``run``.

    Raises ShardlogError where it cannot be written.
    """
    try:
        with output(path) as written:
            _write(result, written, progress or (lambda what, done: None))
    except sqlite3.Error as error:
        raise ShardlogError(f"cannot write the run: {error}", where=str(path)) from error


def _write(result: Result, path: Path, tell: Callable[[str, float], None]) -> None:
    database = sqlite3.connect(path, isolation_level=None)
    try:
        execute = database.execute
        execute(f"PRAGMA application_id = {APPLICATION}")
        execute(f"PRAGMA user_version = {FORMAT}")
        execute("PRAGMA synchronous = OFF")
        execute("PRAGMA journal_mode = OFF")
        execute("BEGIN")
        for table in TABLES:
            execute(table)
        tell("saving", 0.0)
        for position, (table, rows) in enumerate(_Tables(result).all()):
            tell("saving", position / len(TABLES))
            listed = list(rows)
            if listed:
                marks = ", ".join("?" * len(listed[0]))
                database.executemany(f"INSERT INTO {table} VALUES ({marks})", listed)
        for index in INDICES:
            execute(index)
        execute("COMMIT")
    finally:
        database.close()
    seal(path)


class _Tables:
    def __init__(self, result: Result) -> None:
        self.result, self.record = result, Live(result)
        self.history = History(self.record)
        self.sources: dict[str, int] = {}
        self.origins: dict[Origin, int] = {}
        self.known: dict[Item, int] = {}
        log = list(self.record.log())
        self.history.keep(log)
        self.keys, self.changes = [key for key, _ in log], [change for _, change in log]

    def all(self) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
        """The rows of every table."""
        result, record = self.result, self.record
        meshes, plan = record.meshes, record.rules().plan
        facts = {"module": record.name, "strategy": record.strategy, "shardlog": __version__}
        yield "run", [*facts.items(), ("changes", str(record.end)), ("items", str(record.items))]
        yield "module", [(zlib.compress(result.source.data), self.options())]
        yield "rule_file", self.rule_files()
        rules = [replace(source, file=rule_file(source)) for source in plan.sources]
        columns = ((r.file, r.line, r.text, r.sentence, _json(r.types)) for r in rules)
        yield "rule", ((i, *row) for i, row in enumerate(columns))
        yield "plan", [(zlib.compress(replace(plan, sources=()).to_json().encode()),)]
        yield "relation", ((name, zlib.compress(_json(rows).encode())) for name, rows in result.facts.items())
        yield (
            "mesh",
            ((i, m.name, _json(m.axes), _json(m.device_ids)) for i, m in enumerate(meshes.meshes)),
        )
        yield "atom", ((atom.id, atom.mesh, atom.axis, atom.lo, atom.hi) for atom in meshes.atoms)
        stages = zip(record.stages, record.statistics, strict=True)
        yield "stage", ((i, s.priority, s.level, s.strategy, *n) for i, (s, n) in enumerate(stages))
        yield "pass", enumerate(record.stage_of)
        yield "unknown_op", (tuple(op.values()) for op in record.unknown_ops)
        yield "value", self.values()
        named = enumerate(record.by_name.items())
        yield "name", sorted((name, number, rank) for rank, (name, same) in named for number in same)
        yield from self.ops()
        yield from self.cells()
        yield from self.statics()
        numbers = {source: i for i, source in enumerate(plan.sources)}
        yield "proof", self.proofs(numbers)
        lost, kinds = self.lost(numbers)
        yield "change", ((n, *change, lost.get(n)) for n, change in enumerate(self.changes))
        yield "loss", ((number, steps) for steps, number in kinds.items())

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

    def values(self) -> Iterator[tuple[Any, ...]]:
        record = self.record
        tensors = {value.number for value in record.values()}
        for number in range(int(self.result.program.graph.places)):
            value, op = record.value(number), record.definer(number)
            sharding = _short(record.axes(number)) if number in tensors else None
            yield (
                number,
                value.name,
                value.place,
                record.cell(value.place),
                value.type,
                _short(value.shape),
                value.where,
                None if op < 0 else op,
                sharding,
                _short(value.manual) if value.manual else None,
                value.stack,
            )

    def items(self) -> Iterator[Item]:
        """Items but for removed ops, annotations too."""
        classes = self.result.program.graph.classes.tolist()
        yield from (Item(item) for item, class_ in enumerate(classes) if class_ >= 0)
        yield from map(Item, range(len(classes), len(self.result.fixpoint.graph.classes)))

    def ops(self) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
        record, graph = self.record, self.result.fixpoint.graph
        classes, positions = graph.classes.tolist(), {item: i for i, item in enumerate(record.order())}
        ops, slots, known = list[Any](), list[Any](), dict[str, int]()
        seen: dict[int, tuple[Any, int]] = {}  # facts by their id, which are many an op's, with their number
        for item in self.items():
            op, source, origin = record.op(item), None, None
            if item < record.items and (found := record.whole_origin(item)) is not None:
                source = self.sources.setdefault(record.location(item), len(self.sources))
                origin = self.origins.setdefault(found, len(self.origins))
            said = record.op_facts(item)
            if id(said) not in seen:
                seen[id(said)] = said, known.setdefault(_json(said), len(known))
            facts = self.known[item] = seen[id(said)][1]
            position = positions.get(item)
            ops.append((item, op.name, op.where, classes[item], source, facts, position, origin, op.stack))
            cells = graph.place_cell[record.slots(item)].tolist()
            slots += zip(repeat(item), count(), op.values, cells, op.roles)
        yield "op", ops
        yield "slot", slots
        yield "known", ((number, facts) for facts, number in known.items())
        yield "source", ((number, text) for text, number in self.sources.items())
        yield "origin", ((number, origin.path) for origin, number in self.origins.items())
        lines = ((n, (f.file, f.line)) for origin, n in self.origins.items() for f in origin.frames)
        yield "frame", ((number, *line) for number, line in dict.fromkeys(lines))

    def cells(self) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
        record, fixpoint = self.record, self.result.fixpoint
        first, last = fixpoint.initial.tolist(), fixpoint.outcome.contents.tolist()
        used = {*first, *last, *fixpoint.outcome.log.old.tolist(), *fixpoint.outcome.log.new.tolist()}
        yield "content", ((content, _json(record.facts(content))) for content in sorted(used))
        pairs = enumerate(zip(first, last, strict=True))
        yield "cell", ((cell, a, b) for cell, (a, b) in pairs if a or b)
        found = record.given_shardings()
        yield "annotation", ((a.cell, a.value, a.where, a.text, a.by, a.stack) for a in found)

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

    def proofs(self, rules: Mapping[Source, int]) -> Iterator[tuple[str, str]]:
        """Of every neighbourhood in which something changed, the proofs of what slots gained."""
        gained: dict[Key, dict[Row, int]] = {}
        for number, change in enumerate(self.changes):
            held = {(d, x) for d, _, x in self.history.facts(change.old).get("sharded", ())}
            rows = gained.setdefault(self.keys[number], {})
            for d, p, x in self.history.facts(change.new).get("sharded", ()):
                if (d, x) not in held:
                    rows[change.slot, d, p, x] = number
        for key, rows in sorted(gained.items()):
            proofs = {row: self.history.proof(self.history.event(n), row) for row, n in sorted(rows.items())}
            yield ",".join(map(str, key)), _json(_steps(proofs, rules))

    def lost(self, rules: Mapping[Source, int]) -> tuple[dict[int, int], dict[str, int]]:
        """The axes that lost in the turns of changes, by number, and the number of each."""
        obstacles, graph = Obstacles(self.history), self.result.fixpoint.graph
        classes, prioritised = graph.classes.tolist(), len(graph.classes) > self.record.items
        found, kinds, by_turn = dict[int, int](), dict[str, int](), dict[Any, str]()
        for number, change in enumerate(self.changes):
            # Annotations with priorities of the tensors matter too.
            alike = self.keys[number], change.slot, classes[change.item], self.known[change.item]
            turn = number if prioritised else alike
            if turn not in by_turn:
                losses = obstacles.losses(self.history.event(number))
                rows = [(row, rules[says.source], says.bindings) for row, says in losses if says.source]
                by_turn[turn] = _json(rows) if rows else ""
            if by_turn[turn]:
                found[number] = kinds.setdefault(by_turn[turn], len(kinds))
        return found, kinds


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


_json = json.JSONEncoder(separators=(",", ":")).encode
_short = lru_cache(maxsize=1 << 12)(_json)  # of tuples, which are many a value's
