"""The least sum of terms over variables with a few values each: by messages, and by moving single values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from .sums import Floats, Integers, Sum, Terms, add_rows

_MOVES = 40
_SETTLED = 4  # sweeps after which the same values are best
_LESS = 1e-9  # the part of a sum by which one that is less is better


def pass_messages(
    total: Sum, sweeps: int, *, shared: bool, lasting: bool = False, stop: Callable[[], bool]
) -> Integers:
    """The best choice of values that was seen in so many sweeps of messages from terms to variables, or
    fewer if ``stop`` says so or, unless ``lasting``, the choice stays the same."""
    before = best = total.best()
    least, settled = total.energy(best), 0
    for sweep in range(sweeps):
        if stop() or settled == _SETTLED:
            break
        total.sweep(sweep % 2 == 1, shared, lasting)
        now = total.best()
        if not np.array_equal(now, before):
            settled, before, energy = 0, now, total.energy(now)
            if energy < least * (1 - _LESS):
                best, least = now, energy
        elif not lasting:
            settled += 1
    return best


def bound_of(total: Sum, terms: Sequence[Terms], alone: Floats, size: Floats) -> float:
    """A lower bound of a sum: what is least for each term and each variable on its own, with costs moved
    between them as the messages say. ``alone`` and ``size`` are what the sum was made of."""
    beliefs = alone.copy()
    for number, term in enumerate(terms):
        for slot, index in enumerate(term.variables.T):
            often = term.counts / size[index]
            add_rows(beliefs, index, total.messages(number, slot) * often[:, None])
    return float(beliefs.min(axis=1) @ size) + total.left()


def lower_bound(
    total: Sum, alone: Floats, members: Mapping[int, Sequence[tuple[int, Sequence[int]]]]
) -> float:
    """A lower bound, as ``bound_of``, also for choices by which what a row or a variable stands for is not
    alike; ``alone`` has each variable, and ``members`` each of the terms with a number: its row, and its
    variables."""
    beliefs = alone.copy()
    for number, each in members.items():
        rows, variables = (np.asarray(list_) for list_ in zip(*each, strict=True))
        for slot, index in enumerate(variables.T):
            add_rows(beliefs, index, total.messages(number, slot)[rows])
    return float(beliefs.min(axis=1).sum()) + total.left()


def improve(
    total: Sum, terms: Sequence[Terms], chosen: Integers, stop: Callable[[], bool]
) -> tuple[Integers, float]:
    """A choice that is no worse, and its sum: single variables move for as long as that helps, those without
    a common term at once."""
    energy, numbers = total.energy(chosen), np.arange(len(chosen))
    for _ in range(_MOVES):
        gains = total.gains(chosen)
        better, to = gains.min(axis=1), gains.argmin(axis=1)
        wants = better < -1e-6
        if not wants.any() or stop():
            break
        moved = chosen.copy()
        order = numbers[wants][np.argsort(better[wants], kind="stable")]
        moving: set[int] = set()
        near = _neighbours(terms, set(order.tolist()))
        for n in order.tolist():
            if n not in moving:
                moved[n] = to[n]
                moving |= near.get(n, set()) | {n}
        less = total.energy(moved)
        if less >= energy - 1e-6:
            break
        chosen, energy = moved, less
    return chosen, energy


def _neighbours(terms: Sequence[Terms], among: set[int]) -> dict[int, set[int]]:
    """Of each of some variables, those of them that it shares a term with."""
    near: dict[int, set[int]] = {}
    for term in terms:
        for row in term.variables.tolist():
            some = among.intersection(row)
            for n in some:
                near.setdefault(n, set()).update(some)
    return near
