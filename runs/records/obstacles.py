"""Turns solved with the rules that say why an axis stops short, ``rules/propagation/blocked.dl``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import starmap

from ...engine import Solver
from ...engine.provenance.proof import Derivations, Proof
from ...program.ids import Cell, Item
from ...rulebook.columns import Loses, Maps
from .history import Event, History
from .record import Facts, Row, Stage

_TELLING = ("in_the_way", "declines", "barred")  # whose sentences say what is in the way
_OPEN = {"flows", "strategy"}  # of the static facts, those of a stage
_FROM_OP = ("factor", "maps", "elementwise")


class Obstacles:
    """The obstacles to axes in the turns of a run, those included that were never taken."""

    def __init__(self, history: History) -> None:
        self._history, self._record = history, history.record
        self._statics: dict[int, dict[int, int]] = {}  # class -> stage -> static facts
        self._opened: dict[int, list[Row]] = {}  # by class
        self._turns: dict[object, Derivations] = {}  # by what was given
        self._taken: dict[tuple[Item, int, int], Derivations] = {}
        self._losing: dict[int, dict[int, list[Loses]]] = {}  # first change of a turn -> slot -> ``loses``
        self._maps: dict[int, list[Maps]] = {}  # by class
        self._of_op: dict[Item, list[Maps]] = {}  # where the class says nothing

    @cached_property
    def _solver(self) -> Solver:
        return self._record.rules().solver(self._history.shared)

    def turn(self, item: Item, stage: int, before: int) -> Derivations:
        """A turn of an item in a stage, with the contents of slots just before a change."""
        if (item, stage, before) not in self._taken:
            facts = self._facts(item, stage, before)
            key = tuple((name, tuple(rows)) for name, rows in sorted(facts.items()))
            if key not in self._turns:
                given = facts | self._history.shared
                outputs = "denied", "missing", "points_at"
                self._turns[key] = Derivations(self._record.rules(), given, outputs)
            self._taken[item, stage, before] = self._turns[key]
        return self._taken[item, stage, before]

    def at_end(self, item: Item) -> Derivations:
        """A turn of an item at the end of the run."""
        return self.turn(item, len(self._record.stages) - 1, self._history.end)

    def lost(self, event: Event, factor: int) -> list[tuple[Loses, Proof]]:
        """The losers, when a change gained along a factor, each with the step of its proof whose sentence
        says most."""
        kept = self._record.lost(event.number)
        losers = self.losses(event) if kept is None else [(Loses(*row), says) for row, says in kept]
        return [(row, says) for row, says in losers if (row.slot, row.factor) == (event.slot, factor)]

    def losses(self, event: Event) -> list[tuple[Loses, Proof]]:
        """The losers, when a change gained, each with the step that says most."""
        start = self._history.start(event)
        if start not in self._losing:
            by_slot = self._losing[start] = {}
            facts = self._facts(event.item, event.stage, start)
            for row in starmap(Loses, self._solver.solve(facts, ["loses"])["loses"]):
                by_slot.setdefault(row.slot, []).append(row)
        return [(row, self._denied(event, start, row)) for row in self._losing[start].get(event.slot, ())]

    def _denied(self, event: Event, start: int, row: Loses) -> Proof:
        proof = self.turn(event.item, event.stage, start).proof("denied", row.denied)
        assert proof is not None, "what loses is denied"
        return telling(proof)

    def held(self, item: Item) -> Derivations:
        """The turn of an annotation with priorities in the first sweep, which hides them."""
        facts = self._history.given(self._record.static(item, 0), 1) | self._history.shared
        return Derivations(self._record.rules(), facts, ("annotation_waits",))

    def maps(self, item: Item) -> list[Maps]:
        """The factors of the dimensions of an item, whether it takes turns or not."""
        class_ = self._record.class_of(item)
        maps = self._maps.get(class_)
        if maps is None:
            maps = self._of_op.get(item)
        if maps is None:
            last = len(self._record.stages) - 1
            maps = [Maps(*row) for row in self._given(item, last).get("maps", ())]
            if self._static(item, last) >= 0:
                self._maps[class_] = maps
            else:
                self._of_op[item] = maps
        return maps

    def same_in_class(self, item: Item) -> bool:
        """Whether ``maps`` says the same of all items of its class."""
        return self.maps(item) is self._maps.get(self._record.class_of(item))

    def unknown(self, item: Item) -> bool:
        """Whether an item is an op that has no rule."""
        if self.maps(item):
            return False
        facts = self._record.op_facts(item)
        return bool(facts) and not facts["known"]

    # ---- Facts ------------------------------------------------------------------------------------------

    def _facts(self, item: Item, stage: int, before: int) -> Facts:
        history, slots = self._history, self._history.slots(item)
        facts = {name: list(rows) for name, rows in self._given(item, stage).items() if rows}
        for slot, place in enumerate(slots):
            cell = history.cell(place)
            for name, rows in history.facts(history.content(cell, before)).items():
                facts.setdefault(name, []).extend((slot, *row) for row in rows)
        facts |= {"opens": self._opens(item)}
        op_facts = self._record.op_facts(item)
        facts["kind"] = list(op_facts["kind"]) if "kind" in op_facts else _passing(facts)
        facts["blocked"] = list(op_facts.get("blocked", ()))
        priority = self._record.stages[stage].priority if self._record.stages else 0
        for slot, place in enumerate(slots):
            for d, x, n in self._later(history.cell(place), priority):
                facts.setdefault("reserved", []).append((slot, x, n))
                facts.setdefault("awaits", []).append((slot, d, n))
        return {name: list(dict.fromkeys(rows)) for name, rows in facts.items() if rows}

    def _given(self, item: Item, stage: int) -> Facts:
        """The static facts of an item in a stage; if nothing flows, the facts that all stages share."""
        slots = len(self._history.slots(item))
        static, last = self._static(item, stage), self._static(item, len(self._record.stages) - 1)
        if static >= 0:
            return self._history.given(static, slots)
        strategy: Facts = {"strategy": [(s.strategy,) for s in self._record.stages[stage:][:1]]}
        if last >= 0:
            given = self._history.given(last, slots)
            return strategy | {name: rows for name, rows in given.items() if name not in _OPEN}
        op_facts = self._record.op_facts(item)
        return strategy | {name: op_facts[name] for name in ("tensor", *_FROM_OP) if name in op_facts}

    def _static(self, item: Item, stage: int) -> int:
        return self._by_stage(self._record.class_of(item)).get(stage, -1)

    def _by_stage(self, class_: int) -> dict[int, int]:
        """The static facts of a class in the stages in which it takes turns."""
        if class_ not in self._statics:
            statics = self._statics[class_] = {}
            for turns, static in self._record.statics(class_).items():
                stage = self._record.stage_of[turns]
                statics[stage] = max(static, statics.get(stage, -1))
        return self._statics[class_]

    def _opens(self, item: Item) -> list[Row]:
        """From which level on shardings flow along a factor from slots of a role."""
        class_ = self._record.class_of(item)
        if class_ not in self._opened:
            slots = len(self._history.slots(item))
            levels = dict[int, int]()  # by static facts, which many stages share
            for stage, static in self._by_stage(class_).items():
                levels.setdefault(static, _level(self._record.stages[stage]))
            first_levels: dict[Row, int] = {}
            for static, level in levels.items():
                for row in self._history.given(static, slots).get("flows", ()):
                    first_levels.setdefault(row, level)
            self._opened[class_] = [(*row, level) for row, level in first_levels.items()]
        return self._opened[class_]

    def _later(self, cell: Cell, priority: int) -> Iterator[tuple[int, int, int]]:
        """(dimension, atom, priority) of the axes that the annotation of a cell has at later priorities."""
        for item, _ in self._record.turns(cell):
            static = self._record.static(item, 0) if item >= self._record.items else -1
            if static >= 0:
                given = self._history.given(static, 1)
                priorities: dict[int, int] = dict(given["annotation_priority"])
                for d, _, x in given["annotation"]:
                    if priorities[d] > priority:
                        yield d, x, priorities[d]


def telling(proof: Proof) -> Proof:
    """The step of a proof of ``denied`` whose sentence says most."""
    steps = list(proof.steps())
    return next(
        (p for name in _TELLING for p in steps if p.relation == name and p.source and p.source.sentence),
        proof,
    )


def _level(stage: Stage) -> int:
    return stage.level or 0


def _passing(facts: Facts) -> list[Row]:
    """The kinds of the factors of an item that is no op: all pass through."""
    return [(f, "pass_through") for f, *_ in facts.get("factor", ())]
