"""The memory that a program needs: values that are stored live until they are used last."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from ..program.elements import size_of
from ..program.mlir.modules import boundary_attributes, main_function, symbols
from ..rulebook.book import lowerings
from .storing import Storing

_DONATED = ("tf.aliasing_output", "jax.buffer_donor")


@dataclass(frozen=True)
class Peak:
    """The most bytes that a device needs at once: those of arguments, those of results that have none of
    these, and those of what is temporary at that time, by the op that makes it."""

    arguments: int
    results: int
    held: tuple[tuple[Any, int], ...]

    @property
    def bytes(self) -> int:
        """The bytes of all."""
        return self.arguments + self.results + sum(size for _, size in self.held)


def peak_memory(module: ir.Module) -> int:
    """The most bytes that a device needs at once, as ``peak`` finds them."""
    return peak(module).bytes


def peak(module: ir.Module) -> Peak:
    """What a device needs when it needs most, ops in the order of the program, which calls no function (see
    ``inlining``). Arguments and results have memory throughout; a result has that of an argument of its
    size which is donated, and before it is made others may have its memory."""
    functions = symbols(module, "func.func")
    function = functions[main_function(functions)]
    entries = boundary_attributes(function, "arg_attrs")
    block = function.regions[0].blocks[0]
    body = block.operations[0]
    if body.operation.name == "sdy.manual_computation":  # the parts of the arguments are in its block
        block = body.regions[0].blocks[0]
    *_, end = block.operations
    taken, given = list(map(_size, block.arguments)), list(map(_size, end.operands))
    donated = Counter(
        size for size, entry in zip(taken, entries, strict=True) if any(label in entry for label in _DONATED)
    )
    shared = sum((donated & Counter(given)).elements())
    storing = Storing()
    lives = _lives(block, storing, block.arguments)
    returned = {storing.memory_of(value) for value in end.operands}
    ends = len(block.operations)
    results, others = list[_Life](), list[_Life]()
    for life in lives:
        (others if returned.isdisjoint(life.values) else results).append(life)
    rooms = _Rooms([(result.size, result.start) for result in results], ends)
    others.sort(key=lambda life: -life.size)
    left = [life for life in others if not rooms.take(life)]
    _, at = _peak(block, left, storing)
    held = [(life.values[0].owner, life.size) for life in left if life.start <= at <= life.end]
    if inside := _inside(block.operations[at], storing):
        held.append((block.operations[at].operation, inside))
    return Peak(sum(taken), sum(given) - shared, tuple(held))


@dataclass(eq=False)
class _Life:
    """A piece of memory, the numbers of the ops between which it is taken, and the values that have it, one
    in place of the other."""

    size: int
    start: int
    end: int
    values: list[Any]


class _Rooms:
    """The memory of results, each of a size, which is free until the op at which the result is made.

    A gap is a stretch of ops in which a room is free; ``gaps`` has the last ops of those that begin at an op,
    in order. ``farthest`` is a tree over the ops: the last op of all gaps that begin somewhere below a node.
    Node 1 is the root, those below n are 2 n and 2 n + 1, and the leaves are the ops.
    """

    def __init__(self, rooms: Sequence[tuple[int, int]], ends: int) -> None:
        self.leaves = 1 << ends.bit_length()
        self.farthest = [-1] * (2 * self.leaves)
        self.gaps = defaultdict[int, list[int]](list)
        self.smaller = sorted(rooms)

    def take(self, life: _Life) -> bool:
        """Finds room for a value in a gap that is little longer than its life; False where none is. No value
        may be larger than those before it."""
        while self.smaller and self.smaller[-1][0] >= life.size:
            self.add(0, self.smaller.pop()[1] - 1)
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
        """There is a gap from one op to another."""
        if first <= last:
            insort(self.gaps[first], last)
            self.update(first)

    def update(self, first: int) -> None:
        """Looks again how far gaps go, where those that begin at an op have changed."""
        farthest, node = self.farthest, first + self.leaves
        farthest[node] = self.gaps[first][-1] if self.gaps[first] else -1
        while node := node >> 1:
            farthest[node] = max(farthest[2 * node], farthest[2 * node + 1])

    def latest(self, start: int, end: int) -> int:
        """The last op up to ``start`` at which a gap begins that goes to ``end``; -1 where none does."""
        farthest, node = self.farthest, start + self.leaves
        while farthest[node] < end:
            while not node & 1:  # all below its parent that is not below it is later
                node >>= 1
            if node == 1:
                return -1
            node -= 1
        while node < self.leaves:
            node = 2 * node + 1 if farthest[2 * node + 1] >= end else 2 * node
        return node - self.leaves


def _peak(block: Any, lives: Sequence[_Life], storing: Storing) -> tuple[int, int]:
    """The most bytes that are live at once in a block, and the number of the op at which they are."""
    made, freed = Counter[int](), Counter[int]()
    for life in lives:
        made[life.start] += life.size
        freed[life.end] += life.size
    live = made[-1]
    most = at = 0
    for n, op in enumerate(block.operations):
        live += made[n]
        if (now := live + _inside(op, storing)) > most:
            most, at = now, n
        live -= freed[n]
    return most, at


def _inside(op: Any, storing: Storing) -> int:
    """What an op needs beside its operands and results: in its regions, beside their arguments."""
    if lowerings().get(op.operation.name) not in ("loop", "branches", "body"):
        return 0
    blocks = [block for region in op.regions for block in region]
    return max((_beside(block, storing) for block in blocks), default=0)


def _beside(block: Any, storing: Storing) -> int:
    whole, _ = _peak(block, _lives(block, storing), storing)
    return max(whole - sum(map(_size, block.arguments)), 0)


def _lives(block: Any, storing: Storing, kept: Collection[Any] = ()) -> list[_Life]:
    """The memory that values of a block have; its arguments too, unless they are ``kept`` throughout."""
    kept = set(kept)
    operations = list(block.operations)
    numbers = {op.operation: n for n, op in enumerate(operations)}
    last: dict[Any, int] = {}

    def number(op: Any) -> int:
        operation = op.operation
        while operation not in numbers:
            operation = operation.parent.operation
        return numbers[operation]

    def read(value: Any, made: int) -> int:
        """The number of the last op that reads a value: of those that use it, or compute what is not stored,
        or is the same memory, from it."""
        end = made
        for use in value.uses:
            end = max(end, number(use.owner))
            for result in use.owner.results if use.owner.operation in numbers else ():
                how = storing.of(result)
                if how.same == use.operand_number or (not how.stored and how.same is None):
                    end = max(end, last[result])
        return end

    for n in range(len(operations) - 1, -1, -1):
        for value in operations[n].results:
            last[value] = read(value, n)
    found: dict[Any, _Life] = {}
    for argument in block.arguments:
        if argument not in kept:
            found[argument] = _Life(_size(argument), -1, max(read(argument, -1), 0), [argument])
    for n, op in enumerate(operations):
        for value in op.results:
            how, size = storing.of(value), _size(value)
            if not how.stored or storing.memory_of(value) != value:
                continue
            dying = (found.get(operand) for operand in op.operands) if how.in_place else ()
            if place := next((life for life in dying if life and life.end == n and life.size == size), None):
                place.end = last[value]
                place.values.append(value)
                found[value] = place
            else:
                found[value] = _Life(size, n, last[value], [value])
    return list(dict.fromkeys(found.values()))


def _size(value: Any) -> int:
    return size_of(str(value.type))
