"""Rules that installed packages ship: the entry points of the group ``shardlog.rules``.

A package names itself, and its ``.dl`` and ``.rules`` files are loaded:

    [project.entry-points."shardlog.rules"]
    mydialect = "mydialect_rules"
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "shardlog.rules"


@dataclass(frozen=True)
class Package:
    """The rule files of an entry point, by name; ``broken`` is why there are none."""

    name: str
    files: tuple[Path, ...]
    broken: str = ""


@cache
def discovered() -> tuple[Package, ...]:
    """The packages with rules that are installed, by entry point. Neither their code is run, nor the
    code of a package around them."""
    from importlib.metadata import entry_points  # which explanations of saved runs need not

    entries = sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value))
    return tuple(map(_package, entries))


def _package(entry: EntryPoint) -> Package:
    try:
        folders = list(_folders(entry.value))
        files = sorted(p for folder in folders for p in folder.iterdir() if p.suffix in (".dl", ".rules"))
    except (ImportError, ValueError, AttributeError, OSError) as error:
        return Package(entry.name, (), f"{entry.value} cannot be read: {error}")
    if not folders:
        return Package(entry.name, (), f"there is no package {entry.value}")
    return Package(
        entry.name, tuple(files), "" if files else f"package {entry.value} has no .dl or .rules file"
    )


def _folders(name: str) -> Iterator[Path]:
    """The folders of a package, by its dotted name: to look for a part of a package would run the package."""
    top, *parts = name.strip().split(".")
    spec = find_spec(top)
    for place in (spec and spec.submodule_search_locations) or ():
        folder = Path(place, *parts)
        if folder.is_dir():
            yield folder
