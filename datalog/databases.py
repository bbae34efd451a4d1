"""Relations as tables of a DuckDB database."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ShardlogError, from_extra
from ..outputs import output

if TYPE_CHECKING:
    import pyarrow

    from ..engine import Relation


def write_duckdb(path: Path, relations: Iterable[tuple[Relation, pyarrow.Table | bool]]) -> None:
    """Writes relations as tables to a database, which keeps its other tables; of one without columns it is
    told whether it holds. Raises ShardlogError."""
    with from_extra("duckdb", "duckdb"):
        import duckdb
    with output(path) as written:
        if path.is_file() and path.stat().st_size:
            shutil.copyfile(path, written)
        else:
            written.unlink()  # an empty file is no database
        try:
            with duckdb.connect(str(written)) as connection:
                for relation, table in relations:
                    _add_table(connection, relation, table)
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise ShardlogError(f"cannot write a database: {reason}", where=str(path)) from None
        written.with_name(f"{written.name}.wal").unlink(missing_ok=True)


def _add_table(connection: Any, relation: Relation, table: pyarrow.Table | bool) -> None:
    quoted = '"' + relation.name.replace('"', '""') + '"'
    connection.execute(f"DROP TABLE IF EXISTS {quoted}")
    if isinstance(table, bool):
        connection.execute(f"CREATE TABLE {quoted} (holds BOOLEAN)")
        connection.execute(f"INSERT INTO {quoted} VALUES ({table})")
        return
    texts = [
        f'"{column.name}"::VARCHAR AS "{column.name}"'
        for column in relation.columns
        if column.type in ("symbol", "record")
    ]
    connection.register("shardlog_relation", table)
    chosen = f"* REPLACE ({', '.join(texts)})" if texts else "*"
    connection.execute(f"CREATE TABLE {quoted} AS SELECT {chosen} FROM shardlog_relation")
    connection.unregister("shardlog_relation")
