"""The file that describes a sweep.

``models`` are modules, whose paths are relative to the file. ``meshes`` are meshes, and ``devices`` numbers
of devices, of which the best mesh is searched for; without both, each model has its own mesh. ``topologies``
are machines, and ``memory`` limits, "none" for no limit. All their combinations are tasks. The other keys are
options of ``shardlog auto``, the same for all tasks.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir

from ..autosharding.options import AutoOptions
from ..cost.machine import machine
from ..errors import ShardlogError, closest
from ..importers.annotations import replace_mesh
from ..importers.sources.source import read_program
from ..importers.sources.text import make_context
from ..runs.options import TOPOLOGY
from ..tomls import entry_lines, toml_values
from .tasks import Task

_TaskOptions = dict[str, Any]  # of AutoOptions, by name
_LISTS = ("models", "meshes", "devices", "topologies", "memory")
_OPTIONS = {"keep": list, "tie": list, "axes": int, "compare": bool, "method": str}
_EXAMPLE = 'as in models = ["step.mlir"] or devices = [8]'


@dataclass(frozen=True)
class _SweepEntry:
    """The value of a key, and where it is: the file, and the lines from its first on."""

    value: Any
    path: Path
    line: int
    lines: Sequence[str]

    @property
    def where(self) -> str:
        return f"{self.path}:{self.line}"

    def of(self, item: object) -> str:
        """The place of an item of a list."""
        item_text = str(item).lower() if isinstance(item, bool) else str(item)
        number = next((n for n, text in enumerate(self.lines) if item_text in text), 0)
        return f"{self.path}:{self.line + number}"


def read_sweep(path: Path) -> list[Task]:
    """The tasks that a file describes, in order, without duplicates. Raises ShardlogError with the line of
    the error."""
    entries = _entries(path)
    for key, entry in entries.items():
        if key not in (*_LISTS, *_OPTIONS):
            hint = closest(key, (*_LISTS, *_OPTIONS))
            raise ShardlogError(f"a sweep has no {key}", where=entry.where, hint=hint)
        if key in _LISTS and not (isinstance(entry.value, list) and entry.value):
            raise ShardlogError(f"{key} is not a list with items", where=entry.where, hint=_EXAMPLE)
        if key in _OPTIONS and not isinstance(entry.value, _OPTIONS[key]):
            message = f"{key} is {entry.value!r}"
            hint = f"expected a {_OPTIONS[key].__name__}, as shardlog auto takes it"
            raise ShardlogError(message, where=entry.where, hint=hint)
    if "models" not in entries:
        raise ShardlogError("a sweep without models", where=str(path), hint=_EXAMPLE)
    fixed = _fixed(entries)
    given = entries["models"]
    models = [_model(given, item) for item in given.value]
    axes = {"axes": fixed.pop("axes", None)}  # of the meshes that are searched for
    searched = [each | axes for each in _items(entries, "devices", _devices, {})]
    meshes = [*_items(entries, "meshes", _mesh, {}), *searched] or [{}]
    machines = _items(entries, "topologies", _topology, {"topology": TOPOLOGY})
    limits = _items(entries, "memory", _memory, {"memory": None})
    tasks = [
        Task(name, data, AutoOptions(**fixed, **mesh, **topology, **limit))
        for (name, data), mesh, topology, limit in product(models, meshes, machines, limits)
    ]
    return list(dict.fromkeys(tasks))


def _entries(path: Path) -> dict[str, _SweepEntry]:
    """The entries of a file, with their lines."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ShardlogError(f"cannot read: {reason}", where=str(path), hint="expected a TOML file") from None
    whole = toml_values(text, str(path), _EXAMPLE)
    lines, places = text.splitlines(), dict[str, tuple[int, Sequence[str]]]()
    with suppress(ShardlogError):  # the first line stands for all then
        places = {
            key: (first + 1, lines[first:end]) for key, first, end in entry_lines(text, str(path), _EXAMPLE)
        }
    return {key: _SweepEntry(value, path, *places.get(key, (1, ()))) for key, value in whole.items()}


def _fixed(entries: Mapping[str, _SweepEntry]) -> _TaskOptions:
    """The options of all tasks."""
    options = _TaskOptions()
    for key in _OPTIONS:
        if key in entries:
            with _at(entries[key].where):
                devices = 1 if key == "axes" and "devices" in entries else None
                options[key] = getattr(AutoOptions.of(devices=devices, **{key: entries[key].value}), key)
    return options


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Errors meanwhile get a place in the file."""
    try:
        yield
    except ShardlogError as error:
        raise error.at(where) from None


def _items(
    entries: Mapping[str, _SweepEntry],
    key: str,
    read: Callable[[object], _TaskOptions],
    default: _TaskOptions,
) -> list[_TaskOptions]:
    if key not in entries:
        return [default] if default else []
    items = list[_TaskOptions]()
    for item in entries[key].value:
        with _at(entries[key].of(item)):
            items.append(read(item))
    return items


def _model(entry: _SweepEntry, item: object) -> tuple[str, bytes]:
    """The name and the compressed bytes of a model."""
    with _at(entry.of(item)):
        if not isinstance(item, str):
            raise ShardlogError(f"{item!r} is not the path of a module")
        try:
            text, _ = read_program(entry.path.parent / item)
        except ShardlogError as error:  # its place is in the module
            raise ShardlogError(f"{error.where}: {error.message}", hint=error.hint) from None
        return item, zlib.compress(text.data, 9)


def _mesh(item: object) -> _TaskOptions:
    if not isinstance(item, str):
        raise ShardlogError(f"{item!r} is not a mesh", hint="expected a text, as in data=4,model=2")
    with make_context(), ir.Location.unknown():
        replace_mesh(ir.Module.create(), item)
    return {"mesh": item}


def _devices(item: object) -> _TaskOptions:
    return {"devices": AutoOptions.of(devices=item).devices}


def _topology(item: Any) -> _TaskOptions:
    machine(item)
    return {"topology": item}


def _memory(item: object) -> _TaskOptions:
    return {"memory": None if item == "none" else AutoOptions.of(memory=item).memory}
