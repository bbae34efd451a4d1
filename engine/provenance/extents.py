"""The relations of a store, searched by columns: no Python object is made of a tuple that nobody asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..evaluate.store import Store, Words
from ..plan.plan import Plan, Relation
from .matching import Row

_FLOATS = {"float": np.float64, "unsigned": np.uint64, "number": np.int64}


class StoredExtents:
    """The tuples of relations by name, found by some of their columns, as of the store's last evaluation."""

    def __init__(self, store: Store, plan: Plan) -> None:
        self._store = store
        self._relations = {relation.name: relation for relation in plan.relations}
        self._columns: dict[str, list[Words]] = {}
        self._sorted: dict[tuple[str, int], tuple[Words, Words]] = {}  # words in order, and their rows
        self._rounds: dict[str, Words] = {}
        self._symbols: list[str] = []
        self._numbers: dict[str, int] = {}  # of symbols
        self._values: dict[tuple[str, int], dict[Any, int]] = {}  # of records

    def matching(self, relation: str, known: Mapping[int, Any]) -> Iterator[Row]:
        """The tuples that have the ``known`` values by column, sorted."""
        return (self._row(relation, row) for row in self._rows(relation, known))

    def before(self, relation: str, known: Mapping[int, Any], round_: int) -> Iterator[Row]:
        """Those that were found before a round."""
        if relation not in self._rounds:
            self._rounds[relation] = self._store.rounds(relation)
        rounds = self._rounds[relation]
        return (self._row(relation, row) for row in self._rows(relation, known) if rounds[row] < round_)

    def round(self, relation: str, row: Row) -> int | None:
        """The round in which a tuple was found; None where it was not."""
        rows = self._rows(relation, dict(enumerate(row)))
        if not len(rows):
            return None
        next(self.before(relation, dict(enumerate(row)), 0), None)
        return int(self._rounds[relation][rows[0]])

    def at_most(self, relation: str, known: Mapping[int, Any]) -> int:
        """A number that the tuples with the ``known`` values are not above, quickly."""
        least = self._count(relation)
        for column, value in known.items():
            start, end, _ = self._range(relation, column, value)
            least = min(least, end - start)
        return least

    def _count(self, relation: str) -> int:
        columns = self._of(relation)
        return len(columns[0]) if columns else self._store.count(relation)

    def _of(self, relation: str) -> list[Words]:
        if relation not in self._columns:
            self._columns[relation] = self._store.columns(relation)
        return self._columns[relation]

    def _rows(self, relation: str, known: Mapping[int, Any]) -> Words:
        """The numbers of the tuples that have the ``known`` values."""
        columns = self._of(relation)
        if not known:
            return np.arange(self._count(relation))
        ranges = {column: self._range(relation, column, value) for column, value in known.items()}
        least = min(ranges, key=lambda column: ranges[column][1] - ranges[column][0])
        start, end, _ = ranges[least]
        rows = self._sorted[relation, least][1][start:end]
        for column, (_, _, word) in ranges.items():
            if column != least and len(rows):
                rows = rows[columns[column][rows] == word]
        return np.sort(rows)

    def _range(self, relation: str, column: int, value: Any) -> tuple[int, int, int]:
        """Where the words of a value stand among those of a column, in order, and the word."""
        key = (relation, column)
        if key not in self._sorted:
            words = self._of(relation)[column]
            rows = np.argsort(words, kind="stable")
            self._sorted[key] = (words[rows], rows)
        word = self._word(self._relations[relation], column, value)
        if word is None:
            return 0, 0, 0
        words = self._sorted[key][0]
        return int(np.searchsorted(words, word)), int(np.searchsorted(words, word, "right")), word

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
            words = np.unique(self._of(relation.name)[column])
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
            zip(self._relations[relation].columns, self._of(relation), strict=True)
        ):
            if column.type in _FLOATS:
                values.append(words[row : row + 1].view(_FLOATS[column.type])[0].item())
            elif column.type == "symbol":
                values.append(self._text(int(words[row])))
            else:
                values += self._store.values(relation, i, words[row : row + 1])
        return tuple(values)
