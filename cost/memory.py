"""The memory that a program needs: a stored value is live until its last use."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from jaxlib.mlir import ir

from ..importers.listing import listing_of
from ..program.columns import distinct, told_apart
from ..program.mlir.modules import boundary_attributes, main_function, named_in, symbols
from ..rulebook.traits import OpTraits
from .donating import gifts, given_to
from .graph import OpGraph
from .layouts import MemoryLayouts
from .machine import Allocation
from .memories import on_host
from .order import Order
from .storing import Storing


@dataclass(frozen=True)
class Peak:
    """The peak memory of a device in bytes: arguments, results that do not reuse the memory of arguments, and
    temporaries at that time, by the op that makes them. ``lives`` are all temporaries, with the first and the
    last of the ``times`` of the program at which they live; an op has two times."""

    arguments: int
    results: int
    held: tuple[tuple[Any, int], ...]
    lives: tuple[tuple[Any, int, int, int], ...] = ()
    times: int = 0

    @property
    def bytes(self) -> int:
        """The total in bytes."""
        return self.arguments + self.results + sum(size for _, size in self.held)


def peak_memory(module: ir.Module, allocation: Allocation, traits: OpTraits) -> int:
    """The most bytes that a device needs at once, as ``peaks`` finds them."""
    return peaks(module, allocation, traits)[0].bytes


def memory_of_all(module: ir.Module, allocation: Allocation) -> int:
    """The bytes of all values at once and of a copy of each, counting functions once per call. This is hardly
    ever exceeded."""
    listing = listing_of(module)
    begins, which = told_apart(listing.types)
    sizes = np.asarray([allocation.size(str(listing.value(n).type)) for n in begins.tolist()])
    values = np.append(0, sizes[which].cumsum())
    bytes_of: dict[str, int] = {}

    def of(name: str) -> int:
        if name not in bytes_of:
            bytes_of[name] = 0
            op = listing.functions[name]
            end = int(listing.ends[op])
            last = int(listing.first_results[end]) if end < len(listing.ops) else len(listing.types)
            bytes_of[name] += 2 * int(values[last] - values[listing.first_results[op + 1]])
            _, first, count = distinct(listing.kinds[op + 1 : end])
            for n, often in zip((first + op + 1).tolist(), count.tolist(), strict=True):
                inner = listing.ops[n]
                called = named_in(inner) & listing.functions.keys() if not inner.regions else ()
                bytes_of[name] += often * sum(map(of, called))
        return bytes_of[name]

    return of(main_function(symbols(module, "func.func")))


def peaks(
    module: ir.Module, allocation: Allocation, traits: OpTraits, storing: Storing | None = None
) -> tuple[Peak, Peak]:
    """The peak memory of a device, and the peak of its host's memory, with ops in the order of the program,
    which calls no function (see ``inlining``). Arguments and results have memory throughout. A result takes
    the memory of a donated argument of its size, and before it exists other values may use its memory.
    ``storing`` describes how values are stored if none is in the host's memory."""
    functions = symbols(module, "func.func")
    function = functions[main_function(functions)]
    entries = boundary_attributes(function, "arg_attrs")
    block = function.regions[0].blocks[0]
    graph = storing.graph if storing else OpGraph()
    (region,) = graph.regions_of(graph.function(function.operation))
    first = graph.ops_of(region)[0]
    if graph.plain[first] == "sdy.manual_computation":  # its block has the parts of arguments
        block = block.operations[0].regions[0].blocks[0]
        (region,) = graph.regions_of(first)
    examples = [graph.ops[n] for n in distinct(np.asarray(graph.kinds))[1].tolist()]
    host = on_host(function, block, entries, examples, traits, allocation.platform)
    if not host:
        return _peak(region, entries, storing or Storing(allocation, traits, graph=graph)), Peak(0, 0, ())
    of_device, of_host = (Storing(allocation, traits, host, of_host=on, graph=graph) for on in (False, True))
    return _peak(region, entries, of_device), _peak(region, entries, of_host)


