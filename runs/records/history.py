"""The contents of the cells of a run over time: the agenda's log, read backwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from ...engine import Solver
from ...engine.provenance.proof import Derivations, Proof
from ...engine.provenance.proof_check import Checker
from ...program.ids import Cell, Content, Item, Place
from ...rulebook.columns import Sharded
from .record import Change, Facts, Key, Row, RunRecord, Stage


class Event(NamedTuple):
    """A change: the ``number``-th of the log, by the turn of an item that gave a slot new content."""

    number: int
    turns: int  # the pass
    stage: int
    item: Item
    slot: int
    cell: Cell
    old: Content
    new: Content


class History:
    """The log of a run by cell, and the neighbourhoods in which turns were taken."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        self.end = record.end
        self._events: dict[int, Event] = {}
        self._starts: dict[int, int] = {}  # change -> the first of its turn
        self._around: dict[int, Key] = {}  # by the first change of a turn
        self._held: dict[Content, Facts] = {}
        self._statics: dict[int, Facts] = {}
        self._derivations: dict[tuple[Key, tuple[str, ...]], Derivations] = {}
        self._checkers: dict[Key, Checker] = {}

    @cached_property
    def shared(self) -> Facts:
        """The facts that all turns share."""
        return {name: rows for name, rows in self.record.meshes.facts().items() if rows}

    def stage(self, event: Event) -> Stage:
        """The stage of a change."""
        return self.record.stages[event.stage]

    def slots(self, item: Item) -> list[Place]:
        """The places of an item's slots."""
        return self.record.slots(item)

    def cell(self, place: Place) -> Cell:
        """The cell of a place."""
        return self.record.cell(place)

    def facts(self, content: Content) -> Facts:
        """The facts of a content."""
        if content not in self._held:
            self._held[content] = self.record.facts(content)
        return self._held[content]

    def held(self, content: int) -> Facts:
        """The facts of a content, by its number in the log."""
        return self.facts(Content(content))

    def events(self, cell: Cell, before: int) -> list[int]:
        """The changes of a cell before a change, latest first, as numbers of the log."""
        return [n for n in reversed(self.record.changes(cell)) if n < before]

    def content(self, cell: Cell, before: int) -> Content:
        """The content of a cell just before a change; ``end``: after all of them."""
        if before == self.end:
            return self.record.contents(cell)[1]
        for number in self.events(cell, before):
            return self.event(number).new
        return self.record.contents(cell)[0]

    def gained(self, cell: Cell, dim: int, atom: int, before: int) -> Event | None:
        """The change that put the atom there, as of just before a change; None: it was there at first."""
        for number in self.events(cell, before):
            event = self.event(number)
            if not self._has(event.old, dim, atom):
                return event
        return None

    def event(self, number: int) -> Event:
        """A change of the log."""
        if number not in self._events:
            self._events[number] = self._event(number, self.record.change(number))
        return self._events[number]

    def _event(self, number: int, change: Change) -> Event:
        stage = self.record.stage_of[change.turns]
        return Event(
            number, change.turns, stage, change.item, change.slot, change.cell, change.old, change.new
        )

    def keep(self, log: Iterable[tuple[Key, Change]]) -> None:
        """Keeps all changes of the run, each with its neighbourhood, for those who ask about most of them."""
        turn, start = None, 0
        for number, (key, change) in enumerate(log):
            if (change.turns, change.item) != turn:
                turn, start = (change.turns, change.item), number
                self._around[start] = key
            self._starts[number] = start
            self._events[number] = self._event(number, change)

    def start(self, event: Event) -> int:
        """The first change of the turn that made a change."""
        number, waiting = event.number, list[int]()
        while number not in self._starts:
            waiting.append(number)
            before = self.event(number - 1) if number > 0 else None
            if before is None or (before.turns, before.item) != (event.turns, event.item):
                self._starts[number] = number
            else:
                number -= 1
        self._starts.update(dict.fromkeys(waiting, self._starts[number]))
        return self._starts[number]

    # ---- Turns ------------------------------------------------------------------------------------------

    def proof(self, event: Event, row: Row) -> Proof:
        """The proof of a row of ``puts``, or else of ``becomes_sharded``, in the turn that made a change."""
        return self.proof_in(self.around(event), row)

    def proof_in(self, key: Key, row: Row) -> Proof:
        """The same in a turn in a neighbourhood."""
        kept = self.record.proofs(key)
        if kept is not None:
            return kept[row]
        turn = self._solved(key, ("becomes_sharded",))
        proof = turn.proof("puts", row) or turn.proof("becomes_sharded", row)
        assert proof is not None, "a turn gives again what it gave"
        return proof

    def turn(self, event: Event, outputs: tuple[str, ...] = ("becomes_sharded",)) -> Derivations:
        """The turn that made a change, solved once more."""
        return self._solved(self.around(event), outputs)

    def around(self, event: Event) -> Key:
        """The neighbourhood in which a change was made."""
        start = self.start(event)
        if start not in self._around:
            static = self.record.static(event.item, event.turns)
            self._around[start] = self._neighbourhood(event.item, static, start)
        return self._around[start]

    def ends(self) -> Iterator[tuple[Item, Key]]:
        """The items that take turns in the last stage, with their neighbourhoods at the end."""
        return self.record.at_end()

    def solve(self, key: Key, outputs: Sequence[str]) -> Facts:
        """Relations of a turn in a neighbourhood, sorted."""
        return self._solver.solve(self._facts(key), outputs)

    @cached_property
    def _solver(self) -> Solver:
        return self.record.rules().solver(self.shared)

    def checker(self, key: Key) -> Checker:
        """A checker of proofs about a neighbourhood."""
        if key not in self._checkers:
            self._checkers[key] = Checker(self.record.rules().plan, self.turn_facts(key))
        return self._checkers[key]

    def given(self, static: int, slots: int) -> Facts:
        """The static facts with a number, of an item with so many slots."""
        if static not in self._statics:
            self._statics[static] = self.record.given(static, slots)
        return self._statics[static]

    def turn_facts(self, key: Key) -> Facts:
        """The facts of a neighbourhood, the shared ones included."""
        return self._facts(key) | self.shared

    def _neighbourhood(self, item: Item, static: int, before: int) -> Key:
        """The static facts of an item and the contents of its slots just before a change, as numbers."""
        return (static, *(self.content(self.cell(place), before) for place in self.slots(item)))

    def _facts(self, key: Key) -> Facts:
        static, *contents = key
        facts = {name: list(rows) for name, rows in self.given(static, len(contents)).items() if rows}
        for slot, content in enumerate(contents):
            for name, rows in self.facts(Content(content)).items():
                facts.setdefault(name, []).extend((slot, *row) for row in rows)
        return facts

    def _solved(self, key: Key, outputs: tuple[str, ...]) -> Derivations:
        if (key, outputs) not in self._derivations:
            program = self.record.rules()
            self._derivations[key, outputs] = Derivations(program, self.turn_facts(key), outputs)
        return self._derivations[key, outputs]

    def _has(self, content: Content, dim: int, atom: int) -> bool:
        return any(d == dim and x == atom for d, _, x in self.facts(content).get("sharded", ()))


def given(proof: Proof) -> Iterator[Sharded]:
    """The contents of slots among the premises of a proof."""
    steps = (step for step in proof.steps() if step.relation == "sharded" and step.source is None)
    return (Sharded(*step.row) for step in steps)
