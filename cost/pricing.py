"""The cost of ops and collectives on a machine, by ``rules/cost/cost.dl``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from jaxlib.mlir import ir

from ..partition.facts.knowledge import Knowledge, RuleReader
from ..program.elements import size_of
from ..runs.collectives import Collective
from .exchange import sending, solver_of, told
from .gpu import Gpu
from .layouts import Layouts
from .machine import Link, Machine
from .storing import Storing

_SURE = "data sheet"  # of the time of collectives on GPUs


@dataclass(frozen=True)
class Price:
    """The seconds of one execution of an op or a collective, its floating-point operations, the bytes that it
    moves (reads and writes, or sends), and its limit: "compute", "memory", "links", or "launch" if a kernel
    does less than its launch costs. How ``sure`` that is: "measured" if the parameters are fitted to
    measurements on the machine, "carried over" if to those on another, and "data sheet" for a roofline. And
    the number of kernels that a GPU launches."""

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
        self._known: dict[Any, Price] = {}
        self._storing = Storing(machine.allocation, reader.traits)
        self._layouts = Layouts(self._storing)
        self._gpu = Gpu(machine, reader) if machine.kernels else None

    def of_op(self, op: Any) -> Price:
        """The price of an op. Values that are not stored are neither read nor written. On GPUs, the price of
        the kernel whose root it is."""
        if self._gpu is not None:
            found, flops = self._gpu.of(op), self.flops(op)
            if found is None:
                return Price(0.0, flops, 0.0, "compute", self.machine.sure)
            moved, taken = found
            return Price(taken.seconds, flops, moved, taken.limited, taken.sure, taken.launches)
        return self._price(op.name, self.reader.knowledge(op), _touched(op, self._storing))

    def waits(self, op: Any, price: Price) -> float:
        """The seconds for which a GPU waits for the kernels of an op. The host launches the kernels of loops
        one by one, and is slower than small kernels."""
        if not price.launches or self.reader.traits.lowering(op.operation.parent.name) != "loop":
            return 0.0
        return max(self.machine.kernels["host"] * price.launches - price.seconds, 0.0)

    def flops(self, op: Any) -> float:
        """The operations of an op."""
        return self._price(op.name, self.reader.knowledge(op), 0).flops

    def of_part(self, name: str, known: Knowledge, touched: int, count: int) -> Price:
        """The price of one of this many equal parts of a contraction, which reads and writes this many
        bytes."""
        if self._gpu is not None:
            taken = self._gpu.part(name, known, touched, count)
            flops = self._price(name, known, touched, count).flops
            return Price(taken.seconds, flops, float(touched), taken.limited, taken.sure, taken.launches)
        return self._price(name, known, touched, count)

    def _price(self, name: str, known: Knowledge, touched: int, count: int = 1) -> Price:
        key = name, known, touched, count
        if key not in self._known:
            sizes = [prod(shape or ()) for shape in known.shapes]
            made = sum(n for n, role in zip(sizes, known.roles, strict=True) if role == "result")
            taken = max(
                (n for n, role in zip(sizes, known.roles, strict=True) if role == "operand"), default=0
            )
            multiplied = known.multiplications
            facts: dict[str, Iterable[Any]] = {
                "kind": [(name,)],
                "taken": [(float(taken),)],
                "made": [(float(made),)],
                "touched": [(float(touched),)],
                "peak": [(self.machine.peak(known.element),)],
                "multiplied": [] if multiplied is None else [(multiplied / count,)],
            }
            self._known[key] = self._solved({**facts, **told(known.signature)}, touched)
        return self._known[key]

    def of_collective(self, made: Collective, op: Any, together: int = 1) -> Price:
        """The price of a collective, with elements as wide as the machine sends them; its share, if this many
        are combined."""
        link = self.machine.link_of(made.axes, groups_of(op))
        amount = made.bytes * self._layouts.wanted(op, 0).wide
        key = made.kind, made.group, amount, link, together
        if key not in self._known:
            self._known[key] = self.sent(made.kind, made.group, amount, link, together)
        return self._known[key]

    def sent(self, kind: str, group: int, amount: int, link: Link, together: int = 1) -> Price:
        """The price of a collective of a kind along a link: the bytes that each device of a group sends."""
        return self._solved(sending(kind, group, float(amount), link, together), amount)

    def _solved(self, facts: Mapping[str, Iterable[Any]], amount: int) -> Price:
        said = self._solver.solve(facts)
        ((seconds,),), ((limited,),) = said["seconds"], said["limited"]
        flops = said["flops"][0][0] if said["flops"] else 0.0
        return Price(
            seconds, flops, float(amount), limited, _SURE if self.machine.kernels else self.machine.sure
        )


def _touched(op: Any, storing: Storing) -> int:
    """The bytes that an op reads from memory and writes to it."""
    results = list(op.results)
    stored = [storing.of(value) for value in results]
    if all(
        how.same is not None and storing.memory_of(v) != v for v, how in zip(results, stored, strict=True)
    ):
        return 0
    made = sum(size_of(str(value.type)) for value in results)
    parts = storing.traits.touches(op.name)
    written = sum(size_of(str(v.type)) for v, how in zip(results, stored, strict=True) if how.stored)
    if parts == "writes":  # in place: only the update, which is also read
        update = op.operands[1] if len(op.operands) > 1 else op.operands[0]
        return 2 * size_of(str(update.type)) if written else 0
    read = 0
    for operand in op.operands:
        if isinstance(operand.owner, ir.Block) or storing.of(operand).stored:
            size = size_of(str(operand.type))
            read += min(size, made) if parts == "reads" else size
    times = 1 if written else max(sum(1 for value in results for _ in value.uses), 1)
    return read * times + written


def groups_of(op: Any) -> list[list[int]]:
    """The groups of devices of a collective, or its pairs."""
    attributes = op.attributes
    for label in ("replica_groups", "source_target_pairs"):
        if label in attributes:
            found: Any = ir.DenseIntElementsAttr(attributes[label])
            width = ir.ShapedType(found.type).shape[1]
            flat = [int(device) for device in found]
            rows = [flat[n : n + width] for n in range(0, len(flat), width)]
            return [[device for device in row if device >= 0] for row in rows]
    return []
