"""The relations of a saved run, from its columns. ``exporters/relations.py`` makes the relations of a run in
memory."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby

from ...program.mlir.origins import UNKNOWN
from .columns import same
from .record import Row
from .saved_file import Database

_OF_VALUES = ("value", "dim", "annotated", "mesh", "sharded", "closed", "fixed", "partial")


def saved_relation(file: Database, name: str, among: Collection[str | int] | None = None) -> list[Row]:
    """A relation; of ``among``, only rows whose first column is one of these."""
    kept = file.all("SELECT rows FROM relation WHERE name = ?", name)
    if kept:
        return list(map(tuple, json.loads(file.unpacked(kept[0][0]))))
    rows = _of_values(file, name, among) if name in _OF_VALUES else _of_ops(file, name, among)
    return [row for row, _ in groupby(sorted(rows))]


def _of_values(file: Database, name: str, among: Collection[str | int] | None) -> Iterator[Row]:
    names, seen = file.columns["value.name"], file.columns["value.rows"]
    numbers: Iterable[int] = range(len(seen))
    if among is not None:
        texts = filter(lambda n: n >= 0, (file.texts.find(str(text)) for text in among))
        numbers = (
            file.columns["name.value"][row] for text in texts for row in same(file.columns["name.text"], text)
        )
    rows = {number: json.loads(text) for number, text in file.all("SELECT number, rows FROM sharding")}
    of_types = {n: (text, json.loads(shape)) for n, text, shape in file.all("SELECT * FROM type")}
    types, annotated = file.columns["value.type"], set(file.columns["annotated"])
    for number in numbers:
        if seen[number] < 0:
            continue
        value = file.texts[names[number]]
        type_, shape = of_types[types[number]]
        match name:
            case "value":
                yield value, type_
            case "dim":
                yield from ((value, d, size) for d, size in enumerate(shape))
            case "annotated":
                if number in annotated:
                    yield (value,)
            case _:
                yield from ((value, *row) for row in rows[seen[number]].get(name, ()))


def _of_ops(file: Database, name: str, among: Collection[str | int] | None) -> Iterator[Row]:
    listed, names, texts = file.columns["op.rows"], file.columns["op.name"], file.texts
    starts, values, value_names = (file.columns[c] for c in ("op.slots", "slot.value", "value.name"))
    rows = {number: json.loads(text) for number, text in file.all("SELECT number, rows FROM op_rows")}
    roles = {number: json.loads(text) for number, text in file.all("SELECT number, names FROM roles")}
    of_roles, sources = file.columns["op.roles"], file.columns["op.source"]
    for op, seen in enumerate(listed):
        if seen < 0 or (among is not None and op not in among):
            continue
        match name:
            case "op":
                yield op, texts[names[op]]
            case "location":
                where = texts[sources[op]].replace('"', "")
                yield op, where if where != UNKNOWN else f"op {texts[names[op]]}"
            case "operand" | "result":
                held = zip(roles[of_roles[op]], values[starts[op] : starts[op + 1]], strict=True)
                ends = (value for role, value in held if role.startswith(name))
                yield from ((op, i, texts[value_names[value]]) for i, value in enumerate(ends))
            case _:
                yield from ((op, *row) for row in rows[seen][name])
