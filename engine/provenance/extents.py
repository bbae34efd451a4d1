"""The relations of a store, searched by columns: no Python object is made of a tuple that nobody asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..evaluate.store import Store, Words
from ..plan.plan import Plan, Relation
from .matching import Row

_FEW = 16  # words of a column for which it is not worth while to sort it
_NONE = np.empty(0, np.int64)
_FLOATS = {"float": np.float64, "unsigned": np.uint64, "number": np.int64}


class StoredExtents:
    """The tuples of relations by name, found by some of their columns, as of the store's last evaluation."""

    def __init__(self, store: Store, plan: Plan) -> None:
        self._store = store
        self._relations = {relation.name: relation for relation in plan.relations}
        self._found: dict[str, tuple[list[Words], Words]] = {}
        self._sorted: dict[tuple[str, int], tuple[Words, Words]] = {}  # words in order, and their rows
        self._scanned: dict[tuple[str, int], dict[int, Words]] = {}  # the rows of a few words
        self._symbols: list[str] = []
        self._numbers: dict[str, int] = {}  # of symbols
        self._values: dict[tuple[str, int], dict[Any, int]] = {}  # of records

    def matching(self, relation: str, known: Mapping[int, Any]) -> Iterator[Row]:
        """The tuples that have the ``known`` values by column, in the order in which they were found."""
        return (self._row(relation, row) for row in self._rows(relation, known))

    def before(self, relation: str, known: Mapping[int, Any], round_: int) -> Iterator[Row]:
        """Those that were found before a round."""
        rows = self._rows(relation, known)
        early = rows[: np.searchsorted(rows, self._first(relation, round_))]
        return (self._row(relation, row) for row in early)

    def round(self, relation: str, row: Row) -> int | None:
        """The round in which a tuple was found; None where it was not."""
        rows = self._rows(relation, dict(enumerate(row)))
        return int(np.searchsorted(self._of(relation)[1], rows[0], "right")) if len(rows) else None

    def _first(self, relation: str, round_: int) -> int:
        """The number of the first tuple of a round."""
        rounds = self._of(relation)[1]
        if not round_:
            return 0
        return int(rounds[round_ - 1]) if round_ <= len(rounds) else self._count(relation)

    def at_most(self, relation: str, known: Mapping[int, Any]) -> int:
        """A number that the tuples with the ``known`` values are not above, quickly."""
        least = self._count(relation)
        for column, value in known.items():
            least = min(least, len(self._with(relation, column, value)[0]))
        return least

    def _count(self, relation: str) -> int:
        columns, _ = self._of(relation)
        return len(columns[0]) if columns else self._store.count(relation)

    def _of(self, relation: str) -> tuple[list[Words], Words]:
        if relation not in self._found:
            self._found[relation] = self._store.found(relation)
        return self._found[relation]

    def _rows(self, relation: str, known: Mapping[int, Any]) -> Words:
        """The numbers of the tuples that have the ``known`` values."""
        if not known:
            return np.arange(self._count(relation))
        columns, _ = self._of(relation)
        found = {column: self._with(relation, column, value) for column, value in known.items()}
        least = min(found, key=lambda column: len(found[column][0]))
        rows = found[least][0]
        for column, (_, word) in found.items():
            if column != least and len(rows):
                rows = rows[columns[column][rows] == word]
        return rows

    def _with(self, relation: str, column: int, value: Any) -> tuple[Words, int]:
        """The numbers of the tuples that have a value in a column, ascending, and its word: the column is
        looked through for the first few words, and sorted for more."""
        key, word = (relation, column), self._word(self._relations[relation], column, value)
        if word is None:
            return _NONE, 0
        words = self._of(relation)[0][column]
        scanned = self._scanned.setdefault(key, {})
        if word not in scanned and len(scanned) < _FEW:
            scanned[word] = np.flatnonzero(words == word)
        if word in scanned:
            return scanned[word], word
        if key not in self._sorted:
            order = np.argsort(words, kind="stable")
            self._sorted[key] = (words[order], order)
        ordered, rows = self._sorted[key]
        return rows[np.searchsorted(ordered, word) : np.searchsorted(ordered, word, "right")], word

    def _word(self, relation: Relation, column: int, value: Any) -> int | None:
        """The word of a value; None where no tuple has it."""
        kind = relation.columns[column].type
        if kind in _FLOATS:
            try:
                return int(np.array(value, _FLOATS[kind]).view(np.int64))
            except (OverflowError, TypeError, ValueError):
                return None
        if kind == "symbol":
            if value not in self._numbers:
                self._read_symbols()
            return self._numbers.get(value)
        key = (relation.name, column)
        if key not in self._values:
            words = np.unique(self._of(relation.name)[0][column])
            values = self._store.values(relation.name, column, words)
            self._values[key] = dict(zip(values, map(int, words), strict=True))
        return self._values[key].get(value)

    def _text(self, number: int) -> str:
        if number >= len(self._symbols):
            self._read_symbols()
        return self._symbols[number]

    def _read_symbols(self) -> None:
        for symbol in self._store.symbols(len(self._symbols)):
            self._numbers[symbol] = len(self._symbols)
            self._symbols.append(symbol)

    def _row(self, relation: str, row: int) -> Row:
        values: list[Any] = []
        for i, (column, words) in enumerate(
            zip(self._relations[relation].columns, self._of(relation)[0], strict=True)
        ):
            if column.type in _FLOATS:
                values.append(words[row : row + 1].view(_FLOATS[column.type])[0].item())
            elif column.type == "symbol":
                values.append(self._text(int(words[row])))
            else:
                values += self._store.values(relation, i, words[row : row + 1])
        return tuple(values)
