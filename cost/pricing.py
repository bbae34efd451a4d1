"""The cost of ops and collectives on a machine, by ``rules/cost/cost.dl``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxlib.mlir import ir

from ..partition.facts.knowledge import Knowledge, RuleReader
from ..program.columns import first_alike, numbered, told_apart
from ..runs.collectives import Collective
from .alike import Integers, flat
from .facts import BytesMoved, event_facts, sending, solver_of
from .gpu import Facts, Gpu
from .graph import OpGraph
from .known import Known
from .layouts import MemoryLayouts
from .machine import Link, Machine
from .storing import Storing

_SURE = "data sheet"  # of the time of collectives, where numbers of ops are fitted


@dataclass(frozen=True)
class OpPrice:
    """The seconds of one execution of an op or a collective, its floating-point operations, the bytes that it
    moves (reads and writes, or sends), and its limit: "compute", "memory", "links", or "launch" if a kernel
    does less than its launch costs. ``sure`` is the source of the parameters: "measured" if they are fitted
    to measurements on the machine, "estimated" if to its compiler's estimates, "carried over" if to
    measurements on another machine, and "data sheet" for a roofline. ``launches`` is the number of kernels on
    a GPU."""

    seconds: float
    flops: float
    bytes: float
    limited: str
    sure: str = ""
    launches: int = 0


class Pricing:
    """The prices of ops and collectives on one machine."""

    def __init__(self, machine: Machine, reader: RuleReader) -> None:
        self.machine, self.reader = machine, reader
        self._solver = solver_of(machine, reader.traits)
        self._known: dict[Any, OpPrice] = {}
        self._flops: dict[Knowledge, float] = {}
        self.graph = OpGraph()
        self._rules = Known(reader, self.graph)
        self.storing = Storing(machine.allocation, reader.traits, graph=self.graph)
        self._layouts = MemoryLayouts(self.storing)
        self._gpu = Gpu(machine, self._rules) if machine.kernels else None

    def of_op(self, op: Any) -> OpPrice:
        """The price of an op that gives something, as ``of_all``."""
        (price,) = self.of_all([self.graph.definers[self.graph.value(op.results[0])]])[1]
        return price

    def of_all(self, ops: Sequence[int]) -> tuple[Integers, list[OpPrice]]:
        """For each of some ops, given by their numbers in the graph, the number of its price; and the prices.

        Values that are not stored are neither read nor written. On GPUs it is the price of the kernel that
        the op begins. Ops of a kind whose values are stored alike have one price.
        """
        if self._gpu is not None:
            prices, which = numbered(map(self._of_kernel, ops))
            return which, prices
        graph, storing = self.graph, self.storing
        lengths, values = flat([(*graph.operands[op], *graph.results[op]) for op in ops])
        first, place = told_apart(values)
        stored = np.asarray([_stored(value, storing) for value in values[first].tolist()], np.int64)[place]
        _, code = numbered(map(graph.alike, ops))
        begins, slot = np.cumsum(lengths) - lengths, 0
        while len(having := np.flatnonzero(lengths > slot)):
            code[having] = code.max() + 1 + first_alike([code[having], stored[begins[having] + slot]])
            slot += 1
        firsts, which = told_apart(code)
        return which, [self._of(ops[n]) for n in firsts.tolist()]

    def _of(self, op: int) -> OpPrice:
        return self._price(self.graph.plain[op], self._rules.of(op), _moved(op, self.storing))

    def _of_kernel(self, op: int) -> OpPrice:
        assert self._gpu is not None
        on_gpu, flops = self._gpu.of(op), self.flops(op)
        if on_gpu is None:
            return OpPrice(0.0, flops, 0.0, "compute", self.machine.sure)
        moved, taken = on_gpu
        return OpPrice(taken.seconds, flops, moved, taken.limited, taken.sure, taken.launches)

    def waits(self, op: int, price: OpPrice) -> float:
        """The seconds for which a GPU waits for the kernels of an op. The host launches the kernels of loops
        one by one, and is slower than small kernels."""
        if not price.launches or not self.in_loop(op):
            return 0.0
        return max(self.machine.kernels["host"] * price.launches - price.seconds, 0.0)

    def in_loop(self, op: int) -> bool:
        """Whether an op is in a loop itself."""
        return self.reader.traits.lowering(self.graph.plain[self.graph.parents[op]]) == "loop"

    def late(self, launches: int, seconds: float) -> float:
        """The seconds for which a GPU waits for a program with this many kernels outside of loops, which take
        this long: the host begins the program, and then launches kernels while others run."""
        numbers = self.machine.kernels
        return max(numbers["call"] + numbers["host"] * launches - seconds, 0.0) if launches else 0.0

    def flops(self, op: int) -> float:
        """The operations of the op of the graph with a number."""
        return self.flops_of(self.graph.plain[op], self._rules.of(op))

    def flops_of(self, name: str, knowledge: Knowledge) -> float:
        """The operations of an op of a name, of which the rules say this."""
        if knowledge not in self._flops:
            self._flops[knowledge] = self._price(name, knowledge, BytesMoved()).flops
        return self._flops[knowledge]

    def of_part(self, name: str, knowledge: Knowledge, touched: int, count: int) -> OpPrice:
        """The price of one of this many equal parts of a contraction, which reads and writes this many
        bytes."""
        if self._gpu is not None:
            taken = self._gpu.part(name, knowledge, touched, count)
            flops = self._price(name, knowledge, BytesMoved(touched), count).flops
            return OpPrice(taken.seconds, flops, float(touched), taken.limited, taken.sure, taken.launches)
        return self._price(name, knowledge, BytesMoved(touched, 0, 0, True), count)

    def facts(self, op: int) -> Facts | None:
        """The facts for the rules about the op with this number in the graph. On a GPU they describe the
        kernel with this root; None for other ops there."""
        if self._gpu is not None:
            return self._gpu.facts(op)
        name, knowledge = self.graph.plain[op], self._rules.of(op)
        return event_facts(self.machine, name, knowledge, knowledge.shapes, _moved(op, self.storing))

    def _price(self, name: str, knowledge: Knowledge, moved: BytesMoved, count: int = 1) -> OpPrice:
        key = name, knowledge, moved, count
        if key not in self._known:
            facts = event_facts(self.machine, name, knowledge, knowledge.shapes, moved, count)
            self._known[key] = self._solved(facts, int(moved.touched), self.machine.sure)
        return self._known[key]

    def of_collective(self, collective: Collective, op: int, together: int = 1) -> OpPrice:
        """The price of a collective, with elements as wide as the machine sends them; its share, if this many
        are combined."""
        link = self.machine.link_of(collective.axes, groups_of(self.graph.ops[op]))
        amount = collective.bytes * self._layouts.wanted(op, 0).wide
        key = collective.kind, collective.group, amount, link, together
        if key not in self._known:
            self._known[key] = self.sent(collective.kind, collective.group, amount, link, together)
        return self._known[key]

    def sent(self, kind: str, group: int, amount: int, link: Link, together: int = 1) -> OpPrice:
        """The price of a collective of a kind along a link: the bytes that each device of a group sends."""
        sure = _SURE if self.machine.kernels or self.machine.ops else self.machine.sure
        return self._solved(sending(kind, group, float(amount), link, together), amount, sure)

    def _solved(self, facts: Mapping[str, Iterable[Any]], amount: int, sure: str) -> OpPrice:
        answers = self._solver.solve(facts)
        ((seconds,),), ((limited,),) = answers["seconds"], answers["limited"]
        flops = answers["flops"][0][0] if answers["flops"] else 0.0
        return OpPrice(seconds, flops, float(amount), limited, sure)


def _stored(value: int, storing: Storing) -> int:
    """A number for how a value is stored, equal for values that ``_moved`` treats alike."""
    graph = storing.graph
    if value < 0 or graph.definers[value] < 0:
        return 0
    how, returned = storing.at(value), value in graph.returned
    shares = how.same is not None and storing.shares(value)
    often = 0 if how.stored else len(graph.uses[value])  # users compute it, each time
    return 1 + how.stored + 2 * returned + 4 * shares + 8 * often


class Touched(NamedTuple):
    """What an op reads from memory or writes to it: the value, how many of its bytes, and the slot whose
    parts say how many of them each device moves."""

    value: int
    bytes: int
    slot: int


def touching(op: int, storing: Storing) -> list[Touched] | None:
    """What an op moves; None if its results share the memory of operands."""
    graph, how_stored = storing.graph, storing.at
    results, types, taken = graph.results[op], graph.types, graph.operands[op]
    stored = [how_stored(value) for value in results]
    if all(how.same is not None and storing.shares(v) for v, how in zip(results, stored, strict=True)):
        return None
    parts = storing.traits.touches(graph.plain[op])
    slots = range(len(taken), len(taken) + len(results))
    writes = [
        Touched(value, types[value].bytes, slot)
        for value, how, slot in zip(results, stored, slots, strict=True)
        if how.stored
    ]
    written = any(each.bytes for each in writes)
    if parts == "writes":  # in place: only the update, which is also read
        slot = 1 if len(taken) > 1 else 0
        return [Touched(-1, 2 * types[taken[slot]].bytes, slot)] if written else []
    times = 1 if written else max(sum([len(graph.uses[value]) for value in results]), 1)
    made = sum([types[value].bytes for value in results])
    for slot, operand in enumerate(taken):
        if graph.definers[operand] < 0 or how_stored(operand).stored:
            size = types[operand].bytes
            part = parts == "reads" and made < size
            writes.append(Touched(operand, (made if part else size) * times, len(taken) if part else slot))
    return writes


def inside_of(touched: Iterable[Touched], graph: OpGraph) -> set[int]:
    """The values of these that a program makes and does not return."""
    return {v for v, *_ in touched if v >= 0 and graph.definers[v] >= 0 and v not in graph.returned}


def _moved(op: int, storing: Storing) -> BytesMoved:
    graph, touched = storing.graph, touching(op, storing)
    if touched is None:
        return BytesMoved()
    inside = inside_of(touched, graph)
    return BytesMoved(
        sum([each.bytes for each in touched]),
        sum([each.bytes for each in touched if each.value in inside]),
        max([graph.types[value].bytes for value in inside], default=0),
        any(storing.at(value).stored for value in graph.results[op]),
    )


def groups_of(op: Any) -> list[list[int]]:
    """The groups of devices of a collective, or its pairs."""
    attributes = op.attributes
    for label in ("replica_groups", "source_target_pairs"):
        if label in attributes:
            devices: Any = ir.DenseIntElementsAttr(attributes[label])
            width = ir.ShapedType(devices.type).shape[1]
            flat = [int(device) for device in devices]
            rows = [flat[n : n + width] for n in range(0, len(flat), width)]
            return [[device for device in row if device >= 0] for row in rows]
    return []
