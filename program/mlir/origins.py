"""Origins of ops: the line of the user's program and the name stack, as MLIR locations have them.

A location of JAX is ``"jit(step)/jvp(UNet)/Conv_0/mul"(callsite("f"("lib.py":3:1) at
"g"("model.py":9:2)))``: scopes and transformations, the op's own name, and frames, inner ones first. Ops of
a called function have only their own part: the call has the rest.

The *line* of an op is its innermost frame. Where that is a library's, it is the nearest frame that is none,
with the library's behind it: ``model.py:9 (flax/linen/linear.py:700)``. A library's file is one that is
installed (below ``site-packages`` or ``dist-packages``), one of Python's own (below ``lib/python3.11``, or
frozen), or one of JAX. If all frames are libraries', the innermost one is the line.

The *stack* is the name stack without the outermost ``jit(step)`` and without the op's own name;
transformations stay as JAX writes them: ``jvp(UNet)/Conv_0``. The *path* has the op's own name too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from sys import intern
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jaxlib.mlir import ir

    from .types import Operation

UNKNOWN = "unknown"
_INSTALLED = re.compile(r"^.*/(?:site|dist)-packages/")
_LIBRARY = re.compile(
    r"(?:^|[/\\])(?:(?:site|dist)-packages|lib(?:64)?[/\\]python\d[\d.]*t?|python\d+\.zip|jax[/\\]_src)[/\\]"
    r"|^<frozen "
)
_OUTERMOST = re.compile(r"p?jit\(.*\)")
_MAIN = "jit(main)"  # below the outermost one, as JAX wrote until 0.4
_TRANSFORMED = re.compile(r"\w+\((.*)\)")
_TOKEN = re.compile(
    r"""\s*(?:"(?P<text>(?:[^"\\]|\\.)*)"(?::(?P<line>\d+):(?P<column>\d+)(?:\s+to\s+\d*:\d+)?)?"""
    r"""|(?P<open>callsite\(|fused(?:<.*?>)?\[)|(?P<unknown>unknown|\?))"""
)
_PLACE = re.compile(r'"([^"\\]+)":(\d+):(\d+)')
_NUMBER = re.compile(r"\d+")
_ESCAPED = re.compile(rb"\\(?:([0-9A-Fa-f]{2})|(.))", re.DOTALL)


class Frame(NamedTuple):
    """A frame of a stack trace; ``function`` is empty where it has no name."""

    function: str
    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{shortened(self.file)}:{self.line}"


class Origin(NamedTuple):
    """The origin of an op: names, those of the calls around it first; and frames, innermost first."""

    names: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()

    def within(self, call: Origin) -> Origin:
        """The origin of an op of a function, in the place of a call."""
        return Origin((*call.names, *self.names), (*self.frames, *call.frames)) if call != NOWHERE else self

    @property
    def line(self) -> str:
        """The line of the user's program; empty where nothing says it."""
        if not self.frames:
            return ""
        first = self.frames[0]
        if not is_library(first.file):
            return str(first)
        nearest = self.nearest
        own = self.frames[nearest]
        return f"{own} ({first})" if nearest else str(own)

    @property
    def nearest(self) -> int:
        """The number of the frame that ``line`` names."""
        return next((i for i, frame in enumerate(self.frames) if not is_library(frame.file)), 0)

    @property
    def path(self) -> str:
        """The name stack and the op's own name; empty where nothing says them."""
        return "/".join(self._parts)

    @property
    def stack(self) -> str:
        """The name stack: ``jvp(UNet)/Conv_0``; empty without."""
        return "/".join(self._parts[:-1])

    @property
    def primitive(self) -> str:
        """The op's own name, such as the name of JAX's primitive; empty if it has none."""
        return self._parts[-1] if self._parts else ""

    @property
    def _parts(self) -> list[str]:
        parts: list[str] = []
        for name in self.names:
            own = split(name)
            # What begins as the program does is whole already.
            parts = own if len(own) > 1 and own[:1] == parts[:1] else [*parts, *own]
        if parts and _OUTERMOST.fullmatch(parts[0]):
            del parts[: 2 if parts[1:2] == [_MAIN] else 1]
        return parts

    @property
    def place(self) -> tuple[str, str]:
        """The line and the name stack.

        If there is no line, and the name stack has only the op's own name, that name takes the line's place.
        """
        if not self.names:
            return self.line, ""
        line, stack = self.line, self.stack
        return line or ("" if stack else self.path), stack


NOWHERE = Origin()  # of what has no location


@lru_cache(maxsize=1 << 12)
def shortened(file: str) -> str:
    """A file from its package on, where it is installed as part of one."""
    return _INSTALLED.sub("", file)


@lru_cache(maxsize=1 << 12)
def is_library(file: str) -> bool:
    """Whether a file belongs to an installed package, to Python's library or to JAX."""
    return _LIBRARY.search(file) is not None


def location_text(op: Operation) -> str:
    """The location of an op, as MLIR writes it between ``loc(`` and ``)``."""
    return written(op.location)


def written(location: ir.Location | ir.Attribute) -> str:
    """A location as MLIR writes it, without ``loc(`` and ``)``."""
    return str(location)[4:-1]


def frame(location: str) -> Frame | None:
    """The place that a location names, if it names nothing else."""
    place = _PLACE.fullmatch(location)  # most are, in modules that are written as text
    return Frame("", intern(place[1]), int(place[2]), int(place[3])) if place else None


