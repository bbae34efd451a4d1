"""How far two arrays are apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]  # of any element


def difference(one: Array, other: Array) -> float:
    """The largest difference of two elements, as a part of the largest one; infinite where only one is
    finite, and for infinities that are not the same. Of integers it is 0 only where they are equal."""
    exact = one.dtype.kind in "biu"
    if np.array_equal(one, other, equal_nan=not exact):
        return 0.0
    mine, theirs = wide_array(one), wide_array(other)
    if apart(mine, theirs).any():
        return float("inf")
    finite = np.isfinite(theirs)
    gap = float(np.max(np.abs(mine[finite] - theirs[finite]), initial=0.0))
    scale = float(np.max(np.abs(theirs[finite]), initial=0.0))
    lost = 1.0 if exact else 0.0  # of large integers the gap may be
    return (gap or lost) / (scale or 1.0)


def apart(mine: Array, theirs: Array) -> npt.NDArray[np.bool_]:
    """Which elements are finite on one side only, or infinities that are not the same."""
    infinite = np.isinf(mine) & np.isinf(theirs)
    differ: npt.NDArray[np.bool_]
    differ = (np.isfinite(mine) != np.isfinite(theirs)) | (infinite & (mine != theirs))
    return differ


def wide_array(array: Array) -> Array:
    """An array in the widest type of NumPy's that has its values."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
