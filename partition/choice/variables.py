"""The variables of the choice: values, with equal ones as one variable, and the ops that relate them.

Equal layers get equal layouts (``least/folding.py``), so equal ops are one row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain, pairwise
from types import MappingProxyType
from typing import NamedTuple, NewType

import numpy as np
import numpy.typing as npt

from ...program.columns import distinct, first_alike, numbered, starts, told_apart
from ...program.ids import Slot
from ..facts.knowledge import Knowledge
from ..layouts import Layout, Shape
from ..reshards.prices import TaskId
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
    an op computes them, so that they may have another home; whether several ops use them; and whether a loop
    carries them, with the trip count if it is known."""

    shape: Shape
    width: int
    home: Layout
    computed: bool
    shared: bool
    carried: bool | None
    open: bool = False


class Variables:
    """The variables and rows of a program. They come from ops, the layouts that values are needed in, values
    that are ``pinned`` to their homes, and values that loops carry (``carried``, with whether the trip count
    is known). Values and ops are equal if their surroundings are, up to some ``steps``.

    For each variable: ``kinds``; ``wanted``, the layouts that it is needed in, with counts; ``size``, the
    number of its values; ``weights``, the number of executions of its users. For each row: ``spots``, its
    first op; ``often``, the number of its ops; ``slots``, the variables of that op, NONE for none; and with a
    machine its task, by ``task_of`` spots (``tasks``). For each
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
        task_of: Callable[[int], TaskId] | None = None,
    ) -> None:
        columns = _Columns(spots)
        values, kinds, kind_of = _values(columns, carried, opened)
        self.values: list[int] = values.tolist()
        number = dict(zip(self.values, range(len(values)), strict=True))
        wanted = _wanted(needs, number)
        needed, kept = np.full(len(values), -1), np.zeros(len(values), np.int64)
        needed[list(wanted)] = numbered(map(tuple, map(dict.items, wanted.values())))[1]
        kept[[number[value] for value in pinned if value in number]] = 1
        _, alike = told_apart(first_alike([kind_of, needed, kept]))
        of_value = np.full(columns.end, -1)
        of_value[values] = np.arange(len(values))
        numbers, offsets = of_value[columns.values], columns.offsets.tolist()
        row_of, self.of = classes(columns.look, alike, numbers, columns.offsets, steps)
        every = numbers.tolist()
        self.numbers = [tuple(every[start:end]) for start, end in pairwise(offsets)]
        self.pinned = {Variable(int(self.of[n])) for n in np.flatnonzero(kept).tolist()}
        self.size = np.bincount(self.of).astype(np.float64)
        first = np.unique(self.of, return_index=True)[1].tolist()
        self.kinds, self.wanted = [kinds[kind_of[n]] for n in first], [wanted.get(n, {}) for n in first]
        self._fold(spots, row_of)
        self.tasks = None if task_of is None else [task_of(n) for n in self.firsts]
        self.weights = [1.0] * len(self.kinds)
        for spot, variables in zip(self.spots, self.slots, strict=True):
            for n, weight in zip(variables, spot.resharded, strict=True):
                if n >= 0:
                    self.weights[n] = max(self.weights[n], weight)
        of_looks = [
            each.knowledge.roles.index("result") if "result" in each.knowledge.roles else None
            for each in columns.looks
        ]
        self.results = [
            None if (t := of_looks[look]) is None else spot.values[t]
            for spot, look in zip(spots, columns.look.tolist(), strict=True)
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


class _Columns:
    """The slots of spots as arrays.

    Spots have few ``looks``, by which all is equal but their values: there is one spot of each, and ``look``
    is that of each spot. ``values`` are those of all slots; those of a spot start at its offset, and all are
    below the ``end``. ``slots`` are the same slots of looks, one look after the other.
    """

    def __init__(self, spots: Sequence[Spot]) -> None:
        # Most facts are the same objects, which is quick to see.
        same = told_apart(
            numbered((id(s.knowledge), id(s.held), id(s.free), s.weight, id(s.weights)) for s in spots)[1]
        )
        some = [spots[n] for n in same[0].tolist()]
        of_some = numbered((s.knowledge, s.held, s.free, s.weight, s.weights) for s in some)[1]
        self.look: Integers = of_some[same[1]]
        self.looks = [some[n] for n in told_apart(of_some)[0].tolist()]
        counts = np.asarray([len(each.values) for each in self.looks], np.int64)
        self.offsets: Integers = starts(counts[self.look]).astype(np.int64)
        self.values = np.fromiter(chain.from_iterable(s.values for s in spots), np.int64, self.offsets[-1])
        self.end = int(self.values.max(initial=-1)) + 1
        before = starts(counts)[:-1][self.look] - self.offsets[:-1]
        self.slots: Integers = before.repeat(counts[self.look]) + np.arange(len(self.values))

    def where(self, holds: Callable[[Spot, int], bool]) -> npt.NDArray[np.bool_]:
        """For each slot whether something holds of the slot of its look."""
        every = [holds(look, t) for look in self.looks for t in range(len(look.values))]
        return np.asarray(every, bool)[self.slots]


def _values(
    columns: _Columns, carried: Mapping[int, bool], opened: Collection[int]
) -> tuple[Integers, list[ValueKind], Integers]:
    """The values whose layouts are chosen, the distinct kinds of values, and the kind of each of these.

    They are tensors that an op makes, or that several ops need in certain layouts.
    """
    values, end = columns.values, columns.end
    result = columns.where(lambda look, t: look.knowledge.roles[t] == "result")
    asks = ~result & ~columns.where(lambda look, t: t in look.free)
    made, goes_around, free = np.zeros(end, bool), np.full(end, -1), np.zeros(end, bool)
    free[[value for value in opened if value < end]] = True
    made[values[result]] = True
    made |= free
    for value, known in carried.items():
        if value < end:
            goes_around[value] = known
    shared = np.bincount(values[asks], minlength=end) > 1
    tensors = columns.where(lambda look, t: bool(look.knowledge.shapes[t]))
    chosen = np.flatnonzero(tensors & (made[values] | (shared[values] & asks)))
    those, first, _ = distinct(values[chosen])
    at = columns.slots[chosen[first]]
    rows, which = told_apart(
        first_alike([at, *(each[those].astype(np.int64) for each in (made, shared, goes_around, free))])
    )
    shapes = [shape or () for look in columns.looks for shape in look.knowledge.shapes]
    widths = [width for look in columns.looks for width in look.knowledge.widths]
    homes = [home for look in columns.looks for home in look.held]
    kinds, of_rows = numbered(
        ValueKind(
            shapes[t], widths[t], homes[t], bool(made[v]), bool(shared[v]), carried.get(v), bool(free[v])
        )
        for t, v in zip(at[rows].tolist(), those[rows].tolist(), strict=True)
    )
    return those, kinds, of_rows[which]


def _wanted(needs: Sequence[Need], number: Mapping[int, int]) -> dict[int, dict[tuple[Layout, float], int]]:
    """By number of a value that is needed in certain layouts: these, with their weights, and how often."""
    wanted: dict[int, dict[tuple[Layout, float], int]] = {}
    for need in needs:
        if (n := number.get(need.value)) is not None:
            key, asked = (need.layout, need.weight), wanted.setdefault(n, {})
            asked[key] = asked.get(key, 0) + 1
    return wanted
