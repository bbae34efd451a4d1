"""The results of a partitioned program, compared with one device, and their allowed difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, isinf
from typing import TYPE_CHECKING, Any

import numpy as np

from ..runs.table import plural
from .differences import Array, apart, difference, wide_array
from .execution import Alone, run_alone
from .rounding import Roundings, eps_of
from .values import Arrays, BoundaryValue, boundary

if TYPE_CHECKING:
    from ..runs.result import Result

TELLING = 0.1  # of the largest element: where more may be off for no reason, values that are wrong pass
BIAS = 32  # times what rounding explains of what is little else: it has a bias, which inputs do not change
_NOISE = 4.0  # times what a result changes by where inputs change by the last bit
_NEAR_OVERFLOW = 2.0**-12  # of the largest number of a type: sums of such numbers may be infinite


@dataclass(frozen=True)
class ResultComparison:
    """A result of the partitioned program beside that of the program on one device.

    ``off`` is the largest difference between two elements, and ``allowed`` the difference that sums in
    another order explain, both relative to the largest element; integers must be equal. ``off`` is infinite
    where only one of the two is finite, or they have infinities of opposite signs. Two kinds of elements
    show no error. In those that are ``unlike`` one result has a NaN and the other an infinity; compilers
    may ignore NaNs in maxima, as XLA does on CPUs. In those that ``overflow`` one is infinite, and others
    are near the largest number of the type, or other elements are finite if inputs change in their last
    bit. ``divided`` is by how much the random inputs were divided, so that it can be judged.

    A larger difference may still be right: ``exact`` says how far it, and the result of one device, are
    from the program in 64 bits, if that settles it. ``reason`` is why there is no verdict. Of its
    ``elements`` one device has so many ``nans``.
    """

    name: str
    type: str
    off: float
    allowed: float
    unlike: int = 0
    overflow: int = 0
    divided: int = 1
    exact: tuple[float, float] | None = None
    reason: str = ""
    elements: int = 1
    nans: int = 0

    @property
    def right(self) -> bool:
        """Whether the result is not known to be wrong."""
        return self.off <= self.allowed or self.exact is not None or bool(self.reason)

    @property
    def judged(self) -> bool:
        """Whether it is known to be right or wrong: not if values that are wrong would be allowed, too."""
        return not self.right or not self.open

    @property
    def open(self) -> str:
        """Why it cannot be judged; empty where it can, or is wrong."""
        if self.reason or self.exact is not None or self.off > self.allowed:
            return self.reason
        if self.unlike:
            return f"in {plural(self.unlike, 'element')} one has a NaN and the other an infinity"
        if self.overflow:
            return f"rounding decides whether there is an overflow in {plural(self.overflow, 'element')}"
        if self.only_nans:
            return "one device has nothing but NaNs, too"
        telling = self.off == 0 or self.allowed < TELLING
        return "" if telling else f"it {self._apart}, and reordered sums explain up to {self.allowed:.1e}"

    @property
    def only_nans(self) -> bool:
        """Whether one device has only NaNs."""
        return 0 < self.elements == self.nans

    @property
    def _apart(self) -> str:
        return f"is off by {self.off:.1e} of the largest element"

    def as_json(self) -> dict[str, Any]:
        """The comparison as JSON, which has no infinities; null where it cannot be judged."""
        off = None if isinf(self.off) else self.off
        exact = self.exact or (None, None)
        return {
            "name": self.name,
            "type": self.type,
            "off": off,
            "allowed": self.allowed,
            "off_from_64_bits": exact[0],
            "one_device_off_from_64_bits": exact[1],
            "inputs_divided_by": self.divided,
            "right": self.right if self.judged else None,
            "reason": self.open or None,
        }

    def __str__(self) -> str:
        named = f"{self.name} : {self.type}"
        if self.open:
            return f"{named} cannot be judged: {self.open}"
        if self.off == 0:
            nans = f", with NaNs in {self.nans:,} of {plural(self.elements, 'element')}" if self.nans else ""
            return f"{named} is equal{nans}"
        inputs = f", with inputs divided by {self.divided}" if self.divided > 1 else ""
        if self.exact is not None:
            mine, theirs = self.exact
            bits = f"from 64 bits it is off by {mine:.1e}, and one device by {theirs:.1e}"
            return f"{named} {self._apart}, as rounding explains: {bits}{inputs}"
        limit = f"up to {self.allowed:.1e}" if self.allowed else "nothing"
        verdict = "as reordered sums explain" if self.right else "WRONG: reordered sums explain"
        return f"{named} {self._apart}, {verdict} ({limit}){inputs}"


def compare(result: Result, alone: Alone, inputs: Arrays, outputs: Arrays) -> tuple[ResultComparison, ...]:
    """The results of a partitioned program beside those of the program ``alone`` on a device.

    The allowed difference of a result grows with the number of elements summed on the way to it, and with its
    change if the inputs change in their last bit. It may be off by several times that: values that would be
    zero without rounding are. Where so much is allowed that it tells nothing, a difference that the sums
    alone explain is right, too.
    """
    arguments, _ = boundary(result)
    expected, moved = run_alone(result, alone, inputs, nudged(arguments, inputs))
    return beside(result, outputs, expected, moved)


def beside(result: Result, outputs: Arrays, expected: Arrays, moved: Arrays) -> tuple[ResultComparison, ...]:
    """Results beside the ``expected`` ones. These become ``moved`` if inputs change in their last bit."""
    _, results = boundary(result)
    allowed = Roundings(result).results()
    comparisons = []
    for value, rounding, mine, theirs, other in zip(results, allowed, outputs, expected, moved, strict=True):
        eps, limit = eps_of(value.element), 0.0
        if eps and rounding:
            nudge = difference(other, theirs)
            limit = rounding * min(max(1.0, nudge / eps), eps**-0.5)
            limit = max(limit, _NOISE * nudge) if isfinite(nudge) else limit
            limit *= BIAS if limit >= TELLING else 1
        off, unlike, overflow = difference(mine, theirs), _unlike(mine, theirs), 0
        if off <= rounding < TELLING <= limit:  # however much inputs of few bits change it
            limit = rounding
        if eps and isinf(off) and _rounding_decides(mine, theirs, other):
            parts = apart(wide_array(mine), wide_array(theirs))
            off, overflow = difference(np.where(parts, theirs, mine), theirs), int(parts.sum())
        nans = int(np.count_nonzero(np.isnan(wide_array(theirs)))) if eps else 0
        one = ResultComparison(value.name, value.type, off, limit, unlike, overflow)
        comparisons.append(replace(one, elements=theirs.size, nans=nans))
    return tuple(comparisons)


def nudged(values: Sequence[BoundaryValue], inputs: Arrays, bits: int = 1, seed: int = 0) -> Arrays:
    """Inputs with every element changed in its last bit, or by so many times that."""
    rng = np.random.default_rng(seed)
    arrays = []
    for value, array in zip(values, inputs, strict=True):
        eps = eps_of(value.element)
        if eps:
            array = (wide_array(array) * (1 + bits * eps * rng.choice([-1, 1], array.shape))).astype(
                array.dtype
            )
        arrays.append(array)
    return arrays


def _unlike(one: Array, other: Array) -> int:
    """The elements that are NaN on one side only, among those that are finite on neither."""
    mine, theirs = wide_array(one), wide_array(other)
    neither = ~(np.isfinite(mine) | np.isfinite(theirs))
    return int(np.sum(neither & (np.isnan(mine) != np.isnan(theirs))))


def _rounding_decides(one: Array, other: Array, nudged: Array) -> bool:
    """Whether rounding decides which elements are finite: some are near the largest number there is, or with
    ``nudged`` inputs others are finite."""
    import ml_dtypes

    each = [wide_array(array) for array in (one, other)]
    largest = max(float(np.max(np.abs(a[np.isfinite(a)]), initial=0.0)) for a in each)
    most = float(ml_dtypes.finfo(other.dtype).max)  # type: ignore[no-untyped-call]
    moves = not np.array_equal(np.isfinite(wide_array(nudged)), np.isfinite(each[1]))
    return largest > _NEAR_OVERFLOW * most or moves
