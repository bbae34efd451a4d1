"""The choice of shardings, value by value: what another one costs, and why one was taken."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ...cost.machine import machine
from ...errors import ShardlogError
from ...importers.annotations import valid_sharding
from ...program.shardings import Sharding
from ...runs.options import machine_of_costs
from ...runs.records.record import Run, Value, in_memory
from ...runs.table import plural
from .values import Values

if TYPE_CHECKING:
    from ...partition.layouts import Axes, Layout
    from ...runs.executing.partitioned import Partitioned
    from ...runs.result import Result

_PIN = re.compile(r"(?P<value>\S.*?)\s*=\s*(?P<sharding>[<\[].*)", re.DOTALL)
_MOST_OTHERS = 4


@dataclass(frozen=True)
class Total:
    """What a program costs: the bytes that a device sends, the seconds that it takes on the machine, and the
    bytes of memory that it needs."""

    bytes: int
    seconds: float
    memory: int


@dataclass(frozen=True)
class Move:
    """Collectives that only one of two programs has: their kind, what they move (a slot of an op, which holds
    ``value``) and where, how many there are, and the bytes that they send."""

    collective: str
    op: str
    slot: str
    value: str
    where: str
    count: int
    bytes: int


@dataclass(frozen=True)
class Change:
    """Two programs side by side: what each costs, and the collectives that only one of them has."""

    before: Total
    after: Total
    gone: tuple[Move, ...]
    new: tuple[Move, ...]


@dataclass(frozen=True)
class Pin:
    """A value that is pinned: how it is sharded then, a text per dimension, how it is sharded without the
    pin, over which axes it is partial sums then, and what propagation said."""

    value: str
    pinned: tuple[str, ...]
    chosen: tuple[str, ...]
    partial: str
    propagated: tuple[str, ...]


@dataclass(frozen=True)
class Pinned:
    """What pins change in the program whose values are sharded as costs least; ``topology`` is the machine on
    which times are counted."""

    topology: str
    pins: tuple[Pin, ...]
    change: Change

    def __str__(self) -> str:
        from ..answers.pinned_text import pinned_text

        return pinned_text(self)

    def as_json(self) -> dict[str, Any]:
        """The change as JSON has it."""
        return asdict(self)


@dataclass(frozen=True)
class Other:
    """A sharding that a value could have had, a text per dimension and the axes over which it would be
    partial sums, and what everything would cost more if it alone were so: in bytes that are sent, or, on a
    machine, in as many bytes as could be sent in the time, and in ``seconds``."""

    dims: tuple[str, ...]
    partial: str
    more: float
    seconds: float | None


@dataclass(frozen=True)
class Chosen:
    """Why a value is sharded otherwise than propagation said: how it is (and over which axes it is partial
    sums), what propagation said, what changes if that binds it, and the shardings that lost. ``least`` is
    what the choice makes least in all: "bytes" that are sent, or "time" on the topology."""

    value: str
    topology: str
    least: str
    dims: tuple[str, ...]
    partial: str
    propagated: tuple[str, ...]
    otherwise: Change
    lost: tuple[Other, ...]

    def __str__(self) -> str:
        from ..answers.pinned_text import chosen_text

        return chosen_text(self)

    def as_json(self) -> dict[str, Any]:
        """The explanation as JSON has it."""
        return asdict(self)


def pin(run: Run, texts: Sequence[str], topology: str | None) -> Pinned:
    """What changes in the program whose values are sharded as least moves, or as takes least time on a
    machine, if some are sharded as ``texts`` say. Raises ShardlogError for values that no op computes, for
    no shardings, and for two of one value."""
    result = in_memory(run)
    given = read_pins(result, texts)
    shardings = {value: sharding for value, (_, sharding) in given.items()}
    before = result.partition(keep_shardings=False, topology=topology)
    after = result.partition(keep_shardings=False, topology=topology, pins=shardings)
    pins = tuple(
        Pin(
            named.name,
            _dims(after.axes, after.axes.layout(sharding, tuple(value.type.shape))),
            _dims(before.axes, _home(result, before, value)),
            _partial(before.axes, _home(result, before, value)),
            _dims(before.axes, _propagated(result, before.axes, value)),
        )
        for value, (named, sharding) in given.items()
    )
    counted = machine_of_costs(topology)
    return Pinned(counted, pins, _change(before, after, counted))


def read_pins(result: Result, texts: Sequence[str]) -> dict[Any, tuple[Value, Sharding]]:
    """The values of the annotated module that are pinned, what they are called, and their shardings; raises
    as ``pin``."""
    given = dict[Any, tuple[Value, Sharding]]()
    for text in texts:
        for value, (named, sharding) in _read(result, text):
            if given.setdefault(value, (named, sharding))[1] != sharding:
                hint = "one pin for each value"
                raise ShardlogError(f"{named.name} is pinned twice", where=f"--pin '{text}'", hint=hint)
    return given


def chosen(run: Run, name: str, topology: str | None) -> tuple[Chosen, ...]:
    """Why values of a name are sharded otherwise than propagation said, in the program whose values are
    sharded as least moves, or as takes least time on a machine; those that are not are left out."""
    result = in_memory(run)
    program = result.partition(keep_shardings=False, topology=topology)
    found, counted = [], machine_of_costs(topology)
    speed = None if topology is None else machine(topology).link.bandwidth
    for named in Values(result.record).find(name):
        value = _computed(result, named)
        if value is None or program.found is None or value not in program.homes:
            continue
        kept = _sharding(result, value)
        bound = result.partition(keep_shardings=False, topology=topology, pins={value: kept})
        lost = (
            Other(_dims(program.axes, other), _partial(program.axes, other), more, speed and more / speed)
            for other, more in program.found.others.get(value, ())[:_MOST_OTHERS]
        )
        change, others = _change(program, bound, counted), tuple(lost)
        found += [
            Chosen(
                named.name,
                counted,
                "bytes" if topology is None else "time",
                _dims(program.axes, home),
                _partial(program.axes, home),
                _dims(program.axes, _propagated(result, program.axes, value)),
                change,
                others,
            )
            for home in program.homes[value]  # one for each call of a function may be another
        ]
    return tuple(found)


def is_computed(run: Run, name: str) -> bool:
    """Whether a value of this name is the result of an op: others are as the boundary or a loop has them."""
    result = in_memory(run)
    return any(_computed(result, named) is not None for named in Values(result.record).find(name))


# ---- Values -----------------------------------------------------------------------------------------------


def _read(result: Result, text: str) -> list[tuple[Any, tuple[Value, Sharding]]]:
    """The values that a pin is about, in the annotated module, and their sharding."""
    where = f"--pin '{text}'"
    match = _PIN.fullmatch(text.strip())
    if match is None:
        hint = """expected a value and its sharding, as in %2=[{"data"}, {}]"""
        raise ShardlogError("not a value and a sharding", where=where, hint=hint)
    with result.module.context, ir.Location.unknown():
        attribute = valid_sharding(result.module, match["sharding"], where)
        found = []
        for named in Values(result.record).find(match["value"]):
            value = _computed(result, named)
            if value is None:
                hint = "pin results of ops; arguments and results of the program are annotated (--annotate)"
                raise ShardlogError(f"{named.name} is not computed by an op", where=where, hint=hint)
            sharding = result.program.shardings.read(attribute, where)
            if len(sharding.dimensions) != len(value.type.shape):
                given = plural(len(sharding.dimensions), "dimension")
                message = f"{given} for {named.name} : {named.type}"
                raise ShardlogError(message, where=where, hint="one {...} for each dimension")
            _check_plain(sharding, where)
            _check_manual(named, sharding, where)
            found.append((value, (named, sharding)))
    return found


def _check_plain(sharding: Sharding, where: str) -> None:
    """Refuses what a sharding may say beside the axes of its dimensions: a pin has the value lie so, and says
    nothing of other axes."""
    extra = {
        "replicated axes": sharding.replicated,
        "unreduced axes": sharding.unreduced,
        "priorities": [dim for dim in sharding.dimensions if dim.priority is not None],
    }
    for what, given in extra.items():
        if given:
            hint = """expected the axes of each dimension alone, as in [{"data"}, {}]"""
            raise ShardlogError(f"a pin has no {what}", where=where, hint=hint)


def _check_manual(named: Value, sharding: Sharding, where: str) -> None:
    """Refuses axes along which a value in a ``shard_map`` is a device's own part."""
    used = {axis.name for dim in sharding.dimensions for axis in dim.axes}
    for axis, place in named.manual:
        if axis in used:
            message = f'{named.name} is a device\'s own part along "{axis}" already'
            hint = f"in the shard_map at {place} nothing else is sharded along it"
            raise ShardlogError(message, where=where, hint=hint)


