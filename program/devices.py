"""The devices of a grid, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.int64]


class Devices:
    """The devices of a grid of these sizes, numbered row by row."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes, self.count = tuple(sizes), prod(sizes)

    def along(self, axes: Sequence[int]) -> Table:
        """The groups of devices that differ along axes, outermost first, one per row."""
        others = [axis for axis in range(len(self.sizes)) if axis not in axes]
        size = prod(self.sizes[axis] for axis in axes)
        devices = np.arange(self.count).reshape(self.sizes)
        return devices.transpose([*others, *axes]).reshape(-1, size)

    def index(self, axes: Sequence[int]) -> Table:
        """The place of each device in its group."""
        places = np.zeros(self.count, np.int64)
        for row in self.along(axes):
            places[row] = np.arange(len(row))
        return places

    def coordinates(self) -> Table:
        """The place of each device along each axis: a row per axis."""
        return np.stack(np.unravel_index(np.arange(self.count), self.sizes))
