"""The cost of a partitioned program on a machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

from ..collector import no_collections
from ..errors import ShardlogError
from ..partition.executions import Executions
from ..partition.facts.knowledge import RuleReader
from ..partition.finishing.combining import NUMBER, combined_sizes
from ..program.boundaries import boundary_axes
from ..program.mlir.modules import main_function, operations_in, symbols
from ..program.mlir.origins import Origin, numberless, origin
from ..rulebook.traits import OpTraits
from .beside import Besides
from .gpu import Facts
from .graph import OpGraph
from .inlining import inlined, numbered, without_calls
from .layers import LIMITS, Layer, TimedOp, layers
from .machine import SURE, Machine
from .memory import Peak, peaks
from .pricing import OpPrice, Pricing
from .storing import Storing
from .timeline import Around, Timeline, Work
from .usage import Lived, Usage

if TYPE_CHECKING:
    from ..runs.choice import ProgramChoice
    from ..runs.partitioned import PartitionedRun

_FREE = frozenset({"constant", "iota", "loop", "branches", "call", "body", "nothing", "device"})
_NO_WORK = ("func.", "sdy.")


@dataclass(frozen=True)
class Item:
    """A piece of a device's work: ops, or a collective, at a place of the user's source.

    ``where`` is the line and ``stack`` the name stack there. Ops of one kind at one place with one limit are
    one item, of ``times`` ops. ``seconds``, ``flops`` and ``bytes`` (read, written or sent) are for all of
    them. ``limited`` is the limit: "compute", "memory" or "links". ``redundant`` is the part of ``flops``
    that other devices compute too. ``sure`` is how sure the seconds are (see ``OpPrice``). ``launches`` is
    the number of kernels on a GPU, and ``waits`` the seconds for which it waits for the host to launch them.
    A collective has the op that it ``serves``, its ``causes`` (annotations), and its ``numbers``: several if
    the item stands for all collectives with one purpose at a place.
    """

    op: str
    where: str
    stack: str
    times: int
    seconds: float
    flops: float
    bytes: float
    limited: str
    redundant: float = 0.0
    sure: str = ""
    launches: int = 0
    waits: float = 0.0
    serves: str = ""
    causes: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()

    def with_(self, other: Item) -> Item:
        """Two items merged into one; their stacks differ only in numbers."""
        times, seconds = self.times + other.times, self.seconds + other.seconds
        flops, moved = self.flops + other.flops, self.bytes + other.bytes
        redundant = self.redundant + other.redundant
        launches, waits = self.launches + other.launches, self.waits + other.waits
        stack = self.stack if self.stack == other.stack else numberless(self.stack)
        merged = replace(
            self, stack=stack, times=times, seconds=seconds, flops=flops, bytes=moved, redundant=redundant
        )
        causes = tuple(dict.fromkeys((*self.causes, *other.causes)))
        merged = replace(merged, launches=launches, waits=waits)
        return replace(merged, stack=stack, causes=causes, numbers=(*self.numbers, *other.numbers))

    def as_json(self) -> dict[str, Any]:
        """The fields by name."""
        return {**vars(self), "causes": list(self.causes), "numbers": list(self.numbers)}


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


@dataclass(frozen=True)
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
    items: tuple[Item, ...]
    layers: tuple[Layer, ...]
    peak: int
    held: tuple[HeldMemory, ...]
    open: bool = False
    host: int = 0
    late: float = 0.0
    timeline: Timeline | None = field(default=None, repr=False, compare=False)
    usage: Usage | None = field(default=None, repr=False, compare=False)

    @property
    def seconds(self) -> float:
        """The time in seconds of all items, one after the other."""
        return sum(item.seconds for item in self.items)

    @property
    def waits(self) -> float:
        """The seconds for which a GPU waits for the host, besides ``seconds``.

        The host launches the kernels of loops one by one. For the others it is ``late`` where they take less
        time than it does: the seconds until it has begun the program and launched them.
        """
        return self.late + sum(item.waits for item in self.items)

    @property
    def launches(self) -> int:
        """The kernels that a GPU runs."""
        return sum(item.launches for item in self.items)

    def sure(self) -> dict[str, float]:
        """The seconds by how sure they are; see ``OpPrice``."""
        by_how = {how: sum(i.seconds for i in self.items if i.sure == how) for how in SURE}
        return {how: seconds for how, seconds in by_how.items() if seconds}

    def limits(self) -> dict[str, str]:
        """The limit of most of the time of each op, by op."""
        by_op = defaultdict[str, dict[str, float]](dict)
        for item in self.items:
            times = by_op[item.serves or item.op]
            times[item.limited] = times.get(item.limited, 0.0) + item.seconds
        return {op: max(sorted(times), key=lambda what: times[what]) for op, times in by_op.items()}

    def limited(self) -> dict[str, float]:
        """The seconds by limit: "compute", "memory" and "links"."""
        return {what: sum(i.seconds for i in self.items if i.limited == what) for what in LIMITS}

    def collectives(self) -> list[Item]:
        """The collectives, longest first; those with one purpose at a place are one."""
        by_purpose: dict[Any, Item] = {}
        for item in self.items:
            if item.limited == "links":
                key = item.op, item.serves, item.where, numberless(item.stack)
                by_purpose[key] = by_purpose[key].with_(item) if key in by_purpose else item
        return sorted(by_purpose.values(), key=lambda i: -i.seconds)

    def computed_again(self) -> list[Item]:
        """The items that other devices compute in part too, most operations first.

        Items of one op at one place are one.
        """
        by_op: dict[Any, Item] = {}
        for item in self.items:
            if item.redundant:
                key = item.op, item.where, numberless(item.stack)
                by_op[key] = by_op[key].with_(item) if key in by_op else item
        return sorted((i for i in by_op.values() if i.redundant >= 1), key=lambda i: -i.redundant)

    @property
    def flops(self) -> float:
        """The floating-point operations of the device."""
        return sum(item.flops for item in self.items)

    @property
    def redundant(self) -> float:
        """The floating-point operations that other devices compute too."""
        return sum(item.redundant for item in self.items)

    @property
    def sent(self) -> float:
        """The bytes that the device sends."""
        return sum(item.bytes for item in self.items if item.limited == "links")

    @property
    def touched(self) -> float:
        """The bytes that the device reads from memory and writes to it."""
        return sum(item.bytes for item in self.items if item.limited != "links")

    def by(self, name: str) -> list[tuple[str, float, float]]:
        """Rows of a key, its seconds, and its share of all (0 to 1), longest first.

        ``name`` is the key: "op", "where" (source lines) or "stack" (name stacks). Raises ShardlogError for
        another.
        """
        if name not in ("op", "where", "stack"):
            hint = 'expected "op", "where" or "stack"'
            raise ShardlogError(f"cannot group costs by {name!r}", where="by", hint=hint)
        by_key: dict[str, float] = {}
        for item in self.items:
            key = item.serves or item.op if name == "op" else getattr(item, name)
            by_key[key] = by_key.get(key, 0.0) + item.seconds
        total = self.seconds or 1.0
        return sorted(((key, s, s / total) for key, s in by_key.items()), key=lambda row: (-row[1], row[0]))

    def trace(self) -> dict[str, Any]:
        """The step in Chrome's trace event format, which Perfetto reads.

        A track has the ops that compute, and others the collectives of each set of axes; times are in
        microseconds. Raises ShardlogError where the cost has no timeline.
        """
        if self.timeline is None:
            raise ShardlogError("this cost has no timeline", where="trace", hint="use session.cost().trace()")
        about = {"program": str(self.program), "machine": self.machine.name, "seconds": self.seconds}
        return self.timeline.trace(about)

    def as_json(self) -> dict[str, Any]:
        """The cost as a JSON document; ``shardlog cost --schema`` is its schema."""
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
            "items": [item.as_json() for item in self.items],
            "layers": [layer.as_json() for layer in self.layers],
        }


@no_collections()
def cost(program: PartitionedRun, machine: Machine, *, step: bool = False) -> Cost:
    """The cost of a partitioned program on a machine; only with ``step`` with a timeline and ``usage``."""
    pricing = Pricing(machine, RuleReader(program.result.book))
    traits = program.traits
    module = inlined(numbered(program.module, [sent.op for sent in program.sent]), traits)
    with module.context:
        account = _Account(program, pricing, module, Timeline() if step else None)
        counts = Executions(module, traits)
        open_ = False
        for number, outermost in _computed(pricing.graph, module, traits):
            op = pricing.graph.ops[number]
            account.add(
                number,
                1 if outermost else counts.often(op),
                () if outermost or not step else _around(number, pricing.graph, counts, traits),
            )
            open_ |= not outermost and counts.of(op) is None
        layers_found = layers(account.lines, program.result.record)
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
            for op, outermost in _computed(pricing.graph, module, traits)
        )
        return [(facts, often) for facts, often in asked if facts is not None]


class _Account:
    """Adds up the work of a device: by collective, by op and place, and op by op in program order."""

    def __init__(
        self, program: PartitionedRun, pricing: Pricing, module: ir.Module, timeline: Timeline | None
    ) -> None:
        self.program, self.pricing, self.timeline = program, pricing, timeline
        self.lines: list[TimedOp] = []
        self._source = program.result.source
        besides = Besides(program.axes, pricing)
        self._beside = {window.sent.op: besides.of(window) for window in program.windows}
        windows = {number for number, sent in enumerate(program.sent) if sent.op in self._beside}
        apart = [op for op in operations_in(module) if _number(op) in windows] if windows else ()
        self._together = combined_sizes(module, program.traits, pricing.machine.combines, apart)
        self._sent: dict[int, tuple[int, OpPrice]] = {}
        self._outside = [0, 0.0]  # of loops: kernels, and the seconds of all
        # Times, seconds, operations, bytes, kernels and seconds of waiting, by op, place and limit.
        self._done: dict[tuple[str, str, str, str, str], list[float]] = {}
        self._numbers: dict[int, int | None] = {}  # of collectives, by the kinds of ops
        self._origins: dict[Any, tuple[Origin, tuple[str, str]]] = {}  # with lines and stacks, by location

    def add(self, which: int, times: int, around: Sequence[Around]) -> None:
        """Adds an op of the program, by its number in the graph, that runs so often in all."""
        graph, item = self.pricing.graph, None
        op, name, kind = graph.ops[which], graph.plain[which], graph.kinds[which]
        origin, place = self._origin(op)
        if kind not in self._numbers:
            self._numbers[kind] = _number(op)
        number = self._numbers[kind]
        if number is not None:
            sent, each, several = (
                self.program.sent[number],
                self.program.collectives[number],
                self._together.get(op, 1),
            )
            price = self.pricing.of_collective(each, which, several)
            hidden = 0.0
            if beside := self._beside.get(sent.op):
                price = replace(price, seconds=beside.exposed)
                hidden = max(beside.apart - beside.beside, 0.0)
            if self.timeline is not None:
                work = _work(each.kind, origin, (each.where, each.stack), price)
                leads = sent.kind == "all_gather"
                work = work._replace(
                    axes=each.axes, hidden=hidden, leads=leads, number=number, serves=each.op
                )
                self.timeline.add(work, times, around)
            item = self.program.names.item(sent.purpose)
            self._sent[number] = self._sent.get(number, (0, price))[0] + times, price
        else:
            price = self.pricing.of(which)
            key = name, *place, price.limited, price.sure
            row = self._done.setdefault(key, [0.0] * 6)
            waits = self.pricing.waits(which, price)
            amounts = (1, price.seconds, price.flops, price.bytes, price.launches, waits)
            for i, amount in enumerate(amounts):
                row[i] += amount * times
            if self.timeline is not None:
                self.timeline.add(_work(name, origin, place, price), times, around)
        if not self.pricing.in_loop(which):
            self._outside[0] += price.launches * times
            self._outside[1] += price.seconds * times
        self.lines.append(TimedOp(origin, price.seconds * times, price.limited, item))

    def late(self) -> float:
        """The seconds for which a GPU waits for kernels outside of loops."""
        launches, seconds = self._outside
        return self.pricing.late(int(launches), seconds)

    def items(self) -> tuple[Item, ...]:
        """The collectives in the order of the program, then its ops."""
        items, needed = list[Item](), self._needed()
        for number, (times, price) in sorted(self._sent.items()):
            each, total = self.program.collectives[number], price.bytes * times
            seconds, causes = price.seconds * times, each.causes
            items.append(
                Item(
                    *(each.kind, each.where, each.stack, times, seconds, 0.0, total, "links"),
                    sure=price.sure,
                    serves=each.op,
                    causes=causes,
                    numbers=(number,),
                )
            )
        done = defaultdict[tuple[str, ...], float](float)
        for (op, where, stack, *_), (_, _, flops, *_) in self._done.items():
            done[op, where, stack] += flops
        for (op, where, stack, limited, sure), (often, took, flops, moved, many, waits) in self._done.items():
            all_ = done[op, where, stack]
            more = max(all_ - needed.get((op, where, stack), 0.0), 0.0)
            more *= flops / all_ if flops else 0.0
            figures = int(often), took, flops, moved, limited, more
            items.append(Item(op, where, stack, *figures, sure, int(many), waits))
        return tuple(items)

    def held(self, most: Peak, memory: str = "device") -> tuple[HeldMemory, ...]:
        """The values at the peak of a memory, by op and place."""
        by_place: dict[tuple[str, str, str], tuple[int, int]] = {}
        for op, size in most.held:
            key = op.operation.name, *self._place(op)
            count, before = by_place.get(key, (0, 0))
            by_place[key] = count + 1, before + size
        ends = (("arguments", most.arguments), ("results", most.results))
        every = [HeldMemory(what, "", "", 1, size, memory) for what, size in ends]
        every += [HeldMemory(*key, *amount, memory) for key, amount in by_place.items()]
        return tuple(sorted((h for h in every if h.bytes), key=lambda h: -h.bytes))

    def usage(self, most: Peak) -> Usage:
        """The memory of the device over the step."""
        lives = (
            Lived(None if op is None else self._origin(op.operation)[0], size, max(first, 0), last)
            for op, size, first, last in most.lives
        )
        return Usage(most.arguments, most.results, max(most.times, 1), tuple(lives))

    def _needed(self) -> dict[tuple[str, str, str], float]:
        """The operations of a device if all devices shared every op evenly, by op and place."""
        module, axes = without_calls(self.program.result.module), self.program.axes
        sizes = dict(axes.mesh.axes) if axes.mesh else {}
        by_place: dict[tuple[str, str, str], float] = {}
        with module.context:
            counts, graph = Executions(module, self.program.traits), self.pricing.graph
            shared: dict[int, float] = {}  # by the op around: the part of a device
            for number, outermost in _computed(graph, module, self.program.traits):
                flops, op = self.pricing.flops(number), graph.ops[number]
                if not flops:
                    continue
                flops *= 1 if outermost else counts.often(op)
                around = graph.parents[number]
                if around not in shared:
                    shared[around] = prod(sizes.get(axis, 1) for axis in _manual_around(op))
                key = graph.plain[number], *self._place(op)
                by_place[key] = by_place.get(key, 0.0) + flops * shared[around] / axes.count
        return by_place

    def _place(self, op: Any) -> tuple[str, str]:
        """The line and the name stack of an op in the user's source; empty if unknown."""
        return self._origin(op)[1]

    def _origin(self, op: Any) -> tuple[Origin, tuple[str, str]]:
        key = op.location.attr
        if key not in self._origins:
            come_from = origin(self._source.location(op))
            self._origins[key] = come_from, come_from.place
        return self._origins[key]


