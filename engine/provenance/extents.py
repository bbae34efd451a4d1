"""The relations of a store, searched by columns: no Python object is made of a tuple that nobody asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any

import numpy as np

from ..evaluate.store import NUMERIC, Found, Store, Words
from ..plan.plan import Plan, Relation
from .matching import Row

_FEW = 4  # words of a column for which it is not worth while to group it
_BLOCK = 1024  # rows that are looked at together
_MANY = 4096  # rows with a word, among which another column is worth grouping, too
_SHARE = 32  # a relation is indexed once so many of its tuples come to one search
_NONE = np.empty(0, np.int64)


class StoredExtents:
    """The tuples of relations by name, found by some of their columns, as of the store's last evaluation.

    They are in the order of rounds: those of the store, or, after ``at_height``, of heights.
    """

    def __init__(self, store: Store, plan: Plan) -> None:
        self._store = store
        self._relations = {relation.name: relation for relation in plan.relations}
        self._found: dict[str, _Extent] = {}
        self._ordered: dict[str, _Extent] = {}  # by height
        self._values = _Values(store)

    def at_height(self, found: Mapping[str, Found]) -> None:
        """Take relations in the order of heights."""
        for name, each in found.items():
            self._ordered[name] = extent = self._extent(name, each)
            if extent.count == self._store.count(name):
                self._found[name] = extent

    def matching(self, relation: str, known: Mapping[int, Any]) -> Iterator[Row]:
        """The tuples that have the ``known`` values by column."""
        return self._of(relation).tuples(known, None)

    def before(self, relation: str, known: Mapping[int, Any], round_: int) -> Iterator[Row]:
        """Those that were found before a round."""
        return self._in_rounds(relation).tuples(known, round_)

    def round(self, relation: str, row: Row) -> int | None:
        """The round of a tuple; None where it was not found."""
        extent = self._in_rounds(relation)
        number = extent.number(row)
        return None if number is None else int(extent.starts.searchsorted(number, "right"))

    def holds(self, relation: str, row: Row) -> bool:
        """Whether there is a tuple."""
        return self._of(relation).number(row) is not None

    def at_most(self, relation: str, known: Mapping[int, Any]) -> int:
        """A number that the tuples with the ``known`` values are not above, quickly."""
        return self._of(relation).at_most(known)

    def _in_rounds(self, relation: str) -> _Extent:
        """A relation in the order of heights, where that was taken, or as the store has it."""
        return self._ordered.get(relation) or self._of(relation)

    def _of(self, relation: str) -> _Extent:
        """A relation as the store has it."""
        if relation not in self._found:
            self._found[relation] = self._extent(relation, self._store.found(relation))
        return self._found[relation]

    def _extent(self, relation: str, found: Found) -> _Extent:
        count = len(found[0][0]) if found[0] else self._store.count(relation)
        return _Extent(self._relations[relation], found, count, self._values)


class _Values:
    """What the words of symbols and records stand for."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.texts: list[str] = []
        self.numbers: dict[str, int] = {}

    def text(self, number: int) -> str:
        """The text of a symbol."""
        if number >= len(self.texts):
            self._read()
        return self.texts[number]

    def number(self, text: str) -> int | None:
        """The number of a symbol; None where there is no such text."""
        if text not in self.numbers:
            self._read()
        return self.numbers.get(text)

    def _read(self) -> None:
        for text in self.store.symbols(len(self.texts)):
            self.numbers[text] = len(self.texts)
            self.texts.append(text)


