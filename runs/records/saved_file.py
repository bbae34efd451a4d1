"""The file of a saved run: an SQLite database of known tables, with a checksum behind it.

A file is checked once, when it is opened, so that all later readers can trust it. No byte has changed, and
the tables that ``save`` describes are there, not views or triggers.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO
from weakref import finalize

from ...errors import ShardlogError
from .columns import Column, DistinctTexts, numbers_of

APPLICATION = 0x53684C67  # "ShLg", in the header of the file
FORMAT = 8
_RELEASED = {1: "shardlog 0.1"}  # formats that a release wrote and this version does not read
AGAIN = "run it again: shardlog run MODULE --save FILE"
_SQLITE = b"SQLite format 3\0"
_TOLD = 4  # bytes of a cut file that tell it from a program: no module starts with "SQLi"
_CHECKSUM = 4  # bytes, of the CRC-32 of the database
_PART = 1 << 18  # bytes read at a time: few enough to stay in a cache
_MAPPED = 1 << 40  # bytes of the file that are mapped into memory, where SQLite was built for that
_UNPACKED = 1 << 30  # bytes that a packed column may have
_EVERY = 1_000_000  # instructions of SQLite's machine between two looks at how many a query has run
_COLUMNS = """
    run(name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID
    module(data BLOB, options TEXT)
    rule_file(name TEXT, text TEXT)
    rule(number INTEGER PRIMARY KEY, file TEXT, line INTEGER, text TEXT, sentence TEXT, types TEXT)
    plan(data BLOB)
    relation(name TEXT PRIMARY KEY, rows BLOB) WITHOUT ROWID
    mesh(number INTEGER PRIMARY KEY, name TEXT, axes TEXT, devices TEXT)
    atom(number INTEGER PRIMARY KEY, mesh INTEGER, axis TEXT, low INTEGER, high INTEGER)
    stage(number INTEGER PRIMARY KEY, priority INTEGER, level INTEGER, strategy TEXT, turns INTEGER, \
distinct_turns INTEGER, changes INTEGER)
    pass(number INTEGER PRIMARY KEY, stage INTEGER)
    unknown_op(name TEXT, count INTEGER, location TEXT, reason TEXT, stack TEXT)
    column(name TEXT PRIMARY KEY, width TEXT, numbers BLOB) WITHOUT ROWID
    type(number INTEGER PRIMARY KEY, text TEXT, shape TEXT)
    axes(number INTEGER PRIMARY KEY, atoms TEXT)
    sharding(number INTEGER PRIMARY KEY, rows TEXT)
    manual(value INTEGER PRIMARY KEY, axes TEXT)
    roles(number INTEGER PRIMARY KEY, names TEXT)
    op_rows(number INTEGER PRIMARY KEY, rows TEXT)
    known(number INTEGER PRIMARY KEY, facts TEXT)
    content(number INTEGER PRIMARY KEY, facts TEXT)
    annotation(cell INTEGER PRIMARY KEY, value TEXT, location TEXT, sharding TEXT, given_by TEXT, stack TEXT)
    static(number INTEGER PRIMARY KEY, facts TEXT)
    turn(pass INTEGER, class INTEGER, static INTEGER, PRIMARY KEY (class, pass)) WITHOUT ROWID
    needs(number INTEGER PRIMARY KEY, cells TEXT)
    loss(number INTEGER PRIMARY KEY, steps TEXT)
    proof(neighbourhood TEXT PRIMARY KEY, steps TEXT) WITHOUT ROWID
"""
TABLES = tuple(f"CREATE TABLE {table.strip()}" for table in _COLUMNS.strip().splitlines())


def is_saved(path: Path) -> bool:
    """Whether a file is a saved run, or was one before it was damaged."""
    try:
        if not path.is_file():  # what comes from a pipe can be read only once
            return False
        with path.open("rb") as file:
            start = file.read(len(_SQLITE))
            return len(start) >= _TOLD and _SQLITE.startswith(start)
    except OSError:
        return False


def seal(path: Path) -> None:
    """Puts the checksum behind a database."""
    with path.open("r+b") as file:
        size = _size(file.read(100))
        checksum = _checksum(file, size)
        file.truncate(size)
        file.write(checksum)


def _checksum(file: BinaryIO, size: int) -> bytes:
    """The checksum of the first ``size`` bytes, after which the file then stands."""
    file.seek(0)
    checksum = 0
    for start in range(0, size, _PART):
        checksum = zlib.crc32(file.read(min(_PART, size - start)), checksum)
    return checksum.to_bytes(_CHECKSUM)


def _size(header: bytes) -> int:
    """The bytes of the database with this header."""
    pages, page = int.from_bytes(header[28:32]), int.from_bytes(header[16:18])
    return pages * (page if page > 1 else 65536)


class _Columns(dict[str, Column]):
    """Columns of numbers by name, each read when it is asked for."""

    def __init__(self, rows: _Rows) -> None:
        super().__init__()
        self._all = rows.all

    def __missing__(self, name: str) -> Column:
        rows = self._all("SELECT width, numbers FROM column WHERE name = ?", name)
        if not rows:
            raise KeyError(name)
        self[name] = column = numbers_of(*rows[0])
        return column


def _damaged(path: Path, why: object) -> ShardlogError:
    message = f"the file is damaged: {why}"
    return ShardlogError(message, where=str(path), hint=f"copy it again, or {AGAIN}")


class _Steps:
    """Says when a query takes more steps than any query over all rows."""

    def __init__(self, most: int) -> None:
        self.taken, self._most = 0, most

    def __call__(self) -> bool:
        self.taken += 1
        return self.taken > self._most


class _Rows:
    """The rows of a file, which is closed with the object: nothing that it holds refers to it."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        # Whose bytes are known needs no locks, and no journal beside it is read.
        uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        self._database = sqlite3.connect(uri, uri=True, check_same_thread=False)  # any may close it
        finalize(self, self._database.close)
        self._database.execute(f"PRAGMA mmap_size = {_MAPPED}")
        self._steps = _Steps(10 + 8 * size // _EVERY)
        self._database.set_progress_handler(self._steps, _EVERY)

    def all(self, query: str, *arguments: object) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        self._steps.taken = 0
        try:
            return self._database.execute(query, arguments).fetchall()
        except OverflowError:  # of a number that is asked for: none in the file is as large
            return []
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise _damaged(self._path, error) from error


class Database:
    """The tables of a saved run. Raises ShardlogError where a file keeps none that this version can read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                self._check(file, size)
        except OSError as error:
            raise ShardlogError(f"cannot read the run: {error.strerror}", where=str(path)) from error
        self._rows = _Rows(path, size)
        self.columns = _Columns(self._rows)
        statements = self.all("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
        if statements != [(statement,) for statement in TABLES]:
            raise self.damaged("it has other tables than a saved run")

    def _check(self, file: BinaryIO, length: int) -> None:
        def wrong(message: str, hint: str = AGAIN) -> ShardlogError:
            return ShardlogError(message, where=str(self.path), hint=hint)

        header = file.read(100)
        if not header.startswith(_SQLITE[: max(length, _TOLD)]):
            raise wrong("this is not a saved run")
        if len(header) == 100:
            if int.from_bytes(header[68:72]) != APPLICATION:
                raise wrong("this SQLite database is not a saved run")
            if (version := int.from_bytes(header[60:64])) != FORMAT:
                by = f" of {_RELEASED[version]}" if version in _RELEASED else ""
                reads = f"this version of shardlog reads format {FORMAT}"
                raise wrong(f"the run is saved in format {version}{by}, {reads}")
        size = _size(header)
        if len(header) < 100 or length < size + _CHECKSUM:
            raise wrong("the file is cut short", f"copy it again, or {AGAIN}")
        self.checksum = _checksum(file, size)
        if self.checksum != file.read():
            raise self.damaged("its checksum is another one")

    def damaged(self, why: object) -> ShardlogError:
        """The error for a file that is not as it was written."""
        return _damaged(self.path, why)

    def all(self, query: str, *arguments: object) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return self._rows.all(query, *arguments)

    @cached_property
    def texts(self) -> DistinctTexts:
        """The texts that columns refer to."""
        ((data,),) = self.all("SELECT numbers FROM column WHERE name = 'text'")
        return DistinctTexts(self.columns["text.end"], data)

    def unpacked(self, data: bytes) -> bytes:
        """A column that was packed with zlib."""
        unpacking = zlib.decompressobj()
        try:
            text = unpacking.decompress(data, _UNPACKED)
        except (zlib.error, TypeError) as error:
            raise self.damaged(error) from error
        if not unpacking.eof:
            raise self.damaged(f"a column has more than {_UNPACKED >> 20} MiB unpacked")
        return text
