"""The notation of pins: a value and its sharding, as in ``%2=[{"data"}, {}]``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir

from ...errors import ShardlogError
from ...importers.annotations import valid_sharding
from ...importers.specs import NOTATION
from ...program.shardings import Sharding
from ...rulebook.traits import OpTraits
from ...runs.records.record import TensorValue
from ...runs.result import Result
from ...runs.table import plural
from .values import Values

_PIN = re.compile(r"(?P<value>\S.*?)\s*=\s*(?P<sharding>(?:[<\[]|" + NOTATION + r").*)", re.DOTALL)


def read_pins(result: Result, texts: Sequence[str]) -> dict[Any, tuple[TensorValue, Sharding]]:
    """The pinned values of the annotated module, their names, and their shardings. Raises like ``pin``."""
    given = dict[Any, tuple[TensorValue, Sharding]]()
    for text in map(str, texts):
        for value, (named, sharding) in _read(result, text):
            if given.setdefault(value, (named, sharding))[1] != sharding:
                hint = "one pin for each value"
                raise ShardlogError(f"{named.name} is pinned twice", where=f"--pin '{text}'", hint=hint)
    return given


def _read(result: Result, text: str) -> list[tuple[Any, tuple[TensorValue, Sharding]]]:
    """The values of a pin in the annotated module, and their sharding. Regions beside each other may use
    one name for several values. Then it is for those with as many dimensions whose sharding is chosen."""
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
    computed = [(each, op_result(result, each.number)) for each in named]
    computed = [(each, value) for each, value in computed if value is not None]
    if not computed:
        has_definer = result.record.definer(named[0].number) >= 0
        if has_definer and named[0].name.startswith("@"):
            hint = "calls that are sharded alike have one function: pin it in the first of these"
            raise ShardlogError(f"{named[0].name} is not pinned alone", where=where, hint=hint)
        if has_definer:
            message, hint = (
                f"{named[0].name} is made wherever it is needed",
                "pin a value that is computed from it",
            )
            raise ShardlogError(message, where=where, hint=hint)
        hint = "pin results of ops; arguments and results of the program are annotated (--annotate)"
        raise ShardlogError(f"{named[0].name} is not computed by an op", where=where, hint=hint)
    fitting = [pair for pair in computed if len(pair[0].shape) == len(sharding.dimensions)]
    if not fitting:
        raise _misfit([each for each, _ in computed], sharding, where)
    fitting = [pair for pair in fitting if not is_made(pair[1], result.book.traits)] or fitting
    for each, _ in fitting:
        _check_manual(each, sharding, where)
    return [(value, (each, sharding)) for each, value in fitting]


def _misfit(named: Sequence[TensorValue], sharding: Sharding, where: str) -> ShardlogError:
    """The error where a sharding has not as many dimensions as any of the values of a name."""
    types = list(dict.fromkeys(f"{each.name} : {each.type}" for each in named))
    message = f"{plural(len(sharding.dimensions), 'dimension')} for {' and '.join(types)}"
    hint = "one {...} for each dimension"
    hint += "; FILE:LINE stands for the values of one line" if len(types) > 1 else ""
    return ShardlogError(message, where=where, hint=hint)


def _check_plain(sharding: Sharding, where: str) -> None:
    """Refuses everything in a sharding but the axes of its dimensions: a pin sets the layout of the value,
    and says nothing about other axes."""
    extra = {
        "replicated axes": sharding.replicated,
        "unreduced axes": sharding.unreduced,
        "priorities": [dim for dim in sharding.dimensions if dim.priority is not None],
    }
    for noun, given in extra.items():
        if given:
            hint = """expected the axes of each dimension alone, as in [{"data"}, {}]"""
            raise ShardlogError(f"a pin has no {noun}", where=where, hint=hint)


def _check_manual(named: TensorValue, sharding: Sharding, where: str) -> None:
    """Refuses axes along which a value in a ``shard_map`` is a device's own part."""
    used = {axis.name for dim in sharding.dimensions for axis in dim.axes}
    for axis, place in named.manual:
        if axis in used:
            message = f'{named.name} is a device\'s own part along "{axis}" already'
            hint = f"in the shard_map at {place} nothing else is sharded along it"
            raise ShardlogError(message, where=where, hint=hint)


def is_made(value: Any, traits: OpTraits) -> bool:
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


def op_result(result: Result, number: int) -> Any:
    """The result of an op in the annotated module that a value is, or None."""
    for operation, item in result.items.items():
        values = result.record.op(item).values
        results = values[len(operation.operands) :]
        if number in results:
            return operation.results[results.index(number)]
    return None
