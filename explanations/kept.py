"""Conflicts of saved runs that were found before. They follow from a plan of the whole program, which takes
seconds for a large one. So they are kept in the cache, and later questions read them there.

They hold for one file of a run, one choice of a program, and the code and rules that found them.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple, fields
from functools import cache
from pathlib import Path
from typing import Any

from ..engine.plan.cache import checksum
from ..outputs import write_to_cache
from ..rulebook.discover import discovered
from ..rulebook.shipped import cache_folder
from ..runs.choice import ProgramChoice
from ..runs.records.record import Annotation
from ..runs.records.saved import Saved
from ..version import __version__
from .answers.conflicts import Conflict, Conflicts

_LEVEL = 1  # of zlib
_SOURCES = (".py", ".dl", ".toml", ".so", ".pyd")
_ASIDE = ("tests", "docs", "examples", "findings", "standalone", "editors", "target", "build", "dist")
_NAMES = [field.name for field in fields(Conflict) if field.name != "meeting"]


def conflicts_of(saved: Saved, choice: ProgramChoice, find: Callable[[], Conflicts]) -> Conflicts:
    """The conflicts in a program of a saved run, as they are kept; otherwise those that ``find`` finds.

    ``find`` is also asked for annotations that are not kept, when they are first read. Raises what it does.
    """
    file = _file(saved, choice)
    kept = None if file is None else _read(file, find)
    return find() if kept is None else Conflicts(kept, choice)


def keep(saved: Saved, conflicts: Conflicts) -> None:
    """Keeps conflicts, with those annotations that were read. Does nothing where files cannot be written."""
    file = _file(saved, conflicts.program)
    if file is None:
        return
    data = zlib.compress(json.dumps(list(map(_row, conflicts)), separators=(",", ":")).encode(), _LEVEL)
    with suppress(OSError):
        if file.read_bytes() == data:
            return
    write_to_cache(file, data)


# ---- Files ----------------------------------------------------------------------------------------------


def _row(conflict: Conflict) -> tuple[dict[str, Any], list[Any] | None]:
    met = vars(conflict).get("met")
    return {name: getattr(conflict, name) for name in _NAMES}, met and [
        each and astuple(each) for each in met
    ]


def _conflict(
    find: Callable[[], Conflicts], number: int, texts: dict[str, Any], met: list[Any] | None
) -> Conflict:
    lists = {name: tuple(texts[name]) for name in ("has", "needs", "numbers")}
    conflict = Conflict(**{**texts, **lists}, meeting=lambda: find()[number].met)
    if met is not None:
        origin, against = (each and Annotation(*each) for each in met)
        vars(conflict)["met"] = origin, against
    return conflict


def _read(file: Path, find: Callable[[], Conflicts]) -> list[Conflict] | None:
    """The conflicts in a file; None where there is none that can be read."""
    try:
        rows = json.loads(zlib.decompress(file.read_bytes()))
        return [_conflict(find, number, *row) for number, row in enumerate(rows)]
    except (OSError, ValueError, TypeError, KeyError, zlib.error):
        return None


def _file(saved: Saved, choice: ProgramChoice) -> Path | None:
    """Where the conflicts of a choice are kept; None where there is no cache.

    Nothing is kept of a choice that stops after some seconds, or that a file decides.
    """
    folder = cache_folder()
    if folder is None or choice.seconds is not None or choice.plan is not None:
        return None
    module, run = saved.identity
    packages = [path for package in discovered() for path in package.files]
    try:
        about = run, repr(choice), choice.machine, __version__, _code(), [*map(_state, packages)]
    except OSError:  # a source went away meanwhile
        return None
    return folder / f"{checksum(module + repr(about).encode())[:32]}.conflicts"


@cache
def _code() -> list[tuple[Any, ...]]:
    """The state of each source of this package: its code, rules and machines."""
    root, states = Path(__file__).parents[1], list[tuple[Any, ...]]()
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name[0] not in "._" and name not in _ASIDE)
        states += [_state(Path(folder, name)) for name in sorted(names) if name.endswith(_SOURCES)]
    return states


def _state(file: Path) -> tuple[Any, ...]:
    status = file.stat()
    return str(file), status.st_size, status.st_mtime_ns
