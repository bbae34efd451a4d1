"""Parts of the syntax tree as text."""

from __future__ import annotations

import json
from collections.abc import Mapping

from .syntax import (
    Aggregate,
    Atom,
    Branch,
    Call,
    Cast,
    Constant,
    Counter,
    IterationCount,
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


def literal_text(literal: Literal, values: Mapping[str, str]) -> str:
    """A literal with texts in place of known variables."""
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


def term_text(term: Term, values: Mapping[str, str]) -> str:
    """A term with texts in place of known variables."""
    if isinstance(term, Variable):
        return values.get(term.name, term.name.partition("@")[0])
    if isinstance(term, Wildcard):
        return "_"
    if isinstance(term, Nil):
        return "nil"
    if isinstance(term, Counter):
        return "autoinc()"
    if isinstance(term, IterationCount):
        return "recursive_iteration_cnt()"
    if isinstance(term, Constant):
        value = term.value
        return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
    if isinstance(term, Cast):
        return f"as({term_text(term.value, values)}, {term.type_name})"
    if isinstance(term, Aggregate):
        target = "" if term.target is None else f" {term_text(term.target, values)}"
        body = ", ".join(literal_text(literal, values) for literal in term.body)
        return f"{term.function}{target} : {{ {body} }}"
    parts = [term_text(part, values) for part in term.args]
    if isinstance(term, Record) and term.branch:
        return _branch_text(term.branch, [parts[slot] for slot in term.slots])
    if isinstance(term, Record):
        return f"[{', '.join(parts)}]"
    if isinstance(term, Branch):
        return _branch_text(term.name, parts)
    return _call_text(term, parts)


def _branch_text(name: str, parts: list[str]) -> str:
    return f"${name}({', '.join(parts)})" if parts else f"${name}"


def _call_text(term: Call, parts: list[str]) -> str:
    if term.name in _BETWEEN and len(parts) == 2:
        return f"({parts[0]} {term.name} {parts[1]})"
    if term.name in _BEFORE and len(parts) == 1:
        return f"{_BEFORE[term.name]}{parts[0]}"
    return f"{term.name}({', '.join(parts)})"
