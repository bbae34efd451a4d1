"""The cost of a partitioned program on a machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..collector import no_collections
from ..errors import ShardlogError
from ..partition.executions import Executions
from ..partition.facts.knowledge import RuleReader
from ..program.elements import bytes_text
from ..program.mlir.origins import numberless
from ..rulebook.traits import OpTraits
from ..runs.table import time_text
from .account import Account, HeldMemory, computed
from .gpu import Facts
from .graph import OpGraph
from .inlining import inlined, inlined_and_listed, numbered
from .items import Item, Items, sums, total
from .layers import LIMITS, Layer, layers
from .machine import SURE, Machine
from .memory import peaks
from .pricing import Pricing
from .storing import Storing
from .timeline import Around, Timeline
from .usage import Usage

if TYPE_CHECKING:
    from ..runs.choice import ProgramChoice
    from ..runs.partitioned import PartitionedRun


@dataclass(frozen=True, repr=False)
class Cost:
    """The cost of a ``program`` for one device of a ``machine``.

    ``peak`` is the most device memory that it needs, in bytes, and ``host`` the most host memory. ``held`` is
    what it holds at these peaks, largest first. ``open`` says that loops of unknown trip count count as one
    iteration. ``timeline`` has what it does in order, and ``usage`` its memory over the step; None where they
    were not asked for.
    ``docs/cost.md`` describes the model.
    """

    program: ProgramChoice
    machine: Machine
    items: Items
    layers: tuple[Layer, ...]
    peak: int
    held: tuple[HeldMemory, ...]
    open: bool = False
    host: int = 0
    late: float = 0.0
    timeline: Timeline | None = field(default=None, compare=False)
    usage: Usage | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        sent, peak = bytes_text(round(self.sent)), bytes_text(self.peak)
        return (
            f"<Cost on {self.machine.name}: {time_text(self.seconds)}, {sent} sent, {peak} of memory at most>"
        )

    @cached_property
    def seconds(self) -> float:
        """The time in seconds of all items, one after the other."""
        return self.items.total("seconds")

    @property
    def waits(self) -> float:
        """The seconds for which a GPU waits for the host, besides ``seconds``.

        The host launches the kernels of loops one by one. For the others it is ``late`` where they take less
        time than it does: the seconds until it has begun the program and launched them.
        """
        return self.late + self.items.total("waits")

    @property
    def launches(self) -> int:
        """The kernels that a GPU runs."""
        return int(self.items.total("launches"))

    def sure(self) -> dict[str, float]:
        """The seconds by how sure they are; see ``OpPrice``."""
        by_how = self._seconds_by("sure", SURE)
        return {how: seconds for how, seconds in by_how.items() if seconds}

    def limits(self) -> dict[str, str]:
        """The limit of most of the time of each op, by op."""
        by_op = defaultdict[str, dict[str, float]](dict)
        pairs = zip(self.ops(), self.items.names("limited"), strict=True)
        for (op, limited), seconds in sums(pairs, self.items.of("seconds")).items():
            by_op[op][limited] = seconds
        return {op: max(sorted(times), key=lambda limit: times[limit]) for op, times in by_op.items()}

    def limited(self) -> dict[str, float]:
        """The seconds by limit: "compute", "memory" and "links"."""
        return self._seconds_by("limited", LIMITS)

    def _seconds_by(self, name: str, texts: Iterable[str]) -> dict[str, float]:
        """The seconds of the items whose text of this name is each of some."""
        seconds = sums(self.items.names(name), self.items.of("seconds"))
        return {text: seconds.get(text, 0) for text in texts}

    def ops(self) -> list[str]:
        """The op that each item is, or serves."""
        return [item.serves or item.op for item in self.items.sent] + [each.op for each in self.items.kept]

    def collectives(self) -> list[Item]:
        """The collectives, longest first; those with one purpose at a place are one."""
        by_purpose: dict[Any, Item] = {}
        for item in self.items.sent:
            key = item.op, item.serves, item.where, numberless(item.stack)
            by_purpose[key] = by_purpose[key].with_(item) if key in by_purpose else item
        return sorted(by_purpose.values(), key=lambda i: -i.seconds)

    def computed_again(self) -> list[Item]:
        """The items that other devices compute in part too, most operations first.

        Items of one op at one place are one.
        """
        by_op: dict[Any, Item] = {}
        for item in self.items.redundant():
            key = item.op, item.where, numberless(item.stack)
            by_op[key] = by_op[key].with_(item) if key in by_op else item
        return sorted((i for i in by_op.values() if i.redundant >= 1), key=lambda i: -i.redundant)

    @property
    def flops(self) -> float:
        """The floating-point operations of the device."""
        return self.items.total("flops")

    @property
    def redundant(self) -> float:
        """The floating-point operations that other devices compute too."""
        return self.items.total("redundant")

    @property
    def sent(self) -> float:
        """The bytes that the device sends."""
        return sum(item.bytes for item in self.items.sent)

    @property
    def touched(self) -> float:
        """The bytes that the device reads from memory and writes to it."""
        return total(self.items.of("bytes")[len(self.items.sent) :])

    def by(self, name: str) -> list[tuple[str, float, float]]:
        """Rows of a key, its seconds, and its share of all (0 to 1), longest first.

        ``name`` is the key: "op", "where" (source lines) or "stack" (name stacks). Raises ShardlogError for
        another.
        """
        if name not in ("op", "where", "stack"):
            hint = 'expected "op", "where" or "stack"'
            raise ShardlogError(f"cannot group costs by {name!r}", where="by", hint=hint)
        keys = self.ops() if name == "op" else self.items.names(name)
        by_key, whole = sums(keys, self.items.of("seconds")), self.seconds or 1.0
        return sorted(((key, s, s / whole) for key, s in by_key.items()), key=lambda row: (-row[1], row[0]))

    def trace(self) -> dict[str, Any]:
        """The step in Chrome's trace event format, which Perfetto reads.

        A track has the ops that compute, and others the collectives of each set of axes; times are in
        microseconds. Raises ShardlogError where the cost has no timeline.
        """
        if self.timeline is None:
            raise ShardlogError("this cost has no timeline", where="trace", hint="use session.cost().trace()")
        about = {"program": str(self.program), "machine": self.machine.name, "seconds": self.seconds}
        return self.timeline.trace(about)

    def as_json(self, *, items: bool = True) -> dict[str, Any]:
        """The cost as a JSON document, with its items or without; its schema: ``shardlog cost --schema``."""
        return {
            "program": str(self.program),
            "topology": self.machine.name,
            "seconds": self.seconds,
            "limited": self.limited(),
            "sure": self.sure(),
            "launches": self.launches,
            "waits": self.waits,
            "late": self.late,
            "flops": self.flops,
            "redundant": self.redundant,
            "touched": self.touched,
            "sent": self.sent,
            "peak": self.peak,
            "memory": self.machine.memory,
            "host": self.host,
            "open": self.open,
            "held": [asdict(held) for held in self.held],
            **({"items": [item.as_json() for item in self.items]} if items else {}),
            "layers": [layer.as_json() for layer in self.layers],
        }


@no_collections()
def cost(program: PartitionedRun, machine: Machine, *, step: bool = False) -> Cost:
    """The cost of a partitioned program on a machine; only with ``step`` with a timeline and ``usage``."""
    pricing = Pricing(machine, RuleReader(program.result.book))
    traits = program.traits
    module, listing = inlined_and_listed(numbered(program.module, [sent.op for sent in program.sent]), traits)
    with module.context:
        account = Account(program, pricing, module, listing, Timeline() if step else None)
        counts = Executions(module, traits)
        graph, open_ = pricing.graph, False
        runs: dict[int, int | None] = {}  # how often all ops of a region do; None: it depends on the op
        ops, often, arounds = list[int](), list[int](), list[list[Around]]()
        for number, outermost in computed(graph, module, traits, listing):
            op, region = graph.ops[number], graph.regions[number]
            if region not in runs:
                runs[region] = 1 if outermost else counts.of_all(op.block)
                open_ |= not outermost and counts.of(op) is None
            times = runs[region]
            if times is None:
                times = counts.often(op)
                open_ |= counts.of(op) is None
            ops.append(number)
            often.append(times)
            if step:
                arounds.append([] if outermost else _around(number, graph, counts, traits))
        account.add(ops, often, arounds)
        layers_found = layers(account.timed(), program.result.record)
        allocation = machine.allocation
        storing: Storing | None = pricing.storing
        if allocation.platform or program.windows:  # compilers are given another one
            module, storing = inlined(program.module_for(allocation.platform), traits), None
        most, host = peaks(module, allocation, traits, storing)
        held = account.held(most) + account.held(host, "host")
        return Cost(
            program.choice,
            machine,
            account.items(),
            layers_found,
            most.bytes,
            held,
            open_,
            host.bytes,
            account.late(),
            account.timeline,
            account.usage(most) if step else None,
        )


def kernels(program: PartitionedRun, machine: Machine) -> list[tuple[Facts, int]]:
    """The facts about the kernels of a program on a GPU, or its ops elsewhere; and how often each runs."""
    traits, reader = program.traits, RuleReader(program.result.book)
    pricing = Pricing(machine, reader)
    module = inlined(program.module, traits)
    with module.context:
        counts = Executions(module, traits)
        asked = (
            (pricing.facts(op), 1 if outermost else counts.often(pricing.graph.ops[op]))
            for op, outermost in computed(pricing.graph, module, traits)
        )
        return [(facts, often) for facts, often in asked if facts is not None]


def _around(number: int, graph: OpGraph, counts: Executions, traits: OpTraits) -> list[Around]:
    """The loops around an op, the outermost first; those of unknown trip count take one turn."""
    loops = list[Around]()
    while (parent := graph.parents[number]) >= 0:
        if traits.lowering(graph.plain[parent]) == "loop":
            trips = counts.turns(graph.ops[parent])
            turns, tests = (1, 1) if trips is None else (trips, trips + 1)
            loops.append(Around(parent, turns, tests, graph.in_first_region(number)))
        number = parent
    return loops[::-1]
