"""Values as Soufflé writes them, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..engine.analysis.types import plan_type
from ..engine.evaluate import facts
from ..engine.evaluate.branches import Branches
from ..engine.language.diagnostics import EngineError, unknown_relation
from ..engine.language.printing import literal_text
from ..engine.language.syntax import Literal
from ..engine.plan.plan import BranchFields, Column, Plan, Relation

_DEEPEST = 500  # records in one another: the engine takes no deeper ones

_NUMBER = re.compile(r"\s*[+-]?[0-9]+")
_UNSIGNED = re.compile(r"0x[0-9a-fA-F]+|0b[01]+|\s*\+?[0-9]+")
_FLOAT = re.compile(
    r"\s*[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)", re.IGNORECASE
)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_NAME = re.compile(r"[\w?.]+")
_BARE = re.compile(r"[^,\])]*")
EXPECTED = {**facts.EXPECTED, "record": "a record, as in [1, [a, nil]]"}


# ---- To text --------------------------------------------------------------------------------------------


def text_of(column: Column, value: Any, plan: Plan, symbol: Callable[[str], str] = str) -> str:
    """A value of a column as Soufflé writes it to a file, with ``symbol`` for symbols inside of records."""
    if column.type == "record":
        if value is None:
            return "nil"
        if column.type_name in plan.branches:
            name, *parts = value
            columns = plan.branches[column.type_name][name].columns
            pairs = zip(columns, parts, strict=True)
            inside = ", ".join(_inner(field, part, plan, symbol) for field, part in pairs)
            return f"${name}({inside})" if parts else f"${name}"
        fields = zip(plan.records[column.type_name], value, strict=True)
        return f"[{', '.join(_inner(field, part, plan, symbol) for field, part in fields)}]"
    return float_text(value) if column.type == "float" else str(value)


def _inner(column: Column, value: Any, plan: Plan, symbol: Callable[[str], str]) -> str:
    return symbol(value) if column.type == "symbol" else text_of(column, value, plan, symbol)


def float_text(value: float) -> str:
    """A float with 17 digits, as C++ streams write it."""
    return f"{value:.17g}"


def fact_text(relation: Relation, row: Sequence[Any], plan: Plan) -> str:
    """A tuple as in a program."""
    columns = zip(relation.columns, row, strict=True)
    return f"{relation.name}({', '.join(_inner(column, value, plan, _quoted) for column, value in columns)})"


def _quoted(symbol: str) -> str:
    return json.dumps(symbol, ensure_ascii=False)


class Texts:
    """Facts and values that the evaluators have, as texts that a program has."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._branches = plan, Branches(plan)
        self._relations = {relation.name: relation for relation in plan.relations}
        self._integral = {  # relations whose values are integers
            relation.name
            for relation in plan.relations
            if all(column.type in ("number", "unsigned") for column in relation.columns)
        }

    def fact(self, name: str, row: tuple[Any, ...]) -> str:
        """A tuple of a relation, as in ``path(5, 1)``."""
        if name in self._integral:
            return f"{name}({', '.join(map(str, row))})"
        relation = self._relations[name]
        (outside,) = self._branches.outward(relation, [row])
        return fact_text(relation, outside, self._plan)

    def literal(self, literal: Literal, kinds: Mapping[str, str], values: Mapping[str, Any]) -> str:
        """A literal with the values of its variables, of which ``kinds`` has the kinds."""
        return literal_text(
            literal, {name: self._value(kinds, name, value) for name, value in values.items()}
        )

    def _value(self, kinds: Mapping[str, str], name: str, value: Any) -> str:
        if name not in kinds:
            return str(value)
        column = Column(name, plan_type(kinds[name]), kinds[name])
        return _inner(column, self._branches.outside(column, value), self._plan, _quoted)


# ---- From text ------------------------------------------------------------------------------------------


def value_of(column: Column, text: str, plan: Plan) -> Any:
    """The value of a column that a text stands for. Raises ValueError, which says what was expected."""
    if column.type == "symbol":
        return text
    try:
        value, end = _value_at(column, text, 0, plan, 0)
    except OverflowError:
        raise ValueError(EXPECTED[column.type]) from None
    if end != len(text):
        raise ValueError(EXPECTED[column.type])
    return value


