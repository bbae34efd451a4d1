"""The memory of a device over a step: the live bytes at each time, by layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..program.folding import scope
from ..program.mlir.origins import Origin


class Lived(NamedTuple):
    """A temporary: its origin (None if no op makes it), its bytes, and the first and the last time when it
    lives."""

    origin: Origin | None
    bytes: int
    first: int
    last: int

    @property
    def layer(self) -> tuple[str, ...]:
        """The scope that it comes from, outermost first."""
        return scope(self.origin) if self.origin else ()


class Moment(NamedTuple):
    """A time, and the bytes of temporaries that are live then, by layer."""

    time: int
    bytes: dict[int, int]


@dataclass(frozen=True)
class Usage:
    """The memory of a device over a step of so many ``times``.

    Arguments and results have theirs throughout, in bytes; temporaries while they live.
    """

    arguments: int = 0
    results: int = 0
    times: int = 1
    lives: tuple[Lived, ...] = ()

    def moments(self, most: int, layer: Callable[[tuple[str, ...]], int]) -> list[Moment]:
        """The live values in each of at most ``most`` equal spans of the step, at the span's peak.

        ``layer`` gives the number of the layer that a scope counts for.
        """
        layers: dict[int, int] = {}
        rows = [layers.setdefault(layer(life.layer), len(layers)) for life in self.lives]
        live = np.zeros((len(layers) + 1, self.times + 1), dtype=np.int64)
        for row, life in zip(rows, self.lives, strict=True):
            live[row, min(life.first, self.times - 1)] += life.bytes
            live[row, min(life.last, self.times - 1) + 1] -= life.bytes
        live = live[:, :-1].cumsum(axis=1)
        total, spans = live.sum(axis=0), min(most, self.times)
        chosen = []
        for span in range(spans):
            first, end = span * self.times // spans, (span + 1) * self.times // spans
            time = first + int(total[first:end].argmax())
            chosen.append(Moment(time, {number: int(live[row, time]) for number, row in layers.items()}))
        return chosen
