"""Diagnostics about a program: a place, the expectation, and advice.

Every diagnostic has a stable code, with an E for an error and a W for a warning:

    E01xx  W01xx  the text: characters, syntax, included files, what is not supported, what is out of use
    E02xx         names: unknown or declared twice
    E03xx         types and arity
    E04xx  W04xx  meaning: ungrounded variables, negation in a cycle, keys; relations that stay empty
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...errors import closest, nearest, shortened
from .sources import SourcePlace, Sources

_LONGEST = 120  # characters of a line that are shown
_SHOWN = 20  # errors of one file, and as many warnings
_NOT_INCLUDED = "E0106"
# Errors in valid text: functors, missing files, #error.
_READ = frozenset({"E0105", _NOT_INCLUDED, "E0108"})
_ERRORS = 10_000  # errors after which nobody looks for more

Text: TypeAlias = str | Callable[[], str]  # long messages are composed only if they are shown


class EngineError(Exception):
    """A checked program that cannot be evaluated: facts that do not fit, a division by zero, a limit."""

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message))


@dataclass(frozen=True, order=True)
class Diagnostic:
    """One error in a program, or one warning: its code says which. Lines and columns count from 1; ``source``
    is the text of the line."""

    file: str
    line: int
    column: int
    code: str
    message: str
    hint: str = ""
    source: str = ""

    @property
    def severity(self) -> str:
        """Either "error" or "warning"."""
        return "warning" if self.code[:1] == "W" else "error"

    def __str__(self) -> str:
        # Only the part of a long line around the place.
        start = max(0, self.column - 1 - _LONGEST // 2) if len(self.source) > _LONGEST else 0
        shown = self.source[start : start + _LONGEST]
        indent = "".join(c if c == "\t" else " " for c in shown[: self.column - 1 - start])
        place = f"{shortened(self.file)}:{self.line}:{self.column}"
        lines = [f"{place}: {self.severity}[{self.code}]: {self.message}"]
        if shown.strip():
            lines += [f"    {shown.rstrip()}", f"    {indent}^"]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class DatalogError(Exception):
    """A program with errors. ``diagnostics`` holds the first ones of each file, in textual order, ``more``
    the number of others by file, and ``warnings`` the warnings."""

    def __init__(
        self,
        diagnostics: Iterable[Diagnostic],
        more: Mapping[str, int] | None = None,
        warnings: Iterable[Diagnostic] = (),
    ) -> None:
        self.diagnostics, self.more = tuple(diagnostics), dict(more or {})
        self.warnings = tuple(warnings)
        rest = (
            f"{shortened(file)}: {number:,} errors, of which the first {_SHOWN} are shown"
            for file, number in ((file, number + _SHOWN) for file, number in self.more.items())
        )
        super().__init__("\n".join((*map(str, self.diagnostics), *rest)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.diagnostics, self.more, self.warnings), self.__dict__


class Reporter:
    """Collects diagnostics, so that one run reports every error it can find; after ``most`` of them it
    ends."""

    def __init__(self, sources: Sources, most: float = _ERRORS) -> None:
        self._sources, self._most = sources, most
        self._found: dict[tuple[int, str], tuple[Text, Text]] = {}
        self._warned: dict[tuple[int, str], tuple[Text, Text]] = {}

    def error(self, code: str, at: int, message: Text, hint: Text = "") -> None:
        """Report an error at position ``at``. The first one with this code at this place stays.

        Raises DatalogError where there are too many.
        """
        self._found.setdefault((at, code), (message, hint))
        if len(self._found) >= self._most:
            self.finish()

    def warning(self, code: str, at: int, message: Text, hint: Text = "") -> None:
        """Report a warning at position ``at``. The first one with this code at this place stays."""
        if len(self._warned) < _ERRORS:
            self._warned.setdefault((at, code), (message, hint))

    def place(self, at: int) -> SourcePlace:
        """The file, line and column of a position."""
        return self._sources.locate(at)

    def unreadable(self, start: int, end: int) -> bool:
        """Whether the text from ``start`` to ``end`` is not a rule. Text that is read and then refused does
        not count."""
        return any(start <= at < end and code not in _READ for at, code in self._found)

    def forget(self, start: int) -> None:
        """Drop reports from position ``start`` on."""
        self._found = {key: report for key, report in self._found.items() if key[0] < start}
        self._warned = {key: report for key, report in self._warned.items() if key[0] < start}

    def __len__(self) -> int:
        return len(self._found)

    def finish(self) -> None:
        """Raise DatalogError if anything was reported."""
        if not self._found:
            return
        self._fold()
        diagnostics, more = self._shown(self._found)
        raise DatalogError(diagnostics, more, self.warnings())

    def _fold(self) -> None:
        """Leave out errors that may follow from a file that could not be included, and say so there."""
        missing = [key for key in self._found if key[1] == _NOT_INCLUDED]
        folded = [key for key in self._found if not key[1].startswith("E01")]
        if not missing or not folded:
            return
        for key in folded:
            del self._found[key]
        message, hint = (text if isinstance(text, str) else text() for text in self._found[missing[-1]])
        rest = f"not shown: {counted(len(folded), 'error')} that may follow from this"
        self._found[missing[-1]] = message, f"{hint}; {rest}" if hint else rest

    def warnings(self) -> list[Diagnostic]:
        """The first warnings of each file, in the order of the text."""
        return self._shown(self._warned)[0]

    def _shown(
        self, reported: Mapping[tuple[int, str], tuple[Text, Text]]
    ) -> tuple[list[Diagnostic], dict[str, int]]:
        """The first diagnostics of each file, and the number of others by file."""
        diagnostics = []
        counts: Counter[str] = Counter()
        for at, code in sorted(reported):
            file = self._sources.file(at)
            counts[file] += 1
            if counts[file] <= _SHOWN:
                place = self._sources.locate(at)
                message, hint = (text if isinstance(text, str) else text() for text in reported[at, code])
                shown = (shortened(message), shortened(hint), self._sources.line(at))
                diagnostics.append(Diagnostic(place.file, place.line, place.column, code, *shown))
        return diagnostics, {file: n - _SHOWN for file, n in counts.items() if n > _SHOWN}


class MutedReporter(Reporter):
    """Reports to another one, except mismatches of types (E03xx), which follow from other errors."""

    def __init__(self, sources: Sources, reporter: Reporter) -> None:
        super().__init__(sources)
        self._reporter = reporter

    def error(self, code: str, at: int, message: Text, hint: Text = "") -> None:
        if not code.startswith("E03"):
            self._reporter.error(code, at, message, hint)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A hint that names the nearest of ``names``; an empty string if none is near."""
    near = nearest(name, names)
    return f"did you mean `{near}`?" if near else ""


def unknown_relation(name: str, relations: Iterable[str]) -> EngineError:
    """The error for a name that is not in ``relations``, which may include internal relations."""
    theirs = [other for other in relations if not {"(", "@", "="} & set(other)]
    return EngineError(f"unknown relation `{name}`; {did_you_mean(name, theirs) or closest(name, theirs)}")


def counted(n: int, what: str) -> str:
    """``n`` things, in the singular where there is one."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
