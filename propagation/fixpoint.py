"""The fixpoint: stages of turns over the graph of a module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engine.agenda.agenda import Agenda, AgendaGraph, Outcome, Pass, PassStatistics
from ..engine.agenda.retirement import Lists, joined, lists
from ..importers.graph.graph import Instance
from ..importers.program import ImportedModule
from ..program.columns import numbers
from ..program.shardings import Sharding
from ..rulebook.book import RuleBook

STATE = {name: f"becomes_{name}" for name in ("mesh", "sharded", "closed", "fixed", "prioritised")}


@dataclass(frozen=True)
class StageStatistics:
    """A stage that was run, with its statistics. ``level`` is the level of op priorities; None without
    them."""

    priority: int
    level: int | None
    strategy: str
    turns: int
    distinct: int
    changes: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Fixpoint:
    """The outcome of propagation. ``contents``: place -> content; ``agenda`` has the facts of a content.

    ``unchanged`` are the shardings of places that still have their priorities. The rest is for explanations:
    ``graph``, ``initial`` (the contents that cells had at first), ``passes`` and the stage of each of them.
    ``last`` is the last user priority, where it is not all of them.
    """

    strategy: str
    last: int | None
    agenda: Agenda
    graph: AgendaGraph
    initial: npt.NDArray[np.int32]
    passes: tuple[Pass, ...]
    stage_of: tuple[int, ...]
    outcome: Outcome
    contents: npt.NDArray[np.int32]
    unchanged: dict[int, Sharding]
    stages: tuple[StageStatistics, ...]

    @cached_property
    def further(self) -> dict[int, int]:
        """Place -> content, for places that would hold another one if the last stage went on until nothing
        changes. As in Shardy, a use by a call does not push the edge of the argument. So a sharding that
        reaches the call after the turn of that edge does not go into the function. XLA inlines functions
        before it propagates."""
        last = [p for p, n in zip(self.passes, self.stage_of, strict=True) if n == self.stage_of[-1]]
        contents, outcome = self.outcome.contents, self.agenda.run(self.graph, self.outcome.contents, last)
        while len(outcome.log.number):
            outcome = self.agenda.run(self.graph, outcome.contents, last)
        places = np.flatnonzero((contents != outcome.contents)[self.graph.place_cell])
        cells = self.graph.place_cell[places]
        return dict(zip(places.tolist(), outcome.contents[cells].tolist(), strict=True))


def propagate(
    program: ImportedModule,
    rules: RuleBook,
    strategy: str,
    progress: Callable[[float], None] = lambda done: None,
    *,
    last: int | None = None,
) -> Fixpoint:
    """Runs the stages of ``strategy`` until nothing changes, as far as the user priority ``last``.

    ``progress`` is called with the fraction of the passes that is done.
    """
    return _Propagation(program, rules, strategy, last).run(progress)


class _Propagation:
    def __init__(self, program: ImportedModule, rules: RuleBook, strategy: str, last: int | None) -> None:
        self.program, self.rules, self.strategy, self.last = program, rules, strategy, last
        graph = program.graph
        self.solver = rules.turn(program.shardings.meshes.facts())
        self.agenda = Agenda(self.solver, STATE, "changed", spread=["mesh"])
        self.statics: dict[tuple[int, int, str], int] = {}
        # One further class, for removed ops, which never take turns.
        self.nothing = len(program.classes.by_class)
        self.classes = self.nothing + 1
        # Annotations with priorities take turns too: they reveal a dimension when its priority comes.
        distinct = {id(s): s for s in program.initial.values()}.items()
        waiting = {i for i, s in distinct if any(d.priority for d in s.dimensions)}
        self.prioritised = {
            cell: sharding
            for cell, sharding in program.initial.items()
            if waiting and strategy == "user-priority" and id(sharding) in waiting
        }
        self.annotation_classes = list(dict.fromkeys(self.prioritised.values()))
        self.annotations_of: dict[int, list[int]] = {}  # by the priorities that their dimensions have
        for i, sharding in enumerate(self.annotation_classes):
            for priority in {d.priority or 0 for d in sharding.dimensions}:
                self.annotations_of.setdefault(priority, []).append(i)
        numbers = {sharding: self.classes + i for i, sharding in enumerate(self.annotation_classes)}
        self.annotation_class = np.asarray([numbers[s] for s in self.prioritised.values()], np.int32)
        first = len(graph.classes)
        self.annotation_items = np.arange(first, first + len(self.prioritised), dtype=np.int32)

    def run(self, progress: Callable[[float], None]) -> Fixpoint:
        stages, passes, stage_of = self.passes()
        contents, kept = self.initial_contents()
        graph = self.agenda_graph()
        outcome = self.agenda.run(graph, contents, passes, lambda done, _: progress(done / len(passes)))
        cells = self.program.cells
        return Fixpoint(
            strategy=self.strategy,
            last=self.last,
            agenda=self.agenda,
            graph=graph,
            initial=contents,
            passes=tuple(passes),
            stage_of=tuple(stage_of),
            outcome=outcome,
            contents=self.with_siblings(self.with_unshared(outcome.contents[cells])),
            unchanged=self.unchanged(kept, outcome.contents) if kept else {},
            stages=_statistics(stages, stage_of, outcome),
        )

    def passes(self) -> tuple[list[tuple[int, int | None, str]], list[Pass], list[int]]:
        """The stages to run, as (user priority, level of the op priorities, strategy); their passes in order;
        and the stage of each pass."""
        graph = self.program.graph
        statics_of = cache(self._statics)  # not kept here, or nothing would be freed without the collector
        priorities = {d.priority or 0 for s in self.prioritised.values() for d in s.dimensions}
        stages: list[tuple[int, int | None, str]] = []
        passes: list[Pass] = []
        stage_of: list[int] = []
        for _, priority, level, strategy in self.rules.stages(self.strategy, priorities):
            if self.last is not None and priority > self.last:
                continue
            label = f"priority {priority}, level {'-' if level is None else level}, {strategy}"
            if self.prioritised and (not stages or stages[-1][0] != priority):
                passes.append(Pass(label, "sweep", *self.reveals(priority)))
            statics = statics_of(level, strategy)
            passes.append(Pass(label, "sweep", graph.result_items, statics))
            passes.append(Pass(label, "worklist", graph.order, statics))
            passes.append(Pass(label, "sweep", graph.result_items, statics))
            stage_of += [len(stages)] * (len(passes) - len(stage_of))
            stages.append((priority, level, strategy))
        return stages, passes, stage_of

    def initial_contents(self) -> tuple[npt.NDArray[np.int32], set[int]]:
        """The content of each cell at first; and the contents that keep their priorities until they
        change, because no stage asks for them."""
        contents = np.zeros(self.program.graph.places, np.int32)
        given, kept = self.program.initial, set()
        content_of: dict[int, int] = {}  # by the identity of a sharding: to compare them takes longer
        for identity, sharding in {id(sharding): sharding for sharding in given.values()}.items():
            facts = self.program.shardings.facts(sharding)
            if self.strategy != "user-priority" and any(d.priority is not None for d in sharding.dimensions):
                facts["prioritised"] = [()]
            content_of[identity] = self.agenda.content(facts)
            if "prioritised" in self.agenda.facts(content_of[identity]):
                kept.add(content_of[identity])
        contents[list(given)] = [content_of[id(sharding)] for sharding in given.values()]
        return contents, kept

    def agenda_graph(self) -> AgendaGraph:
        """The graph of the program, and an item with one slot for each annotation with priorities."""
        graph = self.program.graph
        cells = np.asarray(list(self.prioritised), np.int32)
        classes = self.annotation_class
        slot_offsets = np.concatenate(
            [graph.slot_offsets, graph.slot_offsets[-1] + 1 + np.arange(len(cells))]
        )

        def classified(classes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
            return np.where(classes < 0, self.nothing, classes).astype(np.int32)

        retirement = joined([graph.retirement, None], [graph.classes, classes])
        return AgendaGraph(
            classes=classified(np.concatenate([graph.classes, classes])),
            slots=Lists(slot_offsets.astype(np.int32), np.concatenate([graph.slots, cells]).astype(np.int32)),
            place_cell=self.program.cells,
            cells=self.cell_places(),
            neighbours=Lists(graph.neighbour_offsets, graph.neighbours),
            retirement=retirement and retirement._replace(later=classified(retirement.later)),
            companions=self.companions(),
        )

    def unchanged(self, kept: set[int], final: npt.NDArray[np.int32]) -> dict[int, Sharding]:
        """The shardings of places whose cells still hold a content of ``kept``, priorities and all."""
        shardings = {cell: s for cell, s in self.program.initial.items() if int(final[cell]) in kept}
        cells = self.program.cells
        places = np.flatnonzero(np.isin(cells, list(shardings)))
        return {
            place: shardings[cell]
            for place, cell in zip(places.tolist(), cells[places].tolist(), strict=True)
        }

    def with_unshared(self, contents: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The contents with the shardings that members of a sharding group keep of their own, where the
        group has none."""
        for place, sharding in self.program.unshared.items():
            contents[place] = contents[place] or self.agenda.content(self.program.shardings.facts(sharding))
        return contents

    @property
    def several_meshes(self) -> bool:
        """The module has several meshes, single devices apart."""
        return sum(not mesh.maximal for mesh in self.program.shardings.meshes.meshes) > 1

    def siblings(self) -> Iterator[tuple[npt.NDArray[np.int32], bool]]:
        """The places of siblings, whose shardings stand in one attribute, and whether they get theirs
        at once, as ``rules/propagation/siblings.dl`` says."""
        attribute = cache(partial(self.rules.attribute, several_meshes=self.several_meshes))
        roots = {root.number for root in self.program.graph.roots}

        def within(instance: Instance) -> Iterator[tuple[npt.NDArray[np.int32], bool]]:
            """Those of a function, counted from the first place of it: results of ops that have several, and
            the arguments where it is called."""
            function, place = instance.function, instance.layout.place
            groups: list[tuple[str, Sequence[int], bool]] = []
            for node in np.flatnonzero(numbers(function.results.counts) > 1).tolist():
                if node not in function.removed:
                    results = function.results[node]
                    to = "call" if node in function.calls else "op"
                    groups.append((to, results, results[0] in function.flows))
            if instance.number not in roots:
                groups.append(("function", function.arguments, False))
            for to, values, has_edges in groups:
                together, at_once = attribute(to, has_edges=has_edges)
                if together:
                    yield place[values], at_once

        by_kind: dict[tuple[str, bool, bool], list[tuple[npt.NDArray[np.int32], bool]]] = {}
        for instance in self.program.graph.instances:
            key = instance.function.name, instance.cloned, instance.number in roots
            if key not in by_kind:
                by_kind[key] = [*within(instance)]
            for places, at_once in by_kind[key]:
                yield instance.place + places, at_once

    def companions(self) -> Lists | None:
        """The cells of siblings that get their shardings at once; None where no siblings do."""
        attribute, several = self.rules.attribute, self.several_meshes
        kinds = [(to, edges) for to in ("op", "call", "function") for edges in (False, True)]
        if not any(attribute(to, has_edges=edges, several_meshes=several)[1] for to, edges in kinds):
            return None
        cells = self.program.cells
        companions: list[list[int]] = [[] for _ in range(len(cells))]
        for places, at_once in self.siblings():
            for place in places.tolist() if at_once else ():
                companions[cells[place]] += [c for c in cells[places].tolist() if c != cells[place]]
        return lists(companions)

    def with_siblings(self, contents: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The contents of places, including contents from siblings."""

        @cache
        def mesh(content: int) -> int | None:
            return next((m for (m,) in self.agenda.facts(content)["mesh"]), None) if content else None

        @cache
        def opened(held: tuple[int, ...]) -> dict[int, int]:
            meshes = self.program.shardings.meshes.meshes
            opening, _ = self.rules.siblings("end", [mesh(content) for content in held], meshes)
            return {i: self.agenda.content({"mesh": [(m,)]}) for i, m in opening.items()}

        for places, _ in self.siblings():
            for i, content in opened(tuple(contents[places].tolist())).items():
                contents[places[i]] = content
        return contents

    def cell_places(self) -> Lists:
        """The places of every cell, the members of a sharding group in the order of the program."""
        cells = self.program.cells
        counts = np.bincount(cells, minlength=len(cells))
        places = np.argsort(cells, kind="stable").astype(np.int32)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        for members in self.program.grouped:
            at = int(offsets[min(members)])
            places[at : at + len(members)] = members
        return Lists(offsets, places)

    def _statics(self, level: int | None, strategy: str) -> npt.NDArray[np.int32]:
        """The static facts of every class in a stage; -1 where nothing flows."""
        numbers = [-1] * (self.classes + len(self.annotation_classes))
        for number, answers in enumerate(self.program.classes.by_class):
            flows = answers.flows.get(level)
            if not flows:
                continue
            key = number, id(flows), strategy  # many levels are alike
            static = self.statics.get(key)
            if static is None:
                facts: dict[str, Any] = {**answers.static, "flows": flows, "strategy": [(strategy,)]}
                static = self.statics[key] = self.agenda.static(facts)
            numbers[number] = static
        return np.asarray(numbers, np.int32)

    def reveals(self, priority: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """The annotations whose turn comes with a priority (the first priority hides all others), and the
        static facts of their classes."""
        numbers = np.full(self.classes + len(self.annotation_classes), -1, np.int32)
        split = self.program.shardings.meshes.split
        for i in self.annotations_of.get(priority, ()) if priority else range(len(self.annotation_classes)):
            sharding = self.annotation_classes[i]
            rows = [
                (d, p, x)
                for d, dimension in enumerate(sharding.dimensions)
                for p, x in enumerate(x for axis in dimension.axes for x in split(sharding.mesh, axis))
            ]
            facts: dict[str, Any] = {
                "tensor": [(0, "annotation")],
                "sweep": [(priority,)],
                "annotation": rows,
                "annotation_closed": [(d,) for d, dim in enumerate(sharding.dimensions) if dim.closed],
                "annotation_priority": [(d, dim.priority or 0) for d, dim in enumerate(sharding.dimensions)],
            }
            numbers[self.classes + i] = self.agenda.static(facts)
        return self.annotation_items[numbers[self.annotation_class] >= 0], numbers


def _statistics(
    stages: list[tuple[int, int | None, str]], stage_of: list[int], outcome: Outcome
) -> tuple[StageStatistics, ...]:
    rows_of: list[list[PassStatistics]] = [[] for _ in stages]
    for row, stage in zip(outcome.statistics, stage_of, strict=True):
        rows_of[stage].append(row)
    stages_run = []
    for (priority, level, strategy), rows in zip(stages, rows_of, strict=True):
        stages_run.append(
            StageStatistics(
                priority,
                level,
                strategy,
                turns=sum(row.turns for row in rows),
                distinct=sum(row.solved for row in rows),
                changes=sum(row.changes for row in rows),
                seconds=sum(row.seconds for row in rows),
            )
        )
    return tuple(stages_run)
