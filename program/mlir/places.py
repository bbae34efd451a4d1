"""Names of values beside MLIR's: JAX's paths of arguments and results, and scopes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .origins import origin, unwrapped

if TYPE_CHECKING:
    from jaxlib.mlir import ir

    from .types import FunctionOp

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


class NameScope:
    """A part of name stacks: ``ResBlock_0/Conv_0`` is in ``jvp(UNet)/ResBlock_0/Conv_0/mul``, as are
    ``UNet/*/Conv_*`` and ``jvp(UNet)``. Parts match whole, and ``*`` stands for any text of one part."""

    def __init__(self, pattern: str) -> None:
        wanted = wildcard(pattern.strip("/"), r"[^/]").pattern
        self._wanted = re.compile(f"(?:^|/){wanted}(?:/|$)")

    def has(self, path: str) -> bool:
        """Whether a path is in the scope."""
        return bool(self._wanted.search(path) or self._wanted.search(unwrapped(path)))


def argument_path(location: ir.Location) -> str:
    """The path that JAX gives an argument (``params['w']``), by its location; empty where it has none."""
    source = origin(str(location)[4:-1])
    return source.names[0] if source.names and not source.frames else ""


def result_path(function: FunctionOp, i: int) -> str:
    """The path that JAX gives the ``i``-th result of a ``func.func``; empty where it has none."""
    attributes = function.attributes
    entry = attributes["res_attrs"][i] if "res_attrs" in attributes else {}
    from ..signature import text_of  # which needs MLIR, and places of saved runs are read without it

    return text_of(entry["jax.result_info"]) if "jax.result_info" in entry else ""


def components(path: str) -> tuple[str, ...]:
    """The parts of a path: ``params['layers'][3].w`` and ``params.layers.3.w`` are params, layers, 3, w.

    Empty for other names.
    """
    parts, end = [], 0
    while match := _COMPONENT.match(path, end):
        part = match["name"] or match[2]
        quoted = part[:1] in ("'", '"') and match["name"] is None
        parts.append(part[1:-1] if quoted else part)
        end = match.end()
    return tuple(parts) if end == len(path) else ()
