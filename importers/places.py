"""Where values come from: lines of the user's program, and the paths that JAX gives arguments and results."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_FRAME = re.compile(r'([^\s()"]+)"?:(\d+):(\d+)')
_COMPONENT = re.compile(r"""\.?(?P<name>[^.\[\]]+)|\[\s*('[^']*'|"[^"]*"|[^\]]*?)\s*\]""")


@lru_cache(maxsize=1 << 16)
def frames(location: str) -> tuple[tuple[str, int], ...]:
    """The files and lines that an MLIR location names, inner frames first."""
    return tuple((file, int(line)) for file, line, _ in _FRAME.findall(location))


def source_location(location: Any) -> str:
    """Where the user wrote what an MLIR location stands for: ``file:line``; empty where it does not say."""
    found = frames(str(location))
    return f"{found[0][0]}:{found[0][1]}" if found else ""


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
