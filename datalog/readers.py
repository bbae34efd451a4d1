"""Facts from files, as Soufflé reads them: lines of fields, JSON, SQLite."""

from __future__ import annotations

import codecs
import gzip
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from io import SEEK_END, BytesIO
from pathlib import Path
from typing import IO, Any, cast
from zlib import error as zlib_error

from ..engine.evaluate.store import Store
from ..engine.language.diagnostics import EngineError
from ..engine.language.sources import BYTE_ORDER_MARK
from ..engine.plan.plan import Column, QueryPlan
from ..errors import ShardlogError
from .directives import Transfer
from .values import EXPECTED, value_of

Rows = list[tuple[Any, ...]]
_GZIP = b"\x1f\x8b"
_PIECE = 1 << 22  # bytes of lines that are read at once


def read(store: Store, transfer: Transfer, plan: QueryPlan, memory: int | None = None) -> None:
    """Adds to a store, with so many bytes of memory, the facts that a directive asks for. Raises
    ShardlogError."""
    where = "<stdin>" if transfer.path is None else str(transfer.path)
    try:
        if transfer.kind == "sqlite":
            store.add(transfer.relation.name, _sqlite(transfer, where, plan), memory)
            return
        with _opened(transfer, where) as file:
            if transfer.kind in ("json", "jsonfile"):
                store.add(transfer.relation.name, _json(transfer, _text(file, where), where, plan), memory)
            elif not _lines_at_once(store, transfer, file, memory):
                file.seek(0)
                rows = _one_by_one(transfer, _text(file, where), where, plan)
                store.add(transfer.relation.name, rows, memory)
    except EngineError as error:  # requirements of facts of any kind
        raise ShardlogError(str(error), where=where) from None


@contextmanager
def _opened(transfer: Transfer, where: str) -> Iterator[IO[bytes]]:
    """The bytes of a file or of standard input, decompressed, to be read from any place. Reading may fail
    too."""
    try:
        with BytesIO(sys.stdin.buffer.read()) if transfer.path is None else transfer.path.open("rb") as file:
            compressed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            yield cast(IO[bytes], gzip.GzipFile(fileobj=file)) if compressed else file
    except (EOFError, zlib_error, gzip.BadGzipFile) as error:
        raise ShardlogError(f"cannot be decompressed: {error}", where=where) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        hint = _needed_for(transfer)
        raise ShardlogError(f"cannot read: {reason}", where=where, hint=hint) from None


def _text(file: IO[bytes], where: str) -> str:
    """The text of a file."""
    try:
        return file.read().decode().removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ShardlogError("not UTF-8", where=f"{where}:{line}", hint="expected text in UTF-8") from None


# ---- Lines of fields ------------------------------------------------------------------------------------


def _lines_at_once(store: Store, transfer: Transfer, file: IO[bytes], memory: int | None) -> bool:
    """Adds the facts of lines without a Python object for each. False, and none are added, if there may be
    records or mistakes, whose place is found line by line."""
    if "columns" in transfer.parameters:
        return False
    first = file.readline().removeprefix(codecs.BOM_UTF8)
    if _has_header(transfer):
        try:
            first.decode()
        except UnicodeDecodeError:
            return False
        first = b""
    pieces, size = _pieces(first, file), None
    if not isinstance(file, gzip.GzipFile):
        place = file.tell()
        size = file.seek(0, SEEK_END)
        file.seek(place)
    name, delimiter, quoted = transfer.relation.name, transfer.delimiter, transfer.rfc4180
    return store.add_lines(name, delimiter, quoted, pieces, size, memory)


def _pieces(first: bytes, file: IO[bytes]) -> Iterator[bytes]:
    """The lines with facts, many at once, after the ``first``."""
    yield first
    while piece := file.read(_PIECE):
        yield piece + file.readline()


def _has_header(transfer: Transfer) -> bool:
    return transfer.headers and transfer.kind == "file"


def _one_by_one(transfer: Transfer, text: str, where: str, plan: QueryPlan) -> Rows:
    declared = transfer.relation.columns
    wanted = _wanted(transfer)
    header = _has_header(transfer)
    if header:
        text = text.partition("\n")[2]
    if text.endswith("\r"):
        text += "\n"  # a line ends so at the end of a file, too
    if "\r" in text and not transfer.rfc4180:
        text = text.replace("\r\n", "\n")
    rows = []
    first, count = 1 + header, max(wanted, default=-1) + 1
    for line, fields in _lines(transfer, text, where, first, count):
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


def _lines(
    transfer: Transfer, text: str, where: str, first: int, count: int
) -> Iterator[tuple[int, list[str]]]:
    """The numbers of lines from ``first`` on, and the first ``count`` fields of each."""
    delimiter = transfer.delimiter
    if transfer.rfc4180:
        field: Callable[[str, int, str], tuple[str, int]] = _quoted_field
    else:
        field = _nested_field if "," in delimiter else _plain_field
    at, line = 0, first
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
    """A field in which delimiters between brackets do not count."""
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
        raise ValueError("a delimiter after the quoted field")
    return value, end


# ---- JSON -----------------------------------------------------------------------------------------------


