"""The names that axes of a grid have in sdy, where they have others than their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from jaxlib.mlir import ir

from ...errors import ShardlogError
from ...program.carried import AXES
from ...program.meshes import Mesh, SubAxis, axis_text, quoted
from ...program.signature import text_of

_PART = re.compile(r"(?P<name>.*):\((?P<pre>\d+)\)(?P<size>\d+)", re.DOTALL)


class GridAxes:
    """The parts of axes of a mesh that the axes of a grid are, in order."""

    def __init__(self, parts: Sequence[SubAxis]) -> None:
        self.parts = parts
        sizes: dict[str, int] = {}
        for part in parts:
            sizes[part.name] = max(sizes.get(part.name, 1), part.pre * part.size)
        self.mesh = Mesh("", tuple(sizes.items()))

    def text(self, axes: Iterable[int]) -> str:
        """Axes of the grid in the notation of sdy shardings. Adjacent parts are merged."""
        merged = list[SubAxis]()
        for part in (self.parts[axis] for axis in axes):
            last = merged[-1] if merged else None
            if last is not None and last.name == part.name and last.pre * last.size == part.pre:
                merged[-1] = SubAxis(last.name, last.pre, last.size * part.size)
            else:
                merged.append(part)
        return ", ".join(axis_text(axis, self.mesh, quoted(axis.name)) for axis in merged)


def axes_of(attribute: ir.Attribute, sizes: Sequence[int], where: str) -> GridAxes:
    """The names of a grid's axes; their numbers where there is no attribute.

    Raises ShardlogError for an attribute that does not name every axis.
    """
    if attribute is None:
        return GridAxes([SubAxis(str(i), 1, size) for i, size in enumerate(sizes)])
    texts = [text_of(entry) for entry in attribute] if isinstance(attribute, ir.ArrayAttr) else []
    if len(texts) != len(sizes):
        hint = f'give a name for each of {len(sizes)} axes, as in ["data", "model"]'
        raise ShardlogError(f"{AXES} does not name the axes of the grid", where=where, hint=hint)
    parts = list[SubAxis]()
    for text, size in zip(texts, sizes, strict=True):
        part = _PART.fullmatch(text)
        parts.append(SubAxis(part["name"], int(part["pre"]), size) if part else SubAxis(text, 1, size))
    reached: dict[str, int] = {}
    for axis in parts:
        if reached.get(axis.name, 1) != axis.pre:
            hint = "name every axis once, or its parts in order"
            raise ShardlogError(f"{AXES} names {quoted(axis.name)} twice", where=where, hint=hint)
        reached[axis.name] = axis.pre * axis.size
    return GridAxes(parts)
