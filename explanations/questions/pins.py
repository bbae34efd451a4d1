"""The choice of shardings, value by value: what another one costs, and why one was taken."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ...cost.machine import machine
from ...errors import ShardlogError
from ...importers.annotations import valid_sharding
from ...importers.specs import NOTATION
from ...program.shardings import Sharding
from ...rulebook.traits import OpTraits
from ...runs.choice import ProgramChoice
from ...runs.options import machine_of_costs
from ...runs.records.record import Run, Value, in_memory
from ...runs.table import plural
from .values import Values

if TYPE_CHECKING:
    from ...partition.layouts import Axes, Layout
    from ...runs.executing.partitioned import Partitioned
    from ...runs.result import Result

_PIN = re.compile(r"(?P<value>\S.*?)\s*=\s*(?P<sharding>(?:[<\[]|" + NOTATION + r").*)", re.DOTALL)
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
    stack: str
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
    """What pins change in the ``program`` that is meant without them; ``topology`` is the machine on which
    times are counted."""

    program: ProgramChoice
    topology: str
    pins: tuple[Pin, ...]
    change: Change

    def __str__(self) -> str:
        from ..answers.pinned_text import pinned_text

        return pinned_text(self)

    def as_json(self) -> dict[str, Any]:
        """The change as JSON has it."""
        return asdict(self) | {"program": str(self.program)}


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
    """Why a value is sharded otherwise than propagation said in the ``program`` that is meant: how it is (and
    over which axes it is partial sums), what propagation said, what changes if that binds it, and the
    shardings that lost. ``least`` is what the choice makes least in all: "bytes" that are sent, or "time" on
    the topology. ``carried``: that is about what a loop carries for the value, which may be sharded otherwise
    behind the loop."""

    program: ProgramChoice
    value: str
    carried: bool
    topology: str
    least: str
    dims: tuple[str, ...]
    partial: str
    propagated: tuple[str, ...]
    otherwise: Change
    lost: tuple[Other, ...]

    def __str__(self) -> str:
        from ..answers.pinned_text import chosen_text

        return f"{self.program.line}\n{chosen_text(self)}"

    def as_json(self) -> dict[str, Any]:
        """The explanation as JSON has it."""
        return asdict(self) | {"program": str(self.program)}


def pin(run: Run, texts: Sequence[str], choice: ProgramChoice) -> Pinned:
    """What changes in the program that is meant if some values are sharded as ``texts`` say. Raises
    ShardlogError for values that no op computes, for no shardings, and for two of one value."""
    result = in_memory(run)
    given = read_pins(result, texts)
    before, after = (result.program_of(replace(choice, pins=pins)) for pins in ((), texts))
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
    counted = machine_of_costs(choice.topology)
    return Pinned(before.choice, counted, pins, _change(before, after, counted))


def read_pins(result: Result, texts: Sequence[str]) -> dict[Any, tuple[Value, Sharding]]:
    """The values of the annotated module that are pinned, what they are called, and their shardings; raises
    as ``pin``."""
    given = dict[Any, tuple[Value, Sharding]]()
    for text in map(str, texts):
        for value, (named, sharding) in _read(result, text):
            if given.setdefault(value, (named, sharding))[1] != sharding:
                hint = "one pin for each value"
                raise ShardlogError(f"{named.name} is pinned twice", where=f"--pin '{text}'", hint=hint)
    return given


def chosen(run: Run, name: str, choice: ProgramChoice) -> tuple[Chosen, ...]:
    """Why values of a name are sharded otherwise than propagation said in the program that is meant; those
    that are not are left out."""
    result, topology = in_memory(run), choice.topology
    program, pinned = result.program_of(choice), result.pins_of(result, choice.pins)
    found, counted = [], machine_of_costs(topology)
    speed = None if topology is None else machine(topology).link.bandwidth
    for value, (named, given) in _asked(result, name).items():
        if program.found is None or value not in program.homes:
            continue
        kept = _sharding(result, given)
        given_too: Any = {"pins": pinned | {value: kept}}
        bound = result.partition(**choice.options | given_too)
        lost = (
            Other(_dims(program.axes, other), _partial(program.axes, other), more, speed and more / speed)
            for other, more in program.found.others.get(value, ())[:_MOST_OTHERS]
        )
        change, others = _change(program, bound, counted), tuple(lost)
        propagated = _propagated(result, program.axes, given)
        found += [
            Chosen(
                choice,
                named.name,
                value != given,
                counted,
                "bytes" if topology is None else "time",
                _dims(program.axes, home),
                _partial(program.axes, home),
                _dims(program.axes, propagated),
                change,
                others,
            )
            for home in program.homes[value]  # one for each call of a function may be another
            if home != propagated
        ]
    return tuple(found)


def unchosen(run: Run, name: str) -> str:
    """What is to be said of values of a name that ``chosen`` leaves out."""
    result = in_memory(run)
    named = Values(result.record).find(name)
    if all(result.record.is_boundary(value.number) for value in named):
        return "the boundary of the program binds it: what ops compute and loops carry is chosen"
    values = [value for value in _asked(result, name) if not _is_call(value, result.book.traits)]
    if values and all(_is_made(value, result.book.traits) for value in values):
        return "it is made wherever it is needed, in the part that is needed there"
    if values:
        return "the choice has it as propagation says"
    asked = (
        "what ops compute and loops carry can be asked about, of calls that are sharded alike in the first"
    )
    return f"only {asked}; `shardlog why --collective N` says how what moves is sharded"


# ---- Values -----------------------------------------------------------------------------------------------


def _read(result: Result, text: str) -> list[tuple[Any, tuple[Value, Sharding]]]:
    """The values that a pin is about, in the annotated module, and their sharding: of those of a name, as
    regions beside each other may have it, those that have as many dimensions, and are chosen."""
    where = f"--pin '{text}'"
    match = _PIN.fullmatch(text.strip())
    if match is None:
        hint = """expected a value and its sharding, as in %2=[{"data"}, {}]"""
        raise ShardlogError("not a value and a sharding", where=where, hint=hint)
    named = Values(result.record).find(match["value"])
    ranks = {len(each.shape) for each in named}
    with result.module.context, ir.Location.unknown():
        rank = ranks.pop() if len(ranks) == 1 else None
        attribute = valid_sharding(result.module, match["sharding"], where, rank)
        sharding = result.program.shardings.read(attribute, where)
    _check_plain(sharding, where)
    computed = [(each, _result(result, each.number)) for each in named]
    computed = [(each, value) for each, value in computed if value is not None]
    if not computed:
        made = result.record.definer(named[0].number) >= 0
        if made and named[0].name.startswith("@"):
            hint = "calls that are sharded alike have one function: pin it in the first of these"
            raise ShardlogError(f"{named[0].name} is not pinned alone", where=where, hint=hint)
        if made:
            message, hint = f"{named[0].name} is made wherever it is needed", "pin what is computed of it"
            raise ShardlogError(message, where=where, hint=hint)
        hint = "pin results of ops; arguments and results of the program are annotated (--annotate)"
        raise ShardlogError(f"{named[0].name} is not computed by an op", where=where, hint=hint)
    fitting = [pair for pair in computed if len(pair[0].shape) == len(sharding.dimensions)]
    if not fitting:
        raise _misfit([each for each, _ in computed], sharding, where)
    fitting = [pair for pair in fitting if not _is_made(pair[1], result.book.traits)] or fitting
    for each, _ in fitting:
        _check_manual(each, sharding, where)
    return [(value, (each, sharding)) for each, value in fitting]


def _misfit(named: Sequence[Value], sharding: Sharding, where: str) -> ShardlogError:
    """The error where a sharding has not as many dimensions as any of the values of a name."""
    types = list(dict.fromkeys(f"{each.name} : {each.type}" for each in named))
    message = f"{plural(len(sharding.dimensions), 'dimension')} for {' and '.join(types)}"
    hint = "one {...} for each dimension"
    hint += "; FILE:LINE stands for the values of one line" if len(types) > 1 else ""
    return ShardlogError(message, where=where, hint=hint)


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


def _asked(result: Result, name: str) -> dict[Any, tuple[Value, Any]]:
    """The values of the annotated module that a name stands for: results of ops, and what loops carry for
    such; each with how it is called, and the result of an op for which propagation says how it is sharded."""
    found = dict[Any, tuple[Value, Any]]()
    for named in Values(result.record).find(name):
        value = _result(result, named.number)
        if value is not None:
            found.setdefault(value, (named, value))
        given = _result(result, named.place)  # what loops are given and carry has the place of their result
        if given is not None and result.book.traits.lowering(given.owner.operation.name) == "loop":
            carried = given.owner.regions[1].blocks[0].arguments[given.result_number]
            found.setdefault(carried, (named, given))
    return found


def _is_call(value: Any, traits: OpTraits) -> bool:
    """Whether a value is what a function gives, which is as that has it, and not as propagation says."""
    owner = value.owner
    return not isinstance(owner, ir.Block) and traits.lowering(owner.operation.name) in ("call", "composite")


def _is_made(value: Any, traits: OpTraits) -> bool:
    """Whether a value is made of no data, or of one element, wherever it is needed: how it is sharded is
    not chosen."""
    if isinstance(value.owner, ir.Block):
        return False
    how, types = (
        traits.lowering(value.owner.operation.name),
        [operand.type for operand in value.owner.operands],
    )
    scalar = len(types) == 1 and isinstance(types[0], ir.RankedTensorType) and types[0].rank == 0
    return how in ("constant", "iota") or (how == "parts" and scalar and value.type.rank > 0)


def _result(result: Result, number: int) -> Any:
    """The result of an op in the annotated module that a value is, or None."""
    for operation, item in result.items.items():
        values = result.record.op(item).values
        results = values[len(operation.operands) :]
        if number in results:
            return operation.results[results.index(number)]
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


Key = tuple[str, str, str, str, str, str, int]


def _moves(program: Partitioned) -> Counter[Key]:
    """How many collectives of each kind a program has, by what they are for and the bytes of all turns."""
    return Counter((c.kind, c.op, c.slot, c.value, c.where, c.stack, c.total) for c in program.collectives)


def _only(some: Counter[Key], others: Counter[Key]) -> tuple[Move, ...]:
    found = [Move(*key[:6], count, key[6] * count) for key, count in (some - others).items()]
    return tuple(sorted(found, key=lambda move: (-move.bytes, move.where, move.value)))
