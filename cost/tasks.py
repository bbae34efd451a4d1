"""The time of ops whose layouts are being chosen.

Each op has a task: its parts of the kernels that a compiler makes of the module's ops. The time of a task on
a device depends on the local shapes of the op's slots.

- A product is a kernel with these shapes.
- Any other kernel is priced in equal parts: a part has as many of its elements and bytes as the op has of its
  own bytes. The op takes the share of that time that it has of the kernel's bytes. One op begins the kernel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from ..importers.listing import Listing
from ..partition.facts.knowledge import Knowledge, RuleReader
from ..partition.reshards.prices import LocalShapes, TaskId
from ..rulebook.traits import OpTraits
from .facts import BytesMoved, elements_of, event_facts, solver_of
from .gpu import Gpu, Time, Timing, product_facts
from .graph import OpGraph
from .kernels import Kernel as FoundKernel
from .known import Known
from .machine import Machine
from .pricing import inside_of, touching
from .storing import Storing

_KEPT = 50_000  # times of tasks, of one machine
# The columns of facts that have amounts.
_AMOUNTS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("elements", "taken", "made", "touched", "multiplied"), (0,)),
    **dict.fromkeys(("reads", "writes", "copies", "slot_elements"), (1,)),
    "computes": (3,),
    "inside": (0, 1),
}
_PRODUCTS = ("product", "convolution")
_HOW = ("reads", "writes", "copies")
Facts = Mapping[str, Any]


class Moved(NamedTuple):
    """Bytes that an op moves of a slot, and how: a GPU's kernel "reads", "writes" or "copies" them; elsewhere
    they are "outside" of the program, or "inside", of a value of this ``size``."""

    slot: int
    bytes: float
    how: str
    size: float = 0.0

    def scaled(self, times: float) -> Moved:
        """This many times the bytes."""
        return self._replace(bytes=self.bytes * times, size=self.size * times)


class Task(NamedTuple):
    """What an op does: its parts of kernels, and if another kernel computes it as a reduction, the kernel
    that it is where devices have partial results. These are sent, so the other kernel is split."""

    parts: tuple[Part, ...]
    split: Part | None = None


class Part(NamedTuple):
    """An op's part of a kernel, by its number: the bytes that the op moves, and whether it begins the
    kernel."""

    kernel: int
    moved: tuple[Moved, ...]
    begins: bool


class Kernel(NamedTuple):
    """A kernel: its facts, the bytes that its ops move, and the name of the op if it is a product."""

    facts: Facts
    bytes: float
    product: str


class MachineTasks:
    """The tasks of ops with these traits, and their times on one machine. Equal tasks have one number."""

    def __init__(self, machine: Machine, traits: OpTraits) -> None:
        self._machine, self._unit = machine, machine.link.bandwidth
        self._timing = Timing(machine, traits) if machine.kernels else None
        self._solver = solver_of(machine, traits)
        self._kernels: list[Kernel] = []
        self._tasks: list[Task] = []
        self._numbers: dict[Hashable, int] = {}  # of kernels
        self._task_numbers: dict[Task, TaskId] = {}
        self._scaled: dict[tuple[int, float], Time] = {}  # of kernels in parts
        self._prices: dict[Any, float] = {}

    def of(self, module: ir.Module, listing: Listing, reader: RuleReader) -> Callable[[int], TaskId]:
        """The tasks of the ops of a module, by number."""
        graph = OpGraph()
        graph.add(module, listing)
        return (self._in_kernels if self._timing else self._apart)(graph, reader)

    def price(self, task: TaskId, knowledge: Knowledge, shapes: LocalShapes, partial: bool) -> float:
        """The price of a task, in bytes, if slots have these local shapes and the results may be
        ``partial``."""
        parts, split = self._tasks[task]
        key = task, knowledge, shapes, partial and split is not None
        if key not in self._prices:
            if len(self._prices) > _KEPT:
                self._prices.clear()
            whole = elements_of(knowledge.shapes)
            ratios = [n / all_ if all_ else 1.0 for n, all_ in zip(elements_of(shapes), whole, strict=True)]
            every = [*parts, split] if partial and split is not None else parts
            seconds = sum([self._part(part, knowledge, shapes, ratios) for part in every])
            self._prices[key] = seconds * self._unit
        return self._prices[key]

    # ---- Tasks ------------------------------------------------------------------------------------------

    def _in_kernels(self, graph: OpGraph, reader: RuleReader) -> Callable[[int], TaskId]:
        """The tasks of a GPU's ops."""
        gpu = Gpu(self._machine, Known(reader, graph))

        @cache
        def part(kernel: FoundKernel) -> tuple[int, Mapping[int, list[Moved]]]:
            moved = gpu.kernels.moved(kernel)
            amounts = gpu.kernels.amounts(kernel, moved)
            by_op = defaultdict[int, list[Moved]](list)
            for how, moves in zip(_HOW, (moved.read.values(), moved.written, moved.copied), strict=True):
                for op, slot, size in moves:
                    by_op[op].append(Moved(slot, float(size), how))
            total = sum(move.bytes for each in by_op.values() for move in each)
            product = graph.plain[kernel.root] if kernel.form in _PRODUCTS else ""
            return self._kernel(
                gpu.key(kernel, amounts), lambda: Kernel(gpu.facts_of(kernel, amounts), total, product)
            ), by_op

        def part_of(op: int, kernel: FoundKernel) -> Part:
            number, by_op = part(kernel)
            return Part(number, tuple(by_op.get(op, ())), op == kernel.root)

        def of(op: int) -> TaskId:
            having, apart = gpu.kernels.having(op), gpu.kernels.apart(op)
            parts = tuple(part_of(op, kernel) for kernel in having)
            return self._task(Task(parts, None if apart is None else part_of(op, apart)))

        return of

    def _apart(self, graph: OpGraph, reader: RuleReader) -> Callable[[int], TaskId]:
        """The tasks of ops elsewhere: each op is a kernel, and moves what is stored."""
        known, storing = Known(reader, graph), Storing(self._machine.allocation, reader.traits, graph=graph)

        def of(op: int) -> TaskId:
            name, knowledge = graph.plain[op], known.of(op)
            touched = touching(op, storing)
            within = inside_of(touched or (), graph)
            moved = tuple(
                Moved(slot, float(size), "inside", float(graph.types[value].bytes))
                if value in within
                else Moved(slot, float(size), "outside")
                for value, size, slot in touched or ()
            )
            stores = touched is not None and any(storing.at(v).stored for v in graph.results[op])
            product = name if knowledge.multiplies else ""

            def kernel() -> Kernel:
                facts = event_facts(
                    self._machine, name, knowledge, knowledge.shapes, _bytes_of(moved, stores)
                )
                return Kernel(facts, sum(each.bytes for each in moved), product)

            part = Part(self._kernel((name, knowledge, moved, stores), kernel), moved, True)
            return self._task(Task((part,)))

        return of

    def _kernel(self, key: Hashable, make: Callable[[], Kernel]) -> int:
        """The number of a kernel, which is made if it is new."""
        if key not in self._numbers:
            self._numbers[key] = len(self._kernels)
            self._kernels.append(make())
        return self._numbers[key]

    def _task(self, task: Task) -> TaskId:
        if task not in self._task_numbers:
            self._task_numbers[task] = TaskId(len(self._tasks))
            self._tasks.append(task)
        return self._task_numbers[task]

    # ---- Times ------------------------------------------------------------------------------------------

    def _part(self, part: Part, knowledge: Knowledge, shapes: LocalShapes, ratios: Sequence[float]) -> float:
        """The seconds of a part of a kernel; each slot has this ratio of its elements on a device."""
        kernel = self._kernels[part.kernel]
        if kernel.product:
            local = tuple(each.scaled(ratios[each.slot]) for each in part.moved)
            return self._time(self._product(kernel, local, knowledge, shapes)).seconds
        own, moved = 0.0, 0.0
        for slot, size, *_ in part.moved:
            own += size
            moved += size * ratios[slot]
        scale = moved / own if own else ratios[knowledge.roles.index("result")]
        key = part.kernel, scale
        if key not in self._scaled:
            self._scaled[key] = self._time(_scaled(kernel.facts, scale))
        seconds, begins = self._scaled[key]
        share = own / kernel.bytes if kernel.bytes else float(part.begins)
        return (seconds - begins) * share + begins * part.begins

    def _product(
        self, kernel: Kernel, moved: Sequence[Moved], knowledge: Knowledge, shapes: LocalShapes
    ) -> Facts:
        """The facts about a product whose slots have these local shapes."""
        if self._timing is None:
            stores = bool(kernel.facts["stores"])
            moves = _bytes_of(moved, stores)
            return event_facts(self._machine, kernel.product, knowledge, shapes, moves)
        return {
            **kernel.facts,
            "elements": ((float(elements_of(shapes)[-1]),),),
            **{how: tuple(enumerate(each.bytes for each in moved if each.how == how)) for how in _HOW},
            **product_facts(self._machine, knowledge, shapes),
        }

    def _time(self, facts: Facts) -> Time:
        if self._timing is None:
            return Time(self._solver.solve(facts, ["seconds"])["seconds"][0][0])
        return self._timing.time(facts)


def _bytes_of(moved: Sequence[Moved], stores: bool) -> BytesMoved:
    inside = [each for each in moved if each.how == "inside"]
    return BytesMoved(
        sum(each.bytes for each in moved),
        sum(each.bytes for each in inside),
        max((each.size for each in inside), default=0.0),
        stores,
    )


def _scaled(facts: Facts, scale: float) -> Facts:
    """Facts with this many times the amounts."""
    return {
        name: [
            tuple(value * scale if n in _AMOUNTS[name] else value for n, value in enumerate(row))
            for row in rows
        ]
        if name in _AMOUNTS
        else rows
        for name, rows in facts.items()
    }
