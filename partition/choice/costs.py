"""The costs of choices: the terms of the sum to minimise, for each op, and the cost of each layout of a value
on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ...program.ids import Slot
from ..reshards.prices import TaskId
from ..reshards.rates import LayoutId
from . import tuning
from .candidates import Candidates, WayId
from .domains import DomainId
from .least.sums import FAR, Floats, Integers, Terms
from .variables import Row, Variable

SlotCosts = tuple[Integers, Floats]  # of a slot: the line of each way, and the costs, line by place


def _add(tables: dict[int, SlotCosts], t: int, table: SlotCosts) -> None:
    """Adds a table to the one of a slot, if there is one."""
    if t in tables:
        pairs = np.stack([tables[t][0], table[0]])
        each, lines = np.unique(pairs, axis=1, return_inverse=True)
        table = lines.reshape(-1), tables[t][1][each[0]] + table[1][each[1]]
    tables[t] = table


class Position(NamedTuple):
    """The term of a row: its number, the row in it, and the slots of its ops."""

    terms: int
    row: int
    slots: tuple[int, ...]


class _Moved(NamedTuple):
    """The costs of a slot of an op: of each way to compute it, and the line of the table for each way. A line
    has the costs of reshards to a needed layout, from each layout that the value may have."""

    sent: tuple[Floats, ...]
    line: Integers
    needed: tuple[LayoutId, ...]
    table: Floats


class Costs:
    """The costs of variables and rows, in bytes sent."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates, self._variables = candidates, candidates.variables
        self._chooser, self._planner = candidates.chooser, candidates.planner
        self._domains, self._layouts = candidates.domains, candidates.layouts
        self._works: dict[tuple[int, tuple[DomainId, ...], TaskId | None], Floats] = {}
        self._moves: dict[tuple[int, tuple[DomainId, ...], tuple[int, ...]], dict[Slot, _Moved]] = {}
        # The terms of rows; None for rows whose cost does not depend on the choice.
        self.positions: list[Position | None] = [None] * len(candidates.variables.spots)

    def terms(self, stop: Callable[[], bool], memory: float = 0.0) -> list[Terms] | None:
        """The terms of the sum, with ``memory`` at a price. Rows with equal costs share a term. None if
        ``stop`` says so before all are done."""
        variables, candidates = self._variables, self._candidates
        by_key: dict[Any, tuple[Floats, list[SlotCosts]]] = {}
        rows: dict[Any, list[tuple[tuple[Variable, ...], Row]]] = {}
        for number, spot, slots in zip(variables.rows, variables.spots, variables.slots, strict=True):
            domains = candidates.around(number)
            first = {n: t for t, n in reversed(list(enumerate(slots))) if n >= 0}
            same = tuple([first.get(n, -1) for n in slots])
            key = candidates.kind_of[number], domains, spot.weight, spot.weights, self._task(number), same
            if key not in by_key:
                if stop():
                    return None
                by_key[key] = self._term(number, domains, same, memory)
            used = sorted(set(same) - {-1})
            rows.setdefault(key, []).append((tuple([slots[t] for t in used]), number))
        terms: list[Terms] = []
        for key, (base, tables) in by_key.items():
            if tables:
                index = np.asarray([values for values, _ in rows[key]], dtype=np.int64)
                numbers = [number for _, number in rows[key]]
                which = tuple(sorted(set(key[-1]) - {-1}))
                for row, number in enumerate(numbers):
                    self.positions[number] = Position(len(terms), row, which)
                lines, costs = (list(each) for each in zip(*tables, strict=True))
                terms.append(Terms(base, lines, costs, index, variables.often[numbers]))
        return terms

    def _term(
        self, number: Row, domains: tuple[DomainId, ...], same: tuple[int, ...], memory: float
    ) -> tuple[Floats, list[SlotCosts]]:
        """The cost of each way to compute an op: on its own, and by the layouts of its slots. Slots with the
        ``same`` variable count together."""
        spot = self._variables.spots[number]
        knowledge, base = spot.knowledge, self._work(number, domains).copy()
        share = [weight / (spot.weight or 1.0) for weight in spot.resharded]
        tables: dict[int, SlotCosts] = {}
        for t, moved in self._moved(number, domains, same).items():
            for sent in moved.sent:
                base += sent
            table = moved.table
            if memory and moved.needed and (often := spot.weight * share[t]):
                shape, width = knowledge.shapes[t] or (), knowledge.widths[t]
                besides = self._domains.besides(shape, width, moved.needed, domains[t])
                table = table + besides * (tuning.BRIEFLY * memory / often)
            if same[t] < 0:
                base += table[moved.line, 0] * share[t]
            else:
                _add(tables, same[t], (moved.line, table * share[t]))
        slots = sorted(set(same) - {-1})
        none = np.zeros(len(base), np.int64)
        for n in slots:
            if n not in tables:  # it can be made in any layout
                tables[n] = none, np.zeros((1, len(self._domains[domains[n]].places)))
        weight = spot.weight * (tuning.HANDED_ON if knowledge.touches == "nothing" else 1.0)
        return base * spot.weight, [(tables[n][0], tables[n][1] * weight) for n in slots]

    def _moved(self, number: Row, domains: tuple[DomainId, ...], same: tuple[int, ...]) -> dict[Slot, _Moved]:
        """What the slots of an op send in each way to compute it, whatever memory costs."""
        key = self._candidates.kind_of[number], domains, same
        if key not in self._moves:
            self._moves[key] = dict(self._moved_anew(number, domains, same))
        return self._moves[key]

    def _moved_anew(
        self, number: Row, domains: tuple[DomainId, ...], same: tuple[int, ...]
    ) -> Iterator[tuple[Slot, _Moved]]:
        spot, ways = self._variables.spots[number], self._candidates.ways_of(number)
        knowledge, once, layouts = spot.knowledge, self._planner.prices.once, self._layouts
        needed = [self._candidates.layouts_by(number, way) for way in ways]
        exchanged = [
            self._chooser.exchanged(knowledge, [layouts[n] for n in each])
            for each in needed
            if knowledge.reads
        ]
        for t, shape, role in zip(knowledge.slots, knowledge.shapes, knowledge.roles, strict=True):
            if shape is None or t in spot.free:
                continue
            if same[t] >= 0 and any(read.slot == t for read in knowledge.reads):
                read = np.asarray([self._read(number, way, t, domains[t]) for way in ways])
                yield t, _Moved((), np.arange(len(ways)), (), read)
                continue
            sent = list[Floats]()
            if exchanged:
                prices = [each.get(t, (0.0, 0.0)) for each in exchanged]
                sent.append(np.asarray([price + once * rounds for price, rounds in prices]))
            column = [each[t] for each in needed]
            if role == "result" and knowledge.combined_by_itself:
                gathered = [self._chooser.gathering(knowledge, t, layouts[layout]) for layout in column]
                sent.append(np.asarray([price + once * count for price, count, _ in gathered]))
                column = [layouts.number(behind) for *_, behind in gathered]
            lines: dict[LayoutId, int] = {}
            line = np.asarray([lines.setdefault(layout, len(lines)) for layout in column], np.int64)
            result, width = role == "result", knowledge.widths[t]
            table = self._domains.table(
                shape, width, tuple(lines), domains[t], result=result, at_home=knowledge.at_home
            )
            yield t, _Moved(tuple(sent), line, tuple(lines), table)

    def _work(self, number: Row, domains: tuple[DomainId, ...]) -> Floats:
        """The cost of the work of each way to compute an op."""
        key = self._candidates.kind_of[number], domains, self._task(number)
        if key not in self._works:
            self._works[key] = self._work_anew(number)
        return self._works[key]

    def _task(self, number: Row) -> TaskId | None:
        return None if self._variables.tasks is None else self._variables.tasks[number]

    def _work_anew(self, number: Row) -> Floats:
        spot, ways, task = self._variables.spots[number], self._candidates.ways_of(number), self._task(number)
        if task is None:
            each = [self._candidates.way(way) for way in ways]
            return self._chooser.weighs(spot.knowledge, spot.held, each)
        takes, layouts = self._chooser.takes, self._layouts
        needed = (self._candidates.layouts_by(number, way) for way in ways)
        return np.asarray([takes(task, spot.knowledge, [layouts[n] for n in each]) for each in needed])

    def _read(self, number: Row, way: WayId, t: Slot, domain: DomainId) -> Floats:
        """The cost of each place of an operand for an op that reads stretches of it. Whole operands are
        sliced, others exchanged."""
        knowledge, _, held, free, *_ = self._variables.spots[number]
        shape, width = knowledge.shapes[t] or (), knowledge.widths[t]
        dims = {read.dim for read in knowledge.reads if read.slot == t}
        by_whole: dict[frozenset[int], Floats] = {}
        costs = list[float]()
        for n, place in enumerate(self._domains[domain].places):
            home = self._layouts[place.home]
            whole = frozenset(d for d in dims if not home.dims[d])
            if whole not in by_whole:
                with_it = *held[:t], home, *held[t + 1 :]
                needed = self._chooser.layouts(knowledge, with_it, free, self._candidates.way(way))
                price, rounds = self._chooser.exchanged(knowledge, needed).get(t, (0.0, 0.0))
                prices = self._domains.table(shape, width, (self._layouts.number(needed[t]),), domain)[0]
                by_whole[whole] = prices + price + self._planner.prices.once * rounds
            costs.append(float(by_whole[whole][n]))
        return np.asarray(costs)

    def alone(self, memory: float) -> Floats:
        """The cost of each layout of each value on its own: reshards to layouts that are needed, and memory.
        A value that a loop carries exists throughout the loop. For each byte beyond propagation's layout, and
        beyond a tile, it costs as much as a part of a byte sent. So a value that is gathered part by part is
        not gathered as a whole before the loop, unless that saves much. A reshard before a loop of unknown
        trip count may pay for one iteration only."""
        domains, variables = self._domains, self._variables
        domain_of = self._candidates.domain_of
        table = np.full((len(domain_of), self._most_places), FAR)
        for n, (kind, number) in enumerate(zip(variables.kinds, domain_of, strict=True)):
            shape, width, *_ = kind
            costs = domains.copying(shape, width, number) * variables.weights[n]
            for (layout, weight), count in variables.wanted[n].items():
                wanted = (self._layouts.number(layout),)
                costs = costs + domains.table(shape, width, wanted, number)[0] * weight * count
            homes, copies = domains.held(shape, width, number)
            if kind.carried is not None:
                free, price = homes[0], 1.0
                if kind.carried:
                    free, price = max(free, tuning.TILE), tuning.CARRIED
                costs = costs + price * np.maximum(homes - free, 0)
            table[n, : len(costs)] = costs + memory * (homes + copies)
        return table

    def late(self) -> Floats:
        """The extra cost of each layout that leaves a partial sum for later. It is tiny, but if nothing is
        saved the sum is computed at once. Independent sums can be sent together."""
        domain_of = self._candidates.domain_of
        extra = np.zeros((len(domain_of), self._most_places))
        late = {
            number: np.asarray(
                [bool(self._layouts[home].partial) for home, _ in self._domains[number].places]
            )
            for number in set(domain_of)
        }
        for n, number in enumerate(domain_of):
            extra[n, : len(late[number])] = late[number] * (tuning.LATE * self._variables.weights[n])
        return extra

    @property
    def _most_places(self) -> int:
        """The largest number of places of any value."""
        return max((len(domain.places) for domain in self._candidates.places()), default=1)
