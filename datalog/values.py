"""Values as Soufflé writes them, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..engine.analysis.types import plan_type
from ..engine.evaluate import facts
from ..engine.evaluate.branches import Branches
from ..engine.evaluate.facts import DEEPEST, real
from ..engine.language.diagnostics import EngineError, unknown_relation
from ..engine.language.lexer import ESCAPES
from ..engine.language.printing import literal_text
from ..engine.language.syntax import VALUES, Literal
from ..engine.plan.plan import Column, QueryPlan, Relation
from ..engine.transform.functors import is_helper

Scalars = Mapping[str, Callable[[str, int], tuple[Any, int]]]  # readers of values, by type

_SPACE = " \t\n\v\f\r"  # as in C: others are a part of a symbol
_NUMBER = re.compile(r"\s*[+-]?0*[0-9]{1,19}(?![0-9])", re.ASCII)
_UNSIGNED = re.compile(r"0x[0-9a-fA-F]+|0b[01]+|\s*\+?0*[0-9]{1,20}(?![0-9])", re.ASCII)
_FLOAT = re.compile(
    r"\s*[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)",
    re.ASCII | re.IGNORECASE,
)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_CODED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_NAME = re.compile(r"[\w?.]+")
_BARE = re.compile(r"[^,\])]*")
EXPECTED = {**facts.EXPECTED, "record": "a record, as in [1, [a, nil]]"}


# ---- To text --------------------------------------------------------------------------------------------


def text_of(column: Column, value: Any, plan: QueryPlan, symbol: Callable[[str], str] = str) -> str:
    """A value of a column as Soufflé writes it to a file, with ``symbol`` for symbols inside of records.

    This, as all that goes through records, calls nothing but itself on its way down: Python's stack holds
    that many.
    """
    if column.type == "float":
        return float_text(value)
    if column.type != "record":
        return str(value)
    if value is None:
        return "nil"
    branches = plan.branches.get(column.type_name)
    opening, closing = "[", "]"
    if branches is not None:
        name, *value = value
        opening, closing = (f"${name}(", ")") if value else (f"${name}", "")
    fields = plan.records[column.type_name] if branches is None else branches[name].columns
    texts = []
    for field, part in zip(fields, value, strict=True):
        texts.append(symbol(part) if field.type == "symbol" else text_of(field, part, plan, symbol))
    return f"{opening}{', '.join(texts)}{closing}"


def _inner(column: Column, value: Any, plan: QueryPlan, symbol: Callable[[str], str]) -> str:
    return symbol(value) if column.type == "symbol" else text_of(column, value, plan, symbol)


def float_text(value: float) -> str:
    """A float with 17 digits, as C++ streams write it."""
    return f"{value:.17g}"


def fact_text(relation: Relation, row: Sequence[Any], plan: QueryPlan) -> str:
    """A tuple as in a program."""
    columns = zip(relation.columns, row, strict=True)
    return _atom(relation.name, [_inner(column, value, plan, _quoted) for column, value in columns])


def _atom(name: str, values: Sequence[str]) -> str:
    """An atom as in a program: the values of a functor are those of its calls."""
    if is_helper(name):
        return f"@{name.removesuffix(VALUES)}({', '.join(values[:-1])}) = {values[-1]}"
    return f"{name}({', '.join(values)})"


def _quoted(symbol: str) -> str:
    return json.dumps(symbol, ensure_ascii=False)


class Texts:
    """Facts and values that the evaluators have, as texts that a program has."""

    def __init__(self, plan: QueryPlan) -> None:
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
            return _atom(name, list(map(str, row)))
        relation = self._relations[name]
        (outside,) = self._branches.outward(relation, [row])
        return fact_text(relation, outside, self._plan)

    def literal(self, literal: Literal, kinds: Mapping[str, str], values: Mapping[str, Any]) -> str:
        """A literal with the values of its variables. ``kinds`` has the kind of each variable."""
        return literal_text(
            literal, {name: self._value(kinds, name, value) for name, value in values.items()}
        )

    def _value(self, kinds: Mapping[str, str], name: str, value: object) -> str:
        if name not in kinds:
            return str(value)
        column = Column(name, plan_type(kinds[name]), kinds[name])
        return _inner(column, self._branches.outside(column, value), self._plan, _quoted)


# ---- From text ------------------------------------------------------------------------------------------


def value_of(column: Column, text: str, plan: QueryPlan) -> Any:
    """The value of a column in a text. Raises ValueError, which says what was expected."""
    if column.type == "symbol":
        return text
    if column.type == "record":
        (value,), end = _values_at([column], text, 0, plan)
    else:
        value, end = _SCALARS[column.type](text, 0)
    if end != len(text):
        raise ValueError(EXPECTED[column.type])
    return value


def _values_at(
    columns: Sequence[Column],
    text: str,
    at: int,
    plan: QueryPlan,
    depth: int = 0,
    scalars: Scalars | None = None,
) -> tuple[tuple[Any, ...], int]:
    """The values of columns in a text, from a place on, and where they end. ``scalars`` reads values that are
    not records, by default as in files."""
    scalars = scalars or _SCALARS
    if depth > DEEPEST:
        raise ValueError(f"a record of at most {DEEPEST} levels")
    values: list[Any] = []
    for i, column in enumerate(columns):
        at = _past_space(text, _past(text, at, ",") if i else at)
        if column.type != "record":
            value, at = scalars[column.type](text, at)
        elif column.type_name in plan.branches:
            name, at = _branch_at(column, text, at, plan)
            fields, value = plan.branches[column.type_name][name].columns, ()
            if fields or text.startswith("(", _past_space(text, at)):
                value, at = _values_at(fields, text, _past(text, at, "("), plan, depth + 1, scalars)
                at = _past(text, at, ")")
            value = (name, *value)
        elif text.startswith("nil", at):
            value, at = None, at + 3
        else:
            fields = plan.records[column.type_name]
            value, at = _values_at(fields, text, _past(text, at, "["), plan, depth + 1, scalars)
            at = _past(text, at, "]")
        values.append(value)
    return tuple(values), at


def _branch_at(column: Column, text: str, at: int, plan: QueryPlan) -> tuple[str, int]:
    branches = plan.branches[column.type_name]
    match = _NAME.match(text, _past(text, at, "$"))
    if not match or match[0] not in branches:
        raise ValueError(f"one of {', '.join(f'${name}' for name in branches)}")
    return match[0], match.end()


def _symbol(text: str, at: int) -> tuple[str, int]:
    if quoted := _QUOTED.match(text, at):
        return _ESCAPED.sub(r"\1", quoted[1]), quoted.end()
    bare = _BARE.match(text, at)
    assert bare is not None
    return bare[0], bare.end()


def _number(text: str, at: int) -> tuple[int, int]:
    match = _NUMBER.match(text, at)
    if not match or not -(1 << 63) <= int(match[0]) < 1 << 63:
        raise ValueError(EXPECTED["number"])
    return int(match[0]), match.end()


def _unsigned(text: str, at: int) -> tuple[int, int]:
    match = _UNSIGNED.match(text, at)
    if not match:
        raise ValueError(EXPECTED["unsigned"])
    base = {"0x": 16, "0b": 2}.get(match[0][:2], 10)
    value = int(match[0], base)
    if value >= 1 << 64:
        raise ValueError(EXPECTED["unsigned"])
    return value, match.end()


def _float(text: str, at: int) -> tuple[float, int]:
    match = _FLOAT.match(text, at)
    if not match:
        raise ValueError(EXPECTED["float"])
    return real(float(match[0])), match.end()


def _literal(text: str, at: int) -> tuple[str, int]:
    """A symbol as explanations show it, or without quotes."""
    quoted = _QUOTED.match(text, at)
    if quoted is None:
        return _symbol(text, at)

    def unescaped(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else ESCAPES.get(match[2], match[2])

    return _CODED.sub(unescaped, quoted[1]), quoted.end()


_SCALARS: Scalars = {
    "number": _number,
    "unsigned": _unsigned,
    "float": _float,
    "symbol": _symbol,
}


def _past_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
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


def fact_of(text: str, plan: QueryPlan) -> tuple[Relation, tuple[Any, ...]]:
    """The relation and the tuple of a fact, as in ``path(1, "a")``; texts without blanks need no quotes.
    Raises EngineError."""
    match = _FACT.match(text)
    relations = {
        relation.name: relation for relation in plan.relations if not {"@", "="} & set(relation.name)
    }
    if not match:
        raise EngineError(f"cannot read the fact {text!r}; expected one as in path(1, 5)")
    if match[1] not in relations:
        raise unknown_relation(match[1], relations)
    relation = relations[match[1]]
    try:
        scalars = {**_SCALARS, "symbol": _literal}
        row, end = _values_at(relation.columns, text, match.end(), plan, scalars=scalars)
        if text[_past(text, end, ")") :].strip() not in ("", "."):
            raise ValueError("nothing after it")
    except ValueError as error:
        columns = ", ".join(f"{column.name}: {column.type_name}" for column in relation.columns)
        message = f"cannot read the fact {text!r} of {relation.name}({columns}): expected {error}"
        raise EngineError(message) from None
    return relation, row
