"""Formats files: the named ones, and all in named folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import BinaryIO

from ...engine.language.diagnostics import Reporter
from ...engine.language.parser import parse
from ...engine.language.preprocessor import uses_preprocessor
from ...engine.language.sources import LARGEST, Sources, UnreadableError, decoded, read_text
from ...engine.language.syntax import Module
from ...errors import ShardlogError
from ...rulebook.notations.einsum import SUFFIXES, refuse_module
from . import einsum, layout

_SUFFIXES = (".dl", ".rules")  # of files that folders are searched for


@dataclass(frozen=True)
class Formatted:
    """A file, its text, and the formatted text."""

    file: str
    text: str
    formatted: str

    @property
    def changed(self) -> bool:
        """Whether the file is not in the layout."""
        return self.text != self.formatted

    def diff(self) -> str:
        """The changes of formatting, as `diff -u` shows them."""
        before, after = (text.splitlines(keepends=True) for text in (self.text, self.formatted))
        lines = unified_diff(before, after, self.file, self.file)
        ended = (line if line.endswith("\n") else f"{line}\n" for line in lines)
        return "".join(ended)


def rule_files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files, and the rule files in the folders, each once. Raises ShardlogError for missing files,
    and for folders without any."""
    seen: set[Path] = set()
    for path in paths:
        files = [path]
        if path.is_dir():
            files = sorted(
                file
                for suffix in _SUFFIXES
                for file in path.rglob(f"*{suffix}")
                if file.is_file() and not any(part.startswith(".") for part in file.relative_to(path).parts)
            )
            if not files:
                hint = f"rule files end with {' or '.join(_SUFFIXES)}"
                raise ShardlogError("there are no rule files in this folder", where=str(path), hint=hint)
        elif not path.exists():
            raise ShardlogError("there is no such file", where=str(path))
        yield from (file for file in files if file not in seen)
        seen.update(files)


def format_file(path: Path) -> Formatted:
    """A file in the layout. Raises ShardlogError or DatalogError for a file without valid rules."""
    refuse_module(path)
    text = _text(lambda: read_text(path), str(path))
    return Formatted(str(path), text, format_text(text, str(path)))


def format_stream(stream: BinaryIO, name: str) -> str:
    """The text of a stream, formatted like a file of that name. Raises as ``format_file`` does."""
    return format_text(_text(lambda: decoded(stream.read(LARGEST + 1)), name), name)


def _text(read: Callable[[], str], name: str) -> str:
    try:
        return read()
    except UnreadableError as error:
        raise ShardlogError(f"cannot read this file: {error}", where=name) from None


def format_text(text: str, file: str) -> str:
    """The formatted text; the name of its file tells the notation: Datalog, or (``.rules``, ``.txt``) lines
    of einsum notation. Raises ShardlogError or DatalogError for other texts."""
    if Path(file).suffix in SUFFIXES:
        return einsum.formatted(text, file)
    laid_out = layout.formatted(text, file)
    _check_parses(text, file)
    return laid_out


def _check_parses(text: str, file: str) -> None:
    """Raises DatalogError for a text that is no Datalog: many languages have the same tokens. A text with
    macros is not looked at, because they may stand for anything."""
    if uses_preprocessor(text):
        return
    reporter = Reporter(sources := Sources())
    parse(text, sources.add(file, text), Module(), reporter, lambda path, at, module: None)
    reporter.finish()
