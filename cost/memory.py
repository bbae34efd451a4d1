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
from ..program.mlir.modules import boundary_attributes, main_function, named_in, symbols
from ..rulebook.traits import OpTraits
from .donating import gifts, given_to
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
    which, begins = np.unique(listing.types, return_index=True)
    sizes = [allocation.size(str(listing.value(n).type)) for n in begins.tolist()]
    values = np.cumsum([0, *np.asarray(sizes)[np.searchsorted(which, listing.types)].tolist()])
    bytes_of: dict[str, int] = {}

    def of(name: str) -> int:
        if name not in bytes_of:
            bytes_of[name] = 0
            op = listing.functions[name]
            end = int(listing.ends[op])
            last = int(listing.first_results[end]) if end < len(listing.ops) else len(listing.types)
            bytes_of[name] += 2 * int(values[last] - values[listing.first_results[op + 1]])
            _, first, count = np.unique(listing.kinds[op + 1 : end], return_index=True, return_counts=True)
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
    body = block.operations[0]
    if body.operation.name == "sdy.manual_computation":  # its block has the parts of arguments
        block = body.regions[0].blocks[0]
    host = on_host(function, block, entries, traits, allocation.platform)
    if not host:
        return _peak(block, entries, storing or Storing(allocation, traits)), Peak(0, 0, ())
    of_device, of_host = (Storing(allocation, traits, host, of_host=on) for on in (False, True))
    return _peak(block, entries, of_device), _peak(block, entries, of_host)


def _peak(block: Any, entries: Sequence[Any], storing: Storing) -> Peak:
    """What a block needs of the memory that is looked at; ``entries`` are the attributes of its arguments."""
    *_, end = block.operations
    allocation = storing.allocation
    taken, given = ([*map(storing.size, values)] for values in (block.arguments, end.operands))
    pairs = given_to(taken, given, entries)
    shared = sum(taken[argument] for argument in pairs)
    layouts = MemoryLayouts(storing)
    order = Order(block, layouts.storing)
    copied = dict(layouts.copied(end.operation))
    returned = {layouts.storing.memory_of(value) for value in end.operands} - set(copied)
    had = gifts({block.arguments[n]: end.operands[m] for n, m in pairs.items()}, order, layouts)
    placed = {value for value, gift in had.items() if not (gift.read_elsewhere or gift.made_elsewhere)}
    lives, last = _lives(order, layouts, block.arguments, placed)
    rooms, others, left = list[_Room](), list[_Life](), list[_Life]()
    times = 2 * len(order.operations)
    for life in lives:
        if life.op != end.operation and returned.isdisjoint(life.values):
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
    held = [(life.op, allocation.room(life.size)) for life in live]
    if live:  # no op comes after the last one
        held[-1] = held[-1][0], live[-1].size
    addresses = allocation.address * len(given) if len(given) > 1 and not storing.of_host else 0
    every = tuple((life.op, allocation.room(life.size), life.start, life.end) for life in left)
    return Peak(sum(taken), sum(given) - shared + addresses, tuple(held), every, times)


@dataclass(eq=False)
class _Life:
    """A buffer, its live range, the op that allocates it (None: the block does), and the values in it, one
    after the other; none for a copy. Addresses are ``apart`` from everything else. The n-th op copies
    operands into another layout at time 2 n, and runs at 2 n + 1."""

    size: int
    start: int
    end: int
    op: Any
    values: list[Any]
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
            farthest[node] = max(farthest[2 * node], farthest[2 * node + 1])

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


def _inside(op: Any, layouts: MemoryLayouts) -> Iterator[tuple[Any, int]]:
    """The memory that an op needs besides its operands and results, and for which op: by the rules, and in
    its regions, besides their arguments."""
    allocation = layouts.storing.allocation
    yield op, layouts.of(op).needs
    if layouts.storing.traits.lowering(op.name) in ("loop", "branches", "body"):
        blocks = [block for region in op.regions for block in region]
        every = [list(_beside(block, layouts)) for block in blocks]
        yield from max(every, key=lambda pieces: sum(allocation.room(size) for _, size in pieces), default=[])


