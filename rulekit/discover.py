"""Rules that installed packages ship: the entry points of the group ``shardlog.rules``.

A package names itself, and its ``.dl`` and ``.rules`` files are loaded:

    [project.entry-points."shardlog.rules"]
    mydialect = "mydialect_rules"
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from ..errors import ShardlogError

GROUP = "shardlog.rules"


@cache
def discovered() -> tuple[Path, ...]:
    """The rule files of all installed packages, by entry point, then by name. The packages' code is not run.

    Raises ShardlogError for an entry point that names no package, or one without rules.
    """
    found: list[Path] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        where = f"entry point {entry.name} of {GROUP}"
        try:
            spec = find_spec(entry.value)
        except ImportError:
            spec = None
        if spec is None or not spec.submodule_search_locations:
            message = f"there is no package {entry.value}"
            raise ShardlogError(message, where=where, hint="name a package with rules")
        folders = map(Path, spec.submodule_search_locations)
        files = sorted(p for folder in folders for p in folder.iterdir() if p.suffix in (".dl", ".rules"))
        if not files:
            raise ShardlogError(f"package {entry.value} has no .dl or .rules file", where=where)
        found += files
    return tuple(found)
