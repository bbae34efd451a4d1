"""JSON schemas (draft 2020-12). The schemas of data classes come from their fields."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Schema = dict[str, Any]

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def document(title: str, schema: Schema) -> Schema:
    """A schema as a document of its own."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}


def of_type(kind: Any, as_text: Collection[type] = ()) -> Schema:
    """The schema of a type. Types in ``as_text`` are printed as text."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in as_text:
        return TEXT
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return record(**{field.name: of_type(hints[field.name], as_text) for field in fields(kind)})
    if origin in (Union, UnionType):
        return {"anyOf": [of_type(argument, as_text) for argument in arguments]}
    if origin is Sequence or (origin is tuple and arguments[-1:] == (Ellipsis,)):
        return array(of_type(arguments[0], as_text))
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": of_type(arguments[1], as_text)}
    if origin is tuple:
        items = [of_type(argument, as_text) for argument in arguments]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
    return {"type": _PLAIN[kind]}


def record(optional: Schema | None = None, /, **required: Schema) -> Schema:
    """The schema of an object with these fields, and no others."""
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


def array(items: Schema) -> Schema:
    """The schema of an array of any length."""
    return {"type": "array", "items": items}


def or_null(value: Schema) -> Schema:
    """The schema of a value that may be null."""
    return {"anyOf": [value, of_type(NoneType)]}


TEXT, NUMBER, FLAG = of_type(str), of_type(int), of_type(bool)
TEXTS, NUMBERS = array(TEXT), array(NUMBER)

# Of a proof in Datalog, or of why there is none.
_RULE = record(file=TEXT, line=NUMBER, text=TEXT)
_STEP = record(
    id=NUMBER,
    fact=TEXT,
    relation=TEXT,
    rule=or_null(_RULE),
    sentence=TEXT,
    premises=NUMBERS,
    counted=NUMBERS,
    conditions=TEXTS,
    open=FLAG,
    joined=FLAG,
    replaced=FLAG,
    replaced_by=or_null(TEXT),
)
_PROOF = record(fact=TEXT, height=NUMBER, steps=array(_STEP))
_ATTEMPT = record(rule=_RULE, found=TEXTS, missing=TEXT, complete=FLAG)
_WHY_NOT = record(fact=TEXT, attempts=array(_ATTEMPT))


def of_datalog() -> Schema:
    """The schema of what the command for Datalog prints: explanations and plans."""
    from ..datalog.plans import Plan

    return {"anyOf": [_PROOF, _WHY_NOT, of_type(Plan)]}
