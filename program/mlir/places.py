"""Origins of values: lines of the user's program, and the paths that JAX gives arguments and results."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from typing import Any

_FRAME = re.compile(r'([^\s()"]+)"?:(\d+):(\d+)')
_END = re.compile(r" to \d*:\d+")  # of a range in a file
_INSTALLED = re.compile(r"^.*/(?:site|dist)-packages/")
_STACK_END = re.compile(r"\(callsite\(|\((?:[^()]*\()?[^()]*:\d+:\d+")
_OUTERMOST = re.compile(r"^p?jit\([^()]*\)(/|$)")
_COMPONENT = re.compile(r"""\.?(?P<name>[^.\[\]]+)|\[\s*('[^']*'|"[^"]*"|[^\]]*?)\s*\]""")


def wildcard(pattern: str, any_: str = r"[^\[\]]") -> re.Pattern[str]:
    """A pattern for names with stars, each of which matches any text of characters that match ``any_``.

    A match takes time in proportion to the name: the text after a star is best found as early as it can be,
    so nothing is tried twice.
    """
    first, *others = map(re.escape, pattern.split("*"))
    if not others:
        return re.compile(first)
    early = "".join(f"(?>{any_}*?{text})" for text in others[:-1])
    return re.compile(f"{first}{early}{any_}*{others[-1]}")


@lru_cache(maxsize=1 << 16)
def frames(location: str) -> tuple[tuple[str, int], ...]:
    """The files and lines that an MLIR location names, inner frames first."""
    return tuple((file, int(line)) for file, line, _ in _FRAME.findall(location))


@lru_cache(maxsize=1 << 16)
def without_ends(location: str) -> str:
    """An MLIR location without the ends of its ranges, of which text keeps none that starts in the first
    column: what locations that were read from text and others are compared by."""
    return _END.sub("", location)


def source_location(location: Any) -> str:
    """The line of the user's program in an MLIR location, as ``file:line``; empty where it has none."""
    found = _FRAME.search(str(location))
    return f"{shortened(found[1])}:{int(found[2])}" if found else ""


def tell_apart(location: str, others: Iterable[str]) -> str:
    """The part of a location that distinguishes it from others with the same innermost frame: the nearest
    frame that the others lack, and from those that have all frames, the name stack (``from model.py:40 in
    jvp(layer_0)``). Empty where nothing does, or where nothing needs to."""
    own, rivals = frames(location), {other for other in others if other != location}
    theirs = [frames(other) for other in rivals]
    differs = (i for i in range(1, len(own)) if any(other[i : i + 1] != own[i : i + 1] for other in theirs))
    found = [f"from {shortened(own[i][0])}:{own[i][1]}" for i in islice(differs, 1)]
    stack = name_stack(location)
    if stack and any(frames(other) == own and name_stack(other) != stack for other in rivals):
        found.append(f"in {stack}")
    return " ".join(found)


def name_stack(location: str) -> str:
    """The names of scopes and transformations in a location: ``jvp(layer_0)/norm``; empty without."""
    return _OUTERMOST.sub("", _named(location)[0])


def primitive(location: str) -> str:
    """JAX's name for an op, which a location has before its line; empty without."""
    return _named(location)[1] if _STACK_END.search(location) else ""


def _named(location: str) -> tuple[str, str]:
    stack, _, name = _STACK_END.split(location, maxsplit=1)[0].strip('"').rpartition("/")
    return stack, name


def shortened(file: str) -> str:
    """A file from its package on, where it is installed as part of one."""
    return _INSTALLED.sub("", file)


def argument_path(location: Any) -> str:
    """The path that JAX gives an argument (``params['w']``), by its location; empty where it has none."""
    if source_location(location) or str(location) == "loc(unknown)":
        return ""
    return str(location).removeprefix('loc("').removesuffix('")')


def result_path(function: Any, i: int) -> str:
    """The path that JAX gives the ``i``-th result of a ``func.func``; empty where it has none."""
    attributes = function.attributes
    entry = attributes["res_attrs"][i] if "res_attrs" in attributes else {}
    return str(entry["jax.result_info"].value) if "jax.result_info" in entry else ""


def components(path: str) -> tuple[str, ...]:
    """The parts of a path: ``params['layers'][3].w`` and ``params.layers.3.w`` are params, layers, 3, w.

    Empty for what is no path.
    """
    found, end = [], 0
    while match := _COMPONENT.match(path, end):
        part = match["name"] or match[2]
        quoted = part[:1] in ("'", '"') and match["name"] is None
        found.append(part[1:-1] if quoted else part)
        end = match.end()
    return tuple(found) if end == len(path) else ()