def origin(location: str) -> Origin:
    """The origin that a location names, as ``location_text`` gives it. All other parts are names."""
    place = frame(location)  # each op of a text has its own, which would drive out the others
    return Origin((), (place,)) if place else _named(location)


@lru_cache(maxsize=1 << 16)
def _named(location: str) -> Origin:
    try:
        whole, end = _read(location, 0, inside=False)
    except (RecursionError, ValueError):
        return Origin((location,))
    return whole if end == len(location) else Origin((location,))


def _read(text: str, at: int, *, inside: bool) -> tuple[Origin, int]:
    """The origin that begins at a place, and the end of its text. ``inside``: of a chain of calls."""
    token = _TOKEN.match(text, at)
    if token is None:
        raise ValueError(text)
    at = token.end()
    if token["unknown"]:
        return NOWHERE, at
    if token["open"]:
        return _chain(text, at) if token["open"].startswith("call") else _fused(text, at)
    name = _unescaped(token["text"])
    if token["line"]:
        return Origin((), (Frame("", name, int(token["line"]), int(token["column"])),)), at
    child = NOWHERE
    if text[at : at + 1] == "(":
        child, at = _read(text, at + 1, inside=True)
        at = _past(text, at, ")")
        if inside and "/" not in name and not child.names and len(child.frames) == 1:
            frame = child.frames[0]
            if not frame.function and not _TRANSFORMED.fullmatch(name):
                return Origin((), (frame._replace(function=name),)), at
    if name.endswith(":") and child != NOWHERE:  # the kind of an op, whose name is the child's
        return child, at
    return Origin((name,), child.frames), at


def _chain(text: str, at: int) -> tuple[Origin, int]:
    """The rest of ``callsite(callee at caller)``. Callers nest as deeply as a program calls."""
    callees = list[Origin]()
    while True:
        callee, at = _read(text, at, inside=True)
        callees.append(callee)
        at = _past(text, at, "at")
        token = _TOKEN.match(text, at)
        if token is None or token["open"] != "callsite(":
            break
        at = token.end()
    caller, at = _read(text, at, inside=True)
    for callee in reversed(callees):
        if caller.names and not callee.names and len(callee.frames) == 1 and callee.frames[0].function:
            # What looked like a function is the name of an op that a compiler put in the place of a call.
            (frame,) = callee.frames
            callee = Origin((frame.function,), (frame._replace(function=""),))
        caller = callee.within(caller)
        at = _past(text, at, ")")
    return caller, at


def _fused(text: str, at: int) -> tuple[Origin, int]:
    """The rest of ``fused[a, b]``: the first names, and all frames."""
    names, frames = tuple[str, ...](), dict[Frame, None]()
    while True:
        one, at = _read(text, at, inside=False)
        names = names or one.names
        frames |= dict.fromkeys(one.frames)
        if text[at : at + 1] != ",":
            break
        at += 1
    return Origin(names, tuple(frames)), _past(text, at, "]")


def _past(text: str, at: int, word: str) -> int:
    while text[at : at + 1].isspace():
        at += 1
    if not text.startswith(word, at):
        raise ValueError(text)
    return at + len(word)


def _unescaped(text: str) -> str:
    """A string of MLIR without escapes."""
    if "\\" not in text:
        return text
    data = _ESCAPED.sub(lambda m: bytes.fromhex(m[1].decode()) if m[1] else m[2], text.encode())
    return data.decode(errors="replace")


def numberless(stack: str) -> str:
    """A name stack with ``*`` for numbers, as layers have them: ``layer_*/Conv_*``."""
    return _NUMBER.sub("*", stack)


def split(stack: str) -> list[str]:
    """The parts of a name stack; slashes in parentheses belong to a part."""
    if "(" not in stack:
        return stack.split("/")
    parts, depth = [""], 0
    for character in stack:
        depth += (character == "(") - (character == ")")
        if character == "/" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def tell_apart(own: Origin, others: Iterable[Origin]) -> str:
    """The frame that distinguishes an origin from others of the same line, as in ``from model.py:40``.

    It is the nearest frame that the others lack. Empty if there is none, or no other origin.
    """
    theirs = [other.frames for other in others if other != own]
    differs = (
        i
        for i in range(own.nearest + 1, len(own.frames))
        if any(other[i : i + 1] != own.frames[i : i + 1] for other in theirs)
    )
    return "".join(f"from {own.frames[i]}" for i in islice(differs, 1))


def place_text(where: str, stack: str = "") -> str:
    """A line and a name stack as one text: ``model.py:9 in jvp(UNet)/Conv_0``."""
    return " ".join(filter(None, (where, f"in {stack}" if stack else "")))


def at(where: str, stack: str = "") -> str:
    """A place as the end of a sentence, as in `` at model.py:9 in jvp(UNet)/Conv_0``.

    Empty if it is not known.
    """
    return " at " * bool(where) + " " * bool(stack and not where) + place_text(where, stack)


def unwrapped(path: str) -> str:
    """A name stack without transformations: ``UNet/Conv_0`` of ``transpose(jvp(UNet))/Conv_0``."""
    kept = []
    for part in split(path):
        while match := _TRANSFORMED.fullmatch(part):
            part = match[1]
        kept.append(part)
    return "/".join(kept)
