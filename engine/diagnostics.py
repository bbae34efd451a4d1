"""What is said about a program that is not right: a place, what was expected, what to do.

Every diagnostic has a stable code:

    E01xx  the text: characters, syntax, included files, what is not supported
    E02xx  names: unknown or declared twice
    E03xx  types and arity
    E04xx  meaning: ungrounded variables, negation in a cycle, keys
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .sources import Sources

_LONGEST = 120


class EngineError(Exception):
    """A checked program that cannot be evaluated: facts that do not fit, a division by zero, a limit."""


@dataclass(frozen=True, order=True)
class Diagnostic:
    """One error in a program. Lines and columns count from 1; ``source`` is the text of the line."""

    file: str
    line: int
    column: int
    code: str
    message: str
    hint: str = ""
    source: str = ""

    def __str__(self) -> str:
        # Of a long line only what is around the place.
        start = max(0, self.column - 1 - _LONGEST // 2) if len(self.source) > _LONGEST else 0
        shown = self.source[start : start + _LONGEST]
        indent = "".join(c if c == "\t" else " " for c in shown[: self.column - 1 - start])
        lines = [f"{self.file}:{self.line}:{self.column}: error[{self.code}]: {self.message}"]
        if shown.strip():
            lines += [f"    {shown.rstrip()}", f"    {indent}^"]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class DatalogError(Exception):
    """A program with errors. ``diagnostics`` holds all that were found, in the order of the text."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(map(str, self.diagnostics)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.diagnostics,), self.__dict__


class Reporter:
    """Collects diagnostics, so that one run reports every error it can find."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._found: dict[tuple[int, str], tuple[str, str]] = {}

    def error(self, code: str, at: int, message: str, hint: str = "") -> None:
        """Report an error at position ``at``. The first one with this code at this place stays."""
        self._found.setdefault((at, code), (message, hint))

    def __len__(self) -> int:
        return len(self._found)

    def finish(self) -> None:
        """Raise DatalogError if anything was reported."""
        if not self._found:
            return
        diagnostics = []
        for (at, code), (message, hint) in sorted(self._found.items()):
            place = self._sources.locate(at)
            diagnostics.append(
                Diagnostic(place.file, place.line, place.column, code, message, hint, place.source)
            )
        raise DatalogError(diagnostics)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint naming the nearest of ``known`` by edit distance, or an empty string where none is near."""
    limit = min(len(name) - 1, max(1, len(name) // 3))
    distance, best = min(((edit_distance(name, other), other) for other in known), default=(limit + 1, ""))
    return f"did you mean `{best}`?" if distance <= limit else ""


def counted(n: int, what: str) -> str:
    """``n`` things, in the singular where there is one."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def edit_distance(a: str, b: str) -> int:
    """The least number of insertions, deletions, replacements and swaps of neighbours from ``a`` to ``b``."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        above, row, older = row, [i], before
        for j, y in enumerate(b, start=1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and y == a[i - 2]:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        before = above
    return row[-1]
