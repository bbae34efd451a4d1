"""What the cells of a run held when: the agenda's log, read backwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..api import Result
from ..engine.proof import Derivations
from ..engine.proof_check import Checker
from ..propagation import Stage

Facts = dict[str, list[tuple[Any, ...]]]
_HELD = ("mesh", "sharded", "closed", "fixed")


@dataclass(frozen=True)
class Event:
    """A change: the ``number``-th of the log, by the turn of an item that gave a slot new content."""

    number: int
    stage: int
    item: int
    slot: int
    cell: int
    new: int


class History:
    """The log of a run by cell, and the neighbourhoods in which turns were taken."""

    def __init__(self, result: Result) -> None:
        self.result = result
        fixpoint = result.fixpoint
        self.log = fixpoint.outcome.log
        self.end = len(self.log.item)
        self._agenda, self._graph = fixpoint.agenda, fixpoint.graph
        self._cell_of = fixpoint.graph.place_cell
        cells = self._cell_of[self.log.place] if self.end else np.zeros(0, np.int32)
        self._order = np.argsort(cells, kind="stable")
        self._cells = cells[self._order]
        self._held: dict[int, Facts] = {}
        self._derivations: dict[tuple[tuple[int, ...], tuple[str, ...]], Derivations] = {}
        self._checkers: dict[tuple[int, ...], Checker] = {}
        self._program = result.book.reasons()

    @cached_property
    def inputs(self) -> list[str]:
        """The relations that a turn is given."""
        return [r.name for r in self._program.plan.relations if r.input and r.keyed and r.name not in _HELD]

    @cached_property
    def shared(self) -> Facts:
        """The facts that all turns share."""
        axes = self.result.program.shardings.meshes.facts()
        return {name: rows for name, rows in axes.items() if rows}

    def stage(self, event: Event) -> Stage:
        """The stage of a change."""
        return self.result.fixpoint.stages[event.stage]

    def slots(self, item: int) -> list[int]:
        """The places of an item's slots."""
        offsets, places = self._graph.slots
        return [int(place) for place in places[offsets[item] : offsets[item + 1]]]

    def cell(self, place: int) -> int:
        """The cell of a place."""
        return int(self._cell_of[place])

    def facts(self, content: int) -> Facts:
        """What a content says."""
        if content not in self._held:
            self._held[content] = self._agenda.facts(content)
        return self._held[content]

    def events(self, cell: int, before: int) -> list[int]:
        """The changes of a cell before a change, latest first, as numbers of the log."""
        low, high = np.searchsorted(self._cells, [cell, cell + 1])
        return [int(n) for n in self._order[low:high][::-1] if n < before]

    def content(self, cell: int, before: int) -> int:
        """The content of a cell just before a change; ``end``: after all of them."""
        if before == self.end:
            return int(self.result.fixpoint.outcome.contents[cell])
        for number in self.events(cell, before):
            return int(self.log.new[number])
        return int(self.result.fixpoint.initial[cell])

    def gained(self, cell: int, dim: int, atom: int, before: int) -> Event | None:
        """The change that put the atom there as it is just before a change; None: it was there at first."""
        for number in self.events(cell, before):
            if not self._has(int(self.log.old[number]), dim, atom):
                return self.event(number)
        return None

    def event(self, number: int) -> Event:
        """A change of the log."""
        log = self.log
        stage = self.result.fixpoint.stage_of[int(log.number[number])]
        cell = self.cell(int(log.place[number]))
        return Event(number, stage, int(log.item[number]), int(log.slot[number]), cell, int(log.new[number]))

    def start(self, event: Event) -> int:
        """The first change of the turn that made a change."""
        log, number = self.log, event.number
        turn = (log.number[number], log.item[number])
        while number > 0 and (log.number[number - 1], log.item[number - 1]) == turn:
            number -= 1
        return number

    def turn(self, event: Event, outputs: tuple[str, ...] = ("becomes_sharded",)) -> Derivations:
        """The turn that made a change, solved once more."""
        return self._solved(self.around(event), outputs)

    def last_turn(self, item: int) -> Derivations | None:
        """A turn of an item at the end of the run, with reasons; None where shardings never pass it."""
        key = self.at_end(item)
        return None if key[0] < 0 else self._solved(key, ("blocked", "missing"))

    def items(self) -> range:
        """Everything that takes turns, but for annotations."""
        return range(len(self.result.program.graph.classes))

    def at_end(self, item: int) -> tuple[int, ...]:
        """The neighbourhood of an item at the end of the run, in its last stage."""
        return self._neighbourhood(item, self.result.fixpoint.passes[-1].statics, self.end)

    def solve(self, key: Sequence[int], outputs: Sequence[str]) -> Facts:
        """Relations of a turn in a neighbourhood, sorted."""
        return self._agenda.explain(key[0], key[1:], outputs)

    def around(self, event: Event) -> tuple[int, ...]:
        """The neighbourhood in which a change was made."""
        statics = self.result.fixpoint.passes[int(self.log.number[event.number])].statics
        return self._neighbourhood(event.item, statics, self.start(event))

    def checker(self, key: tuple[int, ...]) -> Checker:
        """What checks proofs about a neighbourhood."""
        if key not in self._checkers:
            self._checkers[key] = Checker(self._program.plan, self.turn_facts(key))
        return self._checkers[key]

    def _neighbourhood(self, item: int, statics: Any, before: int) -> tuple[int, ...]:
        """The static facts of an item and the contents of its slots just before a change, as numbers."""
        contents = [self.content(self.cell(place), before) for place in self.slots(item)]
        return (int(statics[self._graph.classes[item]]), *contents)

    def turn_facts(self, key: Sequence[int]) -> Facts:
        """The facts of a neighbourhood, the shared ones included."""
        static, *contents = key
        given = self._agenda.explain(static, [0] * len(contents), self.inputs)
        facts = {name: list(rows) for name, rows in {**given, **self.shared}.items() if rows}
        for slot, content in enumerate(contents):
            for name, rows in self.facts(content).items():
                facts.setdefault(name, []).extend((slot, *row) for row in rows)
        return facts

    def _solved(self, key: tuple[int, ...], outputs: tuple[str, ...]) -> Derivations:
        if (key, outputs) not in self._derivations:
            self._derivations[key, outputs] = Derivations(self._program, self.turn_facts(key), outputs)
        return self._derivations[key, outputs]

    def _has(self, content: int, dim: int, atom: int) -> bool:
        return any(d == dim and x == atom for d, _, x in self.facts(content).get("sharded", ()))
