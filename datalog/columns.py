"""Facts from arrays, data frames and Arrow tables: as columns, so that no Python object is made per tuple."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from operator import index
from typing import Any

import numpy as np

from ..engine import Relation
from ..engine.evaluate.facts import real
from ..engine.evaluate.store import NUMERIC, FactColumn, Store
from ..engine.language.diagnostics import EngineError, counted
from ..engine.plan.plan import Column

Array = np.ndarray[Any, Any]
_LARGEST = np.iinfo(np.int64).max
_PIECE = 1 << 16  # tuples that Python holds at once
_EXPECTED = {
    "number": "numbers of 64 bits",
    "unsigned": "unsigned numbers of 64 bits",
    "float": "floats",
    "symbol": "texts",
}


def adding(relation: Relation, facts: object) -> Callable[[Store, int | None], None] | None:
    """A function that adds the facts of a table, which is read now, to a store with so many bytes of memory;
    None where facts are tuples. Raises EngineError if they do not fit."""
    columns = _fitting(relation, facts)
    if columns is None:
        return None
    if any(column.type == "record" for column in relation.columns):
        records = _by_row(columns)
        return lambda store, memory: store.add(relation.name, records, memory)
    converted = [_converted(relation, *pair) for pair in zip(relation.columns, columns, strict=True)]
    if not converted:
        raise EngineError(f"`{relation.name}`: a relation without columns is not filled from a table")
    return lambda store, memory: store.add_columns(relation.name, converted, memory)


def tuples_of(relation: Relation, facts: object) -> Iterator[list[Any]]:
    """Facts that are tuples, many at once. Raises EngineError if they are no such thing."""
    if isinstance(facts, str | bytes) or not isinstance(facts, Iterable):
        raise EngineError(f"`{relation.name}`: expected tuples or a table, found {facts!r}")
    if isinstance(facts, list):
        yield facts
        return
    rows = iter(facts)
    while piece := list(islice(rows, _PIECE)):
        yield piece


def rows_of(relation: Relation, facts: object) -> list[Any]:
    """Facts as tuples. Raises EngineError if they are neither tuples nor a table of so many columns."""
    columns = _fitting(relation, facts)
    return list(chain(*tuples_of(relation, facts))) if columns is None else _by_row(columns)


def _fitting(relation: Relation, facts: object) -> list[Any] | None:
    """The columns of a table, as many as the relation has; None where facts are tuples."""
    columns = _columns(relation, facts)
    if columns is not None and len(columns) != len(relation.columns):
        wanted = counted(len(relation.columns), "column")
        raise EngineError(f"`{relation.name}`: expected {wanted}, found {len(columns)}")
    return columns


def _columns(relation: Relation, facts: Any) -> list[Any] | None:
    """The columns of a table, as NumPy arrays or series of pandas or Arrow; None where facts are tuples."""
    if isinstance(facts, np.ndarray):
        if facts.dtype.names is not None and facts.ndim == 1:
            return [facts[name] for name in facts.dtype.names]
        if facts.ndim == 2:
            return list(facts.T)
        if facts.ndim == 1 and len(relation.columns) == 1 and not _holds_tuples(facts):
            return [facts]
        if facts.ndim == 1 and facts.dtype == object:
            return None
        raise EngineError(
            f"`{relation.name}`: expected an array of shape (tuples, {len(relation.columns)}), "
            f"found one of shape {facts.shape}"
        )
    if hasattr(facts, "iloc"):  # pandas
        return [facts.iloc[:, i] for i in range(len(facts.columns))] if facts.ndim == 2 else [facts]
    if any(hasattr(facts, name) for name in ("to_arrow", "__arrow_c_stream__", "__arrow_c_array__")):
        return _arrow_columns(relation, facts)
    return None


def _arrow_columns(relation: Relation, facts: object) -> list[Any]:
    import pyarrow

    try:
        if hasattr(facts, "to_arrow"):  # polars, duckdb
            facts = facts.to_arrow()
        try:
            return list(pyarrow.table(facts).columns)
        except pyarrow.ArrowInvalid:  # a column by itself, perhaps
            return [pyarrow.chunked_array(facts)]
    except pyarrow.ArrowInvalid as error:
        raise EngineError(f"`{relation.name}`: Arrow cannot read the table: {error}") from None


def _holds_tuples(facts: Array) -> bool:
    return facts.dtype == object and len(facts) > 0 and isinstance(facts[0], tuple | list)


def _converted(relation: Relation, declared: Column, column: object) -> FactColumn:
    def misfit(value: object) -> EngineError:
        return EngineError(
            f"`{relation.name}`, column `{declared.name}`: expected {_EXPECTED[declared.type]}, found {value}"
        )

    coded = _coded(column, misfit)
    if coded is not None:
        codes, texts = coded
        if declared.type != "symbol":
            column = np.array(texts, object)[codes]
        elif not all(isinstance(text, str) for text in texts):
            raise misfit(f"{next(text for text in texts if not isinstance(text, str))!r}")
        else:
            return codes, texts
    if np.ma.is_masked(column):
        raise misfit("a missing value")
    array = _array(column)
    if array.ndim != 1:
        raise misfit(f"arrays of shape {array.shape[1:]}")
    if declared.type == "symbol":
        return _texts(array, misfit)
    if array.dtype == object:
        array = _numbers(array, declared.type, misfit)
    kind = array.dtype.kind
    if declared.type == "float":
        if kind not in "fiub":
            raise misfit(array.dtype)
        return np.ascontiguousarray(array, np.float64)
    if len(array) and kind not in "iub":
        raise misfit(array.dtype)
    if declared.type == "number":
        if kind == "u" and len(array) and array.max() > _LARGEST:
            raise misfit(array.max())
        return np.ascontiguousarray(array, np.int64)
    if kind == "i" and len(array) and array.min() < 0:
        raise misfit(array.min())
    return np.ascontiguousarray(array, np.uint64).view(np.int64)


def _coded(column: Any, misfit: Any) -> tuple[Array, list[Any]] | None:
    """The codes and the categories of a column that has them; Arrow's texts are given some."""
    if hasattr(column, "cat"):  # pandas
        codes = column.cat.codes.to_numpy().astype(np.int64)
        if (codes < 0).any():
            raise misfit("a missing value")
        return codes, list(column.cat.categories)
    if not hasattr(column, "combine_chunks"):
        return None
    import pyarrow

    if column.null_count:
        raise misfit("a missing value")
    kind = column.type
    if pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind):
        column = column.dictionary_encode()
    elif not pyarrow.types.is_dictionary(kind):
        return None
    column = column.unify_dictionaries().combine_chunks()
    if isinstance(column, pyarrow.ChunkedArray):  # of no chunk, or of more than fit one
        column = column.chunk(0) if column.num_chunks else pyarrow.array([], kind).dictionary_encode()
    return column.indices.to_numpy(zero_copy_only=False).astype(np.int64), column.dictionary.to_pylist()


def _array(column: Any) -> Array:
    return np.asarray(column if isinstance(column, np.ndarray) else column.to_numpy())


def _texts(array: Array, misfit: Any) -> list[str]:
    texts = array.tolist()
    for text in texts if array.dtype.kind != "U" else ():
        if not isinstance(text, str):
            raise misfit(f"{text!r}")
    return list(texts)


def _numbers(array: Array, kind: str, misfit: Any) -> Array:
    """Python's numbers as an array of the kind."""
    read: Callable[[Any], float] = real if kind == "float" else index
    result = np.empty(len(array), NUMERIC[kind])
    for i, value in enumerate(array.tolist()):
        try:
            result[i] = read(value)
        except (TypeError, ValueError, OverflowError):
            raise misfit(f"{value!r}") from None
    return result


def _by_row(columns: Iterable[Any]) -> list[tuple[Any, ...]]:
    return list(zip(*map(_objects, columns), strict=True))


def _objects(column: Any) -> list[Any]:
    return list(column.tolist() if hasattr(column, "tolist") else column.to_pylist())
