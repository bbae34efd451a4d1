"""Collectives over equal groups become one where neither needs what the other gives.

Permutations in which none sends and none receives who does in another become one as well: each device sends
what it has for the only other that it sends to. So a rotation of a dimension, whose first part gets rows
of the last one, is one step.

A collective can stand anywhere from where its operand is made to where its result is used first. The ops of a
block are put in another order, such that collectives of one kind, over the same groups, that do not need each
other stand together, and these are written as one op, up to a size: each step of a collective takes time,
whatever it carries. What they send is put side by side, for XLA's partitioner takes no collectives of several
tensors. One by itself is written so, too, where it is of columns and runs on CPUs (``send_rows``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir

from ..importers.listing import listing_of
from ..program.elements import bits_of, dtype_of, size_of
from ..program.mlir.modules import children, ops_in
from ..rulebook.book import lowerings
from .building import PAIRS, dense, disjoint, element_of, pairs_of
from .neutral import neutral, zero

_MOST = 1 << 20  # bytes of the results of one op: to copy more costs as much as the steps of a collective
NUMBER = "shardlog.number"  # the attribute of a collective that says which one of a program it is
_OWN = frozenset({"channel_handle", NUMBER})  # attributes of a collective that say nothing of what it does
_LANES, _SUBLANES = 128, 8  # elements in a row of a tile of a TPU's memory, and rows
_WINDOW = 256  # ops by which a collective is moved at most: what it takes or gives lives longer
_HAND_ON = frozenset(  # they combine nothing, so what they carry may have any type
    f"stablehlo.{kind}" for kind in ("all_gather", "all_to_all", "collective_permute")
)
KINDS = _HAND_ON | {"stablehlo.all_reduce", "stablehlo.reduce_scatter"}


def combine(module: ir.Module, apart: Collection[Any] = ()) -> None:
    """Combines the collectives of a module over equal groups, but for those that stay ``apart``."""
    _join(module, apart, _key, lambda group, op: True, _combine)


def permute_at_once(module: ir.Module, apart: Collection[Any] = ()) -> None:
    """Makes one of the permutations of a module in which no device sends twice, and none receives, but for
    those that stay ``apart``."""
    _join(module, apart, _permuted, disjoint, partial(_permute, _devices(module)))


def send_rows(module: ir.Module) -> None:
    """Writes gathers and scatters of a module as those of rows where their parts are not one behind the other
    in memory: XLA for CPUs would turn all of the tensor, element by element, so that they are."""
    with module.context, ir.Location.unknown():
        for op in [each.operation for each in ops_in(module)]:
            if len(op.operands) == 1 and _lies_apart(op):
                _combine([op], op)
                op.erase()


def suit_tiles(module: ir.Module, apart: Collection[Any] = ()) -> None:
    """Writes what XLA for TPUs would send twice, or does not know, as what it sends once: gathers of vectors
    that fill no tiles as those of rows, scatters of parts that end inside of tiles as those of whole
    matrices, and scattered sums of numbers in two parts as exchanges and sums. Gathers of such vectors are
    combined, but for those that stay ``apart``: they are small, and sums XLA would combine."""
    _join(module, apart, lambda op: _key(op) if _is_loose(op) else id(op), lambda group, op: True, _combine)
    with module.context, ir.Location.unknown():
        for op in [each.operation for each in ops_in(module)]:
            if _is_loose(op):
                _gather_row(op)
            elif len(op.operands) == 1 and op.name == "stablehlo.reduce_scatter" and _has_two_parts(op):
                _exchange_and_combine(op)
            elif len(op.operands) == 1 and op.name == "stablehlo.reduce_scatter" and _ends_in_tile(op):
                _scatter_matrices(op)


def _is_loose(gather: Any) -> bool:
    """Whether parts are gathered one behind the other, and are vectors that end inside of a row of a tile."""
    if gather.name != "stablehlo.all_gather" or len(gather.operands) != 1:
        return False
    shape = _shape(gather.operands[0])
    behind = prod(shape[: _dimension(gather, _FROM_EACH[gather.name])]) == 1
    return behind and prod(shape) == max(shape, default=1) > 1 and prod(shape) % _LANES != 0


def _gather_row(op: Any) -> None:
    """Writes a gather of a vector as that of a row. The barrier keeps XLA from taking it for one again."""
    write, value = _Writer(op, op.location), op.operands[0]
    row = write.reshaped(value, [1, prod(_shape(value))])
    row = write.one("stablehlo.optimization_barrier", [row], row.type, {})
    attributes = {a: _integer(0) if a in _DIMENSIONS else v for a, v in op.attributes.items()}
    made = write.one(op.name, [row], write.type([_count(op), *_shape(row)[1:]], row), attributes)
    op.results[0].replace_all_uses_with(write.reshaped(made, _shape(op.results[0])))
    op.erase()


def _ends_in_tile(scatter: Any) -> bool:
    """Whether sums that TPUs scatter are so in parts that are larger than a tile and end inside of one."""
    if not isinstance(element_of(scatter.operands[0]), ir.F32Type | ir.BF16Type):
        return False
    shape, d = _shape(scatter.results[0]), _dimension(scatter, _TO_EACH[scatter.name])
    *others, rows, columns = _matrices(shape)
    if prod(others) * rows * -(-columns // _LANES) <= _SUBLANES:
        return False
    if len(shape) == 1:  # of which it makes no matrix itself
        return shape[0] % (_SUBLANES * _LANES) == 0
    if d == len(others) + 1:
        return columns % _LANES != 0
    return d == len(others) and prod(others) == 1 and rows % _SUBLANES != 0  # else it lays it out otherwise


def _matrices(shape: Sequence[int]) -> list[int]:
    """The shape of what fills tiles as well: a vector as a matrix of their rows."""
    return [prod(shape) // _LANES, _LANES] if len(shape) == 1 else list(shape)


def _scatter_matrices(op: Any) -> None:
    """Writes a scatter as one of matrices, as many to each device as are in its part."""
    write, n = _Writer(op, op.location), _count(op)
    *others, rows, columns = _matrices(_shape(op.results[0]))
    part = [prod(others), rows, columns]
    value = write.reshaped(_rows(write, op), [n * part[0], *part[1:]])
    attributes = {a: _integer(0) if a in _DIMENSIONS else v for a, v in op.attributes.items()}
    made = ir.Operation.create(
        op.name,
        results=[write.type(part, value)],
        operands=[value],
        attributes=attributes,
        regions=1,
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    op.regions[0].blocks[0].append_to(made.regions[0])
    op.results[0].replace_all_uses_with(write.reshaped(made.results[0], _shape(op.results[0])))
    op.erase()


def _has_two_parts(op: Any) -> bool:
    """Whether elements are complex, or so wide that TPUs have them as two numbers."""
    element = element_of(op.operands[0])
    return isinstance(element, ir.ComplexType | ir.F64Type)


def _exchange_and_combine(op: Any) -> None:
    """Writes a reduce-scatter as an all-to-all, and what combines the parts that a device gets."""
    write, value = _Writer(op, op.location), op.operands[0]
    d, n, shape = _dimension(op, _TO_EACH[op.name]), _count(op), _shape(value)
    along = {"split_dimension": _integer(d), "concat_dimension": _integer(d), "split_count": _integer(n)}
    kept = {a: op.attributes[a] for a in ("channel_handle", "replica_groups") if a in op.attributes}
    parts = write.one("stablehlo.all_to_all", [value], value.type, along | kept)
    parts = write.reshaped(parts, [*shape[:d], n, shape[d] // n, *shape[d + 1 :]])
    start = write.neutral(children(op)[0].name, element_of(value))
    made = ir.Operation.create(
        "stablehlo.reduce",
        results=[op.results[0].type],
        operands=[parts, start],
        attributes={"dimensions": ir.DenseI64ArrayAttr.get([d])},
        regions=1,
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    op.regions[0].blocks[0].append_to(made.regions[0])
    op.results[0].replace_all_uses_with(made.results[0])
    op.erase()


def _lies_apart(op: Any) -> bool:
    """Whether the parts of what is scattered or gathered are several pieces of memory each."""
    if (op.name in _TO_EACH) == (op.name in _FROM_EACH):  # who sends to each and gets of each sends pieces
        return False
    scatters = op.name in _TO_EACH
    whole, name = (op.operands[0], _TO_EACH[op.name]) if scatters else (op.results[0], _FROM_EACH[op.name])
    return prod(_shape(whole)[: _dimension(op, name)]) > 1


def _join(
    module: ir.Module,
    apart: Collection[Any],
    key: Callable[[Any], Hashable],
    fits: Callable[[list[Any], Any], bool],
    write: Callable[[list[Any], Any], None],
) -> None:
    """Writes collectives with equal keys, of which each fits those before it, as one where neither needs what
    the other gives."""
    with module.context, ir.Location.unknown():
        for block in _blocks(module):
            operations, needs = _once(block, apart)
            groups = _groups(operations, needs, _sending(operations, needs, apart, key), fits)
            if not groups:
                continue
            _reorder(operations, needs, groups)
            for group in groups:
                some = [operations[n] for n in group]
                write(some, some[-1])
                for op in some:
                    op.erase()


class _Block(NamedTuple):
    """The ops of a block; those of them that each needs, by number: those that make what it takes, or what
    ops in its regions take from outside, and of ops with an effect the one before; and whether all that it
    takes is taken by others as well."""

    operations: list[Any]
    needs: list[list[int]]
    shares: list[bool]


def _blocks(module: ir.Module) -> list[_Block]:
    """The blocks of a module that have collectives."""
    listing, found = listing_of(module), []
    names, regions = [op.name for op in listing.ops], listing.regions.tolist()
    effects = {name: has_effect(name) for name in set(names)}
    definers, operands = listing.definers[listing.operands], listing.operand_offsets
    definers[listing.operands < 0] = -1
    taken = listing.operands[listing.operands >= 0]
    alone = (listing.operands >= 0) & (np.bincount(taken, minlength=1)[listing.operands] < 2)
    before = np.append(0, np.cumsum(alone))
    shares = before[operands[1:]] == before[operands[:-1]]
    for region in dict.fromkeys([regions[n] for n, name in enumerate(names) if name in KINDS]):
        block = np.nonzero(listing.regions == region)[0]
        place = np.full(len(names) + 1, -1, np.int32)  # the last one for the arguments of blocks
        place[block] = np.arange(len(block))
        makers, starts = place[definers].tolist(), operands[block].tolist()
        ends = operands[listing.ends[block]].tolist()
        needs, effect = list[list[int]](), -1
        for n, number in enumerate(block.tolist()):
            needed = set(makers[starts[n] : ends[n]])
            if effects[names[number]]:
                needed.add(effect)
                effect = n
            needed.discard(-1)
            needs.append(sorted(needed))
        ops = [listing.ops[number] for number in block.tolist()]
        found.append(_Block(ops, needs, shares[block].tolist()))
    return found


def has_effect(name: str) -> bool:
    """Whether ops so named, or ops in their regions, may do more than give results: they keep their order."""
    return name == "stablehlo.custom_call" or lowerings().get(name) in _IN_ORDER


_IN_ORDER = frozenset({"spread", "loop", "branches", "call", "composite"})  # ways in which ops become local


# ---- What is sent once ----------------------------------------------------------------------------------


def _once(block: _Block, apart: Collection[Any]) -> tuple[list[Any], list[list[int]]]:
    """The ops of a block and what each needs, without collectives that send what one before them does. XLA
    would find these, but not in what is put side by side."""
    operations, needs, _ = block
    equal, instead = _equal(block), dict[int, int]()
    for n, first in equal.items():
        op = operations[n]
        if op.name in KINDS and op not in apart:
            instead[n] = first
            op.results[0].replace_all_uses_with(operations[first].results[0])
    if not instead:
        return operations, needs
    kept = [n for n in range(len(operations)) if n not in instead]
    place = {n: i for i, n in enumerate(kept)}
    fewer = [sorted({place[instead.get(m, m)] for m in needs[n]}) for n in kept]
    for n in instead:
        operations[n].erase()
    return [operations[n] for n in kept], fewer


def _equal(block: _Block) -> dict[int, int]:
    """The ops of a block that give what one before them does, and the first of those. Ops that are equal take
    what is equal, so only those are looked at that share all they take, and those behind equal ones."""
    operations, needs, shares = block
    same: dict[Any, Any] = {}  # for values that are made again, the first that is equal
    first, found, known = dict[Hashable, int](), dict[int, int](), set[int]()
    users = list[list[int]]([] for _ in operations)

    def look(n: int) -> None:
        known.add(n)
        key = _key_of_value(operations[n], same)
        if key is not None and (other := first.setdefault(key, n)) < n:
            found[n] = other
            same.update(zip(operations[n].results, operations[other].results, strict=True))

    for n, needed in enumerate(needs):
        for m in needed:
            if m in found:
                before, users[found[m]] = users[found[m]], []
                for user in before:
                    if user not in known:
                        look(user)
        if shares[n] or not found.keys().isdisjoint(needed):
            look(n)
        for m in needed:
            users[found.get(m, m)].append(n)
    return found


def _key_of_value(op: Any, same: Mapping[Any, Any]) -> Hashable | None:
    """Equal for ops that give equal values; None for one of its own."""
    if has_effect(op.name) or lowerings().get(op.name) == "pass":  # what is passed on may be kept apart
        return None
    operands = tuple([same.get(operand, operand) for operand in op.operands])
    try:
        attributes = tuple([(a, v) for a, v in op.attributes.items() if a not in _OWN])
    except TypeError:  # MLIR's bindings do not read constants of complex numbers
        return None
    return op.name, operands, attributes, _body(op), tuple(r.type for r in op.results)


# ---- Which become one -----------------------------------------------------------------------------------


@dataclass
class _Sends:
    """A collective of a block: the number of its op, what those that are like it have in common, the bytes of
    its result, the first collective that needs it (``by``), and how many devices send, if it is a
    permutation."""

    place: int
    key: Hashable
    size: int
    by: int
    senders: int


def _groups(
    operations: Sequence[Any],
    needs: Sequence[Sequence[int]],
    sends: dict[int, _Sends],
    fits: Callable[[list[Any], Any], bool],
) -> list[list[int]]:
    """The collectives of a block that become one, in turn, by number.

    Of the collectives that need no other one that has not run, the one that is needed first runs, together
    with those that are like it.
    """
    users = list[list[int]]([] for _ in operations)
    for n, needed in enumerate(needs):
        for m in needed:
            users[m].append(n)
    missing = [len(needed) for needed in needs]
    ready: dict[Hashable, dict[int, _Sends]] = defaultdict(dict)
    queue, groups = list[tuple[int, int]](), list[list[int]]()

    def run(waiting: list[int]) -> None:
        """Runs ops that miss nothing, and what needs nothing besides, up to the next collectives."""
        while waiting:
            for n in users[waiting.pop()]:
                missing[n] -= 1
                if not missing[n]:
                    reach(n, waiting)

    def reach(n: int, waiting: list[int]) -> None:
        each = sends.get(n)
        if each is None:
            waiting.append(n)
        else:
            ready[each.key][n] = each
            heappush(queue, (each.by, n))

    first_ones = list[int]()
    for n, needed in enumerate(needs):
        if not needed:
            reach(n, first_ones)
    run(first_ones)
    while queue:
        first = sends[heappop(queue)[1]]
        alike = ready[first.key]
        if first.place not in alike:
            continue
        group, total = [first], first.size
        # Permutations of most devices first: only those of few fit beside these.
        for each in sorted(alike.values(), key=lambda each: -each.senders):
            near = each is not first and abs(each.place - first.place) <= _WINDOW
            small = total + each.size <= _MOST
            if near and small and fits([operations[e.place] for e in group], operations[each.place]):
                group.append(each)
                total += each.size
        for each in group:
            del alike[each.place]
        places = sorted(each.place for each in group)
        if len(group) > 1:
            groups.append(places)
        run([*places])
    return groups


def _sending(
    operations: Sequence[Any],
    needs: Sequence[Sequence[int]],
    apart: Collection[Any],
    key: Callable[[Any], Hashable],
) -> dict[int, _Sends]:
    """The collectives of a block, by the numbers of their ops."""
    found, by = dict[int, _Sends](), [len(operations)] * len(operations)
    for n in reversed(range(len(operations))):
        op, first = operations[n], by[n]
        if op.name in KINDS:
            alike = len(op.operands) == 1 and op not in apart
            senders = len(pairs_of(op)) if PAIRS in op.attributes else 0
            found[n] = _Sends(n, key(op) if alike else n, size_of(str(op.results[0].type)), first, senders)
            first = n
        for m in needs[n]:
            by[m] = min(by[m], first)
    return found


def _key(op: Any) -> Hashable:
    """Equal for collectives that can become one: the kind, the groups, how they combine, and the type of
    elements, or how many bits these have."""
    attributes = tuple([(a, v) for a, v in op.attributes.items() if a not in _OF_ONE])
    element = element_of(op.operands[0])
    convertible = dtype_of(str(element)) and not isinstance(element, ir.ComplexType)
    carried = bits_of(str(element)) if op.name in _HAND_ON and convertible else element
    return op.name, attributes, _body(op), carried


def _body(op: Any) -> Hashable:
    """Equal for ops that combine two values by the same op, and those without regions."""
    if not len(op.regions):
        return ""
    combining, *rest = children(op) if len(op.regions) == 1 else (op,)
    given = [v.arg_number if isinstance(v, ir.BlockArgument) else -1 for v in combining.operands]
    plain = given == [0, 1] and len(rest) == 1 and not len(combining.attributes)
    same = plain and list(rest[0].operands) == list(combining.results)
    return str(combining.name) if same else id(op)  # one of its own


def _devices(module: ir.Module) -> int:
    """The devices that a module is for."""
    given = module.operation.attributes
    return max(
        int(ir.IntegerAttr(given[name]).value) for name in ("mhlo.num_partitions", "mhlo.num_replicas")
    )


def _permuted(op: Any) -> Hashable:
    """Equal for permutations that can become one if they are disjoint: the type of what is sent."""
    alike = PAIRS in op.attributes and not isinstance(element_of(op.operands[0]), ir.ComplexType)
    return op.operands[0].type if alike else id(op)


# ---- Where they stand -----------------------------------------------------------------------------------


def _reorder(
    operations: Sequence[Any], needs: Sequence[Sequence[int]], groups: Sequence[Sequence[int]]
) -> None:
    """Puts the ops of a block in an order in which each group stands together, where the first of its
    results is needed."""
    group_of = {n: group for group in groups for n in group}
    last, order, done = len(operations) - 1, list[int](), [False] * len(operations)
    for number in range(last):
        waiting = [] if number in group_of else [number]
        while waiting:
            together = group_of.get(waiting[-1], (waiting[-1],))
            missing = [m for n in together for m in needs[n] if not done[m]]
            waiting += reversed(missing)
            if not missing:
                waiting.pop()
                for n in together:
                    if not done[n]:
                        order.append(n)
                        done[n] = True
    _put(operations, order)


def _put(operations: Sequence[Any], order: Sequence[int]) -> None:
    """Puts ops of a block that are not at their places in an order."""
    first, done = 0, [False] * len(operations)  # the first op that is not behind those put so far
    for n in order:
        while done[first]:
            first += 1
        if n != first:
            operations[n].move_before(operations[first])
        done[n] = True


# ---- One op in place of several -------------------------------------------------------------------------


def _combine(group: list[Any], before: Any) -> None:
    """Writes the collective of a group of them: what each sends lies in rows, one for each device that it is
    for, side by side."""
    write = _Writer(before, group[0].location)
    first = group[0]
    rows = write.of_one_type([_rows(write, op) for op in group])
    widths = [_shape(row)[1] for row in rows]
    together = write.concatenated(rows)
    given = _count(first) if first.name in _FROM_EACH else 1
    attributes = {a: _integer(0) if a in _DIMENSIONS else v for a, v in first.attributes.items()}
    made = ir.Operation.create(
        first.name,
        results=[write.type([given, sum(widths)], together)],
        operands=[together],
        attributes=attributes,
        regions=len(first.regions),
        loc=first.location,
        ip=ir.InsertionPoint(before),
    )
    if len(first.regions):
        first.regions[0].blocks[0].append_to(made.regions[0])
    at = 0
    for op, width in zip(group, widths, strict=True):
        part = write.columns(made.results[0], at, at + width)
        op.results[0].replace_all_uses_with(_unfolded(write, op, part))
        at += width


def _permute(count: int, group: list[Any], before: Any) -> None:
    """Writes the permutation in which each of ``count`` devices sends what it sends in one of a group. Who
    receives nothing has zeros."""
    write, first = _Writer(before, group[0].location), group[0]
    pairs = [pairs_of(op) for op in group]
    device = "stablehlo.partition_id" if "channel_handle" in first.attributes else "stablehlo.replica_id"
    value = first.operands[0]
    for op, each in zip(group[1:], pairs[1:], strict=True):
        value = write.where(_listed(each[:, 0], count), device, op.operands[0], value)
    together = dense(np.concatenate(pairs))
    attributes = {a: together if a == PAIRS else v for a, v in first.attributes.items()}
    ip = ir.InsertionPoint(before)
    made = ir.Operation.create(first.name, [value.type], [value], attributes, loc=first.location, ip=ip)
    zeros = write.zeros(value.type)
    for op, each in zip(group, pairs, strict=True):
        received = write.where(_listed(each[:, 1], count), device, made.results[0], zeros)
        op.results[0].replace_all_uses_with(received)


def _listed(devices: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.bool_]:
    """Whether each of so many devices is among some."""
    return np.isin(np.arange(count), devices)


def _integer(value: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


# The dimension along which there is a part for each device, and that along which there is one from each.
_TO_EACH = {"stablehlo.reduce_scatter": "scatter_dimension", "stablehlo.all_to_all": "split_dimension"}
_FROM_EACH = {"stablehlo.all_gather": "all_gather_dim", "stablehlo.all_to_all": "concat_dimension"}
_DIMENSIONS = frozenset({*_TO_EACH.values(), *_FROM_EACH.values()})
_OF_ONE = _DIMENSIONS | _OWN


def _count(op: Any) -> int:
    """The devices of a group."""
    found: int = ir.ShapedType(op.attributes["replica_groups"].type).shape[1]
    return found


def _dimension(op: Any, name: str) -> int:
    found: int = ir.IntegerAttr(op.attributes[name]).value
    return found


def _rows(write: _Writer, op: Any) -> Any:
    """What a device sends in a collective: a row for each device that it is for."""
    value = op.operands[0]
    if op.name not in _TO_EACH:
        return write.reshaped(value, [1, prod(_shape(value))])
    d, n, shape = _dimension(op, _TO_EACH[op.name]), _count(op), _shape(value)
    split = write.reshaped(value, [*shape[:d], n, shape[d] // n, *shape[d + 1 :]])
    order = [d, *(e for e in range(len(shape) + 1) if e != d)]
    return write.reshaped(write.transposed(split, order), [n, prod(shape) // n])


def _unfolded(write: _Writer, op: Any, part: Any) -> Any:
    """The result of a collective, of what came in rows, one from each device."""
    shape = _shape(op.results[0])
    part = write.as_type(part, element_of(op.results[0]))
    if op.name not in _FROM_EACH:
        return write.reshaped(part, shape)
    d, n = _dimension(op, _FROM_EACH[op.name]), _count(op)
    split = write.reshaped(part, [n, *shape[:d], shape[d] // n, *shape[d + 1 :]])
    order = [*range(1, d + 1), 0, *range(d + 1, len(shape) + 1)]
    return write.reshaped(write.transposed(split, order), shape)


def _shape(value: Any) -> list[int]:
    return list(ir.RankedTensorType(value.type).shape)


@dataclass
class _Writer:
    """Writes ops before another one."""

    before: Any
    loc: Any

    def type(self, shape: Sequence[int], like: Any) -> Any:
        return ir.RankedTensorType.get(list(shape), element_of(like))

    def of_one_type(self, values: Sequence[Any]) -> list[Any]:
        """Values whose elements have as many bits, with elements of one type."""
        elements = {element_of(value) for value in values}
        if len(elements) == 1:
            return list(values)
        bits = ir.IntegerType.get_unsigned(bits_of(str(elements.pop())))
        return [self.as_type(value, bits) for value in values]

    def as_type(self, value: Any, element: Any) -> Any:
        """The bits of a value, as elements of another type."""
        if element_of(value) == element:
            return value
        type_ = ir.RankedTensorType.get(_shape(value), element)
        return self.one("stablehlo.bitcast_convert", [value], type_, {})

    def reshaped(self, value: Any, shape: Sequence[int]) -> Any:
        same = _shape(value) == list(shape)
        return value if same else self.one("stablehlo.reshape", [value], self.type(shape, value), {})

    def transposed(self, value: Any, order: Sequence[int]) -> Any:
        if list(order) == list(range(len(order))):
            return value
        shape, given = _shape(value), {"permutation": ir.DenseI64ArrayAttr.get(list(order))}
        return self.one("stablehlo.transpose", [value], self.type([shape[d] for d in order], value), given)

    def concatenated(self, values: Sequence[Any]) -> Any:
        if len(values) == 1:
            return values[0]
        width = sum(_shape(value)[1] for value in values)
        made = self.type([_shape(values[0])[0], width], values[0])
        return self.one("stablehlo.concatenate", list(values), made, {"dimension": _integer(1)})

    def columns(self, value: Any, start: int, end: int) -> Any:
        rows, width = _shape(value)
        if end - start == width:
            return value
        given = {
            "start_indices": ir.DenseI64ArrayAttr.get([0, start]),
            "limit_indices": ir.DenseI64ArrayAttr.get([rows, end]),
            "strides": ir.DenseI64ArrayAttr.get([1, 1]),
        }
        return self.one("stablehlo.slice", [value], self.type([rows, end - start], value), given)

    def where(self, listed: npt.NDArray[np.bool_], device: str, value: Any, other: Any) -> Any:
        """A value on the devices that are listed, and another one elsewhere. ``device`` is the op that gives
        a device's number."""
        i32 = ir.IntegerType.get_signless(32)
        scalar = ir.RankedTensorType.get([], i32)
        table = dense(listed.astype(np.int32))
        unsigned = ir.RankedTensorType.get([], ir.IntegerType.get_unsigned(32))
        place = self.one("stablehlo.convert", [self.one(device, [], unsigned, {})], scalar, {})
        held = self.one("stablehlo.constant", [], table.type, {"value": table})
        one = {"slice_sizes": ir.DenseI64ArrayAttr.get([1])}
        found = self.one("stablehlo.dynamic_slice", [held, place], ir.RankedTensorType.get([1], i32), one)
        answer = ir.RankedTensorType.get([], ir.IntegerType.get_signless(1))
        here = self.one("stablehlo.convert", [self.one("stablehlo.reshape", [found], scalar, {})], answer, {})
        return self.one("stablehlo.select", [here, value, other], value.type, {})

    def zeros(self, type_: Any) -> Any:
        return self.constant(zero(type_.element_type), type_)

    def neutral(self, combine: str, element: Any) -> Any:
        type_ = ir.RankedTensorType.get([], element)
        if not isinstance(element, ir.ComplexType):
            return self.constant(neutral(combine, element), type_)
        real = ir.RankedTensorType.get([], ir.ComplexType(element).element_type)
        return self.one("stablehlo.convert", [self.constant(neutral(combine, element), real)], type_, {})

    def constant(self, number: str, type_: Any) -> Any:
        value = ir.Attribute.parse(f"dense<{number}> : {type_}")
        return self.one("stablehlo.constant", [], type_, {"value": value})

    def one(self, name: str, operands: list[Any], type_: Any, attributes: dict[str, Any]) -> Any:
        ip = ir.InsertionPoint(self.before)
        made = ir.Operation.create(name, [type_], operands, attributes, loc=self.loc, ip=ip)
        return made.results[0]
