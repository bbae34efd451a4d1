"""Facts from arrays, data frames and Arrow tables: as columns, so that no Python object is made per tuple."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

import numpy as np

from ..engine import Relation
from ..engine.evaluate.store import FactColumn, Store
from ..engine.language.diagnostics import EngineError, counted
from ..engine.plan.plan import Column

Array = np.ndarray[Any, Any]
_LARGEST = np.iinfo(np.int64).max
_EXPECTED = {
    "number": "numbers of 64 bits",
    "unsigned": "unsigned numbers of 64 bits",
    "float": "floats",
    "symbol": "texts",
}


def added(store: Store, relation: Relation, facts: Any) -> None:
    """Adds facts to a store. Raises EngineError where they do not fit."""
    columns = _columns(relation, facts)
    if columns is None:
        if isinstance(facts, str | bytes) or not isinstance(facts, Iterable):
            raise EngineError(f"`{relation.name}`: expected tuples or a table, found {facts!r}")
        store.add(relation.name, facts if isinstance(facts, list) else list(facts))
        return
    if len(columns) != len(relation.columns):
        wanted = counted(len(relation.columns), "column")
        raise EngineError(f"`{relation.name}`: expected {wanted}, found {len(columns)}")
    if any(column.type == "record" for column in relation.columns):
        store.add(relation.name, list(zip(*map(_objects, columns), strict=True)))
        return
    converted = [_converted(relation, *pair) for pair in zip(relation.columns, columns, strict=True)]
    if not converted:
        raise EngineError(f"`{relation.name}`: a relation without columns is not filled from a table")
    store.add_columns(relation.name, converted)


def _columns(relation: Relation, facts: Any) -> list[Any] | None:
    """The columns of a table, as NumPy arrays or series of pandas or Arrow; None where facts are tuples."""
    if isinstance(facts, np.ndarray):
        if facts.dtype.names is not None:
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
    if hasattr(facts, "iloc") and hasattr(facts, "columns"):  # pandas
        return [facts.iloc[:, i] for i in range(len(facts.columns))]
    if hasattr(facts, "to_arrow"):  # polars, duckdb
        facts = facts.to_arrow()
    if hasattr(facts, "__arrow_c_stream__") or hasattr(facts, "__arrow_c_array__"):
        import pyarrow

        return list(pyarrow.table(facts).columns)
    return None


def _holds_tuples(facts: Array) -> bool:
    return facts.dtype == object and len(facts) > 0 and isinstance(facts[0], tuple | list)


def _converted(relation: Relation, declared: Column, column: Any) -> FactColumn:
    def misfit(found: object) -> EngineError:
        return EngineError(
            f"`{relation.name}`, column `{declared.name}`: expected {_EXPECTED[declared.type]}, found {found}"
        )

    coded = _coded(column, misfit)
    if coded is not None:
        codes, texts = coded
        if declared.type != "symbol":
            column = np.asarray(texts)[codes] if texts else np.empty(0, np.int64)
        elif not all(isinstance(text, str) for text in texts):
            raise misfit(f"{next(text for text in texts if not isinstance(text, str))!r}")
        else:
            return codes, texts
    array = _array(column)
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
    return column if isinstance(column, np.ndarray) else np.asarray(column.to_numpy())


def _texts(array: Array, misfit: Any) -> list[str]:
    texts = array.tolist()
    for text in texts if array.dtype.kind != "U" else ():
        if not isinstance(text, str):
            raise misfit(f"{text!r}")
    return list(texts)


def _numbers(array: Array, kind: str, misfit: Any) -> Array:
    """Python's numbers as an array of the kind."""
    values: Sequence[Any] = array.tolist()
    try:
        if kind == "float":
            return np.array([float(value + 0.0) for value in values], np.float64)
        return np.array(list(map(index, values)), np.int64 if kind == "number" else np.uint64)
    except (TypeError, OverflowError):
        raise misfit("others") from None


def _objects(column: Any) -> list[Any]:
    return list(column.tolist() if hasattr(column, "tolist") else column.to_pylist())