def _json(transfer: Transfer, text: str, where: str, plan: QueryPlan) -> Rows:
    try:
        return _json_rows(transfer, json.loads(text), where, plan)
    except RecursionError:
        raise ShardlogError("it is nested too deeply", where=where) from None
    except ValueError as error:
        reason = str(error) if isinstance(error, json.JSONDecodeError) else "a number has too many digits"
        raise ShardlogError(f"not JSON: {reason}", where=where) from None


def _json_rows(transfer: Transfer, facts: object, where: str, plan: QueryPlan) -> Rows:
    if not isinstance(facts, list):
        raise ShardlogError("expected a list of facts", where=where, hint="as in [[1, 2], [2, 3]]")
    rows = []
    for number, fact in enumerate(facts):
        try:
            # Of a relation without columns a fact is written as null.
            empty = fact is None and not transfer.relation.columns
            rows.append(() if empty else _from_json(transfer.relation.columns, fact, plan))
        except ValueError as error:
            place = f"`{transfer.relation.name}`, fact {number}"
            raise ShardlogError(f"{place}: expected {error}", where=where) from None
    return rows


def _from_json(columns: Sequence[Column], fact: object, plan: QueryPlan) -> tuple[Any, ...]:
    """The values of a list, or of an object with the names of the columns."""
    if isinstance(fact, dict):
        names = [column.name for column in columns]
        if sorted(fact) != sorted(names):
            raise ValueError(f"the keys {', '.join(names)}, found {', '.join(fact)}")
        fact = [fact[name] for name in names]
    if not isinstance(fact, list) or len(fact) != len(columns):
        raise ValueError(f"{len(columns)} values, found {json.dumps(fact)}")
    values: list[Any] = []
    for column, value in zip(columns, fact, strict=True):
        if column.type_name in plan.branches:
            fields = _fields_of_branch(column, value, plan)
            values.append((value[0], *_from_json(fields, value[1:], plan)))
        elif column.type == "record":
            fields = plan.records[column.type_name]
            values.append(None if value is None else _from_json(fields, value, plan))
        else:
            values.append(_scalar(column, value))
    return tuple(values)


def _scalar(column: Column, value: object) -> Any:
    """The value of a column that is not of records."""
    if column.type == "symbol":
        if isinstance(value, str):
            return value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if column.type == "float":
            with suppress(OverflowError):
                return float(value)
        low, high = (0, 1 << 64) if column.type == "unsigned" else (-(1 << 63), 1 << 63)
        if isinstance(value, int) and low <= value < high:
            return value
    raise ValueError(f"{EXPECTED[column.type]} for `{column.name}`, found {json.dumps(value)}")


def _fields_of_branch(column: Column, value: object, plan: QueryPlan) -> Sequence[Column]:
    """The expected fields after the name of a branch."""
    branches = plan.branches[column.type_name]
    if isinstance(value, list) and value and isinstance(value[0], str) and value[0] in branches:
        return branches[value[0]].columns
    names = " or ".join(json.dumps(name) for name in branches)
    raise ValueError(f"a list that begins with {names}, found {json.dumps(value)}")


def _needed_for(transfer: Transfer) -> str:
    """The purpose of a file that cannot be read."""
    name = transfer.relation.name
    return f"the facts of `{name}`, for the directive at {transfer.where}; -F names the folder"


# ---- SQLite ---------------------------------------------------------------------------------------------


def _sqlite(transfer: Transfer, path: str, plan: QueryPlan) -> Rows:
    import sqlite3

    columns = transfer.relation.columns
    if not Path(path).is_file():
        hint = _needed_for(transfer)
        raise ShardlogError("cannot read: No such file", where=path, hint=hint)
    table = transfer.name.replace('"', '""')
    try:
        with closing(sqlite3.connect(Path(path).absolute().as_uri() + "?mode=ro", uri=True)) as connection:
            cursor = connection.execute(f'SELECT * FROM "{table}"')
            width, facts = len(cursor.description), cursor.fetchall()
    except sqlite3.Error as error:
        raise ShardlogError(f"cannot read `{transfer.name}`: {error}", where=path) from None
    if width < len(columns):
        message = f"`{transfer.name}`: expected {len(columns)} columns, found {width}"
        raise ShardlogError(message, where=path)
    rows = []
    for number, row in enumerate(facts):
        values: list[Any] = []
        try:
            for column, value in zip(columns, row, strict=False):
                values.append(_stored(column, value, plan))
        except ValueError as error:
            place = f"column `{column.name}` of `{transfer.name}`, row {number}"
            raise ShardlogError(f"{place}: expected {error}, found {value!r}", where=path) from None
        rows.append(tuple(values))
    return rows


def _stored(column: Column, value: object, plan: QueryPlan) -> Any:
    """The value of a column that a database has: it holds no NaN, and unsigned numbers as their bits."""
    if value is None and column.type == "float":
        return float("nan")
    if column.type == "unsigned" and isinstance(value, int) and -(1 << 63) <= value < 0:
        return value + (1 << 64)
    if isinstance(value, bytes):
        raise ValueError(EXPECTED[column.type])
    return value_of(column, "" if value is None else str(value), plan)
