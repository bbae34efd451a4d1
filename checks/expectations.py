"""Files of expected shardings: TOML whose keys are names or patterns, and whose values are shardings.

    # a comment
    "params['layers'][*]['wq']" = '[{}, {"model"}]'
    "model.py:42" = ['[{"data"}, {}]', '[{"data"}]']

In a pattern ``*`` stands for any text without brackets. A list has a sharding for each value of a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import KeyType, SingleKey, String

from ..engine.language.sources import UnreadableError, read_text
from ..errors import ShardlogError
from ..program.mlir.places import wildcard
from ..tomls import entry_lines, toml_values


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
    """A file of expectations: its lines and its entries."""

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
    """The expectations in a file. Raises ShardlogError if it does not have the format above, or expects
    nothing: such a check would always pass."""
    name = str(path)
    try:
        text = read_text(path)
    except UnreadableError as error:
        missing = isinstance(error.__context__, FileNotFoundError)
        hint = "shardlog expect --update writes one" if missing else "expected a TOML file"
        raise ShardlogError(f"cannot read: {error}", where=name, hint=hint) from None
    hint = """expected lines like "params['w']" = '[{"data"}, {}]'"""
    values, places = toml_values(text, name, hint), [*entry_lines(text, name, hint)]
    if not values:
        hint = "remove the file: then shardlog expect --update writes all arguments and results"
        raise ShardlogError("the file expects no shardings", where=name, hint=hint)
    lines = tuple(text.removesuffix("\n").split("\n"))
    return Expectations(name, lines, tuple(_entries(name, values, places)))


def _entries(
    name: str, values: Mapping[str, object], places: Iterable[tuple[str, int, int]]
) -> Iterator[Expectation]:
    """The expectations of a document, from its values and the lines of its entries."""
    for key, first, end in places:
        value = values.get(key)
        shardings: list[Any] = value if isinstance(value, list) else [value]
        if not shardings or not all(isinstance(sharding, str) for sharding in shardings):
            hint = """expected a sharding as text, as in '[{"data"}, {}]', or a list of them; """
            hint += "quote names with dots"
            raise ShardlogError(f"{key} is not a sharding", where=f"{name}:{first + 1}", hint=hint)
        yield Expectation(key, tuple(shardings), first, end)


def line(key: str, shardings: tuple[str, ...]) -> str:
    """An expectation as a line of the file."""
    values = [_string(sharding).as_string() for sharding in shardings]
    value = values[0] if len(values) == 1 else f"[{', '.join(values)}]"
    return f"{SingleKey(key, t=KeyType.Basic).as_string()} = {value}"


def _string(text: str) -> String:
    """A TOML string, a literal one where that is possible."""
    try:
        return tomlkit.string(text, literal=True)
    except (TOMLKitError, ValueError):
        return tomlkit.string(text)
