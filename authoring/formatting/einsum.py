"""Einsum notation in one layout: a space between two tokens, but for brackets, commas and sizes.

Lines are continued where the author did that, and indented; facts between them are laid out as Datalog.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ...rulebook.notations.einsum import FACTS, NAME, EinsumRule, parse_lines
from .layout import formatted as formatted_datalog
from .layout import unspaced
from .statements import STEP


def formatted(text: str, file: str = "<text>") -> str:
    """The text in the layout. Raises ShardlogError for invalid einsum notation, and DatalogError for
    invalid facts."""
    before = parse_lines(file, text)
    lines = [*_lines(text, file)]
    kept = [line for line, last in zip(lines, ["", *lines], strict=False) if line or last]
    new_text = "".join(f"{line}\n" for line in kept).rstrip("\n")
    new_text += "\n" * bool(new_text)
    same = [*map(_content, before)] == [*map(_content, parse_lines(file, new_text))]
    assert same and unspaced(text) == unspaced(new_text), f"the layout of {file} changes it"
    return new_text


def _content(line: EinsumRule) -> EinsumRule:
    """A line without its place and its spaces."""
    return replace(line, number=0, text="")


def _lines(text: str, file: str) -> Iterator[str]:
    for line in text.split("\n"):
        if not line.strip() or line.startswith("//"):
            yield line.rstrip()
        elif FACTS.fullmatch(line):
            yield formatted_datalog(line, file).rstrip("\n").replace("\n", " ")
        elif line[0].isspace():
            yield " " * STEP + _spaced(line)
        else:
            name = NAME.match(line)
            assert name is not None  # it was read
            rest = _spaced(line[name.end() :])
            yield f"{name[0][:-1].rstrip()}: {rest}".rstrip()


def _spaced(text: str) -> str:
    """Dimensions, sizes and kinds of factors."""
    spaced = re.sub(r"\s*(->)\s*", r" \1 ", text)
    spaced = re.sub(r"\s*,\s*", ", ", spaced)
    spaced = re.sub(r"\s*=\s*", "=", spaced)
    spaced = re.sub(r"\s*([({])\s*", r" \1", spaced)
    spaced = re.sub(r"\s*([)}])\s*", r"\1 ", spaced)
    spaced = re.sub(r"=\s*\{", "={", spaced)
    return re.sub(r"\s+", " ", spaced).replace(" ,", ",").strip()
