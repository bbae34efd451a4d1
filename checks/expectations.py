"""Files of expected shardings: TOML whose keys are names or patterns, and whose values are shardings.

    # a comment
    "params['layers'][*]['wq']" = '[{}, {"model"}]'
    "model.py:42" = ['[{"data"}, {}]', '[{"data"}]']

In a pattern ``*`` stands for any text without brackets. A list has a sharding for each value of a line.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..engine.language.sources import UnreadableError, read_text
from ..errors import ShardlogError
from ..program.mlir.places import wildcard

_LITERAL = re.compile(r"[^'\x00-\x08\x0a-\x1f\x7f]*")
# Strings, comments, brackets and the ends of lines.
_TOKENS = re.compile(
    r'''"""(?:\\.|[^\\])*?"{3,5}|'{3}.*?'{3,5}|"(?:\\.|[^"\\])*"|'[^']*'|#[^\n]*|[\[\]{}\n]''', re.DOTALL
)
_DECODED = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)")


@dataclass(frozen=True)
class Expectation:
    """The expectation for the values called ``key``, and the lines (from 0, the end left out) that hold
    it."""

    key: str
    shardings: tuple[str, ...]
    first: int
    end: int

    @cached_property
    def pattern(self) -> re.Pattern[str] | None:
        """The pattern that names must match; None where the key is a plain name."""
        return wildcard(self.key) if "*" in self.key else None


@dataclass(frozen=True)
class Expectations:
    """A file of expectations: its lines, and what they say."""

    name: str
    lines: tuple[str, ...]
    entries: tuple[Expectation, ...]

    def where(self, entry: Expectation) -> str:
        """The file and line of an expectation."""
        return f"{self.name}:{entry.first + 1}"

    def text(self, changes: Mapping[Expectation, Iterable[tuple[str, tuple[str, ...]]]]) -> str:
        """The file with other entries in place of some; comments and the order of the others stay."""
        lines = list(self.lines)
        for entry, others in sorted(changes.items(), key=lambda change: -change[0].first):
            lines[entry.first : entry.end] = [line(*other) for other in others]
        return "".join(f"{text}\n" for text in lines)


def read_expectations(path: Path) -> Expectations:
    """The expectations in a file. Raises ShardlogError where it is not what is described above."""
    name = str(path)
    try:
        text = read_text(path)
    except UnreadableError as error:
        missing = isinstance(error.__context__, FileNotFoundError)
        hint = "shardlog expect --update writes one" if missing else "expected a TOML file"
        raise ShardlogError(f"cannot read: {error}", where=name, hint=hint) from None
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        decoded = _DECODED.fullmatch(str(error))
        end = len(text.splitlines())
        where = f"{name}:{decoded[2]}:{decoded[3]}" if decoded and decoded[2] else f"{name}:{end}"
        hint = """expected lines like "params['w']" = '[{"data"}, {}]'"""
        message = decoded[1] if decoded else str(error)
        raise ShardlogError(f"not TOML: {message}", where=where, hint=hint) from None
    except RecursionError:
        raise ShardlogError("lists nest too deeply", where=name, hint="expected lists of shardings") from None
    lines = tuple(text.removesuffix("\n").split("\n")) if text else ()
    return Expectations(name, lines, tuple(_entries(name, lines)))


def _entries(name: str, lines: tuple[str, ...]) -> Iterable[Expectation]:
    first = 0
    for end in _ends("\n".join([*lines, ""])):
        for key, value in tomllib.loads("\n".join(lines[first:end])).items():
            shardings = value if isinstance(value, list) else [value]
            if not shardings or not all(isinstance(sharding, str) for sharding in shardings):
                hint = """expected a sharding as text, as in '[{"data"}, {}]', or a list of them; """
                hint += "quote names with dots"
                raise ShardlogError(f"{key} is not a sharding", where=f"{name}:{first + 1}", hint=hint)
            yield Expectation(key, tuple(shardings), first, end)
        first = end


def _ends(text: str) -> Iterator[int]:
    """After how many lines of a TOML document there is no list or string that goes on."""
    number = depth = 0
    for token in _TOKENS.findall(text):
        number += token.count("\n")
        depth += (token in "[{") - (token in "]}")
        if token == "\n" and not depth:
            yield number


def line(key: str, shardings: tuple[str, ...]) -> str:
    """An expectation as a line of the file."""
    values = ", ".join(map(_quoted, shardings))
    return f"{_quoted(key, basic=True)} = {values if len(shardings) == 1 else f'[{values}]'}"


def _quoted(text: str, *, basic: bool = False) -> str:
    """A TOML string: a literal one where that is possible, unless a ``basic`` one reads as well."""
    if _LITERAL.fullmatch(text) and not (basic and '"' not in text and "\\" not in text):
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
