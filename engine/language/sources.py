"""The texts of a program, side by side: one integer is a place in any of them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

LARGEST = 32 << 20  # bytes of a file of rules
BYTE_ORDER_MARK = "\ufeff"  # with which some editors and spreadsheets begin a file


class UnreadableError(Exception):
    """Why a file is no text that can be read."""


def read_text(path: Path) -> str:
    """The text of a file, which may be a pipe. Raises UnreadableError."""
    try:
        with path.open("rb") as stream:
            return decoded(stream.read(LARGEST + 1))
    except (OSError, ValueError) as error:
        # A path may hold a null byte, a name may be too long.
        raise UnreadableError(getattr(error, "strerror", None) or str(error)) from None


def decoded(data: bytes) -> str:
    """The text of a file, from its first ``LARGEST`` + 1 bytes. Raises UnreadableError."""
    if len(data) > LARGEST:
        raise UnreadableError(f"it is larger than {LARGEST >> 20} MiB")
    try:
        return (
            data.decode().removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n").replace("\r", "\n")
        )  # as in text files
    except UnicodeDecodeError:
        raise UnreadableError("it is not UTF-8") from None


@dataclass(frozen=True)
class SourcePlace:
    """A place for people: line and column count from 1."""

    file: str
    line: int
    column: int


def line_starts(text: str) -> list[int]:
    """The offsets at which the lines of a text start."""
    return [0, *(newline.end() for newline in re.finditer("\n", text))]


def line_and_column(starts: Sequence[int], offset: int) -> tuple[int, int]:
    """The line and the column of an offset, both from 1, in a text whose lines start there."""
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1] + 1


@dataclass(frozen=True)
class LineOrigin:
    """Lines of a text from ``start`` on (counted from 0) come from ``line`` on of a file; None: of the file
    that was named before."""

    start: int
    line: int
    file: str | None


@dataclass
class Sources:
    """Files by the position at which each starts."""

    files: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    origins: list[Sequence[LineOrigin]] = field(default_factory=list)
    absent: set[str] = field(default_factory=set)  # paths at which included files were looked for first
    _lines: dict[int, list[int]] = field(
        default_factory=dict
    )  # of each text that was asked about: their starts

    def add(self, file: str, text: str, origins: Sequence[LineOrigin] = ()) -> int:
        """Add a text; returns the position of its first character. ``origins`` say which of its lines come
        from elsewhere."""
        start = self.starts[-1] + len(self.texts[-1]) + 1 if self.starts else 0
        self.files.append(file)
        self.texts.append(text)
        self.starts.append(start)
        self.origins.append(origins)
        return start

    def by_file(self) -> dict[str, str]:
        """The texts by file."""
        return dict(zip(self.files, self.texts, strict=True))

    def locate(self, at: int) -> SourcePlace:
        """The original file, line and column of a position, by ``#line``."""
        i = bisect_right(self.starts, at) - 1
        text, offset = self.texts[i], at - self.starts[i]
        if i not in self._lines:
            self._lines[i] = line_starts(text)
        line, column = line_and_column(self._lines[i], offset)
        file, start, first = self.files[i], 1, 1
        for origin in self.origins[i]:
            if origin.start < line:
                file, start, first = origin.file or file, origin.start + 1, origin.line
        return SourcePlace(file, first + line - start, column)

    def line(self, at: int) -> str:
        """The text of the line of a position."""
        i = bisect_right(self.starts, at) - 1
        text, offset = self.texts[i], at - self.starts[i]
        end = text.find("\n", offset)
        return text[text.rfind("\n", 0, offset) + 1 : end if end >= 0 else len(text)].rstrip("\r")

    def file(self, at: int) -> str:
        """The file of a position."""
        return self.files[bisect_right(self.starts, at) - 1]

    def slice(self, start: int, end: int) -> str:
        """The text from ``start`` up to ``end``, both in one file."""
        i = bisect_right(self.starts, start) - 1
        return self.texts[i][start - self.starts[i] : end - self.starts[i]]
