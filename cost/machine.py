"""Machines: how fast a device computes, reads memory and sends along the axes of a mesh."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ShardlogError, closest

MACHINES = Path(__file__).parent / "machines"


@dataclass(frozen=True)
class Link:
    """The bytes per second that a device sends along a mesh axis, and the seconds that each step takes
    besides."""

    bandwidth: float
    latency: float


@dataclass(frozen=True)
class Machine:
    """A machine: operations per second, bytes of memory per second, bytes of memory, of one device; and
    its links, those of some mesh axes on their own."""

    name: str
    flops: float
    memory_bandwidth: float
    memory: int
    link: Link
    axes: Mapping[str, Link] = field(default_factory=dict)

    def link_of(self, axes: Collection[str]) -> Link:
        """The link of a collective over mesh axes: the slowest of them."""
        links = [self.axes.get(axis.partition(":")[0], self.link) for axis in axes] or [self.link]
        return min(links, key=lambda link: link.bandwidth)


def names() -> list[str]:
    """The machines that shardlog knows."""
    return sorted(path.stem for path in MACHINES.glob("*.toml"))


def machine(name: str, axes: Collection[str] = ()) -> Machine:
    """A machine by its name, or as a TOML file describes it; ``axes`` are those of the program's mesh.

    Raises ShardlogError for a name that is none, for what a file lacks, and for axes that the mesh does
    not have.
    """
    path = Path(name) if name.endswith(".toml") else MACHINES / f"{name}.toml"
    if not path.is_file():
        known = names()
        hint = f"there are {', '.join(known)}; or give a TOML file"
        raise ShardlogError(f"there is no topology {name}", where="--topology", hint=hint)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ShardlogError(f"cannot read the topology: {error}", where=str(path)) from None
    links = _table(data, "links", path)
    of_axes = {
        axis: _link({**links, **entry}, path) for axis, entry in links.items() if isinstance(entry, dict)
    }
    for axis in of_axes:
        if axes and axis not in axes:
            hint = closest(axis, list(axes))
            raise ShardlogError(f"the mesh has no axis {axis}", where=str(path), hint=hint)
    return Machine(
        str(data.get("name", path.stem)),
        _number(data, "flops", path),
        _number(data, "memory_bandwidth", path),
        int(_number(data, "memory", path) * 2**30),
        _link(links, path),
        of_axes,
    )


def _link(table: Mapping[str, Any], path: Path) -> Link:
    return Link(_number(table, "bandwidth", path), _number(table, "latency", path, least=0.0))


def _table(data: Mapping[str, Any], key: str, path: Path) -> Mapping[str, Any]:
    found = data.get(key)
    if not isinstance(found, dict):
        raise ShardlogError(f"there is no table [{key}]", where=str(path), hint="with bandwidth and latency")
    return found


def _number(data: Mapping[str, Any], key: str, path: Path, least: float | None = None) -> float:
    found = data.get(key)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise ShardlogError(f"{key} is {found!r}", where=str(path), hint="expected a number")
    if not (found > 0 if least is None else found >= least) or found == float("inf"):
        raise ShardlogError(f"{key} is {found}", where=str(path), hint="expected a number above zero")
    return float(found)
