"""The work of a device, op by op, summed by kind of work and by place in the source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxlib.mlir import ir

from ..exporters.relations import OpPlace
from ..importers.listing import Listing
from ..partition.executions import Executions
from ..partition.facts.kinds import Kind, Kinds
from ..partition.finishing.combining.blocks import NUMBER
from ..partition.finishing.combining.combining import combined_sizes
from ..program.boundaries import boundary_axes
from ..program.columns import numbered, told_apart
from ..program.ids import Item as ProgramItem
from ..program.mlir.modules import main_function, operations_in, symbols
from ..program.mlir.origins import Origin
from ..rulebook.traits import OpTraits
from .beside import Besides
from .graph import OpGraph
from .inlining import without_calls
from .items import Floats, Item, Items, Kept, sums, total
from .layers import TimedOps
from .memory import Peak
from .pricing import OpPrice, Pricing
from .timeline import Around, Timeline, Work
from .usage import Lived, Usage

if TYPE_CHECKING:
    from ..runs.partitioned import PartitionedRun

_FREE = frozenset({"constant", "iota", "loop", "branches", "call", "body", "nothing", "device"})
_NO_WORK = ("func.", "sdy.")
_RUN_INSIDE = ("loop", "branches", "body")  # ops whose regions are run op by op


@dataclass(frozen=True)
class HeldMemory:
    """Memory that a device holds at the peak of a ``memory``: its own ("device") or the host's ("host").

    ``what`` is arguments, results, or values of ops at a place of the user's source. There are ``count`` of
    them, of ``bytes`` in all.
    """

    what: str
    where: str
    stack: str
    count: int
    bytes: int
    memory: str = "device"


class Account:
    """Adds up the work of a device: by collective, by op and place, and op by op in program order.

    Ops have few prices, and few places where layers share them: for each op there are numbers.
    """

    def __init__(
        self,
        program: PartitionedRun,
        pricing: Pricing,
        module: ir.Module,
        listing: Listing,
        timeline: Timeline | None,
    ) -> None:
        self.program, self.pricing, self.timeline = program, pricing, timeline
        self._source, names = program.result.source, program.result.names
        self._known = {place.key: place for each in names.values() for place in each.places}
        besides = Besides(program.axes, pricing)
        self._beside = {window.sent.op: besides.of(window) for window in program.windows}
        windows = {number for number, sent in enumerate(program.sent) if sent.op in self._beside}
        apart = [op for op in operations_in(module) if _number(op) in windows] if windows else ()
        self._together = combined_sizes(module, program.traits, pricing.machine.combines, apart, listing)
        self._sent: dict[int, tuple[int, OpPrice]] = {}
        self._outside = 0, 0.0  # of loops: kernels, and the seconds of all
        self._locations: dict[Any, tuple[Origin, int]] = {}  # with the numbers of lines and stacks
        self._places: dict[tuple[str, str], int] = {}
        self._said: list[tuple[str, str]] = []  # lines and stacks by number
        # By op, in the order of the program.
        self._seconds = np.zeros(0)
        self._limits: list[str] = []
        self._origins: list[Origin] = []
        self._serves: dict[int, ProgramItem] = {}
        # Items other than collectives: their common fields, and the amounts of each.
        self._kept: list[tuple[str, int, str, str]] = []
        self._which = np.zeros(0, np.int64)
        self._took: list[Floats] = []

    def add(self, ops: Sequence[int], times: Sequence[int], around: Sequence[Sequence[Around]]) -> None:
        """Adds the ops of the program in their order, by their numbers in the graph: how often each runs in
        all, and the loops around it (none are asked for without a timeline)."""
        graph, pricing = self.pricing.graph, self.pricing
        located = [self._located(graph.ops[op]) for op in ops]
        firsts, kind = told_apart(np.asarray([graph.kinds[op] for op in ops], np.int64))
        numbers = [_number(graph.ops[ops[n]]) for n in firsts.tolist()]  # kinds of collectives have one each
        number_of = [numbers[n] for n in kind.tolist()]
        kept = [n for n, number in enumerate(number_of) if number is None]
        which, prices_of_kinds = pricing.of_all([ops[n] for n in kept])
        prices = dict(zip(kept, map(prices_of_kinds.__getitem__, which.tolist()), strict=True))
        for n, number in enumerate(number_of):
            if number is not None:
                prices[n] = self._add_sent(number, ops[n], times[n])
                if (item := self.program.names.item(self.program.sent[number].purpose)) is not None:
                    self._serves[n] = item
        every, often = [prices[n] for n in range(len(ops))], np.asarray(times, np.float64)
        self._seconds = np.asarray([price.seconds for price in every], np.float64) * often
        self._limits, self._origins = [price.limited for price in every], [origin for origin, _ in located]
        outside = [n for n, op in enumerate(ops) if not pricing.in_loop(op)]
        launches = sum(every[n].launches * times[n] for n in outside)
        self._outside = launches, total(self._seconds[outside])
        self._kept, self._which = numbered(
            (graph.plain[ops[n]], located[n][1], prices[n].limited, prices[n].sure) for n in kept
        )
        takes = [(1, price.seconds, price.flops, price.bytes, price.launches) for price in prices_of_kinds]
        waits = (
            [pricing.waits(ops[n], prices[n]) for n in kept]
            if any(price.launches for price in prices_of_kinds)
            else 0.0
        )
        columns = [*np.asarray(takes, np.float64).reshape(-1, 5)[which].T, np.asarray(waits)]
        self._took = [often[kept] * column for column in columns]
        if self.timeline is not None:
            for n, (come_from, place) in enumerate(located):
                number, price = number_of[n], prices[n]
                if number is None:
                    work = _work(graph.plain[ops[n]], come_from, self._said[place], price)
                else:
                    work = self._work_of_sent(number, come_from, price)
                self.timeline.add(work, times[n], around[n])

    def _add_sent(self, number: int, which: int, times: int) -> OpPrice:
        """Adds a collective with a number. Returns its price."""
        op = self.pricing.graph.ops[which]
        sent, each = self.program.sent[number], self.program.collectives[number]
        price = self.pricing.of_collective(each, which, self._together.get(op, 1))
        if beside := self._beside.get(sent.op):
            price = replace(price, seconds=beside.exposed)
        self._sent[number] = self._sent.get(number, (0, price))[0] + times, price
        return price

    def _work_of_sent(self, number: int, come_from: Origin, price: OpPrice) -> Work:
        """A collective with a number, for the timeline."""
        sent, each = self.program.sent[number], self.program.collectives[number]
        beside = self._beside.get(sent.op)
        hidden = max(beside.apart - beside.beside, 0.0) if beside else 0.0
        work = _work(each.kind, come_from, (each.where, each.stack), price)
        leads = sent.kind == "all_gather"
        return work._replace(axes=each.axes, hidden=hidden, leads=leads, number=number, serves=each.op)

    def late(self) -> float:
        """The seconds for which a GPU waits for kernels outside of loops."""
        launches, seconds = self._outside
        return self.pricing.late(launches, seconds)

    def timed(self) -> TimedOps:
        """The ops in the order of the program."""
        return TimedOps(self._seconds, self._limits, self._origins, self._serves)

    def items(self) -> Items:
        """The collectives in the order of the program, then its ops."""
        items = list[Item]()
        for number, (times, price) in sorted(self._sent.items()):
            each, moved = self.program.collectives[number], price.bytes * times
            seconds, causes = price.seconds * times, each.causes
            items.append(
                Item(
                    *(each.kind, each.where, each.stack, times, seconds, 0.0, moved, "links"),
                    sure=price.sure,
                    serves=each.op,
                    causes=causes,
                    numbers=(number,),
                )
            )
        kept = [Kept(name, *self._said[place], limited, sure) for name, place, limited, sure in self._kept]
        added = [np.bincount(self._which, column, len(kept)).astype(np.float64) for column in self._took]
        often, took_each, flops, touched, launches, waits = added
        needed, keys = self._needed(), [(name, place) for name, place, *_ in self._kept]
        done = sums(keys, flops)
        whole = np.asarray([done[key] for key in keys], np.float64)
        least = np.asarray([needed.get(key, 0.0) for key in keys], np.float64)
        part = np.divide(flops, whole, out=np.zeros_like(flops), where=flops != 0)
        redundant = np.maximum(whole - least, 0.0) * part
        return Items(items, kept, (often, took_each, flops, touched, redundant, launches, waits))

    def held(self, most: Peak, memory: str = "device") -> tuple[HeldMemory, ...]:
        """The values at the peak of a memory, by op and place."""
        by_place: dict[tuple[str, str, str], tuple[int, int]] = {}
        for op, size in most.held:
            key = op.operation.name, *self._said[self._located(op)[1]]
            count, before = by_place.get(key, (0, 0))
            by_place[key] = count + 1, before + size
        ends = (("arguments", most.arguments), ("results", most.results))
        every = [HeldMemory(what, "", "", 1, size, memory) for what, size in ends]
        every += [HeldMemory(*key, *amount, memory) for key, amount in by_place.items()]
        return tuple(sorted((h for h in every if h.bytes), key=lambda h: -h.bytes))

    def usage(self, most: Peak) -> Usage:
        """The memory of the device over the step."""
        lives = (
            Lived(None if op is None else self._located(op.operation)[0], size, max(first, 0), last)
            for op, size, first, last in most.lives
        )
        return Usage(most.arguments, most.results, max(most.times, 1), tuple(lives))

    def _needed(self) -> dict[tuple[str, int], float]:
        """The operations of a device if all devices shared every op evenly, by op and place."""
        module, axes, traits = self.program.result.module, self.program.axes, self.program.traits
        sizes = dict(axes.mesh.axes) if axes.mesh else {}
        kinds, reader = self.program.prepared.kinds, self.pricing.reader
        if kinds.module is not module or kinds.numbers_of(lambda op: op.name == "func.call"):
            kinds = Kinds(without_calls(module))
        keys, shares = list[tuple[str, int]](), list[float]()
        with kinds.module.context:
            counts = Executions(kinds.module, traits)
            shared: dict[int, float] = {}  # by the op around: the part of a device
            flops_of: dict[Kind, float] = {}
            for number, outermost in _work_in(kinds, traits):
                kind, name = kinds.of(number, reader), kinds.name(number)
                flops = flops_of.get(kind)
                if flops is None:
                    knowledge = kind.knowledge or reader.knowledge(kinds.ops[number])
                    flops = self.pricing.flops_of(name, knowledge)
                    if kind.knowledge is not None:
                        flops_of[kind] = flops
                if not flops:
                    continue
                op, around = kinds.ops[number], kinds.parent(number)
                flops *= 1 if outermost else counts.often(op)
                if around not in shared:
                    shared[around] = prod(sizes.get(axis, 1) for axis in _manual_around(op))
                keys.append((name, self._located(op)[1]))
                shares.append(flops * shared[around] / axes.count)
        return sums(keys, np.asarray(shares, np.float64))

    def _located(self, op: Any) -> tuple[Origin, int]:
        """The origin of an op, and the number of its line and name stack in the user's source; these are
        empty if they are unknown."""
        key = self._source.key_of(op.location)
        at = self._locations.get(key)
        if at is None:
            come_from = (self._known.get(key) or OpPlace(key, self._source)).origin
            place = come_from.place
            if place not in self._places:
                self._places[place] = len(self._said)
                self._said.append(place)
            at = self._locations[key] = come_from, self._places[place]
        return at


def _work(op: str, origin: Origin, place: tuple[str, str], price: OpPrice) -> Work:
    return Work(op, origin, *place, price.seconds, price.flops, price.bytes, price.limited)


def _number(op: Any) -> int | None:
    """The number of a collective of the program; None for other ops."""
    return ir.IntegerAttr(op.attributes[NUMBER]).value if NUMBER in op.attributes else None


def _manual_around(op: Any) -> list[str]:
    """The manual axes of surrounding computations. The op's types are types of a part along them."""
    manual: list[str] = []
    while (op := op.parent.operation).name != "func.func":
        manual += boundary_axes(op)
    return manual


