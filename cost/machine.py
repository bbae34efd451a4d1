"""Machines: how fast a device computes, reads memory, and sends to others."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from math import prod
from pathlib import Path
from typing import Any

from ..errors import ShardlogError, closest
from ..program.elements import size_of
from .hlo import KINDS
from .tiles import tiled_size

MACHINES = Path(__file__).parent / "machines"
_FUSES = 4.0  # fitted to XLA's estimates for the ops of a train step on a TPU
Groups = Sequence[Sequence[int]]  # of devices


@dataclass(frozen=True)
class Link:
    """The bytes per second that a device sends, the extra seconds per step, and the extra seconds per
    collective (``start``). ``ring``: data for distant devices passes through those between. ``protocols`` for
    less data reach a share of the bandwidth, with their own latency and start. ``switches`` add up so many
    bytes of a tensor per second, after a start."""

    bandwidth: float
    latency: float
    ring: bool = False
    start: float = 0.0
    protocols: tuple[tuple[float, float, float], ...] = ()
    switches: tuple[float, float] | None = None

    @property
    def ways(self) -> tuple[tuple[float, float, float], ...]:
        """All protocols."""
        return ((1.0, self.latency, self.start), *self.protocols)


@dataclass(frozen=True)
class Network:
    """The network between groups of ``within`` devices, such as nodes or slices. The bandwidth is per
    device."""

    within: int
    link: Link


@dataclass(frozen=True)
class Torus:
    """Devices in rows along several dimensions, numbered row by row. A row of ``closes`` devices, or a
    multiple of that, is a ring. None is a torus in which every group of devices is a ring. There are at most
    ``dimensions`` dimensions, of at most ``longest`` devices each, 0 for any. Rows have one device, or a
    multiple of ``multiple`` devices."""

    dims: tuple[int, ...]
    closes: int
    dimensions: int = 0
    longest: int = 0
    multiple: int = 1

    def rows(self, group: Sequence[int]) -> list[tuple[int, bool]]:
        """The dimensions that a group of devices spans: the size of each, and whether it is a ring."""
        rows, stride = [], prod(self.dims)
        for size in self.dims:
            stride //= size
            places = {device // stride % size for device in group}
            if len(places) > 1:
                rows.append((len(places), len(places) == size and size % self.closes == 0))
        return rows


@dataclass(frozen=True)
class Allocation:
    """How a machine's compiler allocates memory. ``platform`` is its name in rules, such as "cpu". Buffers
    begin at multiples of ``alignment`` bytes. Each of several values in a tuple has an ``address`` of this
    many bytes. ``breadth_first``: ops run as soon as they can, instead of in program order. If tiles have
    ``sublanes`` rows of ``lanes`` elements, tensors take whole tiles."""

    platform: str = ""
    alignment: int = 1
    address: int = 0
    breadth_first: bool = False
    lanes: int = 1
    sublanes: int = 1

    def size(self, type_: str) -> int:
        """The bytes of a tensor of a type."""
        return tiled_size(type_, self.lanes, self.sublanes) if self.lanes > 1 else size_of(type_)

    def room(self, size: int) -> int:
        """The bytes from the start of a buffer to the next one."""
        return -(-size // self.alignment) * self.alignment


@dataclass(frozen=True)
class Machine:
    """A machine: operations per second, memory bandwidth, and memory in bytes, of one device; its links, with
    separate ones for some mesh axes; and how devices are connected: in a torus, in groups. ``peaks`` are the
    operations per second for some element types, ``flops`` for all others. ``overlaps``: it computes while it
    sends. ``fuses``: one of this many bytes of operands and results is read from memory or written to it,
    because its compiler fuses ops. ``allocation`` is how memory is allocated. Its compiler combines
    collectives of the kinds in ``combines`` over equal groups. ``kernels`` are the parameters of a GPU in
    ``rules/cost/kernels.dl``; empty for others. ``ops`` are the parameters of other machines in
    ``rules/cost/cost.dl``, if they are fitted. How ``sure`` the numbers are: see ``OpPrice``."""

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
    combines: tuple[str, ...] = ("all-reduce",)
    kernels: Mapping[str, float] = field(default_factory=dict)
    ops: Mapping[str, float] = field(default_factory=dict)
    sure: str = "data sheet"

    def peak(self, element: str) -> float:
        """The operations per second for an element type, as MLIR writes it; "f8" covers all types of eight
        bits."""
        names = [name for name in self.peaks if element.startswith(name)]
        return self.peaks[max(names, key=len)] if names else self.flops

    def link_of(self, axes: Collection[str], groups: Groups = ()) -> Link:
        """The link of a collective: the slowest of its axes with links of their own, or else of the
        connections of its groups."""
        own = [self.axes[name] for axis in axes if (name := axis.partition(":")[0]) in self.axes]
        if own:
            return min(own, key=lambda link: link.bandwidth)
        several = [group for group in groups if len(group) > 1]
        return min(map(self._joining, several), key=lambda link: link.bandwidth, default=self.link)

    def one_way(self, link: Link) -> Link:
        """A link that is used in one direction only, to the next device. Rings use both directions."""
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
        beyond, together = self.network.link, min(near.values())  # which send in parallel
        speed = together * beyond.bandwidth
        return replace(beyond, bandwidth=min(speed, inner.bandwidth) if together > 1 else speed)

    def _in_torus(self, group: Sequence[int]) -> Link:
        """The links along all dimensions that a group spans. Rings use both directions."""
        if self.torus is None:
            return self.link
        links = sum(1 if closed else 0.5 for _, closed in self.torus.rows(group)) or 1
        return replace(self.link, bandwidth=links * self.link.bandwidth)


def names() -> list[str]:
    """The machines that shardlog knows."""
    return sorted(path.stem for path in MACHINES.glob("*.toml"))


def machine(name: str, axes: Collection[str] = (), devices: int | None = None) -> Machine:
    """A machine by its name, or from a TOML file; with the shape of a torus, as in v5e:4x8. ``axes`` are the
    axes of the program's mesh, and ``devices`` the number of its devices.

    Raises ShardlogError for an unknown name, for missing or unknown entries of a file, for axes that the mesh
    does not have, and for a shape that does not fit.
    """
    if not isinstance(name, str):
        message, hint = (
            f"{name!r} is not a topology",
            "expected a name, such as v5e, or a path of a TOML file",
        )
        raise ShardlogError(message, where="--topology", hint=hint)
    base, colon, shape = name.partition(":")
    shipped = names()
    if base in shipped:
        path = MACHINES / f"{base}.toml"
    elif Path(name).exists() or not Path(base).exists():
        path, colon = Path(name), ""
    else:
        path = Path(base)
    if not (name and path.exists()):
        file = path.suffix == ".toml" or len(path.parts) > 1
        inside = [shape] if shape.partition(":")[0] in shipped else []  # of a target, such as tpu:v5e:2x4
        near = inside or get_close_matches(base, shipped, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        hint = "" if file else f"{hint}There are {', '.join(shipped)}; or give a TOML file: {_OWN}"
        message = f"there is no file {name}" if file else f"there is no topology {name}"
        raise ShardlogError(message, where="--topology", hint=hint)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ShardlogError(f"cannot read the topology: {reason}", where=str(path)) from None
    except RecursionError:
        raise ShardlogError("cannot read the topology: it is nested too deeply", where=str(path)) from None
    described = _read(_Table(data, "", path), axes)
    if colon:
        described = replace(described, torus=_shaped(described, name, shape))
    dims = described.torus.dims if described.torus is not None else ()
    if dims and devices is not None and prod(dims) < devices:
        hint = f"the mesh of the program has {devices}"
        raise ShardlogError(
            f"a torus of {prod(dims)} devices is too small", where=f"--topology {name}", hint=hint
        )
    return described


_FIGURES = ("name", "flops", "memory_bandwidth", "memory", "overlaps", "fuses", "sure")
SURE = ("measured", "estimated", "carried over", "data sheet")  # how sure numbers may be
_KEYS = (
    *_FIGURES,
    "combines",
    "peaks",
    "links",
    "switches",
    "network",
    "torus",
    "allocation",
    "kernels",
    "ops",
)
_OF_ALLOCATION = ("platform", "alignment", "address", "breadth_first", "lanes", "sublanes")
_OF_LINKS = ("bandwidth", "latency", "start", "ring", "protocols")
_LIMITS = (("dimensions", 0), ("longest", 0), ("multiple", 1))  # of a torus; and no limit
_OF_TORUS = ("shape", "closes", *(key for key, _ in _LIMITS))
# The parameters of a GPU's kernels, with their limits: see rules/cost/kernels.dl.
KERNELS = {
    "multiprocessors": (1, 1e4),
    "sending": (0, 1e4),
    "least": (1e-8, 1e-3),
    "host": (1e-8, 1e-2),
    "call": (1e-8, 1.0),
    "cached": (1e4, 1e11),
    "uncached": (1e4, 1e11),
    "cache_bandwidth": (1e9, 1e15),
    "memory_bandwidth": (1e9, 1e15),
    "operand_bandwidth": (1e9, 1e16),
    "transposed_bandwidth": (1e8, 1e15),
    "turned_bandwidth": (1e8, 1e15),
    "lanes": (1e9, 1e16),
    "rounding": (0.01, 100),
    "product_efficiency": (0.01, 1),
    "product_begins": (1e-8, 1e-3),
    "tile_edge": (0.01, 1000),
    "convolution_efficiency": (0.01, 1),
    "sorted": (1e6, 1e15),
    "selected": (1e6, 1e15),
    "factored": (1e6, 1e15),
    "factored_row": (1e-10, 1e-3),
    "updated": (1e6, 1e15),
    "updated_narrow": (1e6, 1e15),
    "wide_efficiency": (0.01, 1),
    "wide_operand_bandwidth": (1e9, 1e16),
    "product_step": (1e-10, 1e-4),
    "convolution_step": (1e-10, 1e-4),
    "ramp": (1e-9, 1e-3),
    "ramp_bytes": (1e2, 1e9),
    "written": (1e6, 1e15),
    "column_step": (1e-10, 1e-4),
}
# Those of ops on other machines: see rules/cost/cost.dl.
OPS = {
    "least": (1e-8, 1e-3),
    "lanes": (1e6, 1e16),
    "widening": (0.1, 100),
    "products": (0.001, 100),
    "memory": (1e7, 1e15),
    "sorted": (1e4, 1e16),
    "near": (1, 1e12),
    "near_bandwidth": (1e7, 1e16),
}
# Its other numbers, so that none is in other units, such as TFLOPS or GB/s.
_OF_GPUS = {
    "flops": (1e11, 1e18),
    "memory_bandwidth": (1e10, 1e15),
    "memory": (0.1, 1e5),
    "links.bandwidth": (1e7, 1e14),
    "links.latency": (0, 1e-2),
}
_PLATFORMS = ("cpu",)  # that the rules know
# The types of elements that StableHLO has, and names for all floats of so many bits.
_FLOATS = ["f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E3M4", "f8E4M3", "f8E4M3FN", "f8E4M3FNUZ", "f8E4M3B11FNUZ"]
_FLOATS += ["f8E5M2", "f8E5M2FNUZ", "f8E8M0FNU", "bf16", "f16", "tf32", "f32", "f64", "f4", "f6", "f8"]
_ELEMENTS = {*_FLOATS, "i1", *(f"{kind}{bits}" for kind in ("i", "ui") for bits in (2, 4, 8, 16, 32, 64))}
_OWN = "docs/cost.md says how to measure a GPU"
_LEAST, _MOST = 1e-30, 1e30  # limits of numbers, so that all results are finite


@dataclass(frozen=True)
class _Table:
    """A table of a file, its name (empty for the whole file), and the file. Entries are checked when they are
    read. Raises ShardlogError for invalid ones."""

    entries: Mapping[str, Any]
    name: str
    path: Path

    def label(self, key: str) -> str:
        """The name of an entry in messages."""
        return f"{self.name}.{key}" if self.name else key

    def wrong(self, key: str, expected: str) -> ShardlogError:
        """The error for an entry that is missing, or not as expected."""
        label = self.label(key)
        if key in self.entries:
            message, hint = f"{label} is {self.entries[key]!r}", f"expected {expected}"
        else:
            message, hint = f"there is no {label}", f"expected {key} = ..., {expected}"
        return ShardlogError(message, where=str(self.path), hint=hint)

    def check(self, allowed: Sequence[str]) -> None:
        """Raises ShardlogError for unknown entries."""
        for key in self.entries:
            if key not in allowed:
                message = f"a machine has no {self.label(key)}"
                raise ShardlogError(message, where=str(self.path), hint=closest(key, allowed))

    def number(self, key: str, *, zero: bool = False, otherwise: float | None = None) -> float:
        """A number above zero, or at least zero."""
        value = self.entries.get(key, otherwise)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, "a number")
        if not (value > 0 or (zero and value == 0)):
            raise self.wrong(key, "a number, zero or above" if zero else "a number above zero")
        if value and not _LEAST <= value <= _MOST:
            raise self.wrong(key, f"a number from {_LEAST:g} to {_MOST:g}")
        return float(value)

    def within(self, key: str, least: float, most: float) -> float:
        """A number within the limits of a machine."""
        number = self.number(key, zero=least == 0)
        if not least <= number <= most:
            raise self.wrong(key, f"a number from {least:g} to {most:g}")
        return number

    def count(self, key: str, of: str = "devices", *, zero: bool = False) -> int:
        """An integer."""
        number = self.number(key, zero=zero)
        if number != int(number):
            raise self.wrong(key, f"a number of {of}")
        return int(number)

    def flag(self, key: str, *, otherwise: bool) -> bool:
        """True or false."""
        value = self.entries.get(key, otherwise)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def text(self, key: str, otherwise: str) -> str:
        """A line of text."""
        value = self.entries.get(key, otherwise)
        if not isinstance(value, str) or not value.isprintable():
            raise self.wrong(key, "a line of text")
        return value

    def table(self, key: str, hint: str) -> _Table:
        """A table in it."""
        entries = self.entries.get(key)
        if not isinstance(entries, dict):
            raise ShardlogError(f"there is no table [{key}]", where=str(self.path), hint=hint)
        return _Table(entries, self.label(key), self.path)


def _read(given: _Table, axes: Collection[str]) -> Machine:
    given.check(_KEYS)
    links, of_axes = _links(given, axes)
    network = _network(given)
    torus = _torus(given, network)
    peaks = _peaks(given)
    name = given.text("name", given.path.stem)
    if not name.strip():
        raise given.wrong("name", "a line of text")
    return Machine(
        name,
        given.number("flops"),
        given.number("memory_bandwidth"),
        int(given.number("memory") * 2**30),
        links,
        of_axes,
        network,
        torus,
        peaks,
        given.flag("overlaps", otherwise=True),
        given.number("fuses", otherwise=_FUSES),
        _allocation(given),
        _combines(given),
        _kernels(given),
        _ops(given),
        _sure(given),
    )


def _links(given: _Table, axes: Collection[str]) -> tuple[Link, dict[str, Link]]:
    """The link between any two devices, and those of some mesh axes."""
    links = given.table("links", "with bandwidth and latency")
    tables = [axis for axis, entry in links.entries.items() if isinstance(entry, dict)]
    plain = replace(links, entries={k: v for k, v in links.entries.items() if k not in tables})
    plain.check(_OF_LINKS)
    link, of_axes = _link(plain), dict[str, Link]()
    for axis in tables:
        own = links.table(axis, "")
        own.check(_OF_LINKS)
        of_axes[axis] = _link(replace(own, entries={**plain.entries, **own.entries}))
        if axes and axis not in axes:
            hint = closest(axis, list(axes))
            raise ShardlogError(f"the mesh has no axis {axis}", where=str(given.path), hint=hint)
    if "switches" in given.entries:
        table = given.table("switches", "with bandwidth and start")
        table.check(("bandwidth", "start"))
        link = replace(link, switches=(table.number("bandwidth"), table.number("start", zero=True)))
    return link, of_axes


def _network(given: _Table) -> Network | None:
    if "network" not in given.entries:
        return None
    table = given.table("network", "with within, bandwidth and latency")
    table.check(("within", *_OF_LINKS))
    return Network(table.count("within"), _link(table))


def _torus(given: _Table, network: Network | None) -> Torus | None:
    if "torus" not in given.entries:
        return None
    table = given.table("torus", "with shape and closes")
    table.check(_OF_TORUS)
    shape = table.entries.get("shape", [])
    if not isinstance(shape, list) or not all(type(n) is int and n > 0 for n in shape):
        raise table.wrong("shape", "the devices along each dimension, as in [4, 4, 8]")
    limits = (table.count(key) if key in table.entries else none for key, none in _LIMITS)
    torus = Torus(tuple(shape), table.count("closes"), *limits)
    _check_torus(torus, network, str(given.path))
    return torus


def _peaks(given: _Table) -> dict[str, float]:
    """The operations per second by element type, for types that do not have the machine's common number."""
    if "peaks" not in given.entries:
        return {}
    table = given.table("peaks", "with operations per second by type")
    for element in table.entries:
        if element not in _ELEMENTS:
            hint = "expected as in MLIR: f32, bf16, i8, or f8 for all of eight bits"
            raise ShardlogError(f"there is no type {element}", where=str(given.path), hint=hint)
    return {element: table.number(element) for element in table.entries}


