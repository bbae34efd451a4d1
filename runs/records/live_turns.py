"""The turns of a run in memory: the contents of its cells, and the log of changes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...program.ids import Cell, Content, Item, Place
from ...propagation.fixpoint import STATE, Fixpoint
from ..groups import Ordered, Outline, ordered, outline
from .record import Change, Facts, Key, Op, RunRecord, SlotColumns

if TYPE_CHECKING:
    from ...rulebook.book import RuleBook


class LiveTurns(RunRecord):
    """The part of a run's record that follows from the fixpoint alone, and the program in its order."""

    def __init__(self, fixpoint: Fixpoint, book: RuleBook, items: int) -> None:
        self._fixpoint, self._book, self.items = fixpoint, book, items  # annotations come after the items
        self._log = fixpoint.outcome.log
        self._agenda = fixpoint.graph
        # Those that an item had before others retired were for turns that changed nothing.
        self._classes = fixpoint.graph.settled
        self._statics: dict[int, Mapping[int, int]] = {}
        self.end = len(self._log.item)
        self._ops: dict[Item, Op] = {}

    @abstractmethod
    def _read_op(self, item: Item) -> Op:
        """The op, edge, result or annotation that takes turns as ``item``."""

    def op(self, item: Item) -> Op:
        if item not in self._ops:
            self._ops[item] = self._read_op(item)
        return self._ops[item]

    @cached_property
    def ordered(self) -> Ordered:
        """The ops in the order of the program, and their groups."""
        return ordered(self, self.outline)

    @cached_property
    def outline(self) -> Outline:
        """The items in the order of the program, and what makes groups of them."""
        return outline(self)

    def slots(self, item: Item) -> list[Place]:
        offsets, places = self._agenda.slots
        slots: list[Place] = places[offsets[item] : offsets[item + 1]].tolist()
        return slots

    @cached_property
    def by_cell(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """The slots of all items in the order of their cells: cells, items and slots."""
        offsets, places = self._agenda.slots
        cells = self._agenda.place_cell[places]
        items = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        order = np.argsort(cells, kind="stable")
        return cells[order], items[order], order - offsets[items[order]]

    def turns(self, cell: Cell) -> list[tuple[Item, int]]:
        cells, items, slots = self.by_cell
        low, high = _run(cells, cell)
        return list(zip(items[low:high].tolist(), slots[low:high].tolist(), strict=True))

    def slot_columns(self) -> SlotColumns:
        offsets, places = self._agenda.slots
        by_item, last = self._agenda.place_cell[places], self._fixpoint.outcome.contents
        return SlotColumns(*self.by_cell, offsets, by_item, self._classes, last)

    @property
    def prioritised(self) -> list[Cell]:
        """The cells of annotations with priorities, which take turns too."""
        offsets, places = self._agenda.slots
        cells: list[Cell] = self._agenda.place_cell[places[offsets[self.items] :]].tolist()
        return cells

    def cell(self, place: Place) -> Cell:
        return Cell(int(self._agenda.place_cell[place]))

    def contents(self, cell: Cell) -> tuple[Content, Content]:
        first, last = self._fixpoint.initial[cell], self._fixpoint.outcome.contents[cell]
        return Content(int(first)), Content(int(last))

    def facts(self, content: Content) -> Facts:
        return self._fixpoint.agenda.facts(content)

    def class_of(self, item: Item) -> int:
        return int(self._classes[item])

    def statics(self, class_: int) -> Mapping[int, int]:
        if class_ not in self._statics:
            taken = self._taken.get(class_, ())
            rows = ((turns, int(statics[class_])) for statics, passes in taken for turns in passes)
            self._statics[class_] = dict(sorted(rows))
        return self._statics[class_]

    @cached_property
    def _taken(self) -> dict[int, list[tuple[npt.NDArray[np.int32], list[int]]]]:
        """The passes in which a class takes turns, by the static facts that they share: every stage has
        passes, but most priorities have only annotations of their own."""
        shared: dict[int, tuple[npt.NDArray[np.int32], list[int]]] = {}
        for number, turns in enumerate(self._fixpoint.passes):
            shared.setdefault(id(turns.statics), (turns.statics, []))[1].append(number)
        taken: dict[int, list[tuple[npt.NDArray[np.int32], list[int]]]] = {}
        for statics, passes in shared.values():
            for class_ in np.flatnonzero(statics >= 0).tolist():
                taken.setdefault(class_, []).append((statics, passes))
        return taken

    def given(self, static: int, slots: int) -> Facts:
        return self._fixpoint.agenda.explain(static, [0] * slots, self._inputs)

    @cached_property
    def _inputs(self) -> list[str]:
        """The input relations of a turn, without the contents of slots."""
        plan = self._book.programs()["turn"].plan
        return [r.name for r in plan.relations if r.input and r.keyed and r.name not in STATE]

    def at_end(self) -> Iterator[tuple[Item, Key]]:
        if not self._fixpoint.passes:
            return
        offsets, places = self._agenda.slots
        held = self._fixpoint.outcome.contents[self._agenda.place_cell[places]].tolist()
        statics = self._fixpoint.passes[-1].statics[self._classes].tolist()
        ends = offsets.tolist()
        for item in range(self.items):
            if statics[item] >= 0:
                yield Item(item), (statics[item], *held[ends[item] : ends[item + 1]])

    @cached_property
    def _changes(self) -> dict[Cell, list[int]]:
        changes: dict[Cell, list[int]] = {}
        for number, cell in enumerate(self._log_cells):
            changes.setdefault(cell, []).append(number)
        return changes

    @property
    def _log_cells(self) -> list[Cell]:
        """The cells that changed, in the order of the log."""
        cells: list[Cell] = self._agenda.place_cell[self._log.place].tolist() if self.end else []
        return cells

    def changes(self, cell: Cell) -> Sequence[int]:
        return self._changes.get(cell, ())

    def change(self, number: int) -> Change:
        turns, item, slot, place, old, new = (int(column[number]) for column in self._log)
        return Change(turns, Item(item), slot, self.cell(Place(place)), Content(old), Content(new))

    def log_columns(self) -> list[list[int]]:
        """The columns of the log: for each change its pass, item, slot and cell, and both contents."""
        turns, items, slots, _, old, new = (column.tolist() for column in self._log)
        return [turns, items, slots, [*self._log_cells], old, new]

    def log(self) -> Iterator[tuple[Key, Change]]:
        """The changes in order, with the neighbourhoods in which they were made."""
        turns, items, slots, _, old, new = (column.tolist() for column in self._log)
        changes = map(Change, turns, items, slots, self._log_cells, old, new)
        keys = (key for _, key, *_ in self.turns_in_order())
        return zip(keys, changes, strict=True)

    def turns_in_order(self) -> Iterator[tuple[int, Key, list[int], int, int, int, int]]:
        """For each change the first change of its turn, the neighbourhood of the turn, and the cells of the
        item's slots. Also the slot, its cell, and the old and the new content of the change."""
        log = zip(*(column.tolist() for column in self._log), self._log_cells, strict=True)
        contents, classes = self._fixpoint.initial.tolist(), self._classes.tolist()
        offsets, places = self._agenda.slots
        ends, cells = offsets.tolist(), self._agenda.place_cell[places].tolist()
        last, start, key, held = (-1, -1), 0, tuple[int, ...](), list[int]()
        for number, (turns, item, slot, _, old, new, cell) in enumerate(log):
            if (turns, item) != last:
                last, start = (turns, item), number
                held = cells[ends[item] : ends[item + 1]]
                static = self.statics(classes[item]).get(turns, -1)
                key = (static, *[contents[each] for each in held])
            contents[cell] = new
            yield start, key, held, slot, cell, old, new


def _run(cells: npt.NDArray[Any], cell: Cell) -> Any:
    """The range of a cell in sorted cells. With another type than theirs NumPy would cast them all."""
    return np.searchsorted(cells, np.asarray([cell, cell + 1], cells.dtype))
