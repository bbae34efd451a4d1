"""The variables of the choice: values, with equal ones as one variable, and the ops that relate them.

Equal layers get equal layouts (``least/folding.py``), so equal ops are one row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, NewType

import numpy as np

from ...program.columns import told_apart
from ...program.ids import Slot
from ..facts.knowledge import Knowledge
from ..layouts import Layout, Shape
from . import tuning
from .least.folding import Integers, classes

Variable = NewType("Variable", int)  # equal values
NONE = Variable(-1)
Row = NewType("Row", int)  # equal ops


class Spot(NamedTuple):
    """An op that is computed: its operands and results, the propagated layout of each slot, the operands that
    can be made in any layout, whether these layouts send anything, and how often it runs. For each slot, how
    often it is resharded, if that differs: less often if the value is loop-invariant."""

    knowledge: Knowledge
    values: tuple[int, ...]
    held: tuple[Layout, ...]
    free: frozenset[Slot]
    sends: bool
    weight: float = 1.0
    weights: tuple[float, ...] = ()

    @property
    def resharded(self) -> tuple[float, ...]:
        """How often each slot is resharded; by default as often as the op runs."""
        return self.weights or (self.weight,) * len(self.values)


class Need(NamedTuple):
    """A value that is needed in a layout, at a boundary or by control flow."""

    value: int
    layout: Layout
    weight: float = 1.0


class ValueKind(NamedTuple):
    """The common facts of values with one variable: the shape, the bytes of an element, and the home; whether
    an op makes them, so that they may have another home; whether several ops use them; and whether a loop
    carries them, with the trip count if it is known."""

    shape: Shape
    width: int
    home: Layout
    made: bool
    shared: bool
    carried: bool | None
    open: bool = False


class Variables:
    """The variables and rows of a program. They come from ops, the layouts that values are needed in, values
    that are ``pinned`` to their homes, and values that loops carry (``carried``, with whether the trip count
    is known). Values and ops are equal if their surroundings are, up to some ``steps``.

    For each variable: ``kinds``; ``wanted``, the layouts that it is needed in, with counts; ``size``, the
    number of its values; ``weights``, the number of executions of its users. For each row: ``spots``, its
    first op; ``often``, the number of its ops; ``slots``, the variables of that op, NONE for none. For each
    given op: ``row_of``; the ``numbers`` of its values, -1 for none; ``results``, the first of each. For each
    number of ``values``: the variable (``of``).
    """

    def __init__(
        self,
        spots: Sequence[Spot],
        needs: Sequence[Need],
        pinned: Collection[int] = (),
        carried: Mapping[int, bool] = MappingProxyType({}),
        opened: Collection[int] = (),
        steps: int = tuning.STEPS,
    ) -> None:
        number, kinds = _values(spots, carried, opened)
        wanted = _wanted(needs, number)
        self.values = list(number)
        self.numbers = [tuple([number.get(value, -1) for value in spot.values]) for spot in spots]
        row_of, self.of = classes(
            [(spot.knowledge, spot.held, spot.free, spot.weight, spot.weights) for spot in spots],
            [
                (*kind, tuple(asked.items()), value in pinned)
                for value, kind, asked in zip(number, kinds, wanted, strict=True)
            ],
            self.numbers,
            steps,
        )
        self.pinned = {Variable(int(self.of[number[value]])) for value in pinned if value in number}
        self.size = np.bincount(self.of).astype(np.float64)
        first = np.unique(self.of, return_index=True)[1]
        self.kinds, self.wanted = [kinds[n] for n in first], [wanted[n] for n in first]
        self._fold(spots, row_of)
        self.weights = [1.0] * len(self.kinds)
        for spot, variables in zip(self.spots, self.slots, strict=True):
            for n, weight in zip(variables, spot.resharded, strict=True):
                if n >= 0:
                    self.weights[n] = max(self.weights[n], weight)
        self.results = [
            s.values[s.knowledge.roles.index("result")] if "result" in s.knowledge.roles else None
            for s in spots
        ]

    def _fold(self, spots: Sequence[Spot], classes: Integers) -> None:
        """Makes one row of the ops of a class, in the order of the program."""
        firsts, self.row_of = told_apart(classes)
        self.firsts = firsts.tolist()  # of each row: the number of its first op among the given ones
        self.spots = [spots[n] for n in self.firsts]
        self.often = np.bincount(self.row_of).astype(np.float64)
        self.slots = [
            tuple(NONE if n < 0 else Variable(int(self.of[n])) for n in self.numbers[i]) for i in firsts
        ]
        self.rows = [Row(n) for n in range(len(self.spots))]


def _values(
    spots: Sequence[Spot], carried: Mapping[int, bool], opened: Collection[int]
) -> tuple[dict[int, int], list[ValueKind]]:
    """The values whose layouts are chosen, each with its number, and the kind of each number.

    They are tensors that an op makes, or that several ops need in certain layouts.
    """
    made, uses = set(opened), dict[int, int]()
    for spot in spots:
        free = spot.free
        for t, (value, role) in enumerate(zip(spot.values, spot.knowledge.roles, strict=True)):
            if role == "result":
                made.add(value)
            elif t not in free:
                uses[value] = uses.get(value, 0) + 1
    number, kinds = dict[int, int](), list[ValueKind]()
    for spot in spots:
        for t, (value, shape) in enumerate(zip(spot.values, spot.knowledge.shapes, strict=True)):
            if not shape or value in number:
                continue
            several = uses.get(value, 0) > 1
            if value in made or (several and t not in spot.free):
                number[value] = len(kinds)
                width, home, goes_around = spot.knowledge.widths[t], spot.held[t], carried.get(value)
                kinds.append(
                    ValueKind(shape, width, home, value in made, several, goes_around, value in opened)
                )
    return number, kinds


def _wanted(needs: Sequence[Need], number: Mapping[int, int]) -> list[dict[tuple[Layout, float], int]]:
    """By number of a value: the layouts that it is needed in, with their weights, and how often."""
    wanted: list[dict[tuple[Layout, float], int]] = [{} for _ in number]
    for need in needs:
        if (n := number.get(need.value)) is not None:
            key = need.layout, need.weight
            wanted[n][key] = wanted[n].get(key, 0) + 1
    return wanted
