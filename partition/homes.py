"""Where values live: the layouts of all values between the boundary and constraints, chosen together.

Propagation decides how a value is sharded by its neighbours, one turn at a time. How much a program moves
depends on all values at once: it can be better to lay a value out as none of its neighbours is, if these
follow. Each op has the ways that the rules give it, each way needs its slots in certain layouts, and
resharding a value from its home costs what the planner says. The total is minimized by min-sum message
passing between ops and values, which is exact on trees; on other programs single values are moved
afterwards for as long as that helps. Equal ops with equal neighbours are solved together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from .choosing import SUM, Chooser
from .knowledge import Knowledge
from .layouts import Layout, Pieces, Shape
from .planning import Planner

Floats = npt.NDArray[np.float64]
Way = tuple[tuple[int, Pieces], ...]

_MOST_LAYOUTS = 12  # of a value
_MOST_WAYS = 96  # of an op
_ROUNDS = 2  # of finding layouts: ops see what their neighbours would like
_SWEEPS = 30
_MOVES = 40
_FAR = 1e18


@dataclass(frozen=True, eq=False)
class Spot:
    """An op that is computed: its operands and results, the layout of each slot as propagated, the operands
    that can be made in any layout, and how often it runs."""

    known: Knowledge
    values: tuple[Any, ...]
    held: tuple[Layout, ...]
    free: frozenset[int]
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class Need:
    """A value that is needed in a layout, at a boundary or where control flows."""

    value: Any
    layout: Layout
    weight: float = 1.0


@dataclass
class _Group:
    """Spots with equal costs: the redundant work of each way, the cost of each layout of each variable
    slot, and the variables of each spot."""

    base: Floats  # way
    tables: list[Floats]  # slot -> way x layout
    variables: list[tuple[int, ...]] = field(default_factory=list)
    index: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    messages: Floats = field(default_factory=lambda: np.zeros(0))


class Homes:
    """Finds homes for the results of ops."""

    def __init__(
        self, chooser: Chooser, planner: Planner, spots: Sequence[Spot], needs: Sequence[Need]
    ) -> None:
        self.chooser, self.planner, self.spots, self.needs = chooser, planner, spots, needs
        self.number: dict[Any, int] = {}
        self.domains: list[list[Layout]] = []
        self.kinds: list[tuple[Shape, int]] = []  # shape, and bytes of an element
        for spot in spots:
            for t, value in enumerate(spot.values):
                if spot.known.roles[t] == "result" and spot.known.shapes[t]:
                    self.number[value] = len(self.domains)
                    self.domains.append([spot.held[t]])
                    self.kinds.append((spot.known.shapes[t] or (), spot.known.widths[t]))
        self._ways: dict[Any, tuple[Way, ...]] = {}
        self._wanted: dict[Any, tuple[tuple[int, tuple[Layout, ...]], ...]] = {}

    def find(self) -> dict[Any, Layout]:
        """The values that get another home than propagation gave them, and these homes."""
        for number in range(_ROUNDS):
            self._widen(self.spots if number % 2 == 0 else reversed(self.spots))
        groups = self._groups()
        best = np.zeros(len(self.domains), np.int64)
        least = self._energy(groups, best)
        beliefs = self._pass_messages(groups)
        for start in (beliefs.argmin(axis=1), best):
            found, energy = self._improve(groups, start.copy())
            if energy < least * (1 - 1e-9):
                best, least = found, energy
        return {
            value: self.domains[n][best[n]]
            for value, n in self.number.items()
            if self.domains[n][best[n]] != self.domains[n][0]
        }

    # ---- Layouts that a value may have ------------------------------------------------------------------

    def _widen(self, spots: Iterable[Spot]) -> None:
        """Adds to the layouts of values those in which the ways to compute ops would have them."""
        for spot in spots:
            for t, layouts in self._wanted_by(spot):
                n = self.number.get(spot.values[t])
                if n is not None:
                    domain = self.domains[n]
                    new = [layout for layout in layouts if layout not in domain]
                    domain.extend(new[: _MOST_LAYOUTS - len(domain)])

    def _domain(self, spot: Spot, slot: int) -> tuple[Layout, ...]:
        n = self.number.get(spot.values[slot])
        return (spot.held[slot],) if n is None else tuple(self.domains[n])

    def _wanted_by(self, spot: Spot) -> tuple[tuple[int, tuple[Layout, ...]], ...]:
        domains = tuple(self._domain(spot, t) for t in range(len(spot.values)))
        key = spot.known, spot.held, spot.free, domains
        if key not in self._wanted:
            wanted: dict[int, dict[Layout, None]] = {}
            for way in self._ways_of(spot, domains):
                for t, layout in enumerate(self.chooser.layouts(spot.known, spot.held, spot.free, dict(way))):
                    if spot.known.shapes[t]:
                        wanted.setdefault(t, {})[layout.complete] = None
                        if layout.combine in ("", SUM):
                            wanted[t][layout] = None
            self._wanted[key] = tuple((t, tuple(layouts)) for t, layouts in wanted.items())
        return self._wanted[key]

    def _ways_of(self, spot: Spot, domains: tuple[tuple[Layout, ...], ...]) -> tuple[Way, ...]:
        """The ways to compute an op with its slots as they are, and with each of them in one of its
        layouts."""
        key = spot.known, spot.held, domains
        if key not in self._ways:
            found: dict[Way, None] = {}
            held = [spot.held]
            for t, domain in enumerate(domains):
                held += [(*spot.held[:t], layout, *spot.held[t + 1 :]) for layout in domain[1:]]
            for each in held:
                for way in self.chooser.ways(spot.known, each)[0]:
                    found[tuple(sorted((f, p) for f, p in way.items() if p))] = None
            self._ways[key] = tuple(found)[:_MOST_WAYS]
        return self._ways[key]

    # ---- Costs ------------------------------------------------------------------------------------------

    def _groups(self) -> list[_Group]:
        found: dict[Any, _Group] = {}
        for spot in self.spots:
            domains = tuple(self._domain(spot, t) for t in range(len(spot.values)))
            variables = [self.number.get(value, -1) for value in spot.values]
            first = {n: t for t, n in reversed(list(enumerate(variables))) if n >= 0}
            same = tuple(first.get(n, -1) for n in variables)
            key = spot.known, spot.held, spot.free, domains, same, spot.weight
            if key not in found:
                found[key] = self._group(spot, domains, same)
            slots = sorted(set(same) - {-1})
            found[key].variables.append(tuple(variables[t] for t in slots))
        for need in self.needs:
            n = self.number.get(need.value)
            if n is None:
                continue
            shape, width = self.kinds[n]
            asked = shape, width, need.layout, tuple(self.domains[n]), need.weight
            if asked not in found:
                plans = [self._price(shape, have, need.layout) for have in self.domains[n]]
                table = np.asarray([plans]) * width * need.weight
                found[asked] = _Group(np.zeros(1), [table])
            found[asked].variables.append((n,))
        groups = [group for group in found.values() if group.tables]
        for group in groups:
            group.index = np.asarray(group.variables, dtype=np.int64)
            widest = max(table.shape[1] for table in group.tables)
            group.messages = np.zeros((*group.index.shape, widest))
        return groups

    def _group(self, spot: Spot, domains: tuple[tuple[Layout, ...], ...], same: tuple[int, ...]) -> _Group:
        known, ways = spot.known, self._ways_of(spot, domains)
        base = self.chooser.excess(known, spot.held, [dict(way) for way in ways])
        tables: dict[int, Floats] = {}
        for w, way in enumerate(ways):
            needed = self.chooser.layouts(known, spot.held, spot.free, dict(way))
            for t, (shape, layout) in enumerate(zip(known.shapes, needed, strict=True)):
                if shape is None or t in spot.free:
                    continue
                width, result = known.widths[t], known.roles[t] == "result"
                costs = [
                    width * (self._price(shape, layout, have) if result else self._price(shape, have, layout))
                    for have in domains[t]
                ]
                extra = width * self.chooser.exchanged(known, t, layout) if not result else 0.0
                if same[t] < 0:
                    base[w] += costs[0] + extra
                    continue
                base[w] += extra
                if same[t] not in tables:
                    tables[same[t]] = np.zeros((len(ways), len(domains[t])))
                tables[same[t]][w] += costs
        slots = sorted(set(same) - {-1})
        for t in slots:
            tables.setdefault(t, np.zeros((len(ways), len(domains[t]))))
        return _Group(base * spot.weight, [tables[t] * spot.weight for t in slots])

    def _price(self, shape: Shape, start: Layout, goal: Layout) -> float:
        if goal.partial and start.partial and start.combine != goal.combine:
            return _FAR
        return self.planner.price(shape, start, goal)

    # ---- The least sum ----------------------------------------------------------------------------------

    def _pass_messages(self, groups: Iterable[_Group]) -> Floats:
        """Min-sum message passing: the cost of each layout of each value, as all ops together see it."""
        most = max((len(domain) for domain in self.domains), default=1)
        beliefs = np.zeros((len(self.domains), most))
        for n, domain in enumerate(self.domains):
            beliefs[n, len(domain) :] = _FAR
        every = list(groups)
        for sweep in range(_SWEEPS):
            for group in every if sweep % 2 == 0 else reversed(every):
                self._tell(group, beliefs)
        return beliefs

    def _tell(self, group: _Group, beliefs: Floats) -> None:
        """Updates the messages of a group: to each value, the cost of the cheapest way for each of its
        layouts."""
        index, count = group.index, len(group.tables)
        heard = [
            beliefs[index[:, s], : group.tables[s].shape[1]]
            - group.messages[:, s, : group.tables[s].shape[1]]
            for s in range(count)
        ]
        best = [(group.tables[s][None] + heard[s][:, None, :]).min(axis=2) for s in range(count)]
        total = group.base[None] + sum(best)
        for s in range(count):
            width = group.tables[s].shape[1]
            others = (total - best[s])[:, :, None]
            said = (others + group.tables[s][None]).min(axis=1)
            said = np.minimum(said - said.min(axis=1, keepdims=True), _FAR / 1e3)
            old = group.messages[:, s, :width]
            new = 0.5 * old + 0.5 * said
            np.add.at(beliefs, (index[:, s][:, None], np.arange(width)[None]), new - old)
            group.messages[:, s, :width] = new

    def _energy(self, groups: Iterable[_Group], chosen: npt.NDArray[np.int64]) -> float:
        return float(sum(self._costs(group, chosen).min(axis=1).sum() for group in groups))

    @staticmethod
    def _costs(group: _Group, chosen: npt.NDArray[np.int64]) -> Floats:
        """The cost of each way at each spot of a group."""
        total = np.repeat(group.base[None], len(group.index), axis=0)
        for s, table in enumerate(group.tables):
            total = total + table[:, chosen[group.index[:, s]]].T
        return total

    def _improve(
        self, groups: Sequence[_Group], chosen: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], float]:
        """Local search: moves single values for as long as that helps; those without a common neighbour at
        once."""
        energy, numbers = self._energy(groups, chosen), np.arange(len(self.domains))
        for _ in range(_MOVES):
            gains = self._gains(groups, chosen)
            better, to = gains.min(axis=1), gains.argmin(axis=1)
            wants = better < -1e-6
            if not wants.any():
                break
            moved = chosen.copy()
            order = numbers[wants][np.argsort(better[wants], kind="stable")]
            taken: set[int] = set()
            near = self._neighbours(groups)
            for n in order.tolist():
                if n not in taken:
                    moved[n] = to[n]
                    taken.update(near.get(n, ()))
                    taken.add(n)
            less = self._energy(groups, moved)
            if less >= energy - 1e-6:
                break
            chosen, energy = moved, less
        return chosen, energy

    def _gains(self, groups: Sequence[_Group], chosen: npt.NDArray[np.int64]) -> Floats:
        """The change of the total if one value alone moved to each of its layouts."""
        most = max((len(domain) for domain in self.domains), default=1)
        found = np.zeros((len(self.domains), most))
        for n, domain in enumerate(self.domains):
            found[n, len(domain) :] = inf
        for group in groups:
            total = self._costs(group, chosen)
            now = total.min(axis=1)
            for s, table in enumerate(group.tables):
                held = table[:, chosen[group.index[:, s]]].T
                then = ((total - held)[:, :, None] + table[None]).min(axis=1) - now[:, None]
                where = (group.index[:, s][:, None], np.arange(table.shape[1])[None])
                np.add.at(found, where, then)
        return found

    def _neighbours(self, groups: Sequence[_Group]) -> Mapping[int, set[int]]:
        if not hasattr(self, "_near"):
            near: dict[int, set[int]] = {}
            for group in groups:
                for row in group.index.tolist():
                    for n in row:
                        near.setdefault(n, set()).update(row)
            self._near = near
        return self._near
