"""Facts from files, as Soufflé reads them: lines of fields, JSON, SQLite; columns of Python values."""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from zlib import error as zlib_error

import numpy as np

from ..engine.evaluate.store import FactColumn, Store
from ..engine.plan.plan import Column, Plan
from ..errors import ShardlogError
from .directives import Transfer
from .values import EXPECTED, value_of

Rows = list[tuple[Any, ...]]
_NUMBERS = re.compile(r"(?:[+-]?[0-9]+\n)*")
_GZIP = b"\x1f\x8b"


def read(store: Store, transfer: Transfer, plan: Plan) -> None:
    """Adds to a store the facts that a directive asks for. Raises ShardlogError."""
    name = transfer.relation.name
    if transfer.kind == "sqlite":
        store.add(name, _sqlite(transfer, plan))
        return
    text, where = _text(transfer)
    if transfer.kind in ("json", "jsonfile"):
        store.add(name, _json(transfer, text, where, plan))
        return
    if transfer.headers and transfer.kind == "file":
        text = text.partition("\n")[2]
    if "\r" in text and not transfer.rfc4180:
        text = text.replace("\r\n", "\n").removesuffix("\r")
    columns = _at_once(transfer, text, plan)
    if columns is None:
        store.add(name, _one_by_one(transfer, text, where, plan))
    else:
        store.add_columns(name, columns)


def _text(transfer: Transfer) -> tuple[str, str]:
    """The text of a file or of standard input, and how it is called."""
    where = "<stdin>" if transfer.path is None else str(transfer.path)
    try:
        data = sys.stdin.buffer.read() if transfer.path is None else transfer.path.read_bytes()
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
        return data.decode(), where
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ShardlogError("not UTF-8", where=f"{where}:{line}", hint="expected text in UTF-8") from None
    except (EOFError, zlib_error, gzip.BadGzipFile) as error:
        raise ShardlogError(f"cannot be decompressed: {error}", where=where) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        hint = _needed_for(transfer)
        raise ShardlogError(f"cannot read: {reason}", where=where, hint=hint) from None


# ---- Lines of fields ------------------------------------------------------------------------------------


def _at_once(transfer: Transfer, text: str, plan: Plan) -> list[FactColumn] | None:
    """The columns, where all lines have a field for each and nothing else; None where they may not."""
    columns, delimiter = transfer.relation.columns, transfer.delimiter
    if not (text and columns) or transfer.rfc4180 or "columns" in transfer.parameters:
        return None
    if any(column.type == "record" for column in columns) or (
        "," in delimiter and re.search(r"[\[\]]", text)
    ):
        return None
    text = text.removesuffix("\n")
    between = len(columns) - 1
    if any(line.count(delimiter) != between for line in text.split("\n")):
        return None
    cells = text.replace("\n", delimiter).split(delimiter)
    try:
        return [_column(column, cells[i :: len(columns)], plan) for i, column in enumerate(columns)]
    except ValueError:
        return None  # whose place is found line by line


def _column(column: Column, texts: list[str], plan: Plan) -> FactColumn:
    if column.type == "symbol":
        return texts
    if column.type == "float":
        return np.array([value_of(column, text, plan) for text in texts], np.float64)
    numbers: Iterable[int]
    if _NUMBERS.fullmatch("\n".join(texts) + "\n"):
        numbers = map(int, texts)
    else:
        numbers = (value_of(column, text, plan) for text in texts)
    try:
        if column.type == "unsigned":
            return np.array(list(numbers), np.uint64).view(np.int64)
        return np.array(list(numbers), np.int64)
    except OverflowError:
        raise ValueError(EXPECTED[column.type]) from None