def _peak(region: int, entries: Sequence[Any], storing: Storing) -> Peak:
    """What the block of a region needs of the memory that is looked at; ``entries`` are the attributes of its
    arguments."""
    graph, allocation = storing.graph, storing.allocation
    end, arguments = graph.ops_of(region)[-1], graph.arguments[region]
    returns = graph.operands[end]
    taken, given = ([*map(storing.size, values)] for values in (arguments, returns))
    pairs = given_to(taken, given, entries)
    shared = sum(taken[argument] for argument in pairs)
    layouts = MemoryLayouts(storing)
    order = Order(region, storing)
    returned = set(map(storing.memory_of, returns)).difference(layouts.copied(end))
    had = gifts({arguments[n]: returns[m] for n, m in pairs.items()}, order, layouts)
    placed = {value for value, gift in had.items() if not (gift.read_elsewhere or gift.made_elsewhere)}
    lives, last = _lives(order, layouts, arguments, placed)
    rooms, others, left = list[_Room](), list[_Life](), list[_Life]()
    times = 2 * len(order.operations)
    for life in lives:
        if life.op != end and returned.isdisjoint(life.values):
            others.append(life)
            continue
        gift = next((had[value] for value in life.values if value in had), None)
        free, until = 0, life.start
        if gift is not None:
            read = last[gift.argument]
            if gift.read_elsewhere:
                copied_at = 0 if allocation.breadth_first else max(life.start - 1, 0)
                others.append(_Life(life.size, copied_at, max(read, copied_at), life.op, []))
                read = copied_at
            if gift.made_elsewhere:
                left.append(life)
                until = times - 1
            free = read + 1
        rooms.append(_Room(life.size, free, until - 1))
    space = _Rooms(rooms, times)
    others.sort(key=lambda life: -life.size)
    left += [life for life in others if life.apart or not space.take(life)]
    _, live = _most(left, allocation)
    live.sort(key=lambda life: -life.size)
    ops = {None: None} | {life.op: graph.ops[life.op] for life in left if life.op is not None}
    held = [(ops[life.op], allocation.room(life.size)) for life in live]
    if live:  # no op comes after the last one
        held[-1] = held[-1][0], live[-1].size
    addresses = allocation.address * len(given) if len(given) > 1 and not storing.of_host else 0
    every = tuple([(ops[life.op], allocation.room(life.size), life.start, life.end) for life in left])
    return Peak(sum(taken), sum(given) - shared + addresses, tuple(held), every, times)


@dataclass(eq=False, slots=True)
class _Life:
    """A buffer, its live range, the op that allocates it (None: the block does), and the values in it, one
    after the other; none for a copy. Addresses are ``apart`` from everything else. The n-th op copies
    operands into another layout at time 2 n, and runs at 2 n + 1."""

    size: int
    start: int
    end: int
    op: int | None
    values: list[int]
    apart: bool = False


class _Room(NamedTuple):
    """The memory of a result, and the times when it is free: before the result is made, and after the last
    read of the argument whose memory it reuses."""

    size: int
    first: int
    last: int


