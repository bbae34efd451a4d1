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
    """A text with ops of linalg in generic form, as LLVM reads them: each named one has the region that its
    name says, and kinds of loops are attributes."""
    parts, done, regions = list[str](), 0, dict[tuple[str, str], str | None]()
    for match in _OP.finditer(text):
        end = text.find(")", match.end()) + 1  # of the operands, which are names
        key = match[1], text[end : text.find("\n", end)]
        if key not in regions:
            regions[key] = _region(*key)
        if (region := regions[key]) is not None:
            line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
            indent = line[: len(line) - len(line.lstrip())]
            parts += [text[done:end], region.replace("\n", f"\n{indent}")]
            done = end
    parts.append(text[done:])
    return _KINDS.sub(lambda match: _WORD.sub(r"#linalg.iterator_type<\1>", match[0]), "".join(parts))


def _region(op: str, rest: str) -> str | None:
    """The region of an op, of whose line the rest stands behind its operands; None where it has one there, or
    none by its name."""
    cursor = Cursor(rest)
    try:
        attributes = cursor.balanced("{")
        cursor.take(":")
        elements = [_element(type_) for type_ in cursor.types()]
    except UnfittingError:
        return None
    if None in elements:
        return None
    sizes = _SEGMENTS.search(attributes)
    count = int(sizes[1]) if sizes else len(elements) - 1
    given = [element for element in elements if element is not None]
    region = body(op, given[:count], given[count:], {"": attributes[1:-1]}, "\n  ")
    return None if region is None else f" ({{\n{region.rstrip()}\n}})"


def _element(type_: str) -> str | None:
    """The type of the elements of a tensor, or a scalar type itself."""
    match = _ELEMENT.fullmatch(type_)
    if match is None:
        return type_ if "<" not in type_ else None
    return match[1].partition(",")[0].strip()