def _computed(result: Result, named: Value) -> Any:
    """The result of an op in the annotated module that a value is, or None."""
    for operation, item in result.items.items():
        values = result.record.op(item).values
        results = values[len(operation.operands) :]
        if named.number in results:
            return operation.results[results.index(named.number)]
    return None


def _sharding(result: Result, value: Any) -> Sharding:
    """The sharding that propagation gave a value."""
    operation, shardings = value.owner, result.program.shardings
    with result.module.context, ir.Location.unknown():
        if "sdy.sharding" not in operation.attributes:
            return Sharding.open(0, len(value.type.shape))
        found = sdy.TensorShardingPerValueAttr(operation.attributes["sdy.sharding"]).shardings
        return shardings.read(list(found)[value.result_number])


def _home(result: Result, program: Partitioned, value: Any) -> Layout:
    return next(iter(program.homes.get(value, ())), _propagated(result, program.axes, value))


def _propagated(result: Result, axes: Axes, value: Any) -> Layout:
    return axes.layout(_sharding(result, value), tuple(value.type.shape))


def _dims(axes: Axes, layout: Layout) -> tuple[str, ...]:
    return tuple(",".join(axes.names(pieces)) for pieces in layout.dims)


def _partial(axes: Axes, layout: Layout) -> str:
    return ",".join(axes.names(layout.partial))


# ---- Two programs -----------------------------------------------------------------------------------------


def _change(before: Partitioned, after: Partitioned, topology: str) -> Change:
    moves = [_moves(program) for program in (before, after)]
    return Change(
        _total(before, topology),
        _total(after, topology),
        _only(moves[0], moves[1]),
        _only(moves[1], moves[0]),
    )


def _total(program: Partitioned, topology: str) -> Total:
    cost = program.cost(topology)
    return Total(round(cost.sent), cost.seconds, cost.peak)


Key = tuple[str, str, str, str, str, int]


def _moves(program: Partitioned) -> Counter[Key]:
    """How many collectives of each kind a program has, by what they are for and the bytes of all turns."""
    return Counter((c.kind, c.op, c.slot, c.value, c.where, c.total) for c in program.collectives)


def _only(some: Counter[Key], others: Counter[Key]) -> tuple[Move, ...]:
    found = [Move(*key[:5], count, key[5] * count) for key, count in (some - others).items()]
    return tuple(sorted(found, key=lambda move: (-move.bytes, move.where, move.value)))
