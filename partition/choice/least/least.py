"""The least sum of terms over variables with a few values each: by messages, and by moves of whole trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf

import numpy as np

from .sums import Floats, Integers, Saying, Sum, add_rows

_SETTLED = 4  # sweeps after which the same values are best
_STILL = 8  # moves that gain nothing, after which no other does
_LOOK, _FAR_ABOVE = 4, 1.3  # moves after which so many times the least says that it is not worth while
LESS = 1e-9  # the part of a sum by which one that is less is better


def sweeps(
    total: Sum, most: int, saying: Saying, *, lasting: bool, stop: Callable[[], bool]
) -> Iterator[None]:
    """Has terms tell variables what they cost, from the first to the last and back, so often unless ``stop``
    says so."""
    for sweep in range(most):
        if stop():
            return
        total.sweep(sweep % 2 == 1, saying, lasting)
        yield


def pass_messages(
    total: Sum, most: int, saying: Saying, *, lasting: bool = False, stop: Callable[[], bool]
) -> Integers:
    """The best choice of values that was seen in so many sweeps of messages from terms to variables, or
    fewer if ``stop`` says so or, unless ``lasting``, the choice stays the same."""
    before = best = total.best()
    least, settled = total.energy(best), 0
    for _ in sweeps(total, most, saying, lasting=lasting, stop=stop):
        now = total.best()
        if not np.array_equal(now, before):
            settled, before, energy = 0, now, total.energy(now)
            if energy < least * (1 - LESS):
                best, least = now, energy
        elif not lasting:
            settled += 1
            if settled == _SETTLED:
                break
    return best


def lower_bound(total: Sum, alone: Floats, members: Mapping[int, tuple[Integers, Integers]]) -> float:
    """A lower bound of a sum, also for choices by which what a row or a variable stands for is not alike;
    ``alone`` has each variable, and ``members`` of the terms with a number the rows, and
    the variables of each."""
    beliefs = alone.copy()
    for number, (rows, variables) in members.items():
        for slot, index in enumerate(variables.T):
            add_rows(beliefs, index, total.messages(number, slot)[rows])
    return float(beliefs.min(axis=1).sum()) + total.left()


def settle(
    total: Sum, chosen: Integers, stop: Callable[[], bool], least: float = inf
) -> tuple[Integers, float]:
    """A choice that is no worse, and its sum: variables move, those of whole trees at once, for as long as
    that helps, and it is not far above what is known to be the ``least``."""
    energy, turn, still = total.energy(chosen), 0, 0
    while still < _STILL and not stop() and (turn != _LOOK or energy < _FAR_ABOVE * least):
        moved = total.moved(chosen, turn)
        less = total.energy(moved)
        turn, still = turn + 1, still + 1
        if less < energy * (1 - LESS):
            chosen, energy, still = moved, less, 0
    return chosen, energy
