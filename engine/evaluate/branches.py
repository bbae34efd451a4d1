"""Values of algebraic data types.

Outside they are tuples of a branch's name and its fields, ``("Cons", 1, ("Nil",))``; inside they are records
of the branch's number and slots for the fields of all branches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..language.diagnostics import EngineError, did_you_mean
from ..plan.plan import Column, Plan, Relation

_NOTHING = {"number": 0, "unsigned": 0, "float": 0.0, "symbol": "", "record": None}

Convert = Callable[[Column, Any], Any]


class Branches:
    """The algebraic data types of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._names = {name: list(branches) for name, branches in plan.branches.items()}
        self._holding = _holding(plan)

    def inward(self, relation: Relation, rows: Iterable[Any]) -> Iterable[Any]:
        """Rows as the evaluators take them. Raises EngineError for a value of no branch."""
        return self._converted(relation, rows, self._inward)

    def outward(self, relation: Relation, rows: Iterable[Any]) -> Iterable[Any]:
        """Rows as users see them."""
        return self._converted(relation, rows, self._outward)

    def outside(self, column: Column, value: Any) -> Any:
        """A value of a column as users see it."""
        return self._outward(column, value)

    def _converted(self, relation: Relation, rows: Iterable[Any], convert: Convert) -> Iterable[Any]:
        places = [i for i, column in enumerate(relation.columns) if column.type_name in self._holding]
        if not places:
            return rows
        found = []
        for row in rows:
            values = list(row)
            for i in places:
                if i < len(values):
                    values[i] = convert(relation.columns[i], values[i])
            found.append(tuple(values))
        return found

    def _inward(self, column: Column, value: Any) -> Any:
        if column.type_name not in self._holding or value is None or not isinstance(value, Sequence):
            return value
        if column.type_name not in self._names:
            return self._record(column, value, self._inward)
        branches = self._plan.branches[column.type_name]
        name = value[0] if value else ""
        branch = branches.get(name)
        if branch is None or len(branch.columns) != len(value) - 1:
            hint = did_you_mean(str(name), branches)
            raise EngineError(f"{value!r} is no `{column.type_name}`" + (f"; {hint}" if hint else ""))
        record = [_NOTHING[slot.type] for slot in self._plan.records[column.type_name]]
        record[0] = self._names[column.type_name].index(name)
        for slot, field, part in zip(branch.slots, branch.columns, value[1:], strict=True):
            record[slot] = self._inward(field, part)
        return tuple(record)

    def _outward(self, column: Column, value: Any) -> Any:
        if column.type_name not in self._holding or value is None:
            return value
        if column.type_name not in self._names:
            return self._record(column, value, self._outward)
        name = self._names[column.type_name][value[0]]
        branch = self._plan.branches[column.type_name][name]
        fields = zip(branch.columns, branch.slots, strict=True)
        return (name, *(self._outward(field, value[slot]) for field, slot in fields))

    def _record(self, column: Column, value: Any, convert: Convert) -> Any:
        fields = self._plan.records[column.type_name]
        if len(fields) != len(value):
            return value  # reported where facts are checked
        return tuple(convert(field, part) for field, part in zip(fields, value, strict=True))


def _holding(plan: Plan) -> set[str]:
    """The types whose values hold values of algebraic data types."""
    found = set(plan.branches)
    while True:
        more = {
            name
            for name, fields in plan.records.items()
            if name not in found and any(field.type_name in found for field in fields)
        }
        if not more:
            return found
        found |= more
