"""The choice of shardings, value by value: the cost of another sharding, and why this one was taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ...cost.machine import machine
from ...partition.layouts import Axes, Layout
from ...program.shardings import Sharding
from ...rulebook.traits import OpTraits
from ...runs.choice import ProgramChoice
from ...runs.options import machine_of_costs
from ...runs.records.record import TensorValue
from ...runs.result import Result
from ..answers.pins import (
    ChangedCollectives,
    ChosenSharding,
    OtherSharding,
    Pin,
    Pinned,
    ProgramChange,
    Total,
)
from ..partitioned import Partitioned, Programs
from .pin_texts import is_made, op_result, read_pins
from .values import Values

_MOST_OTHERS = 4


def pin(programs: Programs, texts: Sequence[str], choice: ProgramChoice) -> Pinned:
    """What changes in the program that is meant if some values are sharded as ``texts`` say. Raises
    ShardlogError for values that no op computes, for no shardings, and for two of one value."""
    result = programs.result
    given = read_pins(result, texts)
    before, after = (programs.of(replace(choice, pins=pins)) for pins in ((), texts))
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


def chosen(programs: Programs, name: str, choice: ProgramChoice) -> tuple[ChosenSharding, ...]:
    """Why the shardings of values with a name differ from propagation's in the chosen program. Values
    without a difference are left out."""
    result, topology = programs.result, choice.topology
    program, pinned = programs.of(choice), programs.pins(choice)
    reasons, counted = [], machine_of_costs(topology)
    speed = None if topology is None else machine(topology).link.bandwidth
    for value, (named, given) in _asked(result, name).items():
        if program.found is None or value not in program.homes:
            continue
        bound = programs.made(replace(choice, pins=()), pinned | {value: _sharding(result, given)})
        lost = (
            OtherSharding(
                _dims(program.axes, other), _partial(program.axes, other), more, speed and more / speed
            )
            for other, more in program.others.get(value, ())[:_MOST_OTHERS]
        )
        change, others = _change(program, bound, counted), tuple(lost)
        propagated = _propagated(result, program.axes, given)
        reasons += [
            ChosenSharding(
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
    return tuple(reasons)


def unchosen(result: Result, name: str) -> str:
    """The answer about values of a name that ``chosen`` leaves out."""
    named = Values(result.record).find(name)
    if all(result.record.is_boundary(value.number) for value in named):
        return (
            "the boundary of the program binds it: only results of ops and values that loops carry are chosen"
        )
    values = [value for value in _asked(result, name) if not _is_call(value, result.book.traits)]
    if values and all(is_made(value, result.book.traits) for value in values):
        return "it is made wherever it is needed, in the part that is needed there"
    if values:
        return "the choice has it as propagation says"
    answered = (
        "results of ops and values that loops carry have an answer; for calls with equal shardings, the first"
    )
    return f"only {answered}; `shardlog why --collective N` shows the shardings of a tensor that moves"


# ---- Values -----------------------------------------------------------------------------------------------


def _asked(result: Result, name: str) -> dict[Any, tuple[TensorValue, Any]]:
    """The values of the annotated module that a name stands for: results of ops, and the values that loops
    carry for them. Each has its name, and the result of an op that has propagation's sharding."""
    by_value = dict[Any, tuple[TensorValue, Any]]()
    for named in Values(result.record).find(name):
        value = op_result(result, named.number)
        if value is not None:
            by_value.setdefault(value, (named, value))
        given = op_result(result, named.place)  # what loops are given and carry has the place of their result
        if given is not None and result.book.traits.lowering(given.owner.operation.name) == "loop":
            carried = given.owner.regions[1].blocks[0].arguments[given.result_number]
            by_value.setdefault(carried, (named, given))
    return by_value


def _is_call(value: Any, traits: OpTraits) -> bool:
    """Whether a value is the result of a call: the function decides its sharding, not propagation."""
    owner = value.owner
    return not isinstance(owner, ir.Block) and traits.lowering(owner.operation.name) in ("call", "composite")


def _sharding(result: Result, value: Any) -> Sharding:
    """The sharding that propagation gave a value."""
    operation, shardings = value.owner, result.program.shardings
    with result.module.context, ir.Location.unknown():
        if "sdy.sharding" not in operation.attributes:
            return Sharding.open(0, len(value.type.shape))
        every = sdy.TensorShardingPerValueAttr(operation.attributes["sdy.sharding"]).shardings
        return shardings.read(list(every)[value.result_number])


def _home(result: Result, program: Partitioned, value: object) -> Layout:
    return next(iter(program.homes.get(value, ())), _propagated(result, program.axes, value))


def _propagated(result: Result, axes: Axes, value: Any) -> Layout:
    return axes.layout(_sharding(result, value), tuple(value.type.shape))


def _dims(axes: Axes, layout: Layout) -> tuple[str, ...]:
    return tuple(",".join(axes.names(pieces)) for pieces in layout.dims)


def _partial(axes: Axes, layout: Layout) -> str:
    return ",".join(axes.names(layout.partial))


# ---- Two programs -----------------------------------------------------------------------------------------


def _change(before: Partitioned, after: Partitioned, topology: str) -> ProgramChange:
    moves = [moves_of(program) for program in (before, after)]
    return ProgramChange(
        _total(before, topology),
        _total(after, topology),
        only(moves[0], moves[1]),
        only(moves[1], moves[0]),
    )


def _total(program: Partitioned, topology: str) -> Total:
    cost = program.cost(topology, step=False)
    return Total(round(cost.sent), cost.seconds, cost.peak)


Key = tuple[str, str, str, str, str, str, int]


def moves_of(program: Partitioned) -> Counter[Key]:
    """How many collectives of each kind a program has, by purpose and the bytes of all executions."""
    return Counter((c.kind, c.op, c.slot, c.value, c.where, c.stack, c.total) for c in program.collectives)


def only(some: Counter[Key], others: Counter[Key]) -> tuple[ChangedCollectives, ...]:
    """The moves that are more in some than in others, most bytes first."""
    moves = [ChangedCollectives(*key[:6], count, key[6] * count) for key, count in (some - others).items()]
    return tuple(sorted(moves, key=lambda move: (-move.bytes, move.where, move.value)))