class _Rooms:
    """The memory of results, while it is free.

    A gap is a range of ops in which a room is free. ``gaps`` has, for each op, the ends of the gaps that
    begin there, in order. ``farthest`` is a tree over the ops: the latest end of all gaps that begin below a
    node. Node 1 is the root, those below n are 2 n and 2 n + 1, and the leaves are the ops.
    """

    def __init__(self, rooms: Sequence[_Room], ends: int) -> None:
        self.leaves = 1 << ends.bit_length()
        self.farthest = [-1] * (2 * self.leaves)
        self.gaps = defaultdict[int, list[int]](list)
        self.smaller = sorted(rooms)

    def take(self, life: _Life) -> bool:
        """Finds room for a value, in a gap that is hardly longer than its live range. False if there is none.
        Values must come in descending size."""
        while self.smaller and self.smaller[-1].size >= life.size:
            _, first, last = self.smaller.pop()
            self.add(first, last)
        first = self.latest(life.start, life.end)
        if first < 0:
            return False
        lasts = self.gaps[first]
        last = lasts.pop(bisect_left(lasts, life.end))
        self.update(first)
        self.add(first, life.start - 1)
        self.add(life.end + 1, last)
        return True

    def add(self, first: int, last: int) -> None:
        """Adds a gap from one op to another."""
        if first <= last:
            insort(self.gaps[first], last)
            self.update(first)

    def update(self, first: int) -> None:
        """Updates the tree after gaps that begin at an op have changed."""
        farthest, node = self.farthest, first + self.leaves
        farthest[node] = self.gaps[first][-1] if self.gaps[first] else -1
        while node := node >> 1:
            latest = max(farthest[2 * node], farthest[2 * node + 1])
            if farthest[node] == latest:  # and so all above it
                return
            farthest[node] = latest

    def latest(self, start: int, end: int) -> int:
        """The last op up to ``start`` with a gap that extends to ``end``; -1 if there is none."""
        farthest, node = self.farthest, start + self.leaves
        while farthest[node] < end:
            while not node & 1:  # everything else below its parent is later
                node >>= 1
            if node == 1:
                return -1
            node -= 1
        while node < self.leaves:
            node = 2 * node + 1 if farthest[2 * node + 1] >= end else 2 * node
        return node - self.leaves


def _most(lives: Sequence[_Life], allocation: Allocation) -> tuple[int, list[_Life]]:
    """The peak of live bytes, and the live values at its first occurrence."""
    allocated, freed = Counter[int](), Counter[int]()
    for life in lives:
        allocated[life.start] += allocation.room(life.size)
        freed[life.end] += allocation.room(life.size)
    live = most = at = 0
    for time in sorted({*allocated, *freed}):
        live += allocated[time]
        if live > most:
            most, at = live, time
        live -= freed[time]
    return most, [life for life in lives if life.start <= at <= life.end] if most else []


def _inside(op: int, layouts: MemoryLayouts) -> Iterator[tuple[int, int]]:
    """The memory that an op needs besides its operands and results, and for which op: by the rules, and in
    its regions, besides their arguments."""
    graph, allocation = layouts.graph, layouts.storing.allocation
    yield op, layouts.of(op).needs
    if layouts.storing.traits.lowering(graph.plain[op]) in ("loop", "branches", "body"):
        every = [list(_beside(region, layouts)) for region in graph.regions_of(op)]
        yield from max(every, key=lambda pieces: sum(allocation.room(size) for _, size in pieces), default=[])


def _beside(region: int, layouts: MemoryLayouts) -> Iterator[tuple[int, int]]:
    """The memory that a block needs besides its arguments, and for which op; if it has no arguments, like a
    branch, besides its results."""
    storing, graph = layouts.storing, layouts.graph
    order, allocation = Order(region, storing), storing.allocation
    arguments, returns = order.arguments, graph.operands[order.every[-1]]
    if allocation.breadth_first and len(returns) == len(arguments) > 0:
        lives = _around(order, layouts)
    else:
        lives, _ = _lives(order, layouts)
    if not arguments:
        given = {storing.memory_of(value) for value in graph.operands[order.operations[-1]]}
        lives = [life for life in lives if given.isdisjoint(life.values)]
    whole, live = _most(lives, allocation)
    results = [(life.op, life.size) for life in live if life.op is not None]
    if len(results) == len(live):
        yield from results
    else:  # in the memory of dead arguments
        taken = sum(allocation.room(storing.size(value)) for value in arguments)
        yield graph.owners[region], max(whole - taken, 0)


