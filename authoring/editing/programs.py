"""The files of a program, with the editor's text, and its errors.

A file that others include is a part of their programs. One that uses relations of the op rules without
declaring them, and every file of einsum notation, is loaded with the op rules, as ``--rules`` loads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ...engine import DatalogError, load
from ...engine.language.preprocessor import at_home
from ...engine.language.sources import UnreadableError, read_text
from ...errors import ShardlogError
from ...rulebook.notations.clauses import compile_lines
from ...rulebook.notations.einsum import SUFFIXES, parse_lines
from ...rulebook.shipped import RULES
from .factors import factors_of
from .names import RuleFileNames, names_of

MODULES = (".mlir",)  # the suffixes of modules, which ``modules.py`` is about
OPS = (RULES / "ops/main.dl").resolve()
_FILES = 5_000  # of a folder that are looked at
_ROOTS = 4  # programs of which a file is a part
_PLACE = re.compile(r":(\d+)(?::(\d+))?\Z")


@dataclass(frozen=True)
class EditorProblem:
    """An error at a place: ``line`` and ``column`` count from 0; without a column it is the whole line."""

    line: int
    column: int | None
    code: str
    message: str
    hint: str = ""


class Library:
    """Files by path: ``opened`` are those that the editor has; all others are read."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self.opened: dict[Path, str] = {}
        self.folders = [folder.resolve() for folder in folders]
        self._read: dict[Path, tuple[tuple[int, int], str]] = {}

    def text(self, path: Path) -> str | None:
        """The text of a file; None where it cannot be read."""
        if path in self.opened:
            return self.opened[path]
        try:
            status = path.stat()
            version = (status.st_mtime_ns, status.st_size)
            if self._read.get(path, (None, ""))[0] != version:
                self._read[path] = (version, read_text(path))
        except (UnreadableError, OSError, ValueError):
            return None
        return self._read[path][1]

    def names(self, path: Path) -> RuleFileNames:
        """The names in a file of Datalog."""
        return _names(self.text(path) or "")

    def includes(self, path: Path) -> dict[str, Path]:
        """The files that a file includes, by how it calls them."""
        targets = {}
        for name in self.names(path).includes():
            for folder in (path.parent, RULES):
                target = (folder / name.text).resolve()
                if self.text(target) is not None:
                    targets[name.text] = target
                    break
        return targets

    def closure(self, roots: Iterable[Path]) -> tuple[Path, ...]:
        """Files with all that they include."""
        files: dict[Path, None] = {}
        left = list(roots)
        while left:
            path = left.pop()
            if path not in files and self.text(path) is not None:
                files[path] = None
                left += self.includes(path).values()
        return tuple(files)

    def roots(self, path: Path) -> tuple[Path, ...]:
        """The files that no other file includes and that include this one: itself, if there are none."""
        including: dict[Path, list[Path]] = {}
        for file in self._files(path):
            for target in self.includes(file).values():
                including.setdefault(target, []).append(file)
        roots, seen, left = [], {path}, [path]
        while left:
            file = left.pop()
            above = [other for other in including.get(file, ()) if other not in seen]
            seen.update(above)
            left += above
            if not including.get(file):
                roots.append(file)
        return tuple(sorted(roots)) or (path,)

    def _files(self, path: Path) -> list[Path]:
        """The files of Datalog beside a file, in the folder of the editor that it is in, and those opened."""
        folder = next((folder for folder in self.folders if path.is_relative_to(folder)), path.parent)
        files = dict.fromkeys(file for file in list(self.opened) if file.suffix == ".dl")
        for file in folder.rglob("*.dl"):
            if not any(part.startswith(".") for part in file.relative_to(folder).parts):
                files[file.resolve()] = None
            if len(files) >= _FILES:
                break
        return list(files)

    def files(self, path: Path) -> tuple[Path, ...]:
        """The files of the programs that a file belongs to, with the op rules if it needs them."""
        if path.suffix in SUFFIXES:
            return self.closure([OPS])
        files = self.closure(self.roots(path)[:_ROOTS])
        return files + (self.closure([OPS]) if self._needs_ops(files) else ())

    def _needs_ops(self, files: Sequence[Path]) -> bool:
        """Whether files use relations that they do not declare and the op rules do."""
        used = {n.text for file in files for n in self.names(file).in_order if n.kind == "relation"}
        return bool((used - self.declared(files)) & self.declared(self.closure([OPS])))

    def declared(self, files: Iterable[Path]) -> set[str]:
        """The relations that files declare."""
        declarations = (d.name for file in files for d in self.names(file).declarations)
        return {name.text for name in declarations if name.kind == "relation"}

    def problems(self, path: Path) -> list[EditorProblem]:
        """The errors in a file, in the order of its lines."""
        if path.suffix in SUFFIXES:
            problems = self._einsum_problems(path)
        else:
            problems = {
                p: None for root in self.roots(path)[:_ROOTS] for p in self._program_problems(root, path)
            }
        return sorted(problems, key=lambda problem: (problem.line, problem.column or 0, problem.code))

    def _einsum_problems(self, path: Path) -> Iterable[EditorProblem]:
        """The errors in each line; if there are none, those of all lines together."""
        text = self.text(path) or ""
        lines = [_einsum_problem(text, start, end) for start, end in factors_of(text).statements]
        problems = [
            problem for problem in (*lines, _einsum_problem(text, 0, len(text))) if problem is not None
        ]
        if problems:
            return dict.fromkeys(problems)
        return [
            EditorProblem(problem.line, None, problem.code, problem.message, problem.hint)
            for problem in _with_ops({str(path): compile_lines(str(path), text)}, str(path))
            if problem.code[:1] != "W"  # they are about the rules that the notation stands for
        ]

    def _program_problems(self, root: Path, path: Path) -> Iterator[EditorProblem]:
        """The errors in a file in the program of ``root``."""
        files = self.closure([root])
        texts = {str(file): self._linked(file) for file in files}
        if OPS in files:
            yield from _problems(texts, str(path), key="sig")
        elif self._needs_ops(files):
            yield from _with_ops(texts, str(path))
        else:
            yield from _problems(texts, str(path))

    def _linked(self, path: Path) -> str:
        """The text of a file whose ``.include``s name files by their whole path."""
        text, targets = self.text(path) or "", self.includes(path)
        for name in reversed(list(self.names(path).includes())):
            if name.text in targets:
                text = f'{text[: name.start]}"{targets[name.text]}"{text[name.end :]}'
        return text


