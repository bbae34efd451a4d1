"""Whether a partitioned program gives the results of one device. Before a result is called wrong, the
program runs in 64 bits, with smaller inputs, and with inputs from other seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from ..runs.table import plural
from . import execution
from .comparing import BIAS, TELLING, ResultComparison, beside, nudged
from .deciding import decided_by, lets_rounding_decide
from .differences import Array, apart, difference, wide_array
from .domains import domains
from .execution import Alone, run_alone, wide_on
from .inputs import random_inputs
from .rounding import eps_of
from .undefined import undefined
from .values import Arrays, BoundaryValue, boundary

if TYPE_CHECKING:
    from jax import Device

    from ..runs.result import Result
    from .executable import Executable

_SMALLER, _TIMES = 4, 2  # random inputs are divided by so much where results cannot be judged, so often
_SEEDS = 3  # are tried before a result is called wrong
_FURTHER = 4.0  # times as far from 64 bits as one device, or as rounded inputs lead, may a result be
_NUDGES, _BITS = 3, 16  # inputs are moved so often, by up to so many times their last bit


@dataclass(frozen=True)
class Judgement:
    """The verdict on the results of a run: each beside that of one device, and the ``outputs`` themselves.
    ``seeds`` are the seeds of the random inputs that were tried."""

    comparisons: tuple[ResultComparison, ...]
    outputs: Arrays
    seeds: tuple[int, ...] = ()


class Trial:
    """A partitioned program that is run, and compared."""

    def __init__(self, result: Result, executable: Executable, devices: Sequence[Device]) -> None:
        self._result, self._executable, self._devices = result, executable, devices
        self._arguments, self._results = boundary(result)
        self._alone = execution.alone_on(result, devices)

    @cached_property
    def _wide(self) -> Alone | None:
        return wide_on(self._result, self._devices)

    def of(self, inputs: Arrays) -> Judgement:
        """The results for some inputs."""
        again = nudged(self._arguments, inputs)
        expected, moved = run_alone(self._result, self._alone, inputs, again)
        outputs = execution.run_partitioned(self._result, self._executable, inputs, expected)
        comparisons = list(beside(self._result, outputs, expected, moved))
        if not all(one.right and one.judged for one in comparisons):
            comparisons = self._in_64_bits(inputs, outputs, expected, comparisons)
        if not all(one.right for one in comparisons) and (
            reason := undefined(self._result, self._devices, inputs)
        ):
            comparisons = [one if one.right else replace(one, reason=reason) for one in comparisons]
        return Judgement(tuple(comparisons), outputs)

    def at_random(self, seed: int) -> Judgement:
        """The results for random inputs from the domains that the program requires. If a result is not
        right with them, smaller ones and other seeds are tried."""
        asked_domains = domains(self._result)

        def tried(seed: int) -> Judgement:
            return self._with_smaller(random_inputs(self._arguments, seed, asked_domains))

        first = tried(seed)
        if all(one.right for one in first.comparisons):
            return replace(first, seeds=(seed,))
        seeds = tuple(range(seed, seed + _SEEDS))
        others = [tried(other).comparisons for other in seeds[1:]]
        decides = lets_rounding_decide(self._result)
        comparisons = list(first.comparisons)
        for i, one in enumerate(comparisons):
            may_be = one.off <= BIAS * one.allowed or (decides and not eps_of(self._results[i].element))
            if not one.right and may_be and all(each[i].right for each in others):
                comparisons[i] = replace(one, reason=_once(one, seeds))
        return Judgement(tuple(comparisons), first.outputs, seeds)

    def _with_smaller(self, inputs: Arrays) -> Judgement:
        """The results for inputs. Results that cannot be judged are replaced by those for smaller inputs,
        if that helps. If values are large, a softmax picks one of them, and sums cancel out: only rounding
        is left."""
        first = self.of(inputs)
        comparisons = first.comparisons
        for turn in range(1, _TIMES + 1):
            if all(comparison.judged for comparison in comparisons):
                break
            divided = _SMALLER**turn
            smaller = [
                array / array.dtype.type(divided) if eps_of(value.element) else array
                for value, array in zip(self._arguments, inputs, strict=True)
            ]
            comparisons = tuple(
                replace(other, divided=divided) if other.judged and not comparison.judged else comparison
                for comparison, other in zip(comparisons, self.of(smaller).comparisons, strict=True)
            )
        return replace(first, comparisons=comparisons)

    def _in_64_bits(
        self, inputs: Arrays, outputs: Arrays, expected: Arrays, comparisons: Sequence[ResultComparison]
    ) -> list[ResultComparison]:
        """The comparisons; for results that are not right, with the program in 64 bits."""
        if self._wide is None:
            return list(comparisons)
        moved = [nudged(self._arguments, inputs, _BITS, seed) for seed in range(_NUDGES)]
        exact, *others = run_alone(self._result, self._wide, inputs, *moved)
        settled = []
        reason: str | None = None
        for i, (value, one) in enumerate(zip(self._results, comparisons, strict=True)):
            if not (one.right and one.judged) and not one.reason:
                one = _settled(value, one, outputs[i], expected[i], exact[i], [each[i] for each in others])
                if one.reason:
                    if reason is None:
                        reason = decided_by(self._result, self._devices, inputs, moved)
                    one = replace(one, reason=f"{one.reason}: {reason}" if reason else one.reason)
            settled.append(one)
        return settled


def _settled(
    value: BoundaryValue,
    one: ResultComparison,
    mine: Array,
    theirs: Array,
    exact: Array,
    moved: Sequence[Array],
) -> ResultComparison:
    """A comparison, where rounding explains it beside the same in 64 bits, and such with ``moved`` inputs."""
    if not eps_of(value.element):
        # With moved inputs ties are none any more, and who wins a tie is no matter of rounding.
        count = int(np.count_nonzero(theirs != exact))
        if one.right or np.count_nonzero(mine != theirs) > _FURTHER * count:
            return one
        return replace(one, reason=f"rounding decides {count:,} of {plural(exact.size, 'element')}")
    if one.unlike or one.only_nans:
        return one
    first = wide_array(exact)
    decided = np.zeros(exact.shape, bool)
    for other in (theirs, *moved):
        decided |= apart(wide_array(other), first)

    def off(other: Array) -> float:
        return difference(np.where(decided, first, wide_array(other)), first)

    own, alone = off(mine), off(theirs)
    bound = _FURTHER * max(alone, eps_of(value.element), *map(off, moved))
    if not isfinite(own) or own > bound:
        return one
    if decided.any():
        many = plural(int(np.count_nonzero(decided)), "element")
        return replace(one, reason=f"rounding decides whether there is an overflow in {many}")
    if bound >= TELLING:
        return replace(one, reason=f"it is off by {one.off:.1e} of the largest element, as rounding decides")
    return replace(one, exact=(own, alone))


def _once(one: ResultComparison, seeds: Sequence[int]) -> str:
    """Why a result that is wrong with the first seed alone is not called wrong: it is off by little, as a
    bound that nearly always holds is exceeded at times, or it is a whole number that floating-point numbers
    decide."""
    explained = f"up to {one.allowed:.1e}" if one.allowed else "nothing"
    named = " and ".join(map(str, seeds[1:]))
    reason = f"it is off by {one.off:.1e} with seed {seeds[0]} alone, and not with {named}"
    return f"{reason}; reordered sums explain {explained}"
