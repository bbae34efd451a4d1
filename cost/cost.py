"""The cost of a partitioned program on a machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

from ..partition.executions import Executions
from ..partition.knowledge import Knowledge, Reader
from ..program.elements import size_of
from ..program.function import location
from ..program.modules import ops_in, symbols
from ..program.places import source_location
from ..rulebook.book import RULES, lowerings
from .machine import Machine
from .memory import peak_memory

if TYPE_CHECKING:
    from ..engine import Solver
    from ..runs.partitioned import Partitioned

_FREE = frozenset({"constant", "iota", "loop", "branches", "call", "body", "nothing", "device", "collective"})
_NO_WORK = ("func.", "sdy.")
_LIMITS = ("compute", "links", "memory")


@dataclass(frozen=True)
class Item:
    """A piece of a device's work: an op or a collective, ``times`` in all, at a place of the user's source.
    ``seconds``, ``flops`` and ``bytes`` (read, written or sent) are those of all times; ``limited`` says
    by what it is limited: "compute", "memory" or "links"."""

    op: str
    where: str
    times: int
    seconds: float
    flops: float
    bytes: float
    limited: str
    serves: str = ""  # of a collective: the op


@dataclass(frozen=True)
class Cost:
    """The cost of a program for one device. ``seconds`` are those of all items one after the other;
    ``peak`` is the memory that it needs at most, in bytes, if ops are not fused."""

    machine: Machine
    items: tuple[Item, ...]
    peak: int

    @property
    def seconds(self) -> float:
        """The time of all items, one after the other."""
        return sum(item.seconds for item in self.items)

    def limited(self) -> dict[str, float]:
        """The seconds of items by what limits them."""
        return {what: sum(i.seconds for i in self.items if i.limited == what) for what in _LIMITS}

    def collectives(self) -> list[Item]:
        """The collectives, longest first."""
        return sorted((i for i in self.items if i.limited == "links"), key=lambda i: -i.seconds)

    def by(self, name: str) -> list[tuple[str, float, float]]:
        """The seconds and the part of all, by op or by source line ("op", "where"), longest first."""
        found: dict[str, float] = {}
        for item in self.items:
            key = item.serves or item.op if name == "op" else item.where
            found[key] = found.get(key, 0.0) + item.seconds
        total = self.seconds or 1.0
        return sorted(((key, s, s / total) for key, s in found.items()), key=lambda row: (-row[1], row[0]))

    def as_json(self) -> dict[str, Any]:
        """The cost as JSON has it."""
        from dataclasses import asdict

        return {
            "topology": self.machine.name,
            "seconds": self.seconds,
            "limited": self.limited(),
            "peak": self.peak,
            "memory": self.machine.memory,
            "items": [asdict(item) for item in self.items],
        }


def cost(program: Partitioned, machine: Machine) -> Cost:
    """The cost of a partitioned program on a machine."""
    solver = _rules().solver({"peak": [(machine.flops,)], "memory": [(machine.memory_bandwidth,)]})
    items = [*_collectives(program, machine, solver), *_ops(program, solver)]
    return Cost(machine, tuple(items), peak_memory(program.module))


@cache
def _rules() -> Any:
    from ..engine import load

    return load([RULES / "cost/cost.dl"], key="event", include_from=[RULES])


def _collectives(program: Partitioned, machine: Machine, solver: Solver) -> Iterator[Item]:
    for each in program.collectives:
        link, times = machine.link_of(each.axes), each.executions or 1
        facts: dict[str, Iterable[Any]] = {
            "kind": [(each.kind,)],
            "devices": [(each.group,)],
            "sends": [(float(each.bytes),)],
            "link": [(link.bandwidth, link.latency)],
        }
        ((seconds,),) = solver.solve(facts)["seconds"]
        yield Item(
            each.kind, each.where, times, seconds * times, 0.0, float(each.bytes * times), "links", each.op
        )


def _ops(program: Partitioned, solver: Solver) -> Iterator[Item]:
    """The ops of the program, those that are alike at one place together."""
    reader, counts, forms = Reader(program.result.book), Executions(program.module), lowerings()
    found: dict[tuple[str, str], list[float]] = {}
    limits: dict[tuple[str, str], str] = {}
    source = program.result.source

    def place(where: str) -> str:
        return source.place(source_location(where) or where)

    solved: dict[Knowledge, tuple[float, float, str]] = {}
    with program.module.context:
        for op in _computed(program.module):
            operation = op.operation
            if forms.get(operation.name) in _FREE or operation.name.startswith(_NO_WORK):
                continue
            known = reader.knowledge(operation)
            if known not in solved:
                solved[known] = _of_op(known, solver)
            flops, seconds, limited = solved[known]
            times, key = counts.of(operation) or 1, (operation.name, place(location(op)))
            row = found.setdefault(key, [0.0] * 4)
            touched = sum(size_of(str(v.type)) for v in (*operation.operands, *operation.results))
            for i, amount in enumerate((1, seconds, flops, touched)):
                row[i] += amount * times
            limits[key] = limited
    for (name, where), (often, took, operations, moved) in found.items():
        yield Item(name, where, int(often), took, operations, moved, limits[name, where])


def _of_op(known: Knowledge, solver: Solver) -> tuple[float, float, str]:
    """The operations of an op, its seconds, and what limits it."""
    sizes = [prod(shape or ()) for shape in known.shapes]
    touched = sum(n * width for n, width in zip(sizes, known.widths, strict=True))
    made = sum(n for n, role in zip(sizes, known.roles, strict=True) if role == "result")
    facts: dict[str, Iterable[Any]] = {
        "kind": [("op",)],
        "made": [(float(made),)],
        "touched": [(float(touched),)],
        "multiplied": [(float(prod(known.sizes.values())),)] if known.multiplies else [],
    }
    answer: Mapping[str, Any] = solver.solve(facts)
    ((seconds,),), ((flops,),), ((limited,),) = (answer[n] for n in ("seconds", "flops", "limited"))
    return flops, seconds, limited


def _computed(module: ir.Module) -> Iterator[Any]:
    """The ops of all functions that stand in them or in loops and branches; the regions of others are part of
    those."""
    functions, forms = symbols(module, "func.func"), lowerings()
    around = {"loop", "branches", "body"}
    for function in functions.values():
        for op in ops_in(function):
            parent = op.operation.parent
            if parent.operation.name == "func.func" or forms.get(parent.operation.name) in around:
                yield op