def computed(
    graph: OpGraph, module: ir.Module, traits: OpTraits, listing: Listing | None = None
) -> Iterator[tuple[int, bool]]:
    """The ops of the main function that are work, by their numbers, of a module that the graph takes down;
    its ``listing`` may be known.

    Each comes with whether it is in the function itself, and not in a loop or a branch. The regions of other
    ops belong to these ops.
    """
    functions = symbols(module, "func.func")
    main = functions[main_function(functions)].operation
    (start,) = (
        n for n in graph.add(module, listing) if graph.plain[n] == "func.func" and graph.ops[n] == main
    )
    name, parent = graph.plain.__getitem__, graph.parents.__getitem__
    return _at_work(
        start, graph.ends[start], name, parent, traits, lambda n: NUMBER in graph.ops[n].attributes
    )


def _work_in(kinds: Kinds, traits: OpTraits) -> Iterator[tuple[int, bool]]:
    """The same of a module that is listed, in which no collective has a number."""
    functions = symbols(kinds.module, "func.func")
    start = kinds.listing.functions[main_function(functions)]
    return _at_work(start, kinds.end(start), kinds.name, kinds.parent, traits, lambda number: False)


def _at_work(
    start: int,
    end: int,
    name_of: Callable[[int], str],
    parent_of: Callable[[int], int],
    traits: OpTraits,
    is_sent: Callable[[int], bool],
) -> Iterator[tuple[int, bool]]:
    """The ops of a function, from ``start`` to ``end``, that are work by their names, or are sent."""
    works: dict[str, bool] = {}
    inside: dict[int, bool] = {}
    for number in range(start + 1, end):
        name, parent = name_of(number), parent_of(number)
        if name not in works:
            works[name] = traits.lowering(name) not in _FREE and not name.startswith(_NO_WORK)
        if parent not in inside:
            around = name_of(parent)
            inside[parent] = around == "func.func" or traits.lowering(around) in _RUN_INSIDE
        if (works[name] or is_sent(number)) and inside[parent]:
            yield number, parent == start
