"""GSPMD's notation for shardings: the strings of ``mhlo.sharding``, as XLA's ``HloSharding`` prints them.

    {replicated}  {manual}  {unknown}  {unreduced}  {maximal device=3}
    {devices=[2,4]<=[8]}                        tile (i, j) is on device 4*i + j
    {devices=[4,2]<=[2,4]T(1,0)}                the devices 0..7 as a 2x4 array, transposed
    {devices=[2,4]0,1,2,3,7,6,5,4}              a list of devices
    {devices=[2,2,2]<=[8] last_tile_dim_replicate}              the last dimension counts replicas
    {devices=[2,1,2,2]<=[8] last_tile_dims={manual, replicated}}    ... dimensions of other kinds
    {{replicated}, {maximal device=0}}          a tuple
    {mesh['a'=2,'b'=4], [{'a'}, {}]}            by named axes, see ``named.py``

``shard_as N`` and ``shard_like N`` put a sharding into a group; ``metadata={...}`` is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NoReturn, TypeVar

import numpy as np

from ...errors import ShardlogError, closest
from ...program.meshes import Mesh, SubAxis
from ...program.shardings import Dimension
from .named import NamedSharding

SUBGROUPS = ("manual", "unreduced", "replicated")  # in the order in which XLA writes them
_WORDS = ("replicated", "manual", "unknown", "unreduced")
_GROUPS = ("shard_as", "shard_like")
_MOST_DEVICES = 1 << 22  # each may be looked at on its own
_MESHES = ("mesh", "single_device", "maximal_mesh")  # with which a sharding by named axes begins
_REDUCTIONS = ("sum", "max", "min")
_TOKEN = re.compile(
    r"""(?:\s|/\*.*?\*/)*(<=|[a-z_]+|T|\d+|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|.)""", re.DOTALL
)

T = TypeVar("T")


@dataclass(frozen=True)
class Iota:
    """The devices 0, 1, ... as an array of shape ``sizes``, its dimensions put into ``order``."""

    sizes: tuple[int, ...]
    order: tuple[int, ...]

    def __str__(self) -> str:
        transposed = f"T({_list(self.order)})" if len(self.order) > 1 else ""
        return f"<=[{_list(self.sizes)}]{transposed}"


@dataclass(frozen=True)
class HloSharding:
    """A sharding of one tensor.

    ``kind`` is "replicated", "manual", "unknown", "unreduced", "maximal" or "tiled". ``tiles`` are the
    numbers of tiles along each dimension, followed by the sizes of ``subgroups`` ("manual", "unreduced" or
    "replicated"); ``devices`` are the devices of the tiles; the last dimension changes fastest. A maximal
    sharding has one device. ``group`` is ("shard_as" or "shard_like", the number of the group).
    """

    kind: str
    tiles: tuple[int, ...] = ()
    devices: Iota | tuple[int, ...] = ()
    subgroups: tuple[str, ...] = ()
    group: tuple[str, int] | None = None

    def __str__(self) -> str:
        if self.kind == "maximal":
            assert isinstance(self.devices, tuple)
            text = f"maximal device={self.devices[0]}"
        elif self.kind == "tiled":
            devices = _list(self.devices) if isinstance(self.devices, tuple) else self.devices
            text = f"devices=[{_list(self.tiles)}]{devices}"
            if self.subgroups == ("replicated",):
                text += " last_tile_dim_replicate"
            elif self.subgroups:
                text += f" last_tile_dims={{{', '.join(self.subgroups)}}}"
        else:
            text = self.kind
        group = f" {self.group[0]} {self.group[1]}" if self.group else ""
        return f"{{{text}{group}}}"


def tuple_text(shardings: Sequence[HloSharding]) -> str:
    """A tuple as XLA prints it: every fifth element has its number before it."""
    parts = [f"/*index={i}*/{s}" if i and i % 5 == 0 else f"{s}" for i, s in enumerate(shardings)]
    return "{" + ", ".join(parts) + "}"


def parse(
    text: str, where: str = ""
) -> HloSharding | NamedSharding | tuple[HloSharding | NamedSharding, ...]:
    """The sharding, or tuple of shardings, in ``text``. Raises ShardlogError at ``where``."""
    return _ShardingParser(text, where).whole()


def flat(devices: Iota | tuple[int, ...]) -> tuple[int, ...]:
    """Devices in their order, one by one."""
    if isinstance(devices, tuple):
        return devices
    sizes = devices.sizes
    return tuple(np.arange(prod(sizes)).reshape(sizes).transpose(devices.order).ravel().tolist())


def _list(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


class _ShardingParser:
    """Recursive descent over the tokens of one string."""

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where = text, where
        self.tokens: list[str] = _TOKEN.findall(text.rstrip())
        self.at = 0

    def whole(self) -> HloSharding | NamedSharding | tuple[HloSharding | NamedSharding, ...]:
        self.expect("{")
        self.at -= 1
        if self.tokens[self.at + 1 : self.at + 2] in (["{"], ["}"]):
            self.at += 1
            sharding: HloSharding | NamedSharding | tuple[HloSharding | NamedSharding, ...]
            sharding = self.several(self.sharding, "}")
        else:
            sharding = self.sharding()
        if self.at < len(self.tokens):
            self.fail("the end")
        return sharding

    def sharding(self) -> HloSharding | NamedSharding:
        self.expect("{")
        if self.peek in _MESHES:
            return self.named()
        if self.accept("maximal"):
            self.expect("device")
            self.expect("=")
            sharding = HloSharding("maximal", devices=(self.number(),))
        elif self.accept("devices"):
            sharding = self.tiled()
        elif self.peek in _WORDS:
            sharding = HloSharding(self.next())
        else:
            self.fail("devices=[...], mesh[...], replicated, manual, unknown, unreduced or maximal")
        group = None
        while not self.accept("}"):
            if self.peek in _GROUPS and group is None:
                group = (self.next(), self.number())
            elif self.accept("metadata"):
                self.expect("=")
                self.skip_braces()
            else:
                self.fail("'}'")
        return HloSharding(sharding.kind, sharding.tiles, sharding.devices, sharding.subgroups, group)

    def tiled(self) -> HloSharding:
        self.expect("=")
        self.expect("[")
        tiles = self.several(self.number, "]")
        devices: Iota | tuple[int, ...]
        if self.accept("<="):
            self.expect("[")
            devices = self.iota()
            count = prod(devices.sizes)
        else:
            devices = self.listed()
            count = len(devices)
        if not tiles or 0 in tiles or prod(tiles) != count:
            self.refuse(f"{_list(tiles)} tiles are {prod(tiles)}, and there are {count} devices")
        if count > _MOST_DEVICES:
            self.refuse(f"{count:,} devices, and at most {_MOST_DEVICES:,} can be")
        subgroups: tuple[str, ...] = ()
        if self.accept("last_tile_dim_replicate"):
            subgroups = ("replicated",)
        elif self.accept("last_tile_dims"):
            self.expect("=")
            self.expect("{")
            subgroups = self.several(self.subgroup, "}")
        if len(subgroups) > len(tiles):
            self.refuse(f"{len(subgroups)} kinds of last dimensions, and only {len(tiles)} dimensions")
        return HloSharding("tiled", tiles, devices, subgroups)

    def iota(self) -> Iota:
        """The devices counted up, behind the first bracket."""
        sizes = self.several(self.number, "]")
        order: tuple[int, ...] = tuple(range(len(sizes)))
        if len(sizes) > 1:
            self.expect("T")
            self.expect("(")
            order = self.several(self.number, ")")
        if sorted(order) != list(range(len(sizes))):
            self.refuse(f"T({_list(order)}) is not an order of {len(sizes)} dimensions")
        return Iota(sizes, order)

    def listed(self) -> tuple[int, ...]:
        """The devices one by one."""
        listed = [self.number()]
        while self.accept(","):
            listed.append(self.number())
        if len(set(listed)) < len(listed):
            self.refuse("a device is listed twice")
        return tuple(listed)

    # ---- By named axes -------------------------------------------------------------------------------------

    def named(self) -> NamedSharding:
        """The text after the first brace."""
        mesh = self.mesh()
        axes: tuple[SubAxis, ...] = tuple(SubAxis(name, 1, size) for name, size in mesh.axes)
        parts: dict[str, Any] = {}
        while self.accept(","):
            label = self.peek
            if self.accept("["):
                parts["dimensions"] = self.several(lambda: self.dimension(mesh), "]")
            elif label in SUBGROUPS:
                self.next()
                given = self.accept("=")
                if given and label == "unreduced" and self.peek in _REDUCTIONS:
                    parts["reduction"] = self.next()
                if given and self.accept("{"):
                    parts[label] = self.several(lambda: self.axis(mesh), "}")
                elif label != "replicated":
                    parts[label] = axes
            elif self.accept("metadata"):
                self.expect("=")
                self.skip_braces()
            else:
                self.fail("the axes of dimensions, replicated, unreduced or manual")
        self.expect("}")
        return NamedSharding(mesh, **parts)

    def mesh(self) -> Mesh:
        if (kind := self.next()) != "mesh":
            for token in ("[", "device_id", "="):
                self.expect(token)
            device = self.number()
            self.expect("]")
            return Mesh(f"{kind}_{device}", (), (device,))  # as XLA calls it
        self.expect("[")
        axes = self.several(self.mesh_axis, "]")
        devices: tuple[int, ...] = ()
        if len(dict(axes)) < len(axes):
            self.refuse("the mesh has two axes of one name")
        count = prod(size for _, size in axes)
        if not count or count > _MOST_DEVICES:
            self.refuse(f"a mesh of {count:,} devices, and at most {_MOST_DEVICES:,} can be")
        if self.tokens[self.at : self.at + 2] == [",", "device_ids"]:
            self.at += 2
            self.expect("=")
            self.expect("(")
            order = self.iota() if self.accept("[") else self.listed()
            self.expect(")")
            devices = flat(order)
            if sorted(devices) != list(range(count)):
                self.refuse(f"the devices are not the numbers from 0 to {count - 1}")
            devices = () if devices == tuple(range(count)) else devices
        return Mesh("", axes, devices)

    def mesh_axis(self) -> tuple[str, int]:
        name = self.name()
        self.expect("=")
        return name, self.number()

    def name(self) -> str:
        if not self.peek.startswith("'") or len(self.peek) < 2:
            self.fail("the name of an axis, in single quotes")
        return re.sub(r"\\(.)", r"\1", self.next()[1:-1], flags=re.DOTALL)

    def axis(self, mesh: Mesh) -> SubAxis:
        """An axis, or a part of it: ``'a'``, ``'a':(1)2``."""
        name = self.name()
        if name not in mesh.sizes:
            self.refuse(f"the mesh has no axis '{name}'", closest(name, [*mesh.sizes]))
        if not self.accept(":"):
            return SubAxis(name, 1, mesh.sizes[name])
        self.expect("(")
        before = self.number()
        self.expect(")")
        size = self.number()
        if not before or not size or mesh.sizes[name] % (before * size):
            self.refuse(f"the axis '{name}' of size {mesh.sizes[name]} has no part ({before}){size}")
        return SubAxis(name, before, size)

    def dimension(self, mesh: Mesh) -> Dimension:
        self.expect("{")
        entries = self.several(lambda: None if self.accept("?") else self.axis(mesh), "}")
        axes = tuple(axis for axis in entries if axis is not None)
        if None in entries[:-1]:
            self.refuse("'?' is the last entry of a dimension")
        return Dimension(axes, closed=len(axes) == len(entries))

    # ---- Tokens --------------------------------------------------------------------------------------------

    def subgroup(self) -> str:
        if self.peek not in SUBGROUPS:
            self.fail("manual, unreduced or replicated")
        return self.next()

    def several(self, read: Callable[[], T], end: str) -> tuple[T, ...]:
        """A list separated by commas, up to and with ``end``."""
        if self.accept(end):
            return ()
        entries = [read()]
        while not self.accept(end):
            self.expect(",")
            entries.append(read())
        return tuple(entries)

    def skip_braces(self) -> None:
        depth = 0
        while True:
            token = self.next()
            depth += (token == "{") - (token == "}")
            if not depth:
                return

    @property
    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self) -> str:
        if self.at == len(self.tokens):
            self.fail("'}'")
        self.at += 1
        return self.tokens[self.at - 1]

    def accept(self, token: str) -> bool:
        accepted = self.peek == token
        self.at += accepted
        return accepted

    def expect(self, token: str) -> None:
        if not self.accept(token):
            self.fail(f"'{token}'")

    def number(self) -> int:
        if not (self.peek.isdecimal() and len(self.peek) < 10):  # devices are numbered in 32 bits
            self.fail("a number")
        return int(self.next())

    def fail(self, expected: str, hint: str = "") -> NoReturn:
        instead = f"'{self.peek}'" if self.peek else "the end"
        words = (*_WORDS, *_GROUPS, *SUBGROUPS, "maximal", "devices", "last_tile_dim_replicate", "metadata")
        if not hint and self.peek.isidentifier() and self.peek not in words:
            hint = closest(self.peek, dict.fromkeys(words))
        self.refuse(f"expected {expected}, found {instead}", hint)

    def refuse(self, message: str, hint: str = "") -> NoReturn:
        raise ShardlogError(f"not a sharding: {self.text}: {message}", where=self.where, hint=hint)