def _one_by_one(transfer: Transfer, text: str, where: str, plan: Plan) -> Rows:
    declared = transfer.relation.columns
    wanted = _wanted(transfer)
    rows = []
    for line, fields in _lines(transfer, text, where, max(wanted, default=-1) + 1):
        row: list[Any] = [None] * len(declared)
        for place, i in wanted.items():
            try:
                row[i] = value_of(declared[i], fields[place], plan)
            except ValueError as error:
                raise ShardlogError(
                    f"column `{declared[i].name}` of `{transfer.relation.name}`: "
                    f"expected {error}, found {fields[place]!r}",
                    where=f"{where}:{line}",
                ) from None
        rows.append(tuple(row))
    return rows


def _wanted(transfer: Transfer) -> dict[int, int]:
    """Which field of a line is which column."""
    count, given = len(transfer.relation.columns), transfer.parameters.get("columns", "")
    if not given:
        return {i: i for i in range(count)}
    places = given.split(":")
    if len(set(places)) != count or not all(re.fullmatch(r"[0-9]{1,9}", place) for place in places):
        raise ShardlogError(
            f"`{transfer.relation.name}`: cannot read columns={given!r}",
            where=transfer.where,
            hint=f"expected {count} places of fields, counted from 0, as in 0:2:1",
        )
    return {int(place): i for i, place in enumerate(places)}


def _lines(transfer: Transfer, text: str, where: str, count: int) -> Iterator[tuple[int, list[str]]]:
    """The numbers of lines, and the first ``count`` fields of each."""
    delimiter = transfer.delimiter
    if transfer.rfc4180:
        field: Callable[[str, int, str], tuple[str, int]] = _quoted_field
    else:
        field = _nested_field if "," in delimiter else _plain_field
    at, line = 0, 1
    while at < len(text):
        fields: list[str] = []
        start = at
        try:
            while len(fields) < count:
                value, at = field(text, at, delimiter)
                fields.append(value)
                if at >= len(text) or text[at] == "\n" or text.startswith("\r\n", at):
                    break
                at += len(delimiter)
            if len(fields) < count:
                raise ValueError(f"{count} fields, found {len(fields)}")
        except ValueError as error:
            where = f"{where}:{line + text.count(chr(10), start, at)}"
            raise ShardlogError(f"`{transfer.relation.name}`: expected {error}", where=where) from None
        end = text.find("\n", at)
        at = len(text) if end < 0 else end + 1
        yield line, fields
        line += text.count("\n", start, at)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _plain_field(text: str, at: int, delimiter: str) -> tuple[str, int]:
    line_end = _line_end(text, at)
    end = text.find(delimiter, at, line_end)
    end = line_end if end < 0 else end
    return text[at:end], end


def _nested_field(text: str, at: int, delimiter: str) -> tuple[str, int]:
    """A field in which a delimiter between brackets is none."""
    line_end, depth, end = _line_end(text, at), 0, at
    while end < line_end and (depth or not text.startswith(delimiter, end)):
        depth += {"[": 1, "]": -1}.get(text[end], 0)
        end += 1
        if depth < 0:
            break
    if depth:
        raise ValueError("as many `[` as `]`")
    return text[at:end], end


def _quoted_field(text: str, at: int, delimiter: str) -> tuple[str, int]:
    if not text.startswith('"', at):
        value, end = _plain_field(text, at, delimiter)
        return (value[:-1], end - 1) if value.endswith("\r") and text.startswith("\n", end) else (value, end)
    end = at + 1
    while True:
        end = text.find('"', end)
        if end < 0:
            raise ValueError('a `"` that ends the field')
        if not text.startswith('""', end):
            break
        end += 2
    value = text[at + 1 : end].replace('""', '"')
    end += 1
    if end < len(text) and not text.startswith((delimiter, "\n", "\r\n"), end):
        raise ValueError("a delimiter behind the quoted field")
    return value, end


# ---- JSON -----------------------------------------------------------------------------------------------


