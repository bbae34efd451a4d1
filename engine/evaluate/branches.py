"""Values of algebraic data types.

Outside they are tuples of a branch's name and its fields, ``("Cons", 1, ("Nil",))``; inside they are records
of the branch's number and slots for the fields of all branches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..language.diagnostics import EngineError, did_you_mean
from ..plan.plan import BranchFields, Column, QueryPlan, Relation
from .facts import DEEPEST, too_deep

_MOST_READ = 10_000  # values that are remembered as users see them
_NOTHING = {"number": 0, "unsigned": 0, "float": 0.0, "symbol": "", "record": None}

Convert = Callable[[Column, Any], Any]


class Branches:
    """The algebraic data types of a plan."""

    def __init__(self, plan: QueryPlan) -> None:
        self._plan = plan
        self._names = {name: list(branches) for name, branches in plan.branches.items()}
        self._holding = _holding(plan)
        self._places = {  # of a relation's columns that hold values of these types
            relation.name: [i for i, c in enumerate(relation.columns) if c.type_name in self._holding]
            for relation in plan.relations
        }
        self._read: dict[tuple[str, Any], Any] = {}  # values as users see them, for many occur often
        # 0.0 and -0.0 are equal, and are to stay apart.
        fields = [field for record in plan.records.values() for field in record]
        self._remembers = not any(field.type == "float" for field in fields)

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
        places = self._places[relation.name]
        if not places:
            return rows
        converted = []
        for row in rows:
            if type(row) is not tuple and (not isinstance(row, Sequence) or isinstance(row, str)):
                converted.append(row)  # reported where facts are checked
                continue
            values = list(row)
            for i in places:
                if i < len(values):
                    values[i] = convert(relation.columns[i], values[i])
            converted.append(tuple(values))
        return converted

    def _inward(self, column: Column, value: Any, levels: int = DEEPEST) -> Any:
        if column.type_name not in self._holding:
            return value
        if not levels:
            raise too_deep()
        parts: list[Any] = list(value) if isinstance(value, tuple | list) else []
        if column.type_name in self._names:
            name, branch = self._branch(column.type_name, value, parts)
            record = [_NOTHING[slot.type] for slot in self._plan.records[column.type_name]]
            record[0] = self._names[column.type_name].index(name)
            fields, slots, parts = branch.columns, branch.slots, parts[1:]
        else:
            fields = self._plan.records[column.type_name]
            if len(parts) != len(fields):
                return value  # nil, or reported where facts are checked
            record, slots = [None] * len(fields), tuple(range(len(fields)))
        for slot, field, part in zip(slots, fields, parts, strict=True):
            record[slot] = self._inward(field, part, levels - 1)
        return tuple(record)

    def _branch(self, kind: str, value: Any, parts: list[Any]) -> tuple[str, BranchFields]:
        """The branch of a value, with the name that it begins with."""
        name = parts[0] if parts and isinstance(parts[0], str) else ""
        branch = self._plan.branches[kind].get(name)
        if branch is None or len(branch.columns) != len(parts) - 1:
            hint = did_you_mean(name, self._names[kind]) if branch is None else ""
            raise EngineError(f"{value!r} is no `{kind}`" + (f"; {hint}" if hint else ""))
        return name, branch

    def _outward(self, column: Column, value: Any) -> Any:
        if not self._remembers:
            return self._read_outward(column, value)
        key = column.type_name, value
        if (outside := self._read.get(key)) is None:
            if len(self._read) >= _MOST_READ:
                self._read.clear()
            outside = self._read[key] = self._read_outward(column, value)
        return outside

    def _read_outward(self, column: Column, value: Any) -> Any:
        if column.type_name not in self._holding or value is None:
            return value
        parts: list[Any] = []
        if column.type_name in self._names:
            name = self._names[column.type_name][value[0]]
            branch = self._plan.branches[column.type_name][name]
            parts.append(name)
            fields, slots = branch.columns, branch.slots
        else:
            fields, slots = self._plan.records[column.type_name], tuple(range(len(value)))
        for field, slot in zip(fields, slots, strict=True):
            parts.append(self._read_outward(field, value[slot]))
        return tuple(parts)


def _holding(plan: QueryPlan) -> set[str]:
    """The types whose values hold values of algebraic data types."""
    types = set(plan.branches)
    while True:
        more = {
            name
            for name, fields in plan.records.items()
            if name not in types and any(field.type_name in types for field in fields)
        }
        if not more:
            return types
        types |= more
