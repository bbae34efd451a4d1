"""The relations of a store, searched by columns: no Python object is made of a tuple that nobody asks for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, takewhile
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..evaluate.store import NUMERIC, Found, Store, Words
from ..plan.plan import Column, QueryPlan, Relation
from .matching import Row

_FEW = 32  # words of a column for which it is not worth while to group it
_BLOCK = 1024  # rows that are looked at together
_MANY = 4096  # rows with a word, among which another column is worth grouping, too
_SHARE = 32  # a relation is indexed once this many of its tuples are read per search
_NONE = np.empty(0, np.int64)

Numbers: TypeAlias = "Sequence[int] | Words"  # of tuples, ascending


class StoredExtents:
    """The tuples of relations by name, found by some of their columns, as of the store's last evaluation.

    They are in the order of the store's rounds, or, after ``at_height``, in the order of heights.
    """

    def __init__(self, store: Store, plan: QueryPlan) -> None:
        self._store = store
        self._relations = {relation.name: relation for relation in plan.relations}
        self._found: dict[str, Extent] = {}
        self._ordered: dict[str, Extent] = {}  # by height
        self._left: dict[str, Extent] = {}  # of these, the tuples that remain at the end
        self._texts = _Texts(store)

    def at_height(self, answers: Mapping[str, Found], replaced: Container[str]) -> None:
        """Take relations in the order of heights; of those in ``replaced`` also tuples that are gone."""
        for name, each in answers.items():
            self._ordered[name] = self._left[name] = extent = self._extent(name, each)
            if name in replaced and extent.columns:
                left = _among(each, self.extent(name).columns)
                self._left[name] = extent = self._extent(name, left)
            if extent.count == self._store.count(name):
                self._found[name] = extent

    def matching(self, relation: str, given: Mapping[int, Any]) -> Iterator[Row]:
        """The tuples that have the ``given`` values, by column."""
        columns = tuple(sorted(given))
        values = tuple([given[column] for column in columns])
        return self.extent(relation).search(columns, _alone(values)).tuples()

    def extent(self, relation: str, ordered: bool = False, replaced: bool = False) -> Extent:
        """A relation as the store has it; ``ordered``: by height, where that is known; ``replaced``: then
        also with tuples that others have replaced."""
        if ordered and relation in self._ordered:
            return (self._ordered if replaced else self._left)[relation]
        if relation not in self._found:
            starts = self._store.rounds(relation)
            found = self._store.found(relation) if starts is None else ([], starts)
            self._found[relation] = self._extent(relation, found)
        return self._found[relation]

    def round(self, relation: str, row: Row) -> int | None:
        """The round of a tuple; None where it was not found."""
        extent = self.extent(relation, ordered=True, replaced=True)
        number = extent.number(row)
        return None if number is None else bisect_right(extent.starts, number)

    def holds(self, relation: str, row: Row) -> bool:
        """Whether there is a tuple."""
        return self.extent(relation).number(row) is not None

    def _extent(self, relation: str, answer: Found) -> Extent:
        count = len(answer[0][0]) if answer[0] else self._store.count(relation)
        return Extent(self._relations[relation], answer, count, self._texts)


class _Texts:
    """The texts of symbols: few are asked for one by one, many all at once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._known: dict[int, str] = {}

    def text(self, relation: str, column: int, word: int) -> str:
        """The text of a word of a column."""
        text = self._known.get(word)
        return self.texts(relation, column, np.array([word]))[0] if text is None else text

    def texts(self, relation: str, column: int, words: Words) -> list[str]:
        """The texts of some words of a column."""
        wanted, texts = words.tolist(), self._known
        new = [word for word in wanted if word not in texts]
        if len(texts) + len(new) > _MANY and new:
            texts.update(enumerate(self.store.symbols(0)))
        elif new:
            read = self.store.values(relation, column, np.array(new, np.int64))
            texts.update(zip(new, read, strict=True))
        return [texts[word] for word in wanted]


class Hits(NamedTuple):
    """Those among some rows of a relation that have some words by column, and zeros in some columns."""

    extent: Extent
    rows: Numbers
    words: Mapping[int, int] = MappingProxyType({})
    zeros: tuple[int, ...] = ()

    def tuples(self, round_: int | None = None) -> Iterator[Row]:
        """The tuples, or, where a round is given, those before it."""
        extent = self.extent
        end = extent.count
        if round_ is not None and round_ <= len(extent.starts):
            end = extent.starts[round_ - 1] if round_ > 0 else 0
        return map(extent.row, self.numbers(end))

    def numbers(self, end: int) -> Iterator[int]:
        """The numbers of the tuples, ascending, before an end."""
        rows = self.rows
        if isinstance(rows, np.ndarray):
            rows = rows[: rows.searchsorted(end)]
            for column, word in self.words.items():
                rows = rows[self.extent.words(column, rows) == word]
            if len(rows) < _BLOCK:
                return self._exact(iter(rows.tolist()))
            starts = range(0, len(rows), _BLOCK)
            return self._exact(chain.from_iterable(rows[at : at + _BLOCK].tolist() for at in starts))
        numbers = takewhile(end.__gt__, rows)
        return self._exact(filter(self._has, numbers) if self.words else numbers)

    def _exact(self, numbers: Iterator[int]) -> Iterator[int]:
        return filter(self._zero, numbers) if self.zeros else numbers

    def _has(self, number: int) -> bool:
        return all(self.extent.columns[column][number] == word for column, word in self.words.items())

    def _zero(self, number: int) -> bool:
        return all(self.extent.columns[column][number] << 1 == 0 for column in self.zeros)


