"""The dimensions of tensors that share a factor in an op, for all ops at once.

A dimension of a cell has the number ``cell * rank + dim``. Ops of one class share factors in the same way.
So the rules are asked once for each class and slot, and arrays have the answers for all of its ops.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
import numpy.typing as npt

from ...program.ids import Content, Item
from ...runs.records.obstacles import Obstacles
from ...runs.records.record import RunRecord

Ints = npt.NDArray[np.int64]
Shared = Callable[[Item, int, int], Sequence[tuple[int, int, int]]]  # item, slot, dimension


class Nearby:
    """The dimensions next to others.

    ``near`` has, for each dimension, those that share a factor with it, by op and slot: those from
    ``starts[number]`` to ``starts[number + 1]``. ``looked_at`` marks those next to one that has the axis,
    and those of ops that the rules say nothing of. ``rank`` is more than any dimension.
    """

    def __init__(
        self,
        record: RunRecord,
        obstacles: Obstacles,
        shared: Shared,
        on_axis: Callable[[Content], Collection[int]],
        dim: int,
    ) -> None:
        held = record.slot_columns()
        kept = np.flatnonzero(held.items < record.items)
        cells, items, slots = (column[kept].astype(np.int32) for column in held[:3])  # saved ones are narrow
        several = int(slots.max(initial=0)) + 1
        first, which = _numbered(held.classes[items].astype(np.int32) * several + slots)
        representatives = [
            (Item(item), slot)
            for item, slot in zip(items[first].tolist(), slots[first].tolist(), strict=True)
        ]
        maps = [obstacles.maps(item) for item, _ in representatives]
        dims = [
            sorted({row.dim for row in rows if row.slot == slot})
            for rows, (_, slot) in zip(maps, representatives, strict=True)
        ]
        self.rank = rank = max([dim, *(row.dim for rows in maps for row in rows)]) + 1
        has, looked_at = self._has(held.last, on_axis), np.zeros((len(held.last), rank), bool)
        rows_of = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
        count = np.zeros((len(cells), rank), np.int32)  # of the dimensions next to one, by row
        edges = list[tuple[Ints, int, Sequence[tuple[int, int, int]]]]()
        for (item, slot), there, rows in zip(representatives, dims, rows_of, strict=True):
            if not there and not obstacles.unknown(item):
                continue
            if not there or not obstacles.same_in_class(item):
                looked_at[cells[rows]] = True
                continue
            for d in there:
                edges.append((rows, d, others := shared(item, slot, d)))
                count[rows, d] = len(others)
        # The rows are in the order of their cells, so those of a cell are next to each other.
        begins = np.searchsorted(cells, np.arange(len(held.last) + 1, dtype=cells.dtype))
        before = np.zeros((len(cells) + 1, rank), np.int32)
        np.cumsum(count, axis=0, out=before[1:])
        starts = np.zeros(looked_at.size + 1, np.int32)
        np.cumsum(np.diff(before[begins], axis=0).reshape(-1), out=starts[1:])
        near = np.zeros(starts[-1], np.int32)
        for rows, d, others in edges:
            of, offsets = cells[rows], held.offsets[items[rows]].astype(np.int32)
            place = starts[of * rank + d] + before[rows, d] - before[begins[of], d]
            for number, (_, other, e) in enumerate(others):
                to = held.by_item[offsets + other].astype(np.int32)
                looked_at[of[has[to, e]], d] = True
                near[place + number] = to * rank + e
        self.looked_at: Sequence[int] = looked_at.reshape(-1).data
        self.near: Sequence[int] = near.data
        self.starts: Sequence[int] = starts.data

    def _has(self, last: Ints, on_axis: Callable[[Content], Collection[int]]) -> npt.NDArray[np.bool_]:
        """Whether a dimension of a cell has the axis at the end."""
        first, held_by = _numbered(last)
        has = np.zeros((len(first), self.rank), bool)
        for number, content in enumerate(last[first].tolist()):
            has[number, [d for d in on_axis(Content(content)) if d < self.rank]] = True
        return has[held_by]


def _numbered(codes: Ints) -> tuple[Ints, Ints]:
    """Where each code first stands, by code, and the number of each code among these. Codes are small, so
    nothing is sorted."""
    codes = codes - codes.min(initial=0)
    first = np.full(int(codes.max(initial=-1)) + 1, -1, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # the last one stays
    there = first >= 0
    numbers = np.cumsum(there) - 1
    return first[there], numbers.astype(np.min_scalar_type(len(first)))[codes]