def _sure(given: _Table) -> str:
    word = given.text("sure", Machine.sure)
    if word not in SURE:
        raise given.wrong("sure", f"one of {', '.join(map(repr, SURE))}")
    return word


def _kernels(given: _Table) -> dict[str, float]:
    if "kernels" not in given.entries:
        return {}
    for name, bounds in _OF_GPUS.items():
        group, _, key = name.rpartition(".")
        (given.table(group, "") if group else given).within(key, *bounds)
    table = given.table("kernels", f"with {', '.join(KERNELS)}")
    table.check([*KERNELS])
    return {name: table.within(name, *bounds) for name, bounds in KERNELS.items()}


def _ops(given: _Table) -> dict[str, float]:
    if "ops" not in given.entries:
        return {}
    table = given.table("ops", f"with {', '.join(OPS)}")
    table.check([*OPS])
    return {name: table.within(name, *bounds) for name, bounds in OPS.items()}


def _combines(given: _Table) -> tuple[str, ...]:
    kinds = given.entries.get("combines", [*Machine.combines])
    if not isinstance(kinds, list) or not all(kind in KINDS for kind in kinds):
        raise given.wrong("combines", f"a list of some of {', '.join(sorted(KINDS))}")
    return tuple(kinds)


def _allocation(given: _Table) -> Allocation:
    if "allocation" not in given.entries:
        return Allocation()
    table = given.table("allocation", f"with {', '.join(_OF_ALLOCATION)}")
    table.check(_OF_ALLOCATION)
    if table.entries.get("platform", "") not in ("", *_PLATFORMS):
        raise table.wrong("platform", f"{' or '.join(map(repr, _PLATFORMS))}, or no platform")
    return Allocation(
        table.text("platform", ""),
        table.count("alignment", "bytes"),
        table.count("address", "bytes", zero=True),
        table.flag("breadth_first", otherwise=False),
        *(table.count(key, "elements") if key in table.entries else 1 for key in ("lanes", "sublanes")),
    )