class Extent:
    """A relation in the order of rounds; ``starts`` are the first tuples of each but the first.

    Where the answer has no columns, the store is asked for the few words that are read; ``columns`` copies
    them all, once many are.
    """

    def __init__(self, relation: Relation, answer: Found, count: int, texts: _Texts) -> None:
        self._loaded = self._fitting(relation, answer[0]) if answer[0] or not relation.columns else None
        self._scans = 0  # of the store
        self.starts = answer[1].tolist()
        self.count = count
        self._relation = relation
        self._texts = texts
        self._every = tuple(range(len(relation.columns)))
        # Zeros of floats are equal, but have two words.
        self._floats = {i for i, column in enumerate(relation.columns) if column.type == "float"}
        self._groups: dict[int, _Groups] = {}
        self._few: dict[int, dict[int, Words]] = {}
        # Of a column's word, by another column: its rows by their words, and how often they were asked for.
        self._parts: dict[tuple[int, int, int], dict[int, list[int]]] = {}
        self._asked: dict[tuple[int, int, int], int] = {}
        self._words: dict[int, dict[Any, int | None]] = {}  # of symbols and records, by column
        self._numbers: dict[Row, int | None] = {}  # of tuples that were asked for
        self._tuples: list[Row] = []
        self._indexes: dict[tuple[int, ...], dict[Any, list[int]]] = {}  # by columns and their values
        self._searches: dict[tuple[int, ...], int] = {}  # without an index

    def search(self, columns: tuple[int, ...], values: Any) -> Hits:
        """The tuples that have some values in some columns, as a tuple, or one of them by itself; no Python
        object is made of any yet."""
        index = self._index(columns)
        if index is not None:
            return Hits(self, index.get(values, ()))
        given = dict(zip(columns, values if len(columns) > 1 else (values,), strict=True)) if columns else {}
        if len(given) < len(self._every) or not given:
            return self._least(given)
        number = self.number(tuple(given.values()))
        return Hits(self, () if number is None else (number,))

    def number(self, row: Row) -> int | None:
        """The number of a tuple; None if it does not exist."""
        if row not in self._numbers:
            index = self._index(self._every)
            given = dict(enumerate(row))
            hits = self._least(given) if index is None else Hits(self, index.get(_alone(row), ()))
            self._numbers[row] = next(hits.numbers(self.count), None)
        return self._numbers[row]

    @staticmethod
    def _fitting(relation: Relation, columns: Sequence[Words]) -> list[Words]:
        """Columns that are read directly may have 32 bits."""
        narrow = [column.type in ("number", "symbol") for column in relation.columns]
        pairs = zip(columns, narrow, strict=True)
        return [words if may_be else words.astype(np.int64, copy=False) for words, may_be in pairs]

    @property
    def name(self) -> str:
        """The name of the relation."""
        return self._relation.name

    @property
    def columns(self) -> list[Words]:
        """All words, column by column."""
        return self.load()

    def load(self) -> list[Words]:
        """Copies the words from the store, where many of them will be read. Returns ``columns``."""
        if self._loaded is None:
            self._loaded = self._fitting(self._relation, self._texts.store.found(self.name)[0])
        return self._loaded

    @property
    def stored(self) -> bool:
        """Whether the words are in the store alone."""
        return self._loaded is None

    def words(self, column: int, numbers: Words) -> Words:
        """The words of some tuples."""
        if self._loaded is None:
            return self._texts.store.words(self.name, column, np.asarray(numbers, np.int64))
        return self._loaded[column][numbers]

    @property
    def declared(self) -> tuple[Column, ...]:
        """The declared columns."""
        return self._relation.columns

    def row(self, number: int) -> Row:
        """The tuple of a number."""
        if self._tuples:
            return self._tuples[number]
        if self._loaded is None:
            return self.rows([self.words(column, np.array([number])) for column in self._every], 1)[0]
        return tuple([read(number) for read in self._readers])

    def rows(self, words: Sequence[Words], count: int) -> list[Row]:
        """So many tuples with these words, column by column."""
        if not words:
            return [()] * count
        return list(zip(*map(self._values_of, self._every, words), strict=True))

    def _index(self, columns: tuple[int, ...]) -> dict[Any, list[int]] | None:
        """An index by some columns; None where it would not pay yet."""
        if columns in self._indexes or not columns:
            return self._indexes.get(columns)
        self._searches[columns] = searches = self._searches.get(columns, 0) + 1
        if searches * _SHARE < self.count or not self._floats.isdisjoint(columns):
            return None
        if not self._tuples:
            self._tuples = self.rows(self.columns, self.count)
        index: dict[Any, list[int]] = {}
        read = itemgetter(*columns)
        for number, row in enumerate(self._tuples):
            index.setdefault(read(row), []).append(number)
        self._indexes[columns] = index
        return index

    def _least(self, given: Mapping[int, Any]) -> Hits:
        """The rows with one of the few given values, and the required values of the other columns."""
        zeros = tuple(c for c in given if c in self._floats and given[c] == 0) if self._floats else ()
        words: dict[int, int] = {}
        for column, value in given.items():
            word = self.word(column, value) if column not in zeros else 0
            if word is None:
                return Hits(self, ())
            words[column] = word
        for column in zeros:  # which have two words
            del words[column]
        if not words or not self.count:
            return Hits(self, range(self.count), {}, zeros)
        if self._loaded is None and not zeros and self._scans < _FEW:
            self._scans += 1
            found = self._texts.store.with_words(self.name, list(words.items()), self.count)
            return Hits(self, found)
        best, rows = -1, _NONE
        for column in sorted(words, key=lambda column: column not in self._groups):
            if best < 0 or (len(rows) > _MANY):
                hits = self._with(column, words[column])
                if best < 0 or len(hits) < len(rows):
                    best, rows = column, hits
        word = words.pop(best)
        for column in words:
            part = self._part((best, word, column), rows)
            if part is not None:
                return Hits(self, part.get(words.pop(column), ()), words, zeros)
        return Hits(self, rows, words, zeros)

    def _part(self, within: tuple[int, int, int], rows: Words) -> dict[int, list[int]] | None:
        """The rows of a column's word by another column; None where they would not pay yet."""
        if within not in self._parts:
            self._asked[within] = asked = self._asked.get(within, 0) + 1
            if asked * _SHARE < len(rows):
                return None
            part = self._parts[within] = {}
            for row, word in zip(rows.tolist(), self.columns[within[2]][rows].tolist(), strict=True):
                part.setdefault(word, []).append(row)
        return self._parts[within]

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

    def word(self, column: int, value: Any) -> int | None:
        """The word of a value; None where no tuple has it."""
        kind = self._relation.columns[column].type
        if kind == "number":
            return value if isinstance(value, int) and -(1 << 63) <= value < 1 << 63 else None
        if kind in NUMERIC:
            try:
                return int(np.array(value, NUMERIC[kind]).view(np.int64))
            except (OverflowError, TypeError, ValueError):
                return None
        words = self._words.setdefault(column, {})
        if value not in words:
            words[value] = self._texts.store.word(self._relation.name, column, value)
        return words[value]

    @cached_property
    def _readers(self) -> list[Callable[[int], Any]]:
        return [self._reader(column) for column in self._every]

    def _reader(self, column: int) -> Callable[[int], Any]:
        """A reader of a row's value."""
        words, kind = self.columns[column], self._relation.columns[column].type
        if kind in NUMERIC:
            return (words if kind == "number" else words.view(NUMERIC[kind])).item
        store, name = self._texts.store, self._relation.name
        if kind == "symbol":
            return lambda row: self._texts.text(name, column, words.item(row))
        return lambda row: store.values(name, column, words[row : row + 1])[0]

    def _values_of(self, column: int, words: Words) -> list[Any]:
        """The values of words of a column."""
        kind = self._relation.columns[column].type
        if kind in NUMERIC:
            return list((words if kind == "number" else words.view(NUMERIC[kind])).tolist())
        if kind == "symbol":
            return self._texts.texts(self._relation.name, column, words)
        return self._texts.store.values(self._relation.name, column, words)


def _among(answer: Found, columns: Sequence[Words]) -> Found:
    """The tuples with these values in these columns."""
    mine, others = (np.stack(each, axis=1).astype(np.int64) for each in (answer[0], columns))
    fields = [("", np.int64)] * len(columns)
    left = np.isin(mine.view(fields).ravel(), others.view(fields).ravel())
    before = np.concatenate([[0], left.cumsum()])
    return [column[left] for column in answer[0]], before[answer[1]]


def _alone(values: Row) -> Any:
    """The value of a tuple that has one; else the tuple."""
    return values[0] if len(values) == 1 else values


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
            self._starts = words[self._rows].astype(np.int64, copy=False)

    def rows(self, word: int) -> Words:
        """The rows of a word, ascending."""
        if self._dense:
            near = word - self._least
            if not 0 <= near < self._span:
                return _NONE
            return self._rows[self._starts[near] : self._starts[near + 1]]
        return self._rows[self._starts.searchsorted(word) : self._starts.searchsorted(word, "right")]
