"""Questions about a run, asked as the body of a rule over its relations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..engine import DatalogError, load_query
from ..errors import ShardlogError, closest
from .relations import SCHEMA, declarations

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
