"""GSPMD's notation for shardings: the strings of ``mhlo.sharding``, as XLA's ``HloSharding`` prints them.

    {replicated}  {manual}  {unknown}  {unreduced}  {maximal device=3}
    {devices=[2,4]<=[8]}                        tile (i, j) is on device 4*i + j
    {devices=[4,2]<=[2,4]T(1,0)}                the devices 0..7 as a 2x4 array, transposed
    {devices=[2,4]0,1,2,3,7,6,5,4}              a list of devices
    {devices=[2,2,2]<=[8] last_tile_dim_replicate}              the last dimension counts replicas
    {devices=[2,1,2,2]<=[8] last_tile_dims={manual, replicated}}    ... dimensions of other kinds
    {{replicated}, {maximal device=0}}          a tuple

``shard_as N`` and ``shard_like N`` put a sharding into a group; ``metadata={...}`` is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import NoReturn, TypeVar

from ...errors import ShardlogError, closest

SUBGROUPS = ("manual", "unreduced", "replicated")  # in the order in which XLA writes them
_WORDS = ("replicated", "manual", "unknown", "unreduced")
_GROUPS = ("shard_as", "shard_like")
_MOST_DEVICES = 1 << 22  # each may be looked at on its own
_TOKEN = re.compile(r'(?:\s|/\*.*?\*/)*(<=|[a-z_]+|T|\d+|"(?:[^"\\]|\\.)*"|.)', re.DOTALL)

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
    numbers of tiles along each dimension, followed by those of ``subgroups`` ("manual", "unreduced" or
    "replicated"); ``devices`` are those of the tiles, the last dimension changing fastest; a maximal sharding
    has one device. ``group`` is ("shard_as" or "shard_like", the number of the group).
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


def tuple_text(shardings: tuple[HloSharding, ...]) -> str:
    """A tuple as XLA prints it: every fifth element has its number before it."""
    parts = [f"/*index={i}*/{s}" if i and i % 5 == 0 else f"{s}" for i, s in enumerate(shardings)]
    return "{" + ", ".join(parts) + "}"


def parse(text: str, where: str = "") -> HloSharding | tuple[HloSharding, ...]:
    """The sharding, or tuple of shardings, in ``text``. Raises ShardlogError at ``where``."""
    return _Parser(text, where).whole()


def _list(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


class _Parser:
    """Recursive descent over the tokens of one string."""

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where = text, where
        self.tokens: list[str] = _TOKEN.findall(text.rstrip())
        self.at = 0

    def whole(self) -> HloSharding | tuple[HloSharding, ...]:
        self.expect("{")
        self.at -= 1
        if self.tokens[self.at + 1 : self.at + 2] in (["{"], ["}"]):
            self.at += 1
            found: HloSharding | tuple[HloSharding, ...] = self.several(self.sharding, "}")
        else:
            found = self.sharding()
        if self.at < len(self.tokens):
            self.fail("the end")
        return found

    def sharding(self) -> HloSharding:
        self.expect("{")
        if self.accept("maximal"):
            self.expect("device")
            self.expect("=")
            found = HloSharding("maximal", devices=(self.number(),))
        elif self.accept("devices"):
            found = self.tiled()
        elif self.peek in _WORDS:
            found = HloSharding(self.next())
        elif self.peek in ("mesh", "maximal_mesh"):
            self.fail("devices", "write a sharding with named axes as sdy.sharding")
        else:
            self.fail("devices=[...], replicated, manual, unknown, unreduced or maximal")
        group = None
        while not self.accept("}"):
            if self.peek in _GROUPS and group is None:
                group = (self.next(), self.number())
            elif self.accept("metadata"):
                self.expect("=")
                self.skip_braces()
            else:
                self.fail("'}'")
        return HloSharding(found.kind, found.tiles, found.devices, found.subgroups, group)

    def tiled(self) -> HloSharding:
        self.expect("=")
        self.expect("[")
        tiles = self.several(self.number, "]")
        devices: Iota | tuple[int, ...]
        if self.accept("<="):
            self.expect("[")
            sizes = self.several(self.number, "]")
            order: tuple[int, ...] = tuple(range(len(sizes)))
            if len(sizes) > 1:
                self.expect("T")
                self.expect("(")
                order = self.several(self.number, ")")
            devices, count = Iota(sizes, order), prod(sizes)
            if sorted(order) != list(range(len(sizes))):
                self.refuse(f"T({_list(order)}) is no order of {len(sizes)} dimensions")
        else:
            listed = [self.number()]
            while self.accept(","):
                listed.append(self.number())
            devices, count = tuple(listed), len(listed)
            if len(set(listed)) < count:
                self.refuse("a device is listed twice")
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

    def subgroup(self) -> str:
        if self.peek not in SUBGROUPS:
            self.fail("manual, unreduced or replicated")
        return self.next()

    def several(self, read: Callable[[], T], end: str) -> tuple[T, ...]:
        """A list separated by commas, up to and with ``end``."""
        if self.accept(end):
            return ()
        found = [read()]
        while not self.accept(end):
            self.expect(",")
            found.append(read())
        return tuple(found)

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
        found = self.peek == token
        self.at += found
        return found

    def expect(self, token: str) -> None:
        if not self.accept(token):
            self.fail(f"'{token}'")

    def number(self) -> int:
        if not (self.peek.isdecimal() and len(self.peek) < 10):  # devices are numbered in 32 bits
            self.fail("a number")
        return int(self.next())

    def fail(self, expected: str, hint: str = "") -> NoReturn:
        found = f"'{self.peek}'" if self.peek else "the end"
        known = (*_WORDS, *_GROUPS, *SUBGROUPS, "maximal", "devices", "last_tile_dim_replicate", "metadata")
        if not hint and self.peek.isidentifier():
            hint = closest(self.peek, dict.fromkeys(known))
        self.refuse(f"expected {expected}, found {found}", hint)

    def refuse(self, message: str, hint: str = "") -> NoReturn:
        raise ShardlogError(f"not a sharding: {self.text}: {message}", where=self.where, hint=hint)
