"""Independent collectives over equal groups become one.

Permutations become one as well if no device sends twice and none receives twice: each device sends its data
to its only receiver. So a rotation of a dimension, whose first part gets rows of the last one, is one step.

A collective may be anywhere between its operand and the first use of its result. The ops of a block are
reordered so that independent collectives of one kind, over the same groups, are adjacent. These are written
as one op, up to a size, because each step of a collective takes time whatever it carries. Their data is put
side by side, because XLA's partitioner accepts no collectives of several tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir

from ....importers.listing import Listing
from ....program.elements import bits_of, dtype_of, size_of
from ....program.mlir.types import Operation
from ....rulebook.traits import OpTraits
from ...executions import Executions
from ...writing.building import PAIRS, Sent, dense, disjoint, element_of, pairs_of, shape_of
from ..collectives import DIMENSIONS, FROM_EACH, HAND_ON, WriterBefore, count
from .blocks import OWN, blocks_of, combination
from .duplicates import repeats_of, without
from .groups import Send, each_needs_the_last, groups_of, reorder

# Bytes of the results of one op: copying more costs as much as the steps of a collective.
_COPIED_BYTES = 1 << 20
_APART = DIMENSIONS | OWN  # those that need not be equal


def combine(
    module: ir.Module,
    traits: OpTraits,
    apart: Collection[Operation] = (),
    which: Callable[[Operation], bool] = lambda op: True,
) -> None:
    """Combines the collectives of a module over equal groups: those that ``which`` selects, except those that
    stay ``apart``."""
    _join(module, traits, apart, lambda op, data: _key(op, data) if which(op) else None, _any, write_as_one)


def combined_sizes(
    module: ir.Module,
    traits: OpTraits,
    kinds: Collection[str],
    apart: Collection[Operation] = (),
    listing: Listing | None = None,
) -> dict[Any, int]:
    """For each collective that is combined, the number of collectives that become one with it. Kinds have
    their HLO names. Those that stay ``apart``, or alone, are left out. The ``listing`` is the module's, where
    it is known."""
    sizes: dict[Any, int] = {}
    if not kinds:
        return sizes
    names = {f"stablehlo.{kind}".replace("-", "_") for kind in kinds}
    with module.context:
        executions = Executions(module, traits)
        for block in blocks_of(module, traits, listing):
            if each_needs_the_last(block.needs, block.collectives):
                continue
            sends = _sending(
                block.collectives,
                block.needs,
                apart,
                lambda op, data: _key(op, data) if op.name in names else None,
                executions,
            )
            for group in groups_of(block.operations, block.needs, sends, _any, _COPIED_BYTES):
                sizes.update(dict.fromkeys([block.operations[n] for n in group], len(group)))
    return sizes


def combine_matrices(
    module: ir.Module,
    traits: OpTraits,
    apart: Collection[Operation],
    columns: Callable[[Any], int | None],
    most: int,
) -> None:
    """Combines collectives like ``combine``, if they send matrices with equal ``columns``, up to ``most``
    bytes. The matrices are concatenated by rows, and not flattened, which needs no copies in tiled memory
    layouts. Collectives without columns stay unchanged."""

    def key(op: Operation, data: _Data) -> Hashable:
        width, own = columns(op), _key(op, data)
        return None if width is None or own is None else (own, element_of(op.operands[0]), width)

    def write(group: list[Any], before: Any) -> None:
        write_as_one(group, before, columns(group[0]))

    _join(module, traits, apart, key, _any, write, most=most)


def _any(group: list[Operation], op: Operation) -> bool:
    return True


def permuted_directly(sent: Sequence[Sent]) -> list[Sent]:
    """The collectives of a module, with two consecutive permutations merged if the second is the only user of
    the first. They occur if several dimensions are reversed. Devices then send directly to the final
    receiver."""
    left = {each.op.results[0]: each for each in sent}  # a changed op is another one to Python
    for second in sent:
        taken, given = second.op.operands[0], second.op.results[0]
        first = left.get(taken) if second.permutes else None
        if first is None or not first.permutes or len(list(taken.uses)) > 1:
            continue
        came = {target: source for source, target in pairs_of(first.op).tolist()}
        pairs = [(came[via], target) for via, target in pairs_of(second.op).tolist() if via in came]
        if not pairs:
            continue
        second.op.attributes[PAIRS] = dense(np.asarray(pairs, np.int64))
        second.op.operands[0] = first.op.operands[0]
        left[given] = _as_one([second, first], second.op)
        del left[taken]
        first.op.erase()
    return list(left.values())


def permuted_at_once(module: ir.Module, sent: Sequence[Sent], traits: OpTraits) -> list[Sent]:
    """The collectives of a module, with permutations merged if no device sends twice and none receives twice;
    duplicates are erased. They occur if several ops need rows of other devices."""
    if sum(each.permutes for each in sent) < 2:
        return list(sent)
    devices, left = _devices(module), {each.op: (n, each) for n, each in enumerate(sent)}

    def write(group: list[Any], before: Any) -> None:
        together = sorted((left.pop(op) for op in group), key=itemgetter(0))
        permutation = _permute(devices, group, before)
        left[permutation] = together[0][0], _as_one([each for _, each in together], permutation)

    _join(module, traits, (), _permuted, disjoint, write, gone=left.pop)
    return [each for _, each in sorted(left.values(), key=itemgetter(0))]


def _as_one(together: Sequence[Sent], op: Any) -> Sent:
    """Permutations as the one that they have become, with all their purposes."""
    pieces = tuple(sorted({piece for each in together for piece in each.pieces}))
    purposes = tuple({id(purpose): purpose for each in together for purpose in each.purposes}.values())
    return replace(together[0], op=op, pieces=pieces, group=len(pairs_of(op)), purposes=purposes)


class _Data(NamedTuple):
    """The data of collectives that look alike: the element type or its number of bits, how values are
    combined (see ``combination``), and the bytes of the result."""

    carried: Any
    how: Hashable
    size: int


# The key of a collective: those with equal keys can be combined. None: it is like no other.
_Key = Callable[[Operation, _Data], Hashable]


def _join(
    module: ir.Module,
    traits: OpTraits,
    apart: Collection[Operation],
    key: _Key,
    fits: Callable[[list[Any], Any], bool],
    write: Callable[[list[Any], Any], None],
    gone: Callable[[Any], object] = lambda op: None,
    most: int = _COPIED_BYTES,
) -> None:
    """Writes independent collectives with equal keys, in order, as one, up to ``most`` bytes. Duplicates are
    then ``gone``."""
    with module.context, ir.Location.unknown():
        executions = Executions(module, traits)
        for block in blocks_of(module, traits):
            repeated = repeats_of(block, traits, apart)
            for n in repeated:
                gone(block.operations[n])
            operations, needs, place = without(block, repeated)
            left = {place[n]: each for n, each in block.collectives.items() if n in place}
            if each_needs_the_last(needs, left):
                continue
            sends = _sending(left, needs, apart, key, executions)
            groups = groups_of(operations, needs, sends, fits, most)
            if not groups:
                continue
            reorder(operations, needs, groups)
            for group in groups:
                some = [operations[n] for n in group]
                write(some, some[-1])
                for op in some:
                    op.erase()


def _sending(
    collectives: Mapping[int, tuple[Any, Hashable]],
    needs: Sequence[Sequence[int]],
    apart: Collection[Operation],
    key: _Key,
    executions: Executions,
) -> dict[int, Send]:
    """The collectives of a block, by the numbers of their ops. Loop-invariant data is sent only once, unless
    it is combined with other data."""
    by_op, by = dict[int, Send](), [len(needs)] * len(needs)
    known: dict[Hashable, _Data] = {}
    often = executions.of_all(next(iter(collectives.values()))[0].block) if collectives else None
    for n in reversed(range(len(needs))):
        first = by[n]
        if n in collectives:
            op, look = collectives[n]
            look = op.name, look
            data = known.get(look) or known.setdefault(look, _data(op))
            own = key(op, data) if len(op.operands) == 1 and op not in apart else None
            times = executions.often(op) if often is None else often
            senders = len(pairs_of(op)) if PAIRS in op.attributes else 0
            by_op[n] = Send(n, n if own is None else (times, own), data.size, first, senders)
            first = n
        for m in needs[n]:
            by[m] = min(by[m], first)
    return by_op


def _data(op: Operation) -> _Data:
    """The data that a collective sends."""
    element = element_of(op.operands[0])
    convertible = dtype_of(str(element)) and not isinstance(element, ir.ComplexType)
    carried = bits_of(str(element)) if op.name in HAND_ON and convertible else element
    return _Data(carried, combination(op), size_of(str(op.results[0].type)))


def _key(op: Operation, data: _Data) -> Hashable:
    """Equal for collectives that can be combined: the kind, the groups, how they combine values, and the
    element type or its number of bits. None for one like no other."""
    attributes = tuple([(a, v) for a, v in op.attributes.items() if a not in _APART])
    return (op.name, attributes, data.how, data.carried) if isinstance(data.how, str) else None


def _devices(module: ir.Module) -> int:
    """The number of devices of a module."""
    given = module.operation.attributes
    return max(
        int(ir.IntegerAttr(given[name]).value) for name in ("mhlo.num_partitions", "mhlo.num_replicas")
    )


def _permuted(op: Operation, data: _Data) -> Hashable:
    """Equal for permutations that can be merged if they are disjoint: the type of the data. None for
    others."""
    alike = PAIRS in op.attributes and not isinstance(element_of(op.operands[0]), ir.ComplexType)
    return op.operands[0].type if alike else None


# ---- One op in place of several -------------------------------------------------------------------------


def write_as_one(group: list[Operation], before: Operation, columns: int | None = None) -> None:
    """Writes the collective of a group. The data is put side by side in rows, one per receiver; with
    ``columns`` as matrices with this many columns, concatenated by rows."""
    first = group[0]
    write = WriterBefore(before, first.location)
    rows = write.of_one_type([write.rows(op) for op in group])
    if columns is not None:
        rows = [write.matrices(row, columns) for row in rows]
    widths = [shape_of(row)[1] for row in rows]
    together = write.concatenated(rows)
    given = count(first) if first.name in FROM_EACH else 1
    received = write.along_first(first, together, write.type([given, *shape_of(together)[1:]], together))
    at = 0
    for op, width in zip(group, widths, strict=True):
        part = write.columns(received, at, at + width)
        op.results[0].replace_all_uses_with(write.unfolded(op, part))
        at += width


def _permute(count: int, group: list[Operation], before: Operation) -> Any:
    """Writes and returns the permutation in which each of ``count`` devices sends its data of one permutation
    of a group. Devices that receive nothing get zeros."""
    write, first = WriterBefore(before, group[0].location), group[0]
    pairs = [pairs_of(op) for op in group]
    device = "stablehlo.partition_id" if "channel_handle" in first.attributes else "stablehlo.replica_id"
    value = first.operands[0]
    for op, each in zip(group[1:], pairs[1:], strict=True):
        value = write.where(_listed(each[:, 0], count), device, op.operands[0], value)
    together = dense(np.unique(np.concatenate(pairs), axis=0))  # in one order, so that equal ones combine
    attributes = {a: together if a == PAIRS else v for a, v in first.attributes.items()}
    sent = write.one(first.name, [value], value.type, attributes)
    zeros = write.zeros(value.type)
    for op, each in zip(group, pairs, strict=True):
        received = write.where(_listed(each[:, 1], count), device, sent, zeros)
        op.results[0].replace_all_uses_with(received)
    return sent.owner.operation


def _listed(devices: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.bool_]:
    """For each of this many devices, whether it is among some."""
    return np.isin(np.arange(count), devices)
