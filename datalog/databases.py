"""Relations to other engines' databases: DuckDB's files, pyDatalog's memory."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ShardlogError, from_extra
from ..outputs import output

if TYPE_CHECKING:
    from .program import Program


def write_duckdb(program: Program, path: Path, relations: Sequence[str]) -> None:
    """Writes relations as tables to a database, which keeps its other tables. Raises ShardlogError."""
    with from_extra("duckdb", "duckdb"):
        import duckdb
    with output(path) as written:
        if path.is_file() and path.stat().st_size:
            shutil.copyfile(path, written)
        else:
            written.unlink()  # an empty file is no database
        try:
            with duckdb.connect(str(written)) as connection:
                for name in relations:
                    _add_table(connection, program, name)
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise ShardlogError(f"cannot write a database: {reason}", where=str(path)) from None
        written.with_name(f"{written.name}.wal").unlink(missing_ok=True)


def _add_table(connection: Any, program: Program, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    connection.execute(f"DROP TABLE IF EXISTS {quoted}")
    if not program.relations[name].columns:
        connection.execute(f"CREATE TABLE {quoted} (holds BOOLEAN)")
        connection.execute(f"INSERT INTO {quoted} VALUES ({program.count(name) > 0})")
        return
    table = program.table(name)
    texts = [
        f'"{column.name}"::VARCHAR AS "{column.name}"'
        for column in program.relations[name].columns
        if column.type in ("symbol", "record")
    ]
    connection.register("shardlog_relation", table)
    chosen = f"* REPLACE ({', '.join(texts)})" if texts else "*"
    connection.execute(f"CREATE TABLE {quoted} AS SELECT {chosen} FROM shardlog_relation")
    connection.unregister("shardlog_relation")


def give_to_pydatalog(program: Program, *relations: str) -> None:
    """Hands relations, as of the last run, to pyDatalog as facts of predicates of their names. Raises
    ShardlogError where it is not installed, or cannot have a relation."""
    engine = _pydatalog()
    for name in relations:
        rows = program.rows(_predicate(program, name))
        for row in rows:
            engine.assert_fact(name, *row)


def take_from_pydatalog(program: Program, *relations: str) -> None:
    """Adds to relations of a program what pyDatalog knows of the predicates of their names: its facts and
    what its rules give. Raises ShardlogError, and EngineError for what does not fit."""
    engine = _pydatalog()
    for name in relations:
        places = ", ".join(f"X{i}" for i in range(len(program.relations[_predicate(program, name)].columns)))
        try:
            found = engine.ask(f"{name}({places})")
        except AttributeError:  # a predicate of which it knows nothing
            found = None
        if found is not None:
            program.add(name, [tuple(row) for row in found.answers])


def _pydatalog() -> Any:
    with from_extra("pydatalog", "pyDatalog"):
        from pyDatalog import pyDatalog
    return pyDatalog


def _predicate(program: Program, name: str) -> str:
    """A relation that pyDatalog can have: its name is no variable, and it has columns, none of records."""
    columns = program.relation_named(name).columns
    if not re.fullmatch(r"[a-z]\w*", name) or not columns or any(c.type == "record" for c in columns):
        hint = "its name begins with a small letter, it has columns, and none is of records"
        raise ShardlogError(f"pyDatalog cannot have the relation {name}", hint=f"expected of it: {hint}")
    return name
