"""The dimensions of tensors that share a factor in an op, for all ops at once.

A dimension of a cell has the number ``cell * rank + dim``. Ops of one class share factors in the same way, so
the rules are asked once for each class and slot, and arrays have the answers for all of its ops.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
import numpy.typing as npt

from ...program.ids import Content, Item
from ...runs.records.obstacles import Obstacles
from ...runs.records.record import RunRecord, SlotColumns

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
        # In files columns are as narrow as their numbers.
        held = SlotColumns(*(column.astype(np.int64) for column in record.slot_columns()))
        kept = held.items < record.items
        cells, items, slots = (column[kept] for column in held[:3])
        classes = held.classes[items]
        several = int(slots.max(initial=0)) + 1
        _, first, which = np.unique(classes * several + slots, return_index=True, return_inverse=True)
        representatives = [
            (Item(item), slot)
            for item, slot in zip(items[first].tolist(), slots[first].tolist(), strict=True)
        ]
        dims = [
            sorted({row.dim for row in obstacles.maps(item) if row.slot == slot})
            for item, slot in representatives
        ]
        self.rank = max([dim, *(row.dim for item, _ in representatives for row in obstacles.maps(item))]) + 1
        count = len(held.last) * self.rank
        looked_at = np.zeros(count, bool)
        edges = [np.zeros((4, 0), np.int64)]  # from, the row, which one, to
        rows_of = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
        for (item, slot), there, rows in zip(representatives, dims, rows_of, strict=True):
            if not there and not obstacles.unknown(item):
                continue
            if not there or not obstacles.same_in_class(item):
                looked_at.reshape(-1, self.rank)[cells[rows]] = True
                continue
            begins = held.offsets[items[rows]]
            for d in there:
                for number, (_, other, e) in enumerate(shared(item, slot, d)):
                    to = held.by_item[begins + other] * self.rank + e
                    edges.append(
                        np.array([cells[rows] * self.rank + d, rows, np.full(len(rows), number), to])
                    )
        contents, held_by = np.unique(held.last, return_inverse=True)
        has = np.zeros((len(contents), self.rank), bool)
        for number, content in enumerate(contents.tolist()):
            has[number, [d for d in on_axis(Content(content)) if d < self.rank]] = True
        sources, row, number, targets = np.concatenate(edges, axis=1)
        near = has[held_by].reshape(-1)[targets]
        looked_at[sources[near]] = True
        order = np.lexsort((number, row, sources))
        self.looked_at: list[bool] = looked_at.tolist()
        self.near: list[int] = targets[order].tolist()
        self.starts: list[int] = np.append(0, np.cumsum(np.bincount(sources, minlength=count))).tolist()
