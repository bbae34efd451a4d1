"""Relations as NumPy arrays and Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine import Relation
from ..engine.evaluate.store import NUMERIC, Store, Words
from ..engine.plan.plan import QueryPlan
from ..errors import ShardlogError, from_extra
from .values import text_of

if TYPE_CHECKING:
    import pyarrow

Array = np.ndarray[Any, Any]
Symbols = Callable[[], Array]


def from_rows(relation: Relation, rows: Sequence[Sequence[Any]]) -> Array:
    """Tuples as a structured array."""
    columns = list(zip(*rows, strict=True))
    fields = [(column.name, NUMERIC.get(column.type, object)) for column in relation.columns]
    result = np.empty(len(columns[0]) if columns else len(rows), fields)
    for column, values in zip(relation.columns, columns, strict=False):
        result[column.name] = objects(values) if column.type not in NUMERIC else values
    return result


def structured(relation: Relation, store: Store, symbols: Symbols) -> Array:
    """The tuples of a relation as a structured array."""
    fields = [(column.name, NUMERIC.get(column.type, object)) for column in relation.columns]
    columns = store.columns(relation.name)
    result = np.empty(store.count(relation.name), fields)
    for i, (column, words) in enumerate(zip(relation.columns, columns, strict=True)):
        result[column.name] = (
            symbols()[words] if column.type == "symbol" else values(relation, i, store, words)
        )
    return result


def values(relation: Relation, column: int, store: Store, words: Words) -> Array:
    """The values that words stand for in a column that is not of symbols."""
    kind = relation.columns[column].type
    if kind in NUMERIC:
        return words.view(NUMERIC[kind])
    numbers, distinct = _distinct(relation, column, store, words)
    return objects(distinct)[numbers]


def arrow(relation: Relation, store: Store, symbols: Symbols, plan: QueryPlan) -> pyarrow.Table:
    """The tuples of a relation as an Arrow table."""
    with from_extra("arrow", "pyarrow"):
        import pyarrow
    arrays = []
    for i, (column, words) in enumerate(zip(relation.columns, store.columns(relation.name), strict=True)):
        if column.type in NUMERIC:
            arrays.append(pyarrow.array(words.view(NUMERIC[column.type])))
            continue
        if column.type == "symbol":
            numbers, texts = _used(words, symbols())
        else:
            numbers, values = _distinct(relation, i, store, words)
            texts = objects([text_of(column, value, plan) for value in values])
        numbers = pyarrow.array(numbers.astype(np.int32))
        arrays.append(pyarrow.DictionaryArray.from_arrays(numbers, pyarrow.array(texts, pyarrow.string())))
    if not arrays:
        raise ShardlogError(f"{relation.name} has no columns, so it is not a table", hint="ask for its count")
    return pyarrow.table(arrays, names=[column.name for column in relation.columns])


def objects(values: Iterable[Any]) -> Array:
    """An array of any objects."""
    values = list(values)
    result = np.empty(len(values), object)
    result[:] = values
    return result


def _distinct(relation: Relation, column: int, store: Store, words: Words) -> tuple[Array, list[Any]]:
    """The distinct values of a column, and for each tuple the number of its own."""
    distinct, numbers = np.unique(words, return_inverse=True)
    return numbers, store.values(relation.name, column, distinct)


def _used(words: Words, symbols: Array) -> tuple[Array, Array]:
    """The symbols that words stand for, and the numbers of the words in these."""
    if len(symbols) <= len(words):
        return words, symbols
    distinct, numbers = np.unique(words, return_inverse=True)
    return numbers, symbols[distinct]
