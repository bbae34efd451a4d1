"""Relations as tables of a DuckDB database."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ShardlogError, from_extra
from ..outputs import output

if TYPE_CHECKING:
    import pyarrow

    from ..engine import Relation


def write_duckdb(
    path: Path, relations: Sequence[Relation], table_of: Callable[[Relation], pyarrow.Table | bool]
) -> None:
    """Writes relations as tables to a database, which keeps its other tables; of one without columns it is
    told whether it holds. Raises ShardlogError."""
    with from_extra("duckdb", "duckdb"):
        import duckdb
    refuse_same((relation.name for relation in relations), str(path))
    for relation in relations:
        refuse_same((column.name for column in relation.columns), f"{path}: {relation.name}")
    with output(path) as written:
        if path.is_file() and path.stat().st_size:
            shutil.copyfile(path, written)
        else:
            written.unlink()  # an empty file is no database
        try:
            with duckdb.connect(str(written)) as connection:
                for relation in relations:
                    _add_table(connection, relation, table_of(relation))
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise ShardlogError(f"cannot write a database: {reason}", where=str(path)) from None
        written.with_name(f"{written.name}.wal").unlink(missing_ok=True)


def refuse_same(names: Iterable[str], where: str) -> None:
    """Raises ShardlogError where two names differ in capitals alone: databases take them for one."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise ShardlogError(f"a database takes `{other}` and `{name}` for one name", where=where)


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
