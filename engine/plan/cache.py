"""Plans in files, so that an unchanged program is not compiled again.

A file has three lines: a checksum of the others, the request (JSON), and the plan in the form that ``core``
reads. It is valid only if this front end made it from the same texts, byte by byte, no other file would now
be included in place of one of them, and the same code examined it. A file that is damaged or of another
version is ignored, and replaced.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ...outputs import write_to_cache
from ..language.sources import Sources, UnreadableError, read_text
from .plan import QueryPlan

try:  # as the standard library's random does: hashlib loads OpenSSL, of several megabytes
    from _sha256 import sha256  # type: ignore[import-not-found]
except ImportError:
    from hashlib import sha256

_ROOT = "<root>/"  # before the name of a file that is named from the root
PARTS = ("language", "analysis", "transform", "plan")  # folders of the engine that make plans


@dataclass(frozen=True)
class Request:
    """The texts and the options that a plan is made from: see ``load``."""

    paths: Sequence[Path | str]
    key: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    include_from: Sequence[Path | str] = ()
    untyped: Callable[[str], bool] = lambda file: False
    files: bool = True
    updates: bool = False
    magic: bool = False
    macros: Mapping[str, str] = field(default_factory=dict)
    pragmas: Mapping[str, str] = field(default_factory=dict)
    functors: Sequence[str] = ()  # those that the caller has functions for
    examine: Callable[[QueryPlan], Any] | None = None


@dataclass(frozen=True)
class PlanText:
    """A plan as text, with data that callers need without reading all of it.

    ``relations`` are names with whether each is an output. ``remarks`` are those of ``Request.examine``.
    """

    text: str
    key: str | None
    relations: Mapping[str, bool]
    remarks: Any


@dataclass(frozen=True)
class PlanCache:
    """The folders of plans: ``shipped``, made ahead and read-only, and ``folder``, None to store nothing.

    Names of files in the folder ``root`` are stored relative to it, so that shipped plans can be anywhere.
    ``examiners`` are folders with the code of ``Request.examine``.
    """

    root: Path
    shipped: Path
    folder: Path | None
    examiners: tuple[Path, ...] = ()

    def find(self, request: Request) -> PlanText | None:
        """The plan of a program that was asked for like this, if it is kept and nothing has changed."""
        for folder in (self.shipped, self.folder):
            if folder is not None and (stored := self._read(folder / self._name(request, folder), request)):
                return stored
        return None

    def keep(self, request: Request, plan: QueryPlan, sources: Sources, remarks: Any = None) -> None:
        """Keep a plan, made of ``sources``, and the ``remarks`` on it, which JSON can hold. Does nothing
        where files cannot be written."""
        if self.folder is None or self._version(request) is None:
            return
        file = self.folder / self._name(request, self.folder)
        write_to_cache(file, self._packed(request, plan, sources, remarks))

    def ship(self, request: Request, plan: QueryPlan, sources: Sources) -> None:
        """Write a plan, made of ``sources``, to the folder ``shipped``."""
        (self.shipped / self._name(request, self.shipped)).write_bytes(
            self._packed(request, plan, sources, None)
        )

    def _packed(self, request: Request, plan: QueryPlan, sources: Sources, remarks: Any) -> bytes:
        """The content of a plan's file."""
        body = plan.to_json().replace(f'"file":{self._start()}', f'"file":"{_ROOT}').encode()
        head = {
            "version": self._version(request),
            "texts": [
                [self._from_root(f), checksum(t.encode()), request.untyped(f)]
                for f, t in sources.by_file().items()
            ],
            "absent": sorted(map(self._from_root, sources.absent)),
            "key": plan.key,
            "relations": {relation.name: relation.output for relation in plan.relations},
            "remarks": remarks,
        }
        lines = json.dumps(head, separators=(",", ":")).encode() + b"\n" + body
        return checksum(lines).encode() + b"\n" + lines

    def _read(self, file: Path, request: Request) -> PlanText | None:
        try:
            first_line, lines = file.read_bytes().split(b"\n", 1)
            if first_line != checksum(lines).encode():
                return None
            first, body = lines.split(b"\n")
            head: dict[str, Any] = json.loads(first)
            if head["version"] != self._version(request):
                return None
            if not all(self._holds(request, *text) for text in head["texts"]):
                return None
            if any(Path(self._file(name)).exists() for name in head["absent"]):
                return None
            text = body.decode().replace(f'"file":"{_ROOT}', f'"file":{self._start()}')
            return PlanText(text, head["key"], head["relations"], head["remarks"])
        except (OSError, ValueError, KeyError, TypeError, UnreadableError, RecursionError):
            return None

    def _holds(self, request: Request, name: str, expected: str, untyped: bool) -> bool:
        """Whether a text is unchanged."""
        file = self._file(name)
        text = request.texts[file] if file in request.texts else read_text(Path(file))
        return checksum(text.encode()) == expected and untyped == request.untyped(file)

    def _version(self, request: Request) -> str | None:
        """The version of all code that a plan depends on."""
        return _version(self.examiners if request.examine is not None else ())

    def _name(self, request: Request, folder: Path) -> str:
        place = "" if folder == self.shipped else str(self.root)
        asked = [
            place,
            request.key,
            [request.files, request.updates, request.magic, request.examine is not None],
            [self._from_root(path) for path in request.paths],
            [(self._from_root(name), checksum(text.encode())) for name, text in request.texts.items()],
            [self._from_root(path) for path in request.include_from],
            [[*request.macros.items()], [*request.pragmas.items()], [*request.functors]],
        ]
        return f"{checksum(json.dumps(asked).encode())[:32]}.plan"

    def _from_root(self, file: Path | str) -> str:
        root, name = str(self.root), str(file)
        return _ROOT + name[len(root) + 1 :] if f"{name}/".startswith(f"{root}/") else name

    def _file(self, name: str) -> str:
        """The file that ``_from_root`` names."""
        return f"{self.root}/{name.removeprefix(_ROOT)}" if name.startswith(_ROOT) else name

    def _start(self) -> str:
        """How the name of a file in the root starts in JSON."""
        return json.dumps(f"{self.root}/")[:-1]


def checksum(data: bytes) -> str:
    """The SHA-256 of data, in hexadecimal digits."""
    return str(sha256(data).hexdigest())


@cache
def _version(examiners: tuple[Path, ...]) -> str | None:
    """The version of this front end and of the code that examines plans: the hash of their sources. None
    where they cannot be read."""
    engine, digest = Path(__file__).parents[1], sha256()
    try:
        for folder in (*(engine / part for part in PARTS), *examiners):
            for file in sorted(folder.glob("*.py")):
                digest.update(f"{folder.name}/{file.name}\n".encode() + file.read_bytes())
    except OSError:
        return None
    return str(digest.hexdigest())
