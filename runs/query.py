"""Questions about a run, asked as the body of a rule over its relations."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any

from ..engine import DatalogError
from ..engine.evaluate.query import load_query, mentions
from ..errors import ShardlogError, closest
from ..exporters.schema import SCHEMA, declarations
from ..markup import html_table
from ..rulebook.book import LIMITS
from .table import table

QUERY_LIMITS = replace(LIMITS, tuples=10_000_000)
# The relations of a run by name. Rows whose first column is none of those given may be left out.
Relation = Callable[[str, Collection[str | int] | None], list[tuple[Any, ...]]]

# The relation that has all there is of a column; others have it themselves.
_ALL = {"v": ("value", 0), "m": ("mesh_axis", 0), "x": ("mesh_axis", 1)}
_KINDS = {"why": ["replicated", "unreduced"], "reduction": ["sum", "max", "min"]}
_SUB_AXIS = re.compile(r"(.*):\((\d{1,18})\)(\d{1,18})", re.DOTALL)  # as in x:(1)2
_NUMBER = re.compile(r"(\d+)")


class Query:
    """The body of a rule over the relations of ``docs/facts.md``.

    Raises DatalogError where the body is not right.
    """

    def __init__(self, body: str) -> None:
        if not body.strip():
            hint = "expected the body of a rule, as in 'argument(v, i), value(v, t)'"
            raise ShardlogError("the query is empty", where="query", hint=hint)
        try:
            self._program = load_query(body, declarations())
        except DatalogError as error:
            raise DatalogError(
                replace(d, hint=closest(d.message.split("`")[1], SCHEMA))
                if d.hint.startswith("declare it")
                else d
                for d in error.diagnostics
            ) from None
        self._mentions = mentions(body)
        self._names = [column.name for column in self._program.relations["answer"].columns]

    def run(self, relation: Relation, limits: str = "") -> Rows:
        """The solutions.

        ``relation`` returns the relations of a run (``RunRecord.relation``). ``limits`` changes
        ``QUERY_LIMITS``.
        """
        firsts = self._mentions.firsts
        facts = {name: relation(name, firsts.get(name)) for name in sorted(self._mentions.relations)}
        answers = self._program.evaluate(facts, limits=QUERY_LIMITS.changed(limits))["answer"]
        rows = Rows(sorted(answers, key=_natural))
        rows.names = tuple(self._names)
        return rows

    def warnings(self, relation: Relation) -> Iterator[str]:
        """Warnings about symbols in the query that cannot occur where they stand."""
        for name, column, symbol in self._mentions.symbols:
            variable, _ = SCHEMA[name][column]
            home, at = _ALL.get(variable, (name, column))
            axis, given = symbol, None
            if variable == "x" and (part := _SUB_AXIS.fullmatch(symbol)):
                axis, given = part[1], part
            if variable in _KINDS:
                symbols = set(_KINDS[variable])
            else:
                symbols = {row[at] for row in relation(home, None if at else [axis])}
            if axis not in symbols:
                if variable not in _KINDS and not at:
                    symbols = {row[at] for row in relation(home, None)}
                yield f'no {variable} of {name} is "{symbol}": {closest(axis, sorted(symbols, key=_natural))}'
            elif given:
                sizes = {size for _, of, size in relation("mesh_axis", None) if of == axis}
                first, count = int(given[2]), int(given[3])
                if not any(first * count and size % (first * count) == 0 and count < size for size in sizes):
                    whole = " or ".join(map(str, sorted(sizes)))
                    yield f'no {variable} of {name} is "{symbol}": "{axis}" has size {whole}'


class Rows(tuple[tuple[Any, ...], ...]):
    """The solutions of a query, which show as a table: the values of the variables ``names``.

    They are sorted, numbers in names as numbers: ``%arg2`` before ``%arg10``.
    """

    names: tuple[str, ...]

    def __repr__(self) -> str:
        return table(self.names, self) if self.names else ("yes" if self else "no")

    def _repr_html_(self) -> str:
        return html_table(self.names, self) if self.names else repr(self)


def rows(body: str, relation: Relation) -> Rows:
    """The solutions of a query, which warns of symbols that cannot occur; raises as ``Query``."""
    query = Query(body)
    for message in query.warnings(relation):
        warnings.warn(message, stacklevel=3)
    return query.run(relation)


def _natural(row: Any) -> list[Any]:
    """A key that sorts the numbers in names as numbers."""
    key: list[Any] = []
    for value in (row,) if isinstance(row, str) else row:
        parts = _NUMBER.split(value) if isinstance(value, str) else [value]
        key.append([int(part) if i % 2 else part for i, part in enumerate(parts)])
    return key