def sizes_of(shape: str) -> tuple[int, ...]:
    """The sizes in a shape such as 4x4x8; none for other texts."""
    sizes = shape.split("x")
    if not all(size.isascii() and size.isdecimal() and int(size) for size in sizes):
        return ()
    return tuple(map(int, sizes))


def _shaped(machine: Machine, name: str, shape: str) -> Torus:
    where = f"--topology {name}"
    if machine.torus is None:
        raise ShardlogError(f"{machine.name} has no shape", where=where, hint=f"say {name.partition(':')[0]}")
    dims = sizes_of(shape)
    if not dims:
        message = f"there is no shape {shape}" if shape else "there is no shape after the colon"
        raise ShardlogError(message, where=where, hint="expected as in 4x4x8")
    torus = replace(machine.torus, dims=dims)
    _check_torus(torus, machine.network, where)
    return torus


def _check_torus(torus: Torus, network: Network | None, where: str) -> None:
    """Raises ShardlogError for an impossible shape: with more dimensions, longer, or larger than what the
    links connect. Dimensions of one device do not count."""
    shape, fault = "x".join(map(str, torus.dims)), ""
    dims, hint = [size for size in torus.dims if size > 1], ""
    if torus.dimensions and len(dims) > torus.dimensions:
        fault, hint = "of too many dimensions", f"expected {torus.dimensions} at most"
    elif torus.longest and max(dims, default=1) > torus.longest:
        fault, hint = "too long", f"expected {torus.longest} devices in a row at most"
    elif any(size % torus.multiple for size in dims):
        fault, hint = "of parts of hosts", f"expected rows of 1 or a multiple of {torus.multiple} devices"
    elif network is not None and prod(dims) > network.within:
        fault = f"of {prod(dims):,} devices, and the links join {network.within:,}"
        hint = "leave out the shape: links between slices then count as a network"
    if fault:
        raise ShardlogError(f"a torus {shape} is {fault}", where=where, hint=hint)


def _link(table: _Table) -> Link:
    bandwidth, latency = table.number("bandwidth"), table.number("latency", zero=True)
    start = table.number("start", zero=True, otherwise=0.0)
    return Link(bandwidth, latency, table.flag("ring", otherwise=False), start, _protocols(table))


def _protocols(table: _Table) -> tuple[tuple[float, float, float], ...]:
    protocols = list[tuple[float, float, float]]()
    for row in given if isinstance(given := table.entries.get("protocols", []), list) else [None]:
        numbers = row if isinstance(row, list) and len(row) == 3 else []
        if not numbers or not all(type(n) in (int, float) and 0 <= n <= 1 for n in numbers) or not numbers[0]:
            raise table.wrong(
                "protocols", "lists of a share of the bandwidth, seconds of a step and of a start"
            )
        protocols.append((float(numbers[0]), float(numbers[1]), float(numbers[2])))
    return tuple(protocols)
