"""Machines: how fast a device computes, reads memory and sends to others."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

from ..errors import ShardlogError, closest

MACHINES = Path(__file__).parent / "machines"
_FUSES = 4.0  # by what XLA expects the ops of a train step to take on a TPU
Groups = Sequence[Sequence[int]]  # of devices


@dataclass(frozen=True)
class Link:
    """The bytes per second that a device sends, and the seconds that each step takes besides. ``ring``: what
    is for a device further away goes through those between."""

    bandwidth: float
    latency: float
    ring: bool = False


@dataclass(frozen=True)
class Network:
    """What joins groups of ``within`` devices, such as nodes or slices; bandwidth is that of one device."""

    within: int
    link: Link


@dataclass(frozen=True)
class Torus:
    """Devices in rows along several dimensions, numbered row by row; a row of ``closes`` devices or a
    multiple of that is a ring. None is a torus in which every group of devices is a ring."""

    dims: tuple[int, ...]
    closes: int

    def rows(self, group: Sequence[int]) -> list[tuple[int, bool]]:
        """The dimensions along which a group of devices lies: the size of each, and whether it is a ring."""
        found, stride = [], prod(self.dims)
        for size in self.dims:
            stride //= size
            places = {device // stride % size for device in group}
            if len(places) > 1:
                found.append((len(places), len(places) == size and size % self.closes == 0))
        return found


@dataclass(frozen=True)
class Allocation:
    """How the compiler of a machine allocates memory. ``platform`` is its name in rules, such as "cpu".
    Pieces of memory begin at multiples of ``alignment`` bytes; several values that belong together have an
    ``address`` each, of so many bytes. ``breadth_first``: ops run as soon as they can, instead of in the
    order of the program."""

    platform: str = ""
    alignment: int = 1
    address: int = 0
    breadth_first: bool = False

    def room(self, size: int) -> int:
        """The bytes that a piece of so many takes before the next one begins."""
        return -(-size // self.alignment) * self.alignment


@dataclass(frozen=True)
class Machine:
    """A machine: operations per second, bytes of memory per second, bytes of memory, of one device; its
    links, those of some mesh axes on their own, and how devices are joined: in a torus, in groups. ``peaks``
    are the operations per second on elements of some types, ``flops`` those on all others. ``overlaps``: it
    computes while it sends. ``fuses``: of so many bytes that ops take and give one is read from memory or
    written there, for its compiler fuses ops. ``allocation`` is how memory is allocated there."""

    name: str
    flops: float
    memory_bandwidth: float
    memory: int
    link: Link
    axes: Mapping[str, Link] = field(default_factory=dict)
    network: Network | None = None
    torus: Torus | None = None
    peaks: Mapping[str, float] = field(default_factory=dict)
    overlaps: bool = True
    fuses: float = _FUSES
    allocation: Allocation = Allocation()

    def peak(self, element: str) -> float:
        """The operations per second on elements of a type, as MLIR writes it; "f8" is all of eight bits."""
        names = [name for name in self.peaks if element.startswith(name)]
        return self.peaks[max(names, key=len)] if names else self.flops

    def link_of(self, axes: Collection[str], groups: Groups = ()) -> Link:
        """The link of a collective: the slowest of its axes that have their own, or else what joins the
        devices of its groups; the slowest group counts."""
        own = [self.axes[name] for axis in axes if (name := axis.partition(":")[0]) in self.axes]
        if own:
            return min(own, key=lambda link: link.bandwidth)
        several = [group for group in groups if len(group) > 1]
        return min(map(self._joining, several), key=lambda link: link.bandwidth, default=self.link)

    def one_way(self, link: Link) -> Link:
        """A link that is used in one direction, to the next device: rings send both ways at once."""
        return replace(link, bandwidth=min(link.bandwidth, self.link.bandwidth / 2)) if link.ring else link

    def _joining(self, group: Sequence[int]) -> Link:
        inner = self._in_torus(group)
        if self.network is None:
            return inner
        near: dict[int, int] = {}
        for device in group:
            near[device // self.network.within] = near.get(device // self.network.within, 0) + 1
        if len(near) == 1:
            return inner
        beyond, together = self.network.link, min(near.values())  # which send side by side
        speed = together * beyond.bandwidth
        return replace(beyond, bandwidth=min(speed, inner.bandwidth) if together > 1 else speed)

    def _in_torus(self, group: Sequence[int]) -> Link:
        """The links along all dimensions in which a group lies; rings send both ways at once."""
        if self.torus is None:
            return self.link
        links = sum(1 if closed else 0.5 for _, closed in self.torus.rows(group)) or 1
        return replace(self.link, bandwidth=links * self.link.bandwidth)


def names() -> list[str]:
    """The machines that shardlog knows."""
    return sorted(path.stem for path in MACHINES.glob("*.toml"))


def machine(name: str, axes: Collection[str] = (), devices: int | None = None) -> Machine:
    """A machine by its name, or as a TOML file describes it; with the shape of a torus, as in v5e:4x8.
    ``axes`` are those of the program's mesh, and ``devices`` their number.

    Raises ShardlogError for a name that is none, for what a file lacks or has too much, for axes that the
    mesh does not have, and for a shape that does not fit.
    """
    base, _, shape = name.partition(":")
    known = names()
    if base in known:
        path = MACHINES / f"{base}.toml"
    elif Path(name).is_file():
        path, shape = Path(name), ""
    else:
        path = Path(base)
    if not path.is_file():
        hint = f"{closest(base, known)}; or give a TOML file"
        raise ShardlogError(f"there is no topology {name}", where="--topology", hint=hint)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ShardlogError(f"cannot read the topology: {error}", where=str(path)) from None
    found = _read(data, path, axes)
    return found if not shape else replace(found, torus=_torus(found, name, shape, devices))


_FIGURES = ("name", "flops", "memory_bandwidth", "memory", "overlaps", "fuses")
_KEYS = (*_FIGURES, "peaks", "links", "network", "torus", "allocation")
_OF_ALLOCATION = ("platform", "alignment", "address", "breadth_first")
_OF_LINKS = ("bandwidth", "latency", "ring")


def _read(data: Mapping[str, Any], path: Path, axes: Collection[str]) -> Machine:
    _known(data, _KEYS, path)
    links = _table(data, "links", path, "with bandwidth and latency")
    plain = {key: value for key, value in links.items() if not isinstance(value, dict)}
    _known(plain, _OF_LINKS, path)
    of_axes = {axis: _link({**plain, **entry}, path) for axis, entry in links.items() if axis not in plain}
    for axis in of_axes:
        if axes and axis not in axes:
            hint = closest(axis, list(axes))
            raise ShardlogError(f"the mesh has no axis {axis}", where=str(path), hint=hint)
    network = None
    if "network" in data:
        table = _table(data, "network", path, "with within, bandwidth and latency")
        _known(table, ("within", *_OF_LINKS), path)
        network = Network(_count(table, "within", path), _link(table, path))
    torus = None
    if "torus" in data:
        table = _table(data, "torus", path, "with shape and closes")
        _known(table, ("shape", "closes"), path)
        shape = table.get("shape", [])
        if not isinstance(shape, list) or not all(type(n) is int and n > 0 for n in shape):
            raise ShardlogError(f"shape is {shape!r}", where=str(path), hint="expected as in [4, 4, 8]")
        torus = Torus(tuple(shape), _count(table, "closes", path))
    peaks = _table(data, "peaks", path, "with operations per second by type") if "peaks" in data else {}
    for element in peaks:
        if not re.fullmatch(r"(f|bf|i|ui)\d+\w*", element):
            hint = "expected as in MLIR: f32, bf16, i8, or f8 for all of eight bits"
            raise ShardlogError(f"there is no type {element}", where=str(path), hint=hint)
    return Machine(
        str(data.get("name", path.stem)),
        _number(data, "flops", path),
        _number(data, "memory_bandwidth", path),
        int(_number(data, "memory", path) * 2**30),
        _link(plain, path),
        of_axes,
        network,
        torus,
        {element: _number(peaks, element, path) for element in peaks},
        _flag(data, "overlaps", True, path),
        _number(data, "fuses", path) if "fuses" in data else _FUSES,
        _allocation(data, path),
    )


def _allocation(data: Mapping[str, Any], path: Path) -> Allocation:
    if "allocation" not in data:
        return Allocation()
    table = _table(data, "allocation", path, f"with {', '.join(_OF_ALLOCATION)}")
    _known(table, _OF_ALLOCATION, path)
    alignment, address = (_count(table, key, path, "bytes") for key in ("alignment", "address"))
    breadth_first = _flag(table, "breadth_first", False, path)
    return Allocation(str(table.get("platform", "")), alignment, address, breadth_first)


def _torus(found: Machine, name: str, shape: str, devices: int | None) -> Torus:
    where = f"--topology {name}"
    if found.torus is None:
        raise ShardlogError(f"{found.name} has no shape", where=where, hint=f"say {name.partition(':')[0]}")
    sizes = shape.split("x")
    if not all(size.isdecimal() and int(size) for size in sizes):
        raise ShardlogError(f"there is no shape {shape}", where=where, hint="expected as in 4x4x8")
    dims = tuple(map(int, sizes))
    if devices is not None and prod(dims) < devices:
        hint = f"the mesh of the program has {devices}"
        raise ShardlogError(f"a torus of {prod(dims)} devices is too small", where=where, hint=hint)
    return Torus(dims, found.torus.closes)


def _link(table: Mapping[str, Any], path: Path) -> Link:
    bandwidth, latency = _number(table, "bandwidth", path), _number(table, "latency", path, least=0.0)
    return Link(bandwidth, latency, bool(table.get("ring", False)))


def _table(data: Mapping[str, Any], key: str, path: Path, hint: str) -> Mapping[str, Any]:
    found = data.get(key)
    if not isinstance(found, dict):
        raise ShardlogError(f"there is no table [{key}]", where=str(path), hint=hint)
    return found


def _known(data: Iterable[str], known: Sequence[str], path: Path) -> None:
    for key in data:
        if key not in known:
            raise ShardlogError(f"there is no {key} of a machine", where=str(path), hint=closest(key, known))


def _flag(data: Mapping[str, Any], key: str, otherwise: bool, path: Path) -> bool:
    found = data.get(key, otherwise)
    if not isinstance(found, bool):
        raise ShardlogError(f"{key} is {found!r}", where=str(path), hint="expected true or false")
    return found


def _count(data: Mapping[str, Any], key: str, path: Path, of: str = "devices") -> int:
    found = _number(data, key, path)
    if found != int(found):
        raise ShardlogError(f"{key} is {found}", where=str(path), hint=f"expected a number of {of}")
    return int(found)


def _number(data: Mapping[str, Any], key: str, path: Path, least: float | None = None) -> float:
    found = data.get(key)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise ShardlogError(f"{key} is {found!r}", where=str(path), hint="expected a number")
    if not (found > 0 if least is None else found >= least) or found == float("inf"):
        raise ShardlogError(f"{key} is {found}", where=str(path), hint="expected a number above zero")
    return float(found)