def _json(transfer: Transfer, text: str, where: str, plan: Plan) -> Rows:
    try:
        found = json.loads(text)
    except RecursionError:
        raise ShardlogError("it is nested too deeply", where=where) from None
    except ValueError as error:
        raise ShardlogError(f"not JSON: {error}", where=where) from None
    if not isinstance(found, list):
        raise ShardlogError("expected a list of facts", where=where, hint="as in [[1, 2], [2, 3]]")
    rows = []
    for number, fact in enumerate(found):
        try:
            rows.append(_from_json(transfer.relation.columns, fact, plan))
        except ValueError as error:
            place = f"`{transfer.relation.name}`, fact {number}"
            raise ShardlogError(f"{place}: expected {error}", where=where) from None
    return rows


def _from_json(columns: Sequence[Column], fact: Any, plan: Plan) -> tuple[Any, ...]:
    """The values of a list, or of an object with the names of the columns."""
    if isinstance(fact, dict):
        names = [column.name for column in columns]
        if sorted(fact) != sorted(names):
            raise ValueError(f"the keys {', '.join(names)}, found {', '.join(fact)}")
        fact = [fact[name] for name in names]
    if not isinstance(fact, list) or len(fact) != len(columns):
        raise ValueError(f"{len(columns)} values, found {json.dumps(fact)}")
    return tuple(_json_value(column, value, plan) for column, value in zip(columns, fact, strict=True))


def _json_value(column: Column, value: Any, plan: Plan) -> Any:
    if column.type_name in plan.branches:
        return _json_branch(column, value, plan)
    if column.type == "record":
        return None if value is None else _from_json(plan.records[column.type_name], value, plan)
    if column.type == "symbol":
        fits = isinstance(value, str)
    elif column.type == "float":
        fits = isinstance(value, int | float) and not isinstance(value, bool)
    else:
        low, high = (0, 1 << 64) if column.type == "unsigned" else (-(1 << 63), 1 << 63)
        fits = isinstance(value, int) and not isinstance(value, bool) and low <= value < high
    if not fits:
        raise ValueError(f"{EXPECTED[column.type]} for `{column.name}`, found {json.dumps(value)}")
    return float(value) if column.type == "float" else value


def _json_branch(column: Column, value: Any, plan: Plan) -> Any:
    """The value of an algebraic data type: a list of the name of a branch and what it holds."""
    branches = plan.branches[column.type_name]
    if not isinstance(value, list) or not value or value[0] not in branches:
        known = " or ".join(json.dumps(name) for name in branches)
        raise ValueError(f"a list that begins with {known}, found {json.dumps(value)}")
    return (value[0], *_from_json(branches[value[0]].columns, value[1:], plan))


def _needed_for(transfer: Transfer) -> str:
    """What a file that cannot be read is for."""
    name = transfer.relation.name
    return f"the facts of `{name}`, for the directive at {transfer.where}; -F names the folder"


# ---- SQLite ---------------------------------------------------------------------------------------------


def _sqlite(transfer: Transfer, plan: Plan) -> Rows:
    import sqlite3

    columns, path = transfer.relation.columns, str(transfer.path)
    if not Path(path).is_file():
        hint = _needed_for(transfer)
        raise ShardlogError("cannot read: No such file", where=path, hint=hint)
    table = transfer.name.replace('"', '""')
    try:
        with closing(sqlite3.connect(Path(path).absolute().as_uri() + "?mode=ro", uri=True)) as connection:
            found = connection.execute(f'SELECT * FROM "{table}"').fetchall()
    except sqlite3.Error as error:
        raise ShardlogError(f"cannot read `{transfer.name}`: {error}", where=path) from None
    rows = []
    for number, row in enumerate(found):
        if len(row) < len(columns):
            raise ShardlogError(
                f"`{transfer.name}`: expected {len(columns)} columns, found {len(row)}", where=path
            )
        try:
            values = zip(columns, row, strict=False)
            rows.append(tuple(value_of(c, "" if v is None else str(v), plan) for c, v in values))
        except ValueError as error:
            raise ShardlogError(f"`{transfer.name}`, row {number}: expected {error}", where=path) from None
    return rows
