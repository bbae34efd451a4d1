"""Relations to files, as Soufflé writes them: lines of fields, JSON, SQLite, and the standard output."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any, cast

from ..engine import Relation
from ..engine.evaluate.store import Store
from ..engine.plan.plan import Column, QueryPlan
from ..errors import ShardlogError
from ..outputs import output
from .databases import refuse_same
from .directives import Transfer
from .values import float_text, text_of

if TYPE_CHECKING:
    from .tables import Symbols

_ROWS = 1 << 14  # whose text is in memory at once
_PIECE = 1 << 16  # characters that are copied at once
_PRINTED = 1 << 24  # bytes; more text for standard output waits in a file


def write(transfers: Sequence[Transfer], store: Store, symbols: Symbols, plan: QueryPlan) -> None:
    """Writes the outputs of directives: first files, and then those to standard output, all or none. Raises
    ShardlogError if one cannot be written."""
    files: dict[Path, list[Transfer]] = {}
    for transfer in transfers:
        if transfer.path is not None:
            files.setdefault(transfer.path, []).append(transfer)
    for path, several in files.items():
        refuse_same((transfer.name for transfer in several if transfer.kind == "sqlite"), str(path))
    with SpooledTemporaryFile(_PRINTED, "w+", encoding="utf-8", newline="") as printed:
        with ExitStack() as stack:
            for path, several in files.items():
                _make_folder(path)
                written = stack.enter_context(output(path))
                databases = [transfer for transfer in several if transfer.kind == "sqlite"]
                if databases and path.is_file():
                    shutil.copyfile(path, written)  # other tables stay
                for transfer in databases:
                    _to_sqlite(transfer, written, store, plan)
                for transfer in several[-1:] if not databases else ():
                    with _opened(written, compressed=_compressed(transfer)) as file:
                        for piece in _text(transfer, store, symbols, plan):
                            file.write(piece)
            for transfer in transfers:
                for piece in _text(transfer, store, symbols, plan) if transfer.path is None else ():
                    printed.write(piece.decode())
        printed.seek(0)
        shutil.copyfileobj(printed, sys.stdout, _PIECE)


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "Not a directory" if isinstance(error, FileExistsError) else error.strerror
        raise ShardlogError(f"cannot write: {reason}", where=str(path.parent)) from None


@contextmanager
def _opened(path: Path, *, compressed: bool) -> Iterator[IO[bytes]]:
    """The file to write to. Compressed bytes are the same each time: they have no name and no time."""
    with path.open("wb") as file:
        if not compressed:
            yield file
            return
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as inside:
            yield cast(IO[bytes], inside)


def _compressed(transfer: Transfer) -> bool:
    return transfer.kind == "file" and "compress" in transfer.parameters


def _text(transfer: Transfer, store: Store, symbols: Symbols, plan: QueryPlan) -> Iterator[bytes]:
    """The output of a relation in UTF-8, piece by piece."""
    if transfer.kind == "stdoutprintsize":
        yield f"{transfer.name}\t{store.count(transfer.relation.name)}\n".encode()
    elif transfer.kind in ("json", "jsonfile"):
        for piece in _to_json(transfer, store, plan):
            yield piece.encode()
    elif transfer.kind == "stdout":
        yield f"---------------\n{transfer.name}\n".encode()
        if transfer.headers:
            yield f"{_header(transfer)}\n".encode()
        yield b"===============\n"
        yield from _to_lines(transfer, store, symbols, plan)
        yield b"===============\n"
    else:
        if transfer.headers:
            yield f"{_header(transfer)}\n".encode()
        yield from _to_lines(transfer, store, symbols, plan)


def _header(transfer: Transfer) -> str:
    names = [column.name for column in transfer.relation.columns]
    return transfer.parameters.get("attributeNames") or transfer.delimiter.join(names)


# ---- Lines of fields ------------------------------------------------------------------------------------


def _to_lines(transfer: Transfer, store: Store, symbols: Symbols, plan: QueryPlan) -> Iterator[bytes]:
    relation = transfer.relation
    if not relation.columns:
        yield b"()\n" * store.count(relation.name)
        return
    pieces = store.lines(relation.name, transfer.delimiter, transfer.rfc4180)
    if pieces is not None:
        yield from pieces
        return
    columns = store.columns(relation.name)
    for start in range(0, len(columns[0]), _ROWS):
        fields = [
            _fields(transfer, relation, i, words[start : start + _ROWS], store, symbols, plan)
            for i, words in enumerate(columns)
        ]
        lines = map(transfer.delimiter.join, zip(*fields, strict=True))
        yield ("\n".join(lines) + "\n").encode()


def _fields(
    transfer: Transfer,
    relation: Relation,
    column: int,
    words: Any,
    store: Store,
    symbols: Symbols,
    plan: QueryPlan,
) -> list[str]:
    from . import tables

    declared = relation.columns[column]
    if declared.type == "symbol":
        texts = symbols()
        if transfer.rfc4180:
            texts = tables.objects(map(_quoted, texts.tolist()))
        return list(texts[words].tolist())
    values = tables.values(relation, column, store, words)
    if declared.type == "float":
        return list(map(float_text, values.tolist()))
    if declared.type != "record":
        return list(map(str, values.tolist()))
    inside: Callable[[str], str] = _escaped if transfer.rfc4180 else str
    fields = [text_of(declared, value, plan, inside) for value in values.tolist()]
    return list(map(_quoted, fields)) if transfer.rfc4180 else fields


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _escaped(symbol: str) -> str:
    """A symbol inside of a record, as Soufflé reads it."""
    return '"' + symbol.replace("\\", "\\\\").replace('"', '\\"') + '"'


# ---- JSON -----------------------------------------------------------------------------------------------


def _to_json(transfer: Transfer, store: Store, plan: QueryPlan) -> Iterator[str]:
    named = transfer.parameters.get("format") == "object"
    columns = transfer.relation.columns
    rows = store.rows(transfer.relation.name)
    if not columns:
        yield "[" + "null\n" * len(rows) + "]\n"
        return
    yield "[" + ",\n".join(_json_row(columns, row, plan, named) for row in rows) + "]\n"


def _json_row(
    columns: Sequence[Column], row: Sequence[Any], plan: QueryPlan, named: bool, branch: str | None = None
) -> str:
    """A list, which begins with the name of a branch where it is the value of one, or an object."""
    parts = [] if branch is None else [json.dumps(branch)]
    for column, value in zip(columns, row, strict=True):
        if column.type_name in plan.branches:
            fields = plan.branches[column.type_name][value[0]].columns
            parts.append(_json_row(fields, value[1:], plan, named, value[0]))
        elif column.type == "record" and value is not None:
            parts.append(_json_row(plan.records[column.type_name], value, plan, named))
        elif column.type == "float" and value == value // 1 and abs(value) < 1e15 and str(value) != "-0.0":
            parts.append(str(int(value)))
        else:
            parts.append(json.dumps(value, ensure_ascii=False))
    if not named or branch is not None:
        return f"[{', '.join(parts)}]"
    pairs = zip(columns, parts, strict=True)
    return f"{{{', '.join(f'{json.dumps(c.name)}: {part}' for c, part in pairs)}}}"


# ---- SQLite ---------------------------------------------------------------------------------------------

_TYPES = {"number": "INTEGER", "unsigned": "INTEGER", "float": "REAL"}


def _to_sqlite(transfer: Transfer, path: Path, store: Store, plan: QueryPlan) -> None:
    """Writes a table with numbers, its symbols by number, and a view of it with the symbols themselves."""
    import sqlite3

    columns, rows = transfer.relation.columns, store.rows(transfer.relation.name)
    if not columns:
        raise ShardlogError(f"`{transfer.name}` has no columns, so it is not a table", where=transfer.where)
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = MEMORY")
            connection.execute("BEGIN")
            _create(connection, transfer.name, columns)
            texts = {i for i, column in enumerate(columns) if column.type not in _TYPES}
            numbers = _symbol_numbers(connection, columns, rows, texts, plan)
            table, places = _name(f"_{transfer.name}"), ", ".join("?" * len(columns))
            connection.executemany(
                f"INSERT INTO {table} VALUES ({places})",
                (
                    [
                        numbers[text_of(c, v, plan, _escaped)] if i in texts else _signed(v)
                        for i, (c, v) in enumerate(zip(columns, row, strict=True))
                    ]
                    for row in rows
                ),
            )
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise ShardlogError(f"cannot write `{transfer.name}`: {error}", where=str(transfer.path)) from None


def _create(connection: Any, name: str, columns: Sequence[Column]) -> None:
    table, view = _name(f"_{name}"), _name(name)
    places = [_name(str(i)) for i in range(len(columns))]
    kinds = (_TYPES.get(column.type, "INTEGER") for column in columns)
    declared = ", ".join(f"{place} {kind}" for place, kind in zip(places, kinds, strict=True))
    shown, joined = [], [table]
    for i, (place, column) in enumerate(zip(places, columns, strict=True)):
        if column.type in _TYPES:
            shown.append(f"{table}.{place} AS {_name(column.name)}")
        else:
            symbols = _name(f"_symtab_{i}")
            shown.append(f"{symbols}.symbol AS {_name(column.name)}")
            joined.append(f"JOIN __SymbolTable AS {symbols} ON {table}.{place} = {symbols}.id")
    connection.execute(f"DROP VIEW IF EXISTS {view}")
    connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute(f"CREATE TABLE {table} ({declared})")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS __SymbolTable (id INTEGER PRIMARY KEY, symbol TEXT UNIQUE)"
    )
    connection.execute(f"CREATE VIEW {view} AS SELECT {', '.join(shown)} FROM {' '.join(joined)}")


def _symbol_numbers(
    connection: Any, columns: Sequence[Column], rows: Sequence[Any], texts: set[int], plan: QueryPlan
) -> dict[str, int]:
    """The numbers of the texts in some columns, which are added to the table of symbols."""
    if not texts:
        return {}
    wanted = dict.fromkeys(text_of(columns[i], row[i], plan, _escaped) for row in rows for i in sorted(texts))
    connection.executemany(
        "INSERT OR IGNORE INTO __SymbolTable (symbol) VALUES (?)", ((text,) for text in wanted)
    )
    return {symbol: number for number, symbol in connection.execute("SELECT id, symbol FROM __SymbolTable")}


def _signed(value: object) -> Any:
    """A number that SQLite can hold: unsigned ones as their bits."""
    return value - (1 << 64) if isinstance(value, int) and value >= 1 << 63 else value


def _name(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