def _value_at(column: Column, text: str, at: int, plan: Plan, depth: int) -> tuple[Any, int]:
    """The value that begins at a place of a text, and where it ends."""
    if column.type == "symbol":
        if quoted := _QUOTED.match(text, at):
            return re.sub(r"\\(.)", r"\1", quoted[1], flags=re.DOTALL), quoted.end()
        bare = _BARE.match(text, at)
        assert bare is not None
        return bare[0], bare.end()
    if column.type == "record":
        return _record_at(column, text, at, plan, depth)
    read = {"number": _number, "unsigned": _unsigned, "float": _float}[column.type]
    return read(text, at)


def _record_at(column: Column, text: str, at: int, plan: Plan, depth: int) -> tuple[Any, int]:
    if depth > _DEEPEST:
        raise ValueError(f"a record of at most {_DEEPEST} levels")
    at = _past_space(text, at)
    branches = plan.branches.get(column.type_name)
    if branches is not None:
        return _branch_at(branches, text, at, plan, depth)
    if text.startswith("nil", at):
        return None, at + 3
    return _parts_at(plan.records[column.type_name], "[]", text, at, plan, depth)


def _branch_at(
    branches: Mapping[str, BranchFields], text: str, at: int, plan: Plan, depth: int
) -> tuple[Any, int]:
    at = _past(text, at, "$")
    found = _NAME.match(text, at)
    if not found or found[0] not in branches:
        raise ValueError(f"one of {', '.join(f'${name}' for name in branches)}")
    columns = branches[found[0]].columns
    if not columns and not text.startswith("(", _past_space(text, found.end())):
        return (found[0],), found.end()
    parts, at = _parts_at(columns, "()", text, found.end(), plan, depth)
    return (found[0], *parts), at


def _parts_at(
    columns: Sequence[Column], brackets: str, text: str, at: int, plan: Plan, depth: int
) -> tuple[tuple[Any, ...], int]:
    at = _past(text, at, brackets[0])
    values: list[Any] = []
    for i, field in enumerate(columns):
        if i:
            at = _past(text, at, ",")
        value, at = _value_at(field, text, _past_space(text, at), plan, depth + 1)
        values.append(value)
    return tuple(values), _past(text, at, brackets[1])


def _number(text: str, at: int) -> tuple[int, int]:
    found = _NUMBER.match(text, at)
    if not found or not -(1 << 63) <= int(found[0]) < 1 << 63:
        raise ValueError(EXPECTED["number"])
    return int(found[0]), found.end()


def _unsigned(text: str, at: int) -> tuple[int, int]:
    found = _UNSIGNED.match(text, at)
    if not found:
        raise ValueError(EXPECTED["unsigned"])
    base = {"0x": 16, "0b": 2}.get(found[0][:2], 10)
    value = int(found[0], base)
    if value >= 1 << 64:
        raise ValueError(EXPECTED["unsigned"])
    return value, found.end()


def _float(text: str, at: int) -> tuple[float, int]:
    found = _FLOAT.match(text, at)
    if not found:
        raise ValueError(EXPECTED["float"])
    return float(found[0]), found.end()


def _past_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _past(text: str, at: int, character: str) -> int:
    at = _past_space(text, at)
    if not text.startswith(character, at):
        raise ValueError(
            f"`{character}`" + (f" before `{text[at:][:20]}`" if at < len(text) else " at the end")
        )
    return at + 1


_FACT = re.compile(r"\s*([\w?.]+)\s*\(")


def fact_of(text: str, plan: Plan) -> tuple[Relation, tuple[Any, ...]]:
    """The relation and the tuple of a fact, as in ``path(1, "a")``; texts without blanks need no quotes.
    Raises EngineError."""
    found = _FACT.match(text)
    relations = {relation.name: relation for relation in plan.relations if "@" not in relation.name}
    if not found:
        raise EngineError(f"cannot read the fact {text!r}; expected one as in path(1, 5)")
    if found[1] not in relations:
        raise unknown_relation(found[1], relations)
    relation = relations[found[1]]
    try:
        row, end = _parts_at(relation.columns, "()", text, found.end() - 1, plan, 0)
        if text[end:].strip() not in ("", "."):
            raise ValueError("nothing behind it")
    except (ValueError, OverflowError) as error:
        columns = ", ".join(f"{column.name}: {column.type_name}" for column in relation.columns)
        message = f"cannot read the fact {text!r} of {relation.name}({columns}): expected {error}"
        raise EngineError(message) from None
    return relation, row