def _around(order: Order, layouts: MemoryLayouts) -> list[_Life]:
    """The memory that the body of a loop needs besides the values that it carries. The next value of a
    carried one is made in the memory of the current one. If some reader of that may run later, the current
    value is copied before. Otherwise the next value is copied there as soon as it is made. Until then the
    memory of a dead value serves others."""
    storing, end, times = layouts.storing, order.every[-1], 2 * len(order.operations)
    arguments, given = order.arguments, [*map(storing.memory_of, layouts.graph.operands[end])]
    how = [
        _comes_around(order, argument, value, layouts)
        for argument, value in zip(arguments, given, strict=True)
    ]
    there = {value for value, each in zip(given, how, strict=True) if each in ("there", "copied before")}
    lives, _ = _lives(order, layouts, placed=there)
    life_of = {value: life for life in lives for value in life.values}
    rooms, left = list[_Room](), [life for life in lives if life.start >= 0]
    for argument, value, each in zip(arguments, given, how, strict=True):
        had, next_life = life_of[argument], life_of.get(value)
        if each == "copied before" or next_life is None:
            left.append(_Life(had.size, 0, had.end, end, []))
            had.end = 0
        elif each == "copied behind":
            readers = set(order.needing(next_life.values)) - {end}
            next_life.end = max([next_life.start + 1, *(order.times[reader] for reader in readers)])
        if next_life is not None and next_life in left and next_life.start >= had.end:
            if each != "copied behind":
                left.remove(next_life)
            rooms.append(_Room(had.size, had.end + 1, next_life.start - 1))
    space = _Rooms(rooms, times)
    left.sort(key=lambda life: -life.size)
    return [life for life in left if life.apart or not space.take(life)]


def _comes_around(order: Order, argument: int, value: int, layouts: MemoryLayouts) -> str:
    """How the next value of a carried one gets into its memory: it is "there", or "copied behind", or the
    current one is "copied before"."""
    if value == argument:
        return "there"
    readers, maker = set(order.needing([argument])), layouts.graph.definers[value]
    inside = maker >= 0 and layouts.graph.regions[maker] == order.region
    if not inside or not order.before(maker).issuperset(readers - {maker}):
        return "copied before"
    return "copied behind" if maker in readers and argument not in layouts.replaced(value) else "there"