def _einsum_problem(text: str, start: int, end: int) -> EditorProblem | None:
    """The error in a part of a text of einsum notation."""
    try:
        parse_lines("", text[start:end])
    except ShardlogError as error:
        place = _PLACE.search(error.where)
        line, column = (int(place[1]), int(place[2] or 1)) if place else (1, 1)
        return EditorProblem(text.count("\n", 0, start) + line - 1, column - 1, "", error.message, error.hint)
    return None


@lru_cache(maxsize=512)
def _names(text: str) -> RuleFileNames:
    return names_of(text)


def _with_ops(texts: dict[str, str], file: str) -> Iterator[EditorProblem]:
    """The errors in a file that is loaded with the op rules."""
    return _problems(texts, file, [OPS], key="sig")


def _problems(
    texts: dict[str, str], file: str, paths: Sequence[Path] = (), key: str | None = None
) -> Iterator[EditorProblem]:
    def is_users(name: str) -> bool:
        return key is not None and not name.startswith(str(RULES))

    more, texts = 0, {name: at_home(text) for name, text in texts.items()}
    try:
        diagnostics = load(paths, texts=texts, key=key, include_from=[RULES], untyped=is_users).warnings
    except DatalogError as error:
        diagnostics, more = error.diagnostics + error.warnings, error.more.get(file, 0)
    for diagnostic in diagnostics:
        if diagnostic.file == file:
            yield EditorProblem(
                diagnostic.line - 1,
                diagnostic.column - 1,
                diagnostic.code,
                diagnostic.message,
                diagnostic.hint,
            )
    if more:
        yield EditorProblem(0, 0, "", f"{more:,} errors more are not shown")