def _work(op: str, origin: Origin, place: tuple[str, str], price: OpPrice) -> Work:
    return Work(op, origin, *place, price.seconds, price.flops, price.bytes, price.limited)


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


def _number(op: Any) -> int | None:
    """The number of a collective of the program; None for other ops."""
    return ir.IntegerAttr(op.attributes[NUMBER]).value if NUMBER in op.attributes else None


def _manual_around(op: Any) -> list[str]:
    """The manual axes of surrounding computations. The op's types are types of a part along them."""
    manual: list[str] = []
    while (op := op.parent.operation).name != "func.func":
        manual += boundary_axes(op)
    return manual


def _computed(graph: OpGraph, module: ir.Module, traits: OpTraits) -> Iterator[tuple[int, bool]]:
    """The ops of the main function that are work, by their numbers, of a module that the graph takes down.

    Each comes with whether it is in the function itself, and not in a loop or a branch. The regions of other
    ops belong to these ops.
    """
    functions = symbols(module, "func.func")
    main = functions[main_function(functions)].operation
    (start,) = (n for n in graph.add(module) if graph.ops[n] == main)
    for number in range(start + 1, graph.ends[start]):
        op, name, parent = graph.ops[number], graph.plain[number], graph.plain[graph.parents[number]]
        if (traits.lowering(name) in _FREE or name.startswith(_NO_WORK)) and NUMBER not in op.attributes:
            continue
        if parent == "func.func" or traits.lowering(parent) in ("loop", "branches", "body"):
            yield number, graph.parents[number] == start