def _lives(
    order: Order, layouts: MemoryLayouts, kept: Collection[int] = (), placed: Collection[int] = ()
) -> tuple[list[_Life], dict[int, int]]:
    """The buffers of a block's values, and of their copies. Arguments are included unless they are ``kept``
    throughout. Values with a buffer of their own are ``placed``. And the last reads of values."""
    storing, allocation, graph = layouts.storing, layouts.storing.allocation, layouts.graph
    addressed = bool(allocation.address) and not storing.of_host
    copied = {op: layouts.copied(op) for op in order.operations}
    last = _last_reads(order, layouts, copied)
    by_value: dict[int, _Life] = {}
    copies, kept = list[_Life](), set(kept)
    for argument in order.arguments:
        if argument not in kept:
            by_value[argument] = _Life(storing.size(argument), -1, max(last[argument], 0), None, [argument])
    dying = Counter((life.end, life.size) for life in by_value.values())
    for n, op in enumerate(order.operations):
        time, layout, results = 2 * n + 1, layouts.of(op), graph.results[op]
        here, spent = list[_Life](), list[_Life]()
        if copied[op] or layout.pieces > 1:
            first = 0 if allocation.breadth_first else time - 1  # when arguments are copied
            here = _copies(op, (first, time), copied[op], layout.pieces, storing)
            dying.update((life.end, life.size) for life in here)
            copies += here
        if layout.needs or graph.regions_of(op):
            copies += (_Life(size, time, time, inner, []) for inner, size in _inside(op, layouts) if size)
        if addressed and (pieces := max(len(results), layout.pieces)) > 1:
            addresses = allocation.room(allocation.address * pieces)
            copies.append(_Life(addresses, time, time, op, [], apart=True))
        for value in results:
            how = storing.at(value)
            if not how.stored or how.apart or storing.memory_of(value) != value:
                continue
            size = layouts.size(value)
            if how.beside_sums:  # it is made after these
                copies.append(_Life(size + size // how.beside_sums, time, time + 1, op, []))
            place = None
            # Others are skipped, because there may be many operands.
            if dying.get((time, size)) and value not in placed:  # a look-up that adds nothing
                taken = (by_value[of] for of in layouts.replaced(value) if of in by_value)
                places = chain(taken, here if layout.in_place else ())
                place = next((p for p in places if p.end == time and p.size == size and p not in spent), None)
            if place is None:
                start = _begun(value, time, by_value, layouts) if allocation.breadth_first else time
                start += how.beside_sums > 0
                place = _Life(size, start, last[value], op, [value])
            else:
                dying[time, size] -= 1
                place.end = last[value]
                place.values.append(value)
                spent.append(place)
            by_value[value] = place
            dying[place.end, size] += 1
    return list(dict.fromkeys([*by_value.values(), *copies])), last


def _begun(value: int, time: int, lives: Mapping[int, _Life], layouts: MemoryLayouts) -> int:
    """When the buffer of a value is allocated that an op makes at a time. Values that a loop carries are
    copied before it, as soon as their initial values exist."""
    graph = layouts.graph
    maker = graph.definers[value]
    if layouts.storing.traits.lowering(graph.plain[maker]) != "loop":
        return time
    begins = layouts.storing.memory_of(graph.operands[maker][graph.number_of(value)])
    if graph.definers[begins] < 0:
        return 0
    return min(lives[begins].start + 1, time) if begins in lives else time


def _last_reads(
    order: Order, layouts: MemoryLayouts, copied: Mapping[int, Mapping[int, int]]
) -> dict[int, int]:
    """The last reads of the values of a block: by users; by users of values that are not stored, are computed
    again, or share the memory; or else when they are made, -1 before the block."""
    storing, graph, times = layouts.storing, layouts.graph, order.times
    pieces = {op: many for op in order.every if (many := layouts.of(op).pieces) > 1}
    early = storing.allocation.breadth_first  # arguments are copied first
    last: dict[int, int] = {}
    again: dict[int, int] = {}  # when loops read their operands

    def read(value: int, written: int) -> int:
        end = later = written
        computed = written >= 0 and storing.at(value).again
        for user, operand in order.uses(value):
            at, results = written, graph.results[user] if operand >= 0 else ()
            if user in times:
                copies = value in copied[user] or user in pieces
                at = 0 if copies and early and graph.definers[value] < 0 else times[user] - copies
            for result in results:
                how = storing.at(result)
                if not how.stored or (how.same == operand and storing.memory_of(result) != result):
                    at = max(at, last[result])
                at = max(at, again.get(result, at))
            if (
                computed
                and results
                and all(storing.at(r).loop and not storing.at(r).runs_as for r in results)
            ):
                later = max(later, at)
            else:
                end = max(end, at)
        if computed:
            again[value] = later
        return end

    for op in reversed(order.every):
        for value in graph.results[op]:
            last[value] = read(value, times.get(op, -1))
    return last | {argument: read(argument, -1) for argument in order.arguments}


def _copies(
    op: int, times: tuple[int, int], copied: Mapping[int, int], pieces: int, storing: Storing
) -> list[_Life]:
    """The buffers of the copies that an op makes: of arguments at the first of two times, before it runs at
    the second. An op on separate pieces also needs those of its results, until they are joined."""
    (first, time), graph = times, storing.graph
    if pieces == 1:
        starts = [first if graph.definers[value] < 0 else time - 1 for value in copied]
        return [_Life(size, at, time, op, []) for at, size in zip(starts, copied.values(), strict=True)]
    taken = [_Life(size // pieces, time - 1, time - 1, op, []) for size in copied.values()]
    given = [_Life(storing.size(value) // pieces, time - 1, time, op, []) for value in graph.results[op]]
    return [replace(life) for life in taken + given for _ in range(pieces)]
