"""The answer to why a value is unreduced, as JSON and as text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ...program.mlir.origins import at
from .text import wrapped

_WORDS = {
    "sum": "the sum",
    "max": "the maximum",
    "min": "the minimum",
    "product": "the product",
}
_ENDS = ("argument", "result")
_POINTS = 4  # points of a kind in the text


@dataclass(frozen=True)
class Point:
    """An op, or "argument" or "result", and the value of it that is meant, with its place."""

    op: str
    value: str
    where: str
    stack: str

    def __str__(self) -> str:
        named = f"{self.op} {self.value}" if self.op in _ENDS else f"{self.op} ({self.value})"
        return f"{named}{at(self.where, self.stack)}"


@dataclass(frozen=True)
class Unreduced:
    """A value that is unreduced on an axis.

    It has its reduction and the annotation (``origin``). ``begins`` are the ops that make the partial values,
    and ``kept`` the values that pass them on. At the end it is ``reduced``, or ``returned`` unreduced.
    """

    value: str
    type: str
    where: str
    stack: str
    axis: str
    reduction: str
    origin: str
    begins: tuple[Point, ...]
    kept: tuple[Point, ...]
    reduced: tuple[Point, ...]
    returned: tuple[Point, ...]

    def __str__(self) -> str:
        pending = f"{_WORDS[self.reduction]} of what the devices along it hold"
        sentences = [
            f"by {self.origin}",
            *_listed("it begins at", self.begins),
            *_listed("handed on, as annotations say, by", self.kept),
            *_listed("it is reduced for", self.reduced),
            *_listed("it is returned unreduced, as", self.returned),
        ]
        if not (self.reduced or self.returned):
            sentences.append("nothing needs it reduced")
        title = f'{self.value} : {self.type} is unreduced on "{self.axis}", {pending}'
        return "\n".join([title, *(part for text in sentences for part in wrapped("  ", text))])

    def as_json(self) -> dict[str, Any]:
        """The answer as JSON has it."""
        return asdict(self)


def _listed(start: str, points: tuple[Point, ...]) -> list[str]:
    """A sentence about the first of some points; none where there are none."""
    shown = ", ".join(map(str, points[:_POINTS]))
    more = f", and {len(points) - _POINTS} more" if len(points) > _POINTS else ""
    return [f"{start} {shown}{more}"] if points else []
