"""The choice of homes as a problem: the values to choose, how often ops run, and the open boundary."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...program.ids import Slot
from ..executions import Executions
from ..facts.annotated import Annotated
from ..facts.reading import Reading, static_shape
from ..facts.recording import Facts
from ..layouts import Layout, replicated
from ..reshards.prices import NO_TASK, TaskId
from ..writing.building import bytes_of, element_of
from . import tuning
from .candidates import Candidates
from .homes import Homes
from .variables import Need, Spot, Variables


def often(counts: Executions, op: Any) -> float:
    """How often an op runs."""
    return times(counts.of(op), counts.often(op))


def times(trips: int | None, least: int) -> float:
    """How often something runs, or at least how often, inside a loop of unknown trip count."""
    return float(max(least, tuning.UNKNOWN_TRIPS) if trips is None else trips)


class Runs:
    """How often the ops of an annotated module run, by their numbers."""

    def __init__(self, annotated: Annotated) -> None:
        self._kinds, traits = annotated.kinds, annotated.chooser.reader.traits
        self.counts = Executions(annotated.module, traits)
        self._loops = set(self._kinds.numbers_of(lambda op: traits.lowering(op.name) == "loop"))
        self._by_region = dict[int, float]()  # of ops outside of loop bodies

    def in_loop(self, number: int) -> bool:
        """Whether an op is in a loop itself."""
        return self._kinds.parent(number) in self._loops

    def of(self, number: int) -> float:
        """How often an op runs. Ops of a region run equally often, except for those that are the same in each
        turn of a loop."""
        if self.in_loop(number):
            return often(self.counts, self._kinds.ops[number])
        region = self._kinds.region(number)
        if region not in self._by_region:
            self._by_region[region] = often(self.counts, self._kinds.ops[number])
        return self._by_region[region]


@dataclass(frozen=True)
class Free:
    """The open part of the boundary of the main function: some ``arguments``, by number, and some
    ``results``. Results that are state have the argument that they become in the next step; others have
    None."""

    arguments: frozenset[int] = frozenset()
    results: Mapping[int, int | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.arguments or self.results)


class Boundary:
    """The values at the boundary of the main function: its ``arguments``, the values that it returns
    (``returned``), and the value that each free result becomes (``results``)."""

    def __init__(self, annotated: Annotated, free: Free) -> None:
        kinds, listing = annotated.kinds, annotated.kinds.listing
        (ops,) = kinds.blocks(listing.functions[annotated.main])
        self.free, self.terminator = free, ops[-1]
        self.arguments, self.returned = kinds.arguments(ops), kinds.operands(ops[-1])
        first = len(listing.definers)
        self.results = {
            n: first + n if argument is None else self.arguments[argument]
            for n, argument in free.results.items()
        }

    @property
    def opened(self) -> frozenset[int]:
        """The values that may have any layout."""
        return frozenset(self.arguments[n] for n in self.free.arguments).union(self.results.values())

    def handed_on(self, annotated: Annotated, facts: Facts) -> list[Spot]:
        """The returned values that become free results."""
        held = dict(zip(self.arguments, self.given(annotated)[0], strict=True))
        for _, spot in facts.spots:
            held.update(zip(spot.values, spot.held, strict=True))
        reader, listing, spots = annotated.chooser.reader, annotated.kinds.listing, list[Spot]()
        for n, to in self.results.items():
            value, type_ = self.returned[n], listing.value(self.returned[n]).type
            if not (shape := static_shape(type_)):
                continue
            home = held.get(value, replicated(len(shape)))
            knowledge = reader.handing_on(shape, bytes_of(element_of(listing.value(value))), False)
            free = frozenset() if value in held else frozenset([Slot(0)])
            at = held.get(to, replicated(len(shape)))
            spots.append(Spot(knowledge, (value, to), (home, at), free, False))
        return spots

    def given(self, annotated: Annotated) -> tuple[list[Layout], list[Layout]]:
        """The layouts of arguments and results in the module."""
        reading = Reading(annotated.shardings, annotated.axes)
        return reading.boundary(annotated.functions[annotated.main])


def homes_of(annotated: Annotated, variables: Variables) -> Homes:
    """A search for the homes of a program's values."""
    return Homes(Candidates(variables, annotated.chooser, annotated.planner))


def variables_of(
    annotated: Annotated,
    facts: Facts,
    pinned: Collection[int] = (),
    boundary: Boundary | None = None,
    *,
    bound: bool = False,
) -> Variables:
    """The variables of such a search. Values that are ``pinned`` keep their homes, and those at an open
    ``boundary`` may have any. ``bound``: a lower bound will be asked for."""
    kinds, runs = annotated.kinds, Runs(annotated)

    def anew(value: int, number: int, weight: float) -> float:
        """How often a value is resharded for an op. A value that enters a loop exists throughout it, so
        gathering it in every iteration saves no memory."""
        definer = kinds.definer(value)
        if definer < 0 or kinds.region(definer) != kinds.region(number):
            return weight
        return min(runs.of(definer), weight)

    spots, needs = list[Spot](), list[Need]()
    for number, spot in facts.spots:
        weight = runs.of(number)
        weights: tuple[float, ...] = ()
        if runs.in_loop(number):
            roles = zip(spot.values, spot.knowledge.roles, strict=True)
            each = [anew(value, number, weight) if role == "operand" else weight for value, role in roles]
            weights = tuple(each) if any(often != weight for often in each) else ()
        spots.append(spot if weight == 1.0 and not weights else Spot(*spot[:5], weight, weights))
    result = 0
    for number, need in facts.needs:
        if boundary is not None and number == boundary.terminator:
            result += 1
            if result - 1 in boundary.results:
                continue
        needs.append(need._replace(weight=anew(need.value, number, runs.of(number))))
    if boundary is not None:
        spots += boundary.handed_on(annotated, facts)
    carried = {value: runs.counts.turns(kinds.ops[loop]) is not None for value, loop in facts.carried.items()}
    tasks = annotated.tasks

    def task_of(number: int) -> TaskId:
        assert tasks is not None
        passed_on = spots[number].knowledge.touches == "nothing"
        return NO_TASK if passed_on else tasks(facts.spots[number][0])

    steps = tuning.STEPS_IF_BOUNDED if bound else tuning.OPEN_STEPS if boundary else tuning.STEPS
    return Variables(
        spots, needs, pinned, carried, boundary.opened if boundary else (), steps, tasks and task_of
    )


def tasks_of(facts: Facts, variables: Variables) -> dict[int, TaskId]:
    """The tasks of ops, by number: those of the ops that they are like."""
    if variables.tasks is None:
        return {}
    rows = zip(facts.spots, variables.row_of.tolist(), strict=True)
    each = ((number, variables.tasks[row]) for (number, _), row in rows)
    return {number: task for number, task in each if task != NO_TASK}
