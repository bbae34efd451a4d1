"""The files of a program, and their included files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from .diagnostics import DatalogError, Diagnostic, Reporter
from .parser import NoRulesError, parse
from .preprocessor import Preprocessor
from .sources import Sources, UnreadableError, line_starts, read_text
from .syntax import Module


class FileReader:
    """Reads each file once, included ones at their first inclusion.

    A file may include files of the folder of the first file, or of ``folders``. An included file must begin
    like rules, so that no message shows a line of any other file.
    """

    def __init__(
        self,
        sources: Sources,
        reporter: Reporter,
        module: Module,
        texts: Mapping[str, str],
        folders: Sequence[Path],
        macros: Mapping[str, str],
    ) -> None:
        self.sources = sources
        self.reporter = reporter
        self.module = module
        self.texts = texts
        self.folders = folders
        self.top = Path()  # the folder of the file that was named first
        self.seen: set[tuple[str, int]] = set()
        self.preprocessor = Preprocessor(self.peek)
        for name, body in macros.items():
            self.preprocessor.define(name, body)

    def read_root(self, path: Path) -> None:
        """Add the content of a file. Raises DatalogError if it cannot be read."""
        try:
            text = read_text(path)
        except UnreadableError as error:
            message = f"cannot read this file: {error}"
            raise DatalogError([Diagnostic(str(path), 1, 1, "E0106", message)]) from None
        self.read(str(path), text, path.parent.resolve())

    def read(
        self, name: str, text: str, folder: Path, module: Module | None = None, included: bool = False
    ) -> None:
        """Add the content of a text to ``module``; ``folder`` is the folder of included files."""
        if module is None:
            module, self.top = self.module, folder
        identity = name if name in self.texts else str(Path(name).resolve())
        if (identity, id(module)) in self.seen:
            return
        self.seen.add((identity, id(module)))
        expanded = self.preprocessor.expand(text, identity)
        text, starts = expanded.text, line_starts(expanded.text) if expanded.errors else []
        start = self.sources.add(name, text, expanded.origins)
        for line, message in expanded.errors:
            self.reporter.error("E0108", start + starts[line], message)

        def include(target: str, at: int, into: Module) -> None:
            if target in self.texts:
                self.read(target, self.texts[target], folder, into)
            else:
                self.include(Path(name).parent, target, at, folder, into)

        parse(text, start, module, self.reporter, include, strict=included)

    def peek(self, target: str, file: str) -> tuple[str, str] | None:
        """The name and the text of an included file; None if it cannot be included."""
        if target in self.texts:
            return target, self.texts[target]
        try:
            path = self.find(Path(file).parent, target)
            folders = (self.top, *self.folders)
            if any(path.resolve().is_relative_to(allowed) for allowed in folders):
                return str(path.resolve()), read_text(path)
        except (UnreadableError, OSError, ValueError, RuntimeError):
            pass
        return None

    def find(self, beside: Path, target: str) -> Path:
        """The path of a file that is included: beside the file that includes it, or in one of the folders."""
        for folder in (beside, *self.folders):
            if (path := folder / target).exists():
                return path
            self.sources.absent.add(str(path))
        return beside / target

    def include(self, beside: Path, target: str, at: int, folder: Path, module: Module) -> None:
        path = beside / target
        try:
            path = self.find(beside, target)
            resolved = path.resolve()
            if not any(resolved.is_relative_to(allowed) for allowed in (folder, *self.folders)):
                message = f'"{target}" is not in the folder of the rule file'
                hint = f"if it may be included, allow its folder: {resolved.parent}"
                self.reporter.error("E0106", at, message, hint)
                return
            self.read(str(path), read_text(path), folder, module, included=True)
        except NoRulesError:
            hint = "its first statement has a syntax error: load the file by itself to see it"
            self.reporter.error("E0106", at, f'"{target}" is not a rule file', hint)
        except (UnreadableError, OSError, ValueError, RuntimeError) as error:
            # Of a path itself: a null byte, a name that is too long, links that lead to one another.
            reason = getattr(error, "strerror", None) or str(error)
            self.reporter.error("E0106", at, f'cannot read "{target}": {reason}', f"looked for {path}")
