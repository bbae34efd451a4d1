"""The least sum of terms over variables with a few values each, by message passing and by moves of whole
trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf

import numpy as np

from .sums import Floats, Integers, Saying, Sum, add_rows

_SETTLED = 4  # sweeps with the same best values, after which it ends
_STILL = 8  # moves without a gain, after which it ends
_LOOK, _FAR_ABOVE = 4, 1.3  # moves after which it ends if the sum exceeds this multiple of the least
LESS = 1e-9  # the relative gain from which on a sum is better


def sweeps(
    total: Sum, most: int, saying: Saying, *, lasting: bool, stop: Callable[[], bool]
) -> Iterator[None]:
    """Passes messages from terms to variables, forwards and backwards, this often or until ``stop`` says
    so."""
    for sweep in range(most):
        if stop():
            return
        total.sweep(sweep % 2 == 1, saying, lasting)
        yield


def pass_messages(
    total: Sum, most: int, saying: Saying, *, lasting: bool = False, stop: Callable[[], bool]
) -> Integers:
    """The best choice of values seen in this many sweeps of messages. It ends earlier if ``stop`` says so,
    or, unless ``lasting``, if the choice stays the same."""
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
    """A lower bound of a sum, also for choices in which the members of a row or a variable differ. ``alone``
    has each variable, and ``members`` of the terms with a number the rows, and the variables of each."""
    beliefs = alone.copy()
    for number, (rows, variables) in members.items():
        for slot, index in enumerate(variables.T):
            add_rows(beliefs, index, total.messages(number, slot)[rows])
    return float(beliefs.min(axis=1).sum()) + total.left()


def settle(
    total: Sum, chosen: Integers, stop: Callable[[], bool], least: float = inf
) -> tuple[Integers, float]:
    """A choice that is no worse, and its sum. Whole trees of variables move as long as that helps, and while
    the sum is close to the known ``least``."""
    energy, turn, still = total.energy(chosen), 0, 0
    while still < _STILL and not stop() and (turn != _LOOK or energy < _FAR_ABOVE * least):
        moved = total.moved(chosen, turn)
        less = energy if np.array_equal(moved, chosen) else total.energy(moved)
        turn, still = turn + 1, still + 1
        if less < energy * (1 - LESS):
            chosen, energy, still = moved, less, 0
    return chosen, energy
