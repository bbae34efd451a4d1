"""Parts of the syntax tree as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .syntax import (
    Aggregate,
    Atom,
    Branch,
    Call,
    Cast,
    Constant,
    Counter,
    Literal,
    Negation,
    Nil,
    Record,
    Term,
    Truth,
    Variable,
    Wildcard,
)

_BETWEEN = frozenset("+ - * / % ^ band bor bxor bshl bshr bshru land lor lxor".split())  # noqa: SIM905
_BEFORE = {"neg": "-", "bnot": "bnot ", "lnot": "lnot "}


def value_text(value: Any) -> str:
    """A value as a program has it: texts quoted, records and branches in their notation."""
    if value is None:
        return "nil"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        return f"[{', '.join(map(value_text, value))}]"
    return str(value)


def fact_text(relation: str, row: tuple[Any, ...]) -> str:
    """A tuple as a program has it."""
    return f"{relation}({', '.join(map(value_text, row))})"


def literal_text(literal: Literal, values: Mapping[str, Any]) -> str:
    """A literal with what is known of its variables in their places."""
    if isinstance(literal, Atom):
        return f"{literal.name}({', '.join(term_text(term, values) for term in literal.args)})"
    if isinstance(literal, Negation):
        return f"!{literal_text(literal.atom, values)}"
    if isinstance(literal, Truth):
        return "true" if literal.value else "false"
    left, right = term_text(literal.left, values), term_text(literal.right, values)
    if literal.operator.endswith(("contains", "match")):
        return f"{literal.operator}({left}, {right})"
    return f"{left} {literal.operator} {right}"


def term_text(term: Term, values: Mapping[str, Any]) -> str:
    """A term with what is known of its variables in their places."""
    if isinstance(term, Variable):
        name = term.name.partition("@")[0]
        return value_text(values[term.name]) if term.name in values else name
    if isinstance(term, Wildcard):
        return "_"
    if isinstance(term, Nil):
        return "nil"
    if isinstance(term, Counter):
        return "autoinc()"
    if isinstance(term, Constant):
        return value_text(term.value)
    if isinstance(term, Cast):
        return f"as({term_text(term.value, values)}, {term.type_name})"
    if isinstance(term, Aggregate):
        target = "" if term.target is None else f" {term_text(term.target, values)}"
        body = ", ".join(literal_text(literal, values) for literal in term.body)
        return f"{term.function}{target} : {{ {body} }}"
    parts = [term_text(part, values) for part in term.args]
    if isinstance(term, Record):
        return f"[{', '.join(parts)}]"
    if isinstance(term, Branch):
        return f"${term.name}({', '.join(parts)})" if parts else f"${term.name}"
    return _call_text(term, parts)


def _call_text(term: Call, parts: list[str]) -> str:
    if term.name in _BETWEEN and len(parts) == 2:
        return f"({parts[0]} {term.name} {parts[1]})"
    if term.name in _BEFORE and len(parts) == 1:
        return f"{_BEFORE[term.name]}{parts[0]}"
    return f"{term.name}({', '.join(parts)})"
