"""Ops of linalg in LLVM's generic form: named ones have regions, and loops have kinds of their own."""

from __future__ import annotations

import re

from ...importers.dialects.bodies import body
from ...importers.dialects.cursor import Cursor, UnfittingError

_OP = re.compile(r'"(linalg\.\w+)"(?=\()')
_SEGMENTS = re.compile(r"operandSegmentSizes = array<i32: (\d+), (\d+)>")
_KINDS = re.compile(r"iterator_types = \[[^\]]*\]")  # words, where LLVM has an attribute
_WORD = re.compile(r'"(\w+)"')
_ELEMENT = re.compile(r"(?:tensor|memref|vector)<(?:[\d?]+x)*(.*)>")


def as_linalg(text: str) -> str:
    """A text in generic form: each named op of linalg has the region that its name says, and the kinds
    of loops are attributes."""
    parts, done = list[str](), 0
    for found in _OP.finditer(text):
        cursor = Cursor(text, found.end())
        try:
            cursor.balanced("(")
            end = cursor.at
            if not cursor.looks_at("{"):
                continue  # it has one
            attributes = cursor.balanced("{")
            cursor.take(":")
            types = cursor.types()
        except UnfittingError:
            continue
        sizes = _SEGMENTS.search(attributes)
        elements = [_element(type_) for type_ in types]
        if sizes is None or None in elements:
            continue
        count = int(sizes[1])
        given = [element for element in elements if element is not None]
        region = body(found[1], given[:count], given[count:], {"": attributes[1:-1]})
        if region is not None:
            parts += [text[done:end], " ({", region, "})"]
            done = end
    parts.append(text[done:])
    return _KINDS.sub(lambda found: _WORD.sub(r"#linalg.iterator_type<\1>", found[0]), "".join(parts))


def _element(type_: str) -> str | None:
    """The type of the elements of a tensor, or a scalar type itself."""
    found = _ELEMENT.fullmatch(type_)
    if found is None:
        return type_ if "<" not in type_ else None
    return found[1].partition(",")[0].strip()
