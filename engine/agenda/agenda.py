"""The agenda: items take turns, and changes in a turn give other items another turn.

An item has *slots*; each slot holds a *place*, and places share *cells*. A cell has a *content*, an interned
set of state facts. A turn solves the keyed program for the facts of the item and the contents of its slots,
and writes the new contents. Nothing else decides a turn, so equal neighbourhoods are solved once.

``Agenda`` runs in the compiled core if the solver does. ``ReferenceAgenda`` does the same in plain Python,
and the core must agree with it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..evaluate.program import Answers, Facts, Row, Solver, _CoreSolver
from ..language.diagnostics import EngineError
from .retirement import Lists, Numbers, Retirement, Retiring, empty, nobody

Progress: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True)
class AgendaGraph:
    """Items, places and cells, and how they hang together. All numbers count from 0."""

    classes: Numbers  # item -> its class
    slots: Lists  # item -> the places of its slots
    place_cell: Numbers  # place -> its cell
    cells: Lists  # cell -> its places, in the order in which their neighbours are pushed
    neighbours: Lists  # place -> the items to push when it changes; the last one takes the next turn
    retirement: Retirement | None = None
    companions: Lists | None = None  # cell -> cells that get something when it gets its first content

    @property
    def settled(self) -> Numbers:
        """The class of every item when all have retired that may."""
        if self.retirement is None:
            return self.classes
        return np.where(self.retirement.waits > 0, self.retirement.later, self.classes)


@dataclass(frozen=True)
class Pass:
    """One stage. A *sweep* gives every item one turn, in order; its changes push no neighbours. A
    *worklist* is a stack without duplicates, filled so that items pop in the given order; a change pushes
    neighbours."""

    stage: str
    kind: Literal["sweep", "worklist"]
    items: Numbers
    statics: Numbers  # class -> its static facts in this pass; -1: nothing to do


class Log(NamedTuple):
    """Every change in order, as int32 arrays of one length."""

    number: Numbers  # of the pass
    item: Numbers
    slot: Numbers
    place: Numbers
    old: Numbers  # the previous content of the cell
    new: Numbers


@dataclass(frozen=True)
class PassStatistics:
    """The statistics of a pass. ``solved`` counts the turns whose neighbourhood had not been seen before."""

    stage: str
    kind: str
    turns: int
    solved: int
    changes: int
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """``contents`` holds the final content of each cell."""

    contents: Numbers
    log: Log
    statistics: tuple[PassStatistics, ...]


class Backend(Protocol):
    """An implementation of the agenda: ``_core.Agenda`` or ``ReferenceAgenda``."""

    def static(self, facts: Facts) -> int: ...
    def content(self, facts: Facts) -> int: ...
    def facts(self, content: int) -> Answers: ...
    def run(
        self,
        classes: Numbers,
        slots: Lists,
        place_cell: Numbers,
        cells: Lists,
        companions: Lists,
        neighbours: Lists,
        retirement: Retirement,
        contents: Numbers,
        passes: list[tuple[bool, Numbers, Numbers]],
        progress: Progress | None,
    ) -> tuple[Numbers, NDArray[np.int32], list[tuple[int, int, int, float]]]: ...
    def explain(self, facts: int, contents: list[int], outputs: list[str]) -> Answers: ...


class Agenda:
    """The agenda of a keyed program.

    ``state`` maps each state relation (columns, after the key: slot, then content) to its successor, which
    holds the new tuples; ``changed`` (one column: slot) names the slots that get new content, all of it. When
    a cell without content gets some, its companions that have none get the part of it in the state relations
    of ``spread``. That pushes no neighbours, and is not in the log.
    """

    def __init__(
        self, solver: Solver, state: Mapping[str, str], changed: str, spread: Sequence[str] = ()
    ) -> None:
        self._backend: Backend
        if isinstance(solver, _CoreSolver):
            core = importlib.import_module(".._core", __package__)
            self._backend = core.Agenda(solver._solver, dict(state), changed, list(spread))
        else:
            self._backend = ReferenceAgenda(solver, state, changed, spread)

    def static(self, facts: Facts) -> int:
        """The number of the set of facts of a class under a mode. Equal sets have equal numbers."""
        return self._backend.static(facts)

    def content(self, facts: Facts) -> int:
        """The number of a content: state relation -> tuples without the slot. 0 is the empty content."""
        return self._backend.content(facts)

    def facts(self, content: int) -> Answers:
        """The content with a number: state relation -> sorted tuples without the slot, if any."""
        return self._backend.facts(content)

    def run(
        self, graph: AgendaGraph, contents: Numbers, passes: Sequence[Pass], progress: Progress | None = None
    ) -> Outcome:
        """Run the passes in order on cells with the given contents.

        ``progress`` is called now and then with the number of the pass and of its turns so far. Raises
        EngineError for an inconsistent graph and for errors in rules.
        """
        plain = [(p.kind == "worklist", p.items, p.statics) for p in passes]
        final, log, statistics = self._backend.run(
            graph.classes,
            graph.slots,
            graph.place_cell,
            graph.cells,
            graph.companions or empty(len(contents)),
            graph.neighbours,
            graph.retirement or nobody(graph.classes),
            contents,
            plain,
            progress,
        )
        described = (PassStatistics(p.stage, p.kind, *s) for p, s in zip(passes, statistics, strict=True))
        return Outcome(final, Log(*log.T), tuple(described))

    def explain(self, static: int, contents: Sequence[int], outputs: Sequence[str]) -> Answers:
        """Solve one neighbourhood again: the sorted tuples of ``outputs``, with static facts and the contents
        of the slots as given."""
        return self._backend.explain(static, list(contents), list(outputs))


class ReferenceAgenda:
    """The agenda over any solver, step by step."""

    def __init__(
        self, solver: Solver, state: Mapping[str, str], changed: str, spread: Sequence[str] = ()
    ) -> None:
        self._solver, self._spread = solver, spread
        self._state = dict(state)
        self._changed = changed
        self._statics: dict[Any, int] = {}
        self._contents: dict[Any, int] = {frozenset(): 0}
        self._memo: dict[tuple[int, ...], list[tuple[int, int]]] = {}

    def static(self, facts: Facts) -> int:
        return _intern(self._statics, _fact_set(facts))

    def content(self, facts: Facts) -> int:
        for name in facts:
            if name not in self._state:
                raise EngineError(f"`{name}` is no state relation")
        return _intern(self._contents, _fact_set(facts))

    def facts(self, content: int) -> Answers:
        facts: Answers = {}
        for name, row in _thing(self._contents, content, "content"):
            facts.setdefault(name, []).append(row)
        return {name: sorted(rows) for name, rows in sorted(facts.items())}

    def explain(self, facts: int, contents: list[int], outputs: list[str]) -> Answers:
        neighbourhood: dict[str, list[Row]] = {}
        for name, row in _thing(self._statics, facts, "set of static facts"):
            neighbourhood.setdefault(name, []).append(row)
        for slot, content in enumerate(contents):
            for name, row in _thing(self._contents, content, "content"):
                neighbourhood.setdefault(name, []).append((slot, *row))
        return self._solver.solve(neighbourhood, outputs)

    def run(
        self,
        classes: Numbers,
        slots: Lists,
        place_cell: Numbers,
        cells: Lists,
        companions: Lists,
        neighbours: Lists,
        retirement: Retirement,
        contents: Numbers,
        passes: list[tuple[bool, Numbers, Numbers]],
        progress: Progress | None,
    ) -> tuple[Numbers, NDArray[np.int32], list[tuple[int, int, int, float]]]:
        item_class, cell_of, content = classes.tolist(), place_cell.tolist(), contents.tolist()
        slot_places, cell_places, next_to = slots.rows(), cells.rows(), neighbours.rows()
        beside = companions.rows()
        stack: list[int] = []
        waiting: set[int] = set()

        def push(item: int) -> None:
            if item not in waiting:
                stack.append(item)
                waiting.add(item)

        retiring = Retiring(item_class, retirement, push)
        log: list[tuple[int, ...]] = []
        statistics: list[tuple[int, int, int, float]] = []
        for number, (worklist, items, statics) in enumerate(passes):
            start, turns, solved, before = perf_counter(), 0, len(self._memo), len(log)
            static_of = statics.tolist()
            stack += dict.fromkeys(reversed(items.tolist())) if worklist else items.tolist()[::-1]
            waiting.update(stack)
            while stack:
                item = stack.pop()
                waiting.discard(item)
                if worklist:
                    retiring.reached(item)
                static = static_of[item_class[item]]
                if static < 0 or item in retiring.retired:
                    continue
                turns += 1
                places = slot_places[item]
                held = [content[cell_of[place]] for place in places]
                for slot, new in self._turn(static, held):
                    place = places[slot]
                    cell = cell_of[place]
                    log.append((number, item, slot, place, content[cell], new))
                    if content[cell] == 0:
                        self._bring(new, beside[cell], content)
                    content[cell] = new
                    if worklist:
                        for neighbour in _neighbours(place, cell_places[cell], next_to):
                            if neighbour != item:
                                push(neighbour)
            seconds = perf_counter() - start
            statistics.append((turns, len(self._memo) - solved, len(log) - before, seconds))
            if progress is not None:
                progress(number, turns)
        return np.array(content, np.int32), np.array(log, np.int32).reshape(-1, 6), statistics

    def _bring(self, new: int, companions: list[int], content: list[int]) -> None:
        """The first content of a cell gives companions without content the part that it spreads."""
        if companions:
            brought = self.content({n: rows for n, rows in self.facts(new).items() if n in self._spread})
            for cell in companions:
                content[cell] = content[cell] or brought

    def _turn(self, static: int, held: list[int]) -> list[tuple[int, int]]:
        """The slots that change and their new contents."""
        key = (static, *held)
        if key not in self._memo:
            answers = self.explain(static, held, [self._changed, *self._state.values()])
            changes = []
            for (slot,) in answers[self._changed]:
                if not 0 <= slot < len(held):
                    raise EngineError(
                        f"`{self._changed}` holds slot {slot} of an item with {len(held)} slots"
                    )
                new = {
                    name: [row[1:] for row in answers[successor] if row[0] == slot]
                    for name, successor in self._state.items()
                }
                changes.append((slot, self.content(new)))
            self._memo[key] = [(slot, new) for slot, new in changes if new != held[slot]]
        return self._memo[key]


def _fact_set(facts: Facts) -> frozenset[tuple[str, Row]]:
    return frozenset((name, tuple(row)) for name, rows in facts.items() for row in rows)


def _neighbours(place: int, places: list[int], next_to: list[list[int]]) -> Iterator[int]:
    """The items next to a place that changed, and then those next to other places of its cell."""
    for changed in (place, *(other for other in places if other != place)):
        yield from next_to[changed]


def _intern(numbers: dict[Any, int], thing: Any) -> int:
    return numbers.setdefault(thing, len(numbers))


def _thing(numbers: dict[Any, int], number: int, what: str) -> Any:
    if not 0 <= number < len(numbers):
        raise EngineError(f"there is no {what} {number}")
    return list(numbers)[number]
