"""Questions about a run, asked as the body of a rule over its relations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..engine import DatalogError, load_query
from ..errors import ShardlogError, closest
from .relations import SCHEMA, declarations
from .table import html_table, table

if TYPE_CHECKING:
    from ..api import Result


class Query:
    """The body of a rule over the relations of ``docs/facts.md``; ``names`` are its variables.

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
        self.names = [column.name for column in self._program.relations["answer"].columns]

    def run(self, result: Result) -> list[tuple[Any, ...]]:
        """The solutions, sorted: the values of the variables in the order of ``names``."""
        return self._program.evaluate(result.facts)["answer"]


class Rows(tuple[tuple[Any, ...], ...]):
    """The solutions of a query, which show as a table: the values of the variables ``names``, sorted."""

    names: tuple[str, ...]

    def __repr__(self) -> str:
        return table(self.names, self) if self.names else ("yes" if self else "no")

    def _repr_html_(self) -> str:
        return html_table(self.names, self) if self.names else repr(self)


def rows(body: str, result: Result) -> Rows:
    """The solutions of a query; raises as ``Query``."""
    query = Query(body)
    found = Rows(query.run(result))
    found.names = tuple(query.names)
    return found
