"""MLIR modules in an editor: their errors, and why the value at a place is sharded as it is.

MLIR's parser forgets how a text calls its values, and numbers them anew. So the names of a text are matched
with those of the module as MLIR prints it: both have the same values in the same order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from ...errors import ShardlogError
from ...importers.sources.text import Text, parse_module
from ...runs.choice import ProgramChoice
from ...runs.options import Options
from ...runs.records.saved import open_saved
from ...runs.records.saved_file import is_saved
from ...runs.running import run_with
from ...session import Session
from .programs import EditorProblem

RUN = ".shardlog"  # the suffix of a saved run beside its module
_LINES = 60  # of the answer about a value
_PLACE = re.compile(r":(\d+):(\d+)\Z")
# Comments and strings, which hold no names; functions; values.
_TOKENS = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"|func(?:\.func)? [^@\n]*@([\w$.\-]+)|(%[\w$.\-]+)(#\d+)?')


@dataclass(frozen=True)
class ValueUse:
    """A place of a value in a text: its name in the function that it stands in, and from where to where."""

    function: str
    name: str
    part: str
    start: int
    end: int


def uses(text: str) -> list[ValueUse]:
    """The values in a text, in order."""
    return list(_uses(text))


def _uses(text: str) -> Iterator[ValueUse]:
    function = ""
    for match in _TOKENS.finditer(text):
        if match[1]:
            function = match[1]
        elif match[2]:
            yield ValueUse(function, match[2], match[3] or "", match.start(), match.end())


def problems(path: Path, text: str) -> list[EditorProblem]:
    """The errors of a module, which is parsed and verified."""
    try:
        parse_module(Text(text.encode(), str(path)))
    except ShardlogError as error:
        place = _PLACE.search(error.where)
        line, column = (int(place[1]) - 1, int(place[2]) - 1) if place else (0, None)
        return [EditorProblem(line, column, "", error.message, error.hint)]
    return []


def hover(path: Path, text: str, offset: int) -> tuple[int, int, str] | None:
    """Where the value at a place begins and ends, and its sharding with its proof, as Markdown.

    Answers are those of the saved run beside the file, if it is newer than the file and the editor changed
    nothing; otherwise the module is run. Raises ShardlogError where it cannot be.
    """
    module = _known(path, text)
    value = module.at(offset)
    return None if value is None else (value.start, value.end, module.hover_text(value))


class _Known:
    """A module with its run."""

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._text = path, text

    @cached_property
    def _uses(self) -> list[ValueUse]:
        return uses(self._text)

    @cached_property
    def _printed(self) -> list[ValueUse]:
        """The values as MLIR prints them. Raises ShardlogError where they are not those of the text."""
        printed = uses(str(parse_module(Text(self._text.encode(), str(self._path)))))
        if len(printed) != len(self._uses):
            hint = "write the module as MLIR prints it: shardlog run MODULE --strategy none -o MODULE"
            raise ShardlogError(
                "the values of this text cannot be distinguished", where=str(self._path), hint=hint
            )
        return printed

    @cached_property
    def _session(self) -> Session:
        saved = self._path.with_suffix(RUN)
        if is_saved(saved) and self._is_newer(saved):
            return Session(saved=open_saved(saved))
        return Session(run_with(Text(self._text.encode(), str(self._path)), Options()))

    def _is_newer(self, saved: Path) -> bool:
        try:
            same = self._path.read_text(encoding="utf-8") == self._text
            return same and saved.stat().st_mtime_ns >= self._path.stat().st_mtime_ns
        except (OSError, UnicodeDecodeError):
            return False

    def at(self, offset: int) -> ValueUse | None:
        """The value that holds a place, or ends there."""
        return next((use for use in self._uses if use.start <= offset <= use.end), None)

    def hover_text(self, use: ValueUse) -> str:
        """A value's sharding, why it has it, and the collectives that move it, as Markdown."""
        printed = self._printed[self._uses.index(use)]
        session, record = self._session, self._session.record
        names = self._names.get((printed.function, printed.name), [])
        values = [value for name in names for value in session.explainer.values.find(name)]
        if use.part:
            values = [value for value in values if value.name.endswith(use.part)] or values
        if not values:
            return f"`{use.name}` has no sharding"
        parts = []
        for value in values[:2]:  # a function that is called twice has its values twice
            dims = ", ".join(f"{{{record.meshes.text(atoms)}}}" for atoms in record.axes(value.number))
            parts.append(f"`{value.name} : {value.type}`  \n**[{dims}]**")
            lines = repr(session.why(value.name)).splitlines()
            more = [f"... {len(lines) - _LINES:,} lines more"] if len(lines) > _LINES else []
            parts.append("\n".join(["```text", *lines[:_LINES], *more, "```"]))
            parts += self._moved.get(value.name, ())
        return "\n\n".join(parts)

    @cached_property
    def _names(self) -> dict[tuple[str, str], list[str]]:
        """The names of values in the run, by function and name there."""
        functions = {use.function for use in self._printed}
        names: dict[tuple[str, str], list[str]] = {}
        for value in self._session.record.values():
            scope, _, name = value.name.rpartition(":")
            function = scope.removeprefix("@").partition("#")[0]
            base = re.split("[#']", name)[0]
            for caller in [function] if function else functions - {"", *self._called}:
                names.setdefault((caller, base), []).append(value.name)
        return names

    @cached_property
    def _called(self) -> set[str]:
        """The functions that others call."""
        values = self._session.record.values()
        return {v.name[1:].partition("#")[0].partition(":")[0] for v in values if v.name.startswith("@")}

    @cached_property
    def _moved(self) -> dict[str, list[str]]:
        """The collectives of the program with the fewest bytes, by the value that they move."""
        by_value: dict[str, list[str]] = {}
        try:
            collectives = self._session.programs.asked(ProgramChoice()).collectives
        except ShardlogError:
            return {}
        for each in collectives:
            axes = ", ".join(each.axes)
            summary = (
                f"{each.kind} {each.number} over {axes}: {each.total:,} bytes for {each.slot} of {each.op}"
            )
            by_value.setdefault(each.value, []).append(f"- **{summary}**")
        return by_value


@lru_cache(maxsize=8)
def _known(path: Path, text: str) -> _Known:
    return _Known(path, text)
