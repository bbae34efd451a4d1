"""Ops and values with equal surroundings, up to some steps: those of repeated layers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
_ODD = np.uint64(0x9E3779B97F4A7C15)


def classes(
    spots: Integers, values: Integers, slots: Integers, offsets: Integers, steps: int
) -> tuple[Integers, Integers]:
    """The class of each spot and of each value, by their own facts and the facts of their neighbours, up to
    this number of ``steps``. ``spots`` and ``values`` are numbers, equal for equal facts. ``slots`` are the
    values of each spot, -1 for none; the slots of a spot start at its offset. Spots of one class have, slot
    by slot, values of one class."""
    spot = np.repeat(np.arange(len(spots)), np.diff(offsets))
    place = (np.arange(len(slots)) - offsets[spot]).astype(np.uint64)
    spot, place, value = spot[slots >= 0], place[slots >= 0], slots[slots >= 0]
    alone = mixed(spots.astype(np.uint64))
    around = mixed(values.astype(np.uint64) + np.uint64(1 << 40))
    for _ in range(steps):
        seen = alone.copy()
        np.add.at(seen, spot, mixed(around[value] + place))
        heard = around.copy()
        np.add.at(heard, value, mixed(mixed(seen)[spot] + place))
        around = mixed(heard)
    of_values = np.unique(around, return_inverse=True)[1]
    seen = alone.copy()
    np.add.at(seen, spot, mixed(mixed(of_values.astype(np.uint64))[value] + place))
    return np.unique(seen, return_inverse=True)[1], of_values


def mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Hashes of numbers, pseudo-random for any input (splitmix64)."""
    hashes = numbers + _ODD
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    last: npt.NDArray[np.uint64] = hashes ^ (hashes >> np.uint64(31))
    return last
