"""How ops are computed, by ``rules/partition``. Equal neighbourhoods are solved once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from math import prod
from typing import Any, NewType

import numpy as np
import numpy.typing as npt

from ...program.factors import PASSING, PICKING, part_number
from ...program.ids import Factor, Slot
from ...rulebook.book import RuleBook
from ..facts.knowledge import Knowledge, Read, Rows, RuleReader
from ..layouts import Axes, Dims, Layout, Pieces, replicated
from ..reshards.exchange import Exchange, plan_exchange
from ..reshards.planning import Planner
from ..reshards.prices import NO_TASK, TaskId

SUM = "stablehlo.add"  # the combination of partial sums
Way = tuple[tuple[Factor, Pieces], ...]  # to compute an op: the factors that are split, each on these pieces
CandidateId = NewType("CandidateId", int)  # of a candidate of an op, as ``rules/partition/choice.dl`` has it


@dataclass(frozen=True)
class Stretch:
    """The rows of an operand's dimension that a part reads, and the halo exchange that fetches them. With a
    ``dilation`` above 1 the fetched rows are spread out, with dilation - 1 holes before and after each; the
    part is the ``length`` rows from ``offsets`` on."""

    exchange: Exchange
    dilation: int
    offsets: tuple[int, ...]
    length: int


@lru_cache(maxsize=1024)
def stretch(read: Read, size: int, whole: int, parts: int) -> Stretch:
    """The stretches of an operand's dimension of ``size`` that the parts of a dimension of ``whole`` need.
    Rows that are read only past the end of the whole are not fetched. Nor is the row before a hole with which
    a stretch begins."""
    tile, dilation = -(-whole // parts), read.dilation
    length = (tile - 1) * read.stride + read.extent
    begins = [part * tile * read.stride - read.low for part in range(parts)]
    ends = [(whole - 1) * read.stride - read.low + read.extent] * parts
    if read.around:
        rows = [part * tile + read.low for part in range(parts)]  # the first of each part
        first = [max(-(-(row - read.extent + 1) // read.stride), 0) for row in rows]  # window
        last = [(row + tile - 1) // read.stride for row in rows]
        begins = [n * read.stride - read.low for n in first]
        ends = [n * read.stride - read.low + read.extent for n in last]
        length = max(end - begin for begin, end in zip(begins, ends, strict=True))
    if read.backwards:
        begins, ends = [size - (part + 1) * tile for part in range(parts)], [size] * parts
    starts = tuple(-(-begin // dilation) for begin in begins)
    if read.from_first:  # so the first part's is shorter
        starts = tuple(max(start, 0) for start in starts)
    # Rows behind a stretch are not fetched.
    ends = [min(end, begin + length) for begin, end in zip(begins, ends, strict=True)]
    count = max(-(-(begin + length) // dilation) - start for begin, start in zip(begins, starts, strict=True))
    stops = tuple(-(-(end if read.last is None else min(end, read.last)) // dilation) for end in ends)
    exchange = plan_exchange(size, parts, starts, max(count, 1), stops, read.first)
    offsets = tuple(b - (s - 1) * dilation - 1 for b, s in zip(begins, starts, strict=True))
    return Stretch(exchange, dilation, offsets, length)


@dataclass(frozen=True)
class Candidate:
    """A way to compute an op: the pieces that each factor is split on, and the layout of each slot.

    ``sends`` are the prices, in bytes, of the communication for each slot.
    """

    factors: Way
    layouts: tuple[Layout, ...]
    sends: tuple[float, ...]

    def of(self, factor: Factor) -> Pieces:
        """The pieces that a factor is split on."""
        return dict(self.factors).get(factor, ())


@dataclass(frozen=True)
class Compared:
    """The candidates for an op, the cost of each in bytes, and the number of the cheapest. ``facts`` are the
    input of ``rules/partition/choice.dl``."""

    candidates: tuple[Candidate, ...]
    costs: tuple[float, ...]
    cheapest: CandidateId = CandidateId(0)
    facts: Mapping[str, Rows] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """How an op is computed: the chosen candidate. If all ops were chosen together, the others are compared
    only on request."""

    taken: Candidate
    _compare: Callable[[], Compared] = field(compare=False, repr=False)

    @cached_property
    def compared(self) -> Compared:
        """The candidates it was chosen from."""
        return self._compare()


class Chooser:
    """Chooses how ops are computed, and remembers its choices."""

    def __init__(self, book: RuleBook, axes: Axes, planner: Planner, modes: Sequence[str] = ()) -> None:
        self.axes, self.planner, self.reader = axes, planner, RuleReader(book, modes)
        rows = [(n, p.mesh, p.axis, p.pre, p.pre * p.size) for n, p in enumerate(axes.pieces)]
        self._candidates, prices = book.candidates({"axis": rows}), planner.prices
        shared: dict[str, Rows] = {"all_work": [()]} if prices.all_work else {}
        self._choice = book.choice(shared)
        self._shared = shared  # the layouts that choices start from: part of their facts, for proofs
        self._work: dict[Any, float] = {}
        self._ways: dict[Any, list[Way]] = planner.kept.ways
        self._parts_if_stays: dict[Any, int] = planner.kept.parts_if_stays
        self._alike: dict[Any, int] = planner.kept.alike
        self._ways_evenly: dict[Any, list[Way]] = planner.evenly.ways
        self._facts_of: dict[Knowledge, tuple[int, dict[str, Rows]]] = {}
        self._key_of: dict[int, Hashable] = {}  # of the facts with a number, if all sizes are even

    # ---- Choices ----------------------------------------------------------------------------------------

    def choose(
        self, knowledge: Knowledge, held: tuple[Layout, ...], free: frozenset[Slot], also: Way | None = None
    ) -> Choice:
        """How an op with these layouts of slots is computed. Operands in ``free`` can be computed in any
        layout. ``also`` is the way by which all ops together cost least, if they were chosen together."""
        if also is not None:
            taken, _ = self._candidate(knowledge, held, free, also)
            return Choice(taken, lambda: self._among(knowledge, held, free, False, also)[0])
        key = knowledge.deciding, held, free
        choices: dict[Any, Choice] = self.planner.kept.choices.setdefault(self.planner.weighed_by, {})
        if key not in choices:
            compared = self._chosen(knowledge, held, free)
            choices[key] = Choice(compared.candidates[compared.cheapest], lambda: compared)
        return choices[key]

    def _chosen(self, knowledge: Knowledge, held: tuple[Layout, ...], free: frozenset[Slot]) -> Compared:
        compared, price = self._among(knowledge, held, free, False)
        if any(compared.candidates[compared.cheapest].sends):
            # Sending less in more collectives must be worth their fixed cost.
            other, less = self._among(knowledge, held, free, True)
            compared = other if less < price else compared
        return compared

    def _among(
        self,
        knowledge: Knowledge,
        held: tuple[Layout, ...],
        free: frozenset[Slot],
        moves: bool,
        also: Way | None = None,
    ) -> tuple[Compared, float]:
        """The candidates: with spare axes if something ``moves``, and with the way ``also`` given. And the
        price of the cheapest, with the fixed cost of its collectives."""
        ways = self.ways(knowledge, held, moves)
        if also is not None and also not in ways:
            ways = [*ways, also]
        candidates = [self._candidate(knowledge, held, free, way) for way in ways]
        counts = [count for _, count in candidates]
        compared = self._cheapest(knowledge, held, [c for c, _ in candidates], counts)
        return compared, compared.costs[compared.cheapest] + self.planner.prices.once * counts[
            compared.cheapest
        ]

    def ways(
        self, knowledge: Knowledge, held: tuple[Layout, ...], moves: bool = False, *, anywhere: bool = False
    ) -> list[Way]:
        """The ways to compute an op with these layouts of slots: the pieces that each factor is split on.
        With ``moves``, because something must be sent, also the ways on spare axes."""
        number, facts = self._splitting(knowledge)
        if not moves:  # a partial sum is whole for ops that do not pass it on
            passing = knowledge.passing
            held = tuple(
                [has if t in passing or not has.partial else has.complete for t, has in enumerate(held)]
            )
        key = number, held, moves, anywhere
        if key not in self._ways:
            alike = number, moves, anywhere, self._splits_alike(knowledge, held, moves)
            if alike not in self._ways:
                about = self._key_of.get(number)
                ways_evenly, evenly = self._ways_evenly, (about, *alike[1:])
                if about is None or evenly not in ways_evenly:
                    ways = self._find_ways(knowledge, facts, held, moves, anywhere)
                    sorted_ways = sorted(ways, key=lambda way: way[::-1])  # in whichever slots
                    if about is not None:
                        ways_evenly[evenly] = sorted_ways
                else:
                    sorted_ways = ways_evenly[evenly]
                self._ways[alike] = sorted_ways
            self._ways[key] = self._ways[alike]
        return self._ways[key]

    @staticmethod
    def _splits_alike(knowledge: Knowledge, held: tuple[Layout, ...], moves: bool) -> Hashable:
        """Everything that the ways to compute an op depend on: the pieces that factors are split on in any
        slot, except those that begin longer ones; the slots that are partial sums; and if something
        ``moves``, the pieces that are used at all."""
        if knowledge.picks or not knowledge.plain:
            return held
        split: dict[int, set[Pieces]] = {}
        for factors, layout in zip(knowledge.maps, held, strict=True):
            for factor, pieces in zip(factors, layout.dims, strict=True):
                if pieces and factor:
                    split.setdefault(factor[0], set()).add(pieces)
        longest = frozenset(
            (factor, pieces)
            for factor, each in split.items()
            for pieces in each
            if not any(pieces == other[: len(pieces)] != other for other in each)
        )
        sums = [
            (t, layout.partial) for t, layout in enumerate(held) if knowledge.passes and layout.combine == SUM
        ]
        used = frozenset(p for layout in held for p in layout.pieces) if moves else frozenset()
        return longest, tuple(sums), used

    def parts_if_stays(self, knowledge: Knowledge, held: tuple[Layout, ...]) -> int:
        """The number of parts in which an op would be computed if every tensor kept its layout."""
        number, facts = self._splitting(knowledge)
        key = number, held
        if key not in self._parts_if_stays:
            sharded = _sharded(held)
            stays = (
                self._candidates.solve({**facts, "sharded": sharded}, ["stays"])["stays"] if sharded else []
            )
            self._parts_if_stays[key] = self.axes.product(piece for _, _, piece in stays)
        return self._parts_if_stays[key]

    def computed_as(self, knowledge: Knowledge) -> int:
        """A number that is equal for ops that can be computed in the same ways."""
        return self._splitting(knowledge)[0]

    def _splitting(self, knowledge: Knowledge) -> tuple[int, dict[str, Rows]]:
        """The facts about how an op can be computed in parts, and a number for equal ones. Sizes do not
        matter if they divide evenly into any parts that may be wanted."""
        if knowledge not in self._facts_of:
            facts, even = dict(knowledge.splitting), 2 * self.axes.count
            facts["factor"] = [
                (factor, size if size % even or knowledge.picks.get(factor) else even)
                for factor, size in knowledge.sizes.items()
            ]
            key = tuple((name, tuple(rows)) for name, rows in facts.items())
            number = self._alike.setdefault(key, len(self._alike))
            self._facts_of[knowledge] = number, facts
            if all(size == even for _, size in facts["factor"]):
                self._key_of[number] = key
        return self._facts_of[knowledge]

    def _find_ways(
        self,
        knowledge: Knowledge,
        about: Mapping[str, Rows],
        held: tuple[Layout, ...],
        moves: bool,
        anywhere: bool,
    ) -> list[Way]:
        sharded = _sharded(held)
        held_partial = [
            (t, position, piece)
            for t, layout in enumerate(held)
            if layout.combine == SUM
            for position, piece in enumerate(layout.partial)
        ]
        divided = bool(sharded) or anywhere
        if not ((divided and (knowledge.splits or knowledge.picks)) or (held_partial and knowledge.passes)):
            return [()]
        facts = {
            **about,
            "sharded": sharded,
            "held_partial": held_partial,
            "moves": [()] if moves else [],
            "anywhere": [(self.axes.main,)] if anywhere else [],
        }
        answers = self._candidates.solve(facts, ["option_axis", "candidate"])
        axes: dict[tuple[Any, Any], Pieces] = {}
        for part, option, _, piece in answers["option_axis"]:
            axes[part, option] = (*axes.get((part, option), ()), piece)
        return list(dict.fromkeys(_way(choice, axes) for (choice,) in answers["candidate"])) or [()]

    def layouts(
        self, knowledge: Knowledge, held: tuple[Layout, ...], free: frozenset[Slot], factors: Way
    ) -> list[Layout]:
        """The layouts of operands and results in a way to compute an op."""
        way = dict(factors)
        picking = {factor: Factor(PICKING - factor) for factor in knowledge.picks}
        picked = {factor: way[number] for factor, number in picking.items() if number in way}
        loose = tuple(sorted(chain(*picked.values(), *(p for f, p in way.items() if f in knowledge.partial))))
        passed: Pieces = ()
        passing = frozenset[Slot]()
        for number, slots in knowledge.passes.items():
            if pieces := way.get(Factor(PASSING - number)):
                passed, passing = pieces, slots
        layouts = list[Layout]()
        for t, role, shape, has in zip(knowledge.slots, knowledge.roles, knowledge.shapes, held, strict=True):
            if shape is None:
                layouts.append(replicated(0))
                continue
            dims: Dims = tuple(
                [tuple([p for f in factors for p in way.get(f, ())]) for factors in knowledge.maps[t]]
            )
            if role == "operand" and knowledge.reads:
                # A stretch of a whole operand is cut out, and so is one of an operand that is made anywhere.
                whole = {r.dim for r in knowledge.reads if r.slot == t and (t in free or not has.dims[r.dim])}
                dims = tuple([() if d in whole else pieces for d, pieces in enumerate(dims)])
            if role == "operand" and picked:
                each = zip(knowledge.maps[t], dims, strict=True)
                dims = tuple([next((picked[f] for f in fs if f in picked), had) for fs, had in each])
            partial = (
                loose if role == "result" else self._started(knowledge, t, way) if knowledge.starts else ()
            )
            combine = (knowledge.combine or "itself") if partial else ""
            if passed and (role == "result" or t in passing):
                partial, combine = tuple(sorted((*partial, *passed))), SUM
            layouts.append(Layout(dims, partial, combine))
        return layouts

    def _candidate(
        self, knowledge: Knowledge, held: tuple[Layout, ...], free: frozenset[Slot], way: Way
    ) -> tuple[Candidate, int]:
        """A candidate, and its number of collectives."""
        layouts, sends, count = self.layouts(knowledge, held, free, way), list[float](), 0.0
        exchanged = self.exchanged(knowledge, layouts)
        for t, role, shape, has in zip(knowledge.slots, knowledge.roles, knowledge.shapes, held, strict=True):
            layout = layouts[t]
            sends.append(0.0)
            if shape is None or t in free:
                continue
            gathered, rounds, layout = self.gathering(knowledge, t, layout)
            sends[-1] += gathered
            count += rounds
            ends = (layout, has) if role == "result" else (has, layout)
            price, turns = exchanged.get(t, (0.0, 0.0))
            sends[-1] += price
            count += turns
            route = self.planner.best(self.planner.likely(shape, *ends, knowledge.taken), knowledge.widths[t])
            sends[-1] += self.planner.total(route, knowledge.widths[t])
            count += route.sends
        return Candidate(way, tuple(layouts), tuple(sends)), round(count)

    def exchanged(self, knowledge: Knowledge, layouts: Sequence[Layout]) -> dict[Slot, tuple[float, float]]:
        """The halo exchanges of operands for slots with these layouts: for each operand the price in bytes,
        and the number of sends. Rounds in which no device sends or receives twice are merged, across operands
        too."""
        if not knowledge.reads:
            return {}
        all_sent = [(t, *each) for t in knowledge.slots for each in self._stretches(knowledge, t, layouts)]
        busy: dict[Pieces, Any] = {}
        mean: dict[Pieces, float] = {}
        for _, pieces, _, exchange in all_sent:
            if exchange:
                busy[pieces] = busy.get(pieces, 0) + exchange.busy
                mean[pieces] = mean.get(pieces, 0.0) + exchange.turns
        by_operand = dict[Slot, tuple[float, float]]()
        for t, pieces, elements, exchange in all_sent:
            size, before = elements * knowledge.widths[t], by_operand.get(t, (0.0, 0.0))
            if exchange:
                share = float(busy[pieces].max()) / mean[pieces] if mean[pieces] else 0.0
                rounds, permuting = exchange.turns * share, self.planner.weighed("collective_permute", pieces)
                price = permuting.once * rounds + permuting.byte * exchange.rows * share * size
            else:
                rounds = float(not by_operand)
                price = self._gathered(pieces, size, rounds)
            by_operand[t] = before[0] + price, before[1] + rounds
        return by_operand

    def _gathered(self, pieces: Pieces, size: int, rounds: float) -> float:
        """The price of gathering this many bytes per device along pieces. If several gathers are combined,
        ``rounds`` is 0 for all but one."""
        price = self.planner.weighed("all_gather", pieces)
        return price.once * rounds + price.byte * (self.axes.product(pieces) - 1) * size

    def gathering(self, knowledge: Knowledge, slot: Slot, layout: Layout) -> tuple[float, int, Layout]:
        """For an op that combines partial results itself: the price of its collective in bytes, the number of
        sends, and the layout of the slot afterwards. All results are sent together."""
        shape, partial = knowledge.shapes[slot], layout.partial
        if not (
            knowledge.combined_by_itself
            and partial
            and shape is not None
            and knowledge.roles[slot] == "result"
        ):
            return 0.0, 0, layout
        rounds = int(slot == knowledge.roles.index("result"))
        size = knowledge.widths[slot] * prod(self.axes.local(shape, layout.dims))
        return self._gathered(partial, size, rounds), rounds, layout.complete

    def work(self, knowledge: Knowledge, way: Way) -> float:
        """The price in bytes of the work of each device, for a way to compute an op."""
        key = knowledge, way
        if key not in self._work:
            ((_, self._work[key]),) = self._choice.solve(self._facts(knowledge, [way], 1), ["does"])["does"]
        return self._work[key]

    def weighs(
        self, knowledge: Knowledge, held: tuple[Layout, ...], ways: Sequence[Way]
    ) -> npt.NDArray[np.float64]:
        """The price of work in bytes, for each way to compute an op when all ops are chosen together without
        a machine. For products this is all work, otherwise only redundant work."""
        facts = self._facts(knowledge, ways, self.parts_if_stays(knowledge, held))
        weights: dict[int, float] = dict(self._choice.solve(facts, ["weighs"])["weighs"])
        return np.asarray([weights[n] for n in range(len(ways))])

    def takes(self, task: TaskId, knowledge: Knowledge, layouts: Sequence[Layout]) -> float:
        """The price of a task on a machine, in bytes, with slots in these layouts."""
        tasks, local = self.planner.prices.tasks, self.axes.local
        assert tasks is not None
        if task == NO_TASK or knowledge.touches == "nothing":
            return 0.0
        slots = zip(knowledge.shapes, layouts, strict=True)
        here = [None if shape is None else local(shape, at.dims) for shape, at in slots]
        partial = any(at.partial for at in layouts)
        return tasks.price(task, knowledge, tuple(here), partial)

    def _stretches(
        self, knowledge: Knowledge, slot: Slot, layouts: Sequence[Layout]
    ) -> Iterator[tuple[Pieces, int, Exchange | None]]:
        """The exchanges that fetch the stretches of an operand: the pieces on which it is split, the elements
        of a row, and who sends which rows. None if a row of each part is gathered."""
        dims, shape = layouts[slot].dims, knowledge.shapes[slot]
        reads = [read for read in knowledge.reads if read.slot == slot and dims[read.dim]]
        if not reads:
            return
        assert shape is not None
        local, exchanged = list(self.axes.local(shape, dims)), list[tuple[Read, int]]()
        for read in reads:
            parts = knowledge.shapes[read.part_slot]
            assert parts is not None
            if layouts[read.part_slot].dims[read.part_dim]:
                exchanged.append((read, parts[read.part_dim]))
            else:  # it is picked
                local[read.dim] = parts[read.part_dim]
        for read, size in exchanged:
            pieces, row = dims[read.dim], prod(n for d, n in enumerate(local) if d != read.dim)
            if read.accumulates:
                yield pieces, row, None
                continue
            exchange = stretch(read, shape[read.dim], size, self.axes.product(pieces)).exchange
            yield pieces, row, exchange
            local[read.dim] = exchange.length

    @staticmethod
    def _started(knowledge: Knowledge, slot: Slot, way: dict[Factor, Pieces]) -> Pieces:
        pieces = (way.get(factor, ()) for t, factor in knowledge.starts if t == slot)
        return tuple(sorted(chain.from_iterable(pieces)))

    def _cheapest(
        self,
        knowledge: Knowledge,
        held: tuple[Layout, ...],
        candidates: list[Candidate],
        counts: list[int],
    ) -> Compared:
        if len(candidates) == 1:
            return Compared(tuple(candidates), (sum(candidates[0].sends),))
        numbers, ways = range(len(candidates)), [candidate.factors for candidate in candidates]
        facts = self._facts(knowledge, ways, self.parts_if_stays(knowledge, held))
        facts["sends"] = [(n, t, cost) for n in numbers for t, cost in enumerate(candidates[n].sends)]
        facts["collectives"] = [(n, counts[n]) for n in numbers]
        answers = self._choice.solve(facts, ["costs", "cheapest"])
        (number,) = answers["cheapest"][0]
        costs: dict[int, float] = dict(answers["costs"])
        return Compared(tuple(candidates), tuple(costs[n] for n in numbers), number, facts | self._shared)

    def _facts(self, knowledge: Knowledge, ways: Sequence[Way], parts_if_stays: int) -> dict[str, Rows]:
        """The facts about work for ``rules/partition/choice.dl``, for ways to compute an op."""
        prices = self.planner.prices
        return {
            "exchange": [(prices.multiplications(knowledge), prices.touched)],
            "begins": [(prices.begins,)],
            "parts": [
                (n, self.axes.product(chain(*(p for f, p in way if f >= 0)))) for n, way in enumerate(ways)
            ],
            "parts_if_stays": [(parts_if_stays,)],
            "touched": [(float(knowledge.touched),)],
            "multiplied": [] if knowledge.multiplications is None else [(float(knowledge.multiplications),)],
        }


def _sharded(held: Sequence[Layout]) -> list[tuple[int, int, int, int]]:
    """The pieces that dimensions of slots are split on, as facts for the rules."""
    return [
        (t, d, position, piece)
        for t, layout in enumerate(held)
        for d, pieces in enumerate(layout.dims)
        for position, piece in enumerate(pieces)
    ]


def _way(choice: Any, axes: Mapping[tuple[Any, Any], Pieces]) -> Way:
    """The pieces of each factor in a choice of the rules, which lists the last part first: [part, option,
    before]. An option on no axes has none."""
    factors = list[tuple[Factor, Pieces]]()
    while choice is not None:
        part, option, choice = choice
        if pieces := axes.get((part, option)):
            factors.append((part_number(*part), pieces))
    return tuple(reversed(factors))