def _beside(block: Any, layouts: MemoryLayouts) -> Iterator[tuple[Any, int]]:
    """The memory that a block needs besides its arguments, and for which op; if it has no arguments, like a
    branch, besides its results."""
    storing = layouts.storing
    order, allocation = Order(block, storing), storing.allocation
    if allocation.breadth_first and len(order.every[-1].operands) == len(block.arguments) > 0:
        lives = _around(order, layouts)
    else:
        lives, _ = _lives(order, layouts)
    if not block.arguments:
        given = {storing.memory_of(value) for value in order.operations[-1].operands}
        lives = [life for life in lives if given.isdisjoint(life.values)]
    whole, live = _most(lives, allocation)
    if all(life.op for life in live):
        yield from ((life.op, life.size) for life in live)
    else:  # in the memory of dead arguments
        taken = sum(allocation.room(storing.size(value)) for value in block.arguments)
        yield block.owner, max(whole - taken, 0)


def _around(order: Order, layouts: MemoryLayouts) -> list[_Life]:
    """The memory that the body of a loop needs besides the values that it carries. The next value of a
    carried one is made in the memory of the current one. If some reader of that may run later, the current
    value is copied before. Otherwise the next value is copied there as soon as it is made. Until then the
    memory of a dead value serves others."""
    storing, end, times = layouts.storing, order.every[-1], 2 * len(order.operations)
    arguments, given = order.block.arguments, [storing.memory_of(value) for value in end.operands]
    makers = {value: number for number, op in enumerate(order.every) for value in op.results}
    how = [
        _comes_around(order, argument, value, makers.get(value), layouts)
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
            readers = set(order.needing(next_life.values)) - {len(order.every) - 1}
            next_life.end = max([next_life.start + 1, *(order.times[reader] for reader in readers)])
        if next_life is not None and next_life in left and next_life.start >= had.end:
            if each != "copied behind":
                left.remove(next_life)
            rooms.append(_Room(had.size, had.end + 1, next_life.start - 1))
    space = _Rooms(rooms, times)
    left.sort(key=lambda life: -life.size)
    return [life for life in left if life.apart or not space.take(life)]


def _comes_around(order: Order, argument: Any, value: Any, maker: int | None, layouts: MemoryLayouts) -> str:
    """How the next value of a carried one, made by the op with this number, gets into its memory: it is
    "there", or "copied behind", or the current one is "copied before"."""
    if value == argument:
        return "there"
    readers = set(order.needing([argument]))
    if maker is None or not order.before(maker).issuperset(readers - {maker}):
        return "copied before"
    return "copied behind" if maker in readers and argument not in layouts.replaced(value) else "there"


def _lives(
    order: Order, layouts: MemoryLayouts, kept: Collection[Any] = (), placed: Collection[Any] = ()
) -> tuple[list[_Life], dict[Any, int]]:
    """The buffers of a block's values, and of their copies. Arguments are included unless they are ``kept``
    throughout. Values with a buffer of their own are ``placed``. And the last reads of values."""
    storing, allocation = layouts.storing, layouts.storing.allocation
    copied = {op: dict(layouts.copied(op)) for op in order.operations}
    last = _last_reads(order, layouts, copied)
    by_value: dict[Any, _Life] = {}
    copies, kept = list[_Life](), set(kept)
    for argument in order.block.arguments:
        if argument not in kept:
            by_value[argument] = _Life(storing.size(argument), -1, max(last[argument], 0), None, [argument])
    dying = Counter((life.end, life.size) for life in by_value.values())
    for n, op in enumerate(order.operations):
        time, layout = 2 * n + 1, layouts.of(op)
        first = 0 if allocation.breadth_first else time - 1  # when arguments are copied
        here, spent = _copies(op, (first, time), copied[op], layout.pieces, storing), list[_Life]()
        copies += here
        copies += (_Life(size, time, time, inner, []) for inner, size in _inside(op, layouts) if size)
        if (
            (results := max(len(op.results), layout.pieces)) > 1
            and allocation.address
            and not storing.of_host
        ):
            addresses = allocation.room(allocation.address * results)
            copies.append(_Life(addresses, time, time, op, [], apart=True))
        dying.update((life.end, life.size) for life in here)
        for value in op.results:
            how, size = storing.of(value), layouts.size(value)
            if not how.stored or how.apart or storing.memory_of(value) != value:
                continue
            if how.beside_sums:  # it is made after these
                copies.append(_Life(size + size // how.beside_sums, time, time + 1, op, []))
            place = None
            # Others are skipped, because there may be many operands.
            if dying[time, size] and value not in placed:
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


def _begun(value: Any, time: int, lives: Mapping[Any, _Life], layouts: MemoryLayouts) -> int:
    """When the buffer of a value is allocated that an op makes at a time. Values that a loop carries are
    copied before it, as soon as their initial values exist."""
    if layouts.storing.traits.lowering(value.owner.operation.name) != "loop":
        return time
    begins = layouts.storing.memory_of(value.owner.operands[value.result_number])
    if isinstance(begins.owner, ir.Block):
        return 0
    return min(lives[begins].start + 1, time) if begins in lives else time


def _last_reads(
    order: Order, layouts: MemoryLayouts, copied: Mapping[Any, Mapping[Any, int]]
) -> dict[Any, int]:
    """The last reads of the values of a block: by users; by users of values that are not stored, are computed
    again, or share the memory; or else when they are made, -1 before the block."""
    storing = layouts.storing
    times, copies = order.times, [copied.get(op, ()) for op in order.every]
    pieces = [layouts.of(op).pieces for op in order.every]
    early = storing.allocation.breadth_first  # arguments are copied first
    last: dict[Any, int] = {}
    again: dict[Any, int] = {}  # when loops read their operands

    def read(value: Any, written: int) -> int:
        end = later = written
        computed = written >= 0 and storing.of(value).again
        for user, operand in order.uses.get(value, ()):
            at, results = written, order.every[user].results if operand >= 0 else ()
            if user in times:
                copied = value in copies[user] or pieces[user] > 1
                at = 0 if copied and early and value.owner == order.block else times[user] - copied
            for result in results:
                how = storing.of(result)
                shared = how.same == operand and storing.memory_of(result) != result
                if shared or not how.stored:
                    at = max(at, last[result])
                at = max(at, again.get(result, at))
            if (
                computed
                and results
                and all(storing.of(r).loop and not storing.of(r).runs_as for r in results)
            ):
                later = max(later, at)
            else:
                end = max(end, at)
        if computed:
            again[value] = later
        return end

    for n in reversed(range(len(order.every))):
        for value in order.every[n].results:
            last[value] = read(value, times.get(n, -1))
    return last | {argument: read(argument, -1) for argument in order.block.arguments}


def _copies(
    op: Any, times: tuple[int, int], copied: Mapping[Any, int], pieces: int, storing: Storing
) -> list[_Life]:
    """The buffers of the copies that an op makes: of arguments at the first of two times, before it runs at
    the second. An op on separate pieces also needs those of its results, until they are joined."""
    first, time = times
    if pieces == 1:
        starts = [first if isinstance(value.owner, ir.Block) else time - 1 for value in copied]
        return [_Life(size, at, time, op, []) for at, size in zip(starts, copied.values(), strict=True)]
    taken = [_Life(size // pieces, time - 1, time - 1, op, []) for size in copied.values()]
    given = [_Life(storing.size(value) // pieces, time - 1, time, op, []) for value in op.results]
    return [replace(life) for life in taken + given for _ in range(pieces)]