class _Extent:
    """A relation in the order of rounds; ``starts`` are the first tuples of each but the first."""

    def __init__(self, relation: Relation, found: Found, count: int, values: _Values) -> None:
        self.columns, self.starts = found
        self.count = count
        self._relation = relation
        self._values = values
        # Zeros of floats are equal, but have two words.
        self._floats = {i for i, column in enumerate(relation.columns) if column.type == "float"}
        self._groups: dict[int, _Groups] = {}
        self._few: dict[int, dict[int, Words]] = {}
        self._readers = [self._reader(column) for column in range(len(self.columns))]
        self._words: dict[int, dict[Any, int]] = {}  # of records, by column
        self._numbers: dict[Row, int | None] = {}  # of tuples that were asked for
        self._tuples: list[Row] = []
        self._indexes: dict[tuple[int, ...], dict[Any, list[int]]] = {}  # by columns and what these have
        self._searches: dict[tuple[int, ...], int] = {}  # without an index

    def tuples(self, known: Mapping[int, Any], round_: int | None) -> Iterator[Row]:
        """The tuples that may have these values, before a round where one is given."""
        end = self.count
        if round_ is not None and round_ <= len(self.starts):
            end = int(self.starts[round_ - 1]) if round_ > 0 else 0
        if self._floats:
            known = {c: value for c, value in known.items() if c not in self._floats or value != 0}
        if len(known) == len(self.columns):
            row = tuple([known[column] for column in range(len(known))])
            number = self.number(row)
            if number is not None and number < end:
                yield row
            return
        index = self._index(known)
        if index is not None:
            for number in index.get(_key(known), ()):
                if number >= end:
                    return
                yield self._tuples[number]
            return
        rows, readers = self._rows(known), self._readers
        rows = rows[: rows.searchsorted(end)]
        for start in range(0, len(rows), _BLOCK):
            for number in rows[start : start + _BLOCK].tolist():
                yield tuple([read(number) for read in readers])

    def number(self, row: Row) -> int | None:
        """The number of a tuple; None where it is none."""
        if row not in self._numbers:
            rows = self._rows(dict(enumerate(row)))
            self._numbers[row] = int(rows[0]) if len(rows) else None
        return self._numbers[row]

    def at_most(self, known: Mapping[int, Any]) -> int:
        """A number that the tuples with these values are not above."""
        if not known:
            return self.count
        index = self._index(known) if len(known) < len(self.columns) else None
        return len(self._least(known)[0]) if index is None else len(index.get(_key(known), ()))

    def _index(self, known: Mapping[int, Any]) -> dict[Any, list[int]] | None:
        """An index by the columns of some values; None where it would not pay yet."""
        columns = tuple(known)
        if columns in self._indexes or not columns:
            return self._indexes.get(columns)
        self._searches[columns] = searches = self._searches.get(columns, 0) + 1
        if searches * _SHARE < self.count or not self._floats.isdisjoint(columns):
            return None
        if not self._tuples:
            self._tuples = list(zip(*map(self._values_of, range(len(self.columns))), strict=True))
        index: dict[Any, list[int]] = {}
        read = itemgetter(*columns)
        for number, row in enumerate(self._tuples):
            index.setdefault(read(row), []).append(number)
        self._indexes[columns] = index
        return index

    def _rows(self, known: Mapping[int, Any]) -> Words:
        """The numbers of the tuples that have the ``known`` values, ascending."""
        rows, words = self._least(known)
        for column, word in words.items():
            if not len(rows):
                break
            rows = rows[self.columns[column][rows] == word]
        return rows

    def _least(self, known: Mapping[int, Any]) -> tuple[Words, dict[int, int]]:
        """The rows with one of the values, of which there are few, and the words of the others."""
        if not known or not self.count:
            return np.arange(self.count), {}
        words: dict[int, int] = {}
        for column, value in known.items():
            word = self._word(column, value)
            if word is None:
                return _NONE, {}
            words[column] = word
        best, rows = -1, _NONE
        for column in sorted(words, key=lambda column: column not in self._groups):
            if best < 0 or (len(rows) > _MANY):
                found = self._with(column, words[column])
                if best < 0 or len(found) < len(rows):
                    best, rows = column, found
        del words[best]
        return rows, words

    def _with(self, column: int, word: int) -> Words:
        """The rows that have a word in a column: it is looked through for the first few, and grouped then."""
        if column not in self._groups:
            few = self._few.setdefault(column, {})
            if word not in few and len(few) < _FEW:
                few[word] = np.flatnonzero(self.columns[column] == word)
            if word in few:
                return few[word]
            self._groups[column] = _Groups(self.columns[column])
        return self._groups[column].rows(word)

    def _word(self, column: int, value: Any) -> int | None:
        """The word of a value; None where no tuple has it."""
        kind = self._relation.columns[column].type
        if kind == "number":
            return value if isinstance(value, int) and -(1 << 63) <= value < 1 << 63 else None
        if kind == "symbol":
            return self._values.number(value)
        if kind in NUMERIC:
            try:
                return int(np.array(value, NUMERIC[kind]).view(np.int64))
            except (OverflowError, TypeError, ValueError):
                return None
        if column not in self._words:
            distinct = np.unique(self.columns[column])
            values = self._values.store.values(self._relation.name, column, distinct)
            self._words[column] = dict(zip(values, distinct.tolist(), strict=True))
        return self._words[column].get(value)

    def _reader(self, column: int) -> Callable[[int], Any]:
        """What reads the value of a row."""
        words, kind = self.columns[column], self._relation.columns[column].type
        if kind in NUMERIC:
            return words.view(NUMERIC[kind]).item
        if kind == "symbol":
            return lambda row: self._values.text(words.item(row))
        store, name = self._values.store, self._relation.name
        return lambda row: store.values(name, column, words[row : row + 1])[0]

    def _values_of(self, column: int) -> list[Any]:
        """The values of all rows."""
        words, kind = self.columns[column], self._relation.columns[column].type
        if kind in NUMERIC:
            return list(words.view(NUMERIC[kind]).tolist())
        if kind == "symbol":
            return [self._values.text(word) for word in words.tolist()]
        return self._values.store.values(self._relation.name, column, words)


def _key(known: Mapping[int, Any]) -> Any:
    """What an index has for values: one of them, or a tuple."""
    values = tuple(known.values())
    return values if len(values) > 1 else values[0]


class _Groups:
    """The rows of a column by their words."""

    def __init__(self, words: Words) -> None:
        least, most = int(words.min()), int(words.max())
        self._least, self._span = least, most - least + 1
        self._dense = self._span <= 4 * len(words) + _BLOCK
        if self._dense:
            near = words - least
            # Narrow words are sorted in a time that does not depend on how they lie.
            self._rows = np.argsort(near.astype(np.uint16) if self._span <= 1 << 16 else near, kind="stable")
            self._starts = np.concatenate([[0], np.bincount(near, minlength=self._span).cumsum()])
        else:
            self._rows = np.argsort(words, kind="stable")
            self._starts = words[self._rows]

    def rows(self, word: int) -> Words:
        """The rows of a word, ascending."""
        if self._dense:
            near = word - self._least
            if not 0 <= near < self._span:
                return _NONE
            return self._rows[self._starts[near] : self._starts[near + 1]]
        return self._rows[self._starts.searchsorted(word) : self._starts.searchsorted(word, "right")]
