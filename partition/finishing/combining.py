"""Independent collectives over equal groups become one.

Permutations become one as well if no device sends twice and none receives twice: each device sends its data
to its only receiver. So a rotation of a dimension, whose first part gets rows of the last one, is one step.

A collective may be anywhere between its operand and the first use of its result. The ops of a block are
reordered so that independent collectives of one kind, over the same groups, are adjacent. These are written
as one op, up to a size, because each step of a collective takes time whatever it carries. Their data is put
side by side, because XLA's partitioner accepts no collectives of several tensors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir

from ...importers.listing import Listing, listing_of
from ...program.columns import told_apart, unique
from ...program.elements import bits_of, dtype_of, size_of
from ...program.mlir.modules import children
from ...program.mlir.types import Operation
from ...rulebook.traits import OpTraits
from ..executions import Executions, has_effect
from ..writing.building import PAIRS, Sent, dense, disjoint, element_of, pairs_of, shape_of
from .collectives import DIMENSIONS, FROM_EACH, HAND_ON, KINDS, WriterBefore, count

# Bytes of the results of one op: copying more costs as much as the steps of a collective.
_COPIED_BYTES = 1 << 20
NUMBER = "shardlog.number"  # the attribute with the number of a collective in a program
_OWN = frozenset({"channel_handle", NUMBER})  # attributes of a collective that do not change its result
_APART = DIMENSIONS | _OWN  # those that need not be equal
_WINDOW = 256  # the most ops by which a collective is moved, because live ranges grow


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
        for block in _blocks(module, traits, listing):
            if _each_needs_the_last(block.needs, block.collectives):
                continue
            sends = _sending(
                block.collectives,
                block.needs,
                apart,
                lambda op, data: _key(op, data) if op.name in names else None,
                executions,
            )
            for group in _groups(block.operations, block.needs, sends, _any, _COPIED_BYTES):
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


def sent_once(module: ir.Module, traits: OpTraits, sent: Sequence[Sent] = ()) -> list[Sent]:
    """The collectives of a module without duplicates, which are erased, as compilers do."""
    with module.context:
        repeats = _repeats(module, traits)
        gone = {block.operations[n] for block, instead in repeats for n in instead}
        left = [each for each in sent if each.op not in gone]  # before they are
        _erase(repeats)
    return left


def erase_repeats(module: ir.Module, traits: OpTraits, listing: Listing) -> bool:
    """Erases the duplicate collectives of a module with this listing. Returns whether there are any."""
    with module.context:
        repeats = _repeats(module, traits, listing)
        _erase(repeats)
    return any(instead for _, instead in repeats)


def _repeats(
    module: ir.Module, traits: OpTraits, listing: Listing | None = None
) -> list[tuple[_Block, dict[int, int]]]:
    return [(block, _repeated(block, traits, ())) for block in _blocks(module, traits, listing)]


def _erase(repeats: Iterable[tuple[_Block, Mapping[int, int]]]) -> None:
    for block, instead in repeats:
        _without(block, instead)


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
        for block in _blocks(module, traits):
            repeated = _repeated(block, traits, apart)
            for n in repeated:
                gone(block.operations[n])
            operations, needs, place = _without(block, repeated)
            left = {place[n]: each for n, each in block.collectives.items() if n in place}
            if _each_needs_the_last(needs, left):
                continue
            sends = _sending(left, needs, apart, key, executions)
            groups = _groups(operations, needs, sends, fits, most)
            if not groups:
                continue
            _reorder(operations, needs, groups)
            for group in groups:
                some = [operations[n] for n in group]
                write(some, some[-1])
                for op in some:
                    op.erase()


@dataclass(frozen=True)
class _Block:
    """The ops of a block, with the numbers of the ops that each needs: the makers of its operands, of values
    that ops in its regions use, and the previous op with an effect. Also whether all of its operands have
    other users, and their names. ``collectives`` are those of the block by number, each with its look: what
    those share whose types and regions are equal."""

    operations: list[Any]
    needs: list[list[int]]
    shares: npt.NDArray[np.bool_]
    names: list[str]
    collectives: dict[int, tuple[Any, Hashable]]
    listing: Listing
    numbers: list[int]

    def takes(self, n: int) -> list[int]:
        """The operands of an op, by their numbers."""
        begin, end = self.listing.operand_offsets[self.numbers[n] : self.numbers[n] + 2]
        return cast(list[int], self.listing.operands[begin:end].tolist())

    def gives(self, n: int) -> range:
        """The results of an op, by their numbers."""
        first = int(self.listing.first_results[self.numbers[n]])
        return range(first, first + int(self.listing.results[self.numbers[n]]))


def _blocks(module: ir.Module, traits: OpTraits, listing: Listing | None = None) -> list[_Block]:
    """The blocks of a module that contain collectives."""
    listing, blocks = listing or listing_of(module), []
    firsts, which = told_apart(listing.kinds)
    called = [listing.ops[n].name for n in firsts.tolist()]  # by kind
    sends, effects = (
        np.asarray([each(name) for name in called], bool)[which]
        for each in (KINDS.__contains__, lambda name: has_effect(name, traits))
    )
    definers, operands = listing.definers[listing.operands], listing.operand_offsets
    definers[listing.operands < 0] = -1
    taken = listing.operands[listing.operands >= 0]
    alone = (listing.operands >= 0) & (np.bincount(taken, minlength=1)[listing.operands] < 2)
    before = np.append(0, np.cumsum(alone))
    shares = before[operands[1:]] == before[operands[:-1]]
    for region in dict.fromkeys(listing.regions[sends].tolist()):
        block = np.nonzero(listing.regions == region)[0]
        count = len(block)
        place = np.full(len(listing.ops) + 1, -1, np.int64)  # the last one is for block arguments
        place[block] = np.arange(count)
        # Pairs of an op and one that it needs: users in regions count for the op around them.
        many = operands[listing.ends[block]] - operands[block]
        makers = place[definers[operands[block[0]] : operands[listing.ends[block[-1]]]]]
        users, ordered = np.repeat(np.arange(count), many)[makers >= 0], np.flatnonzero(effects[block])
        pairs = np.concatenate([users * count + makers[makers >= 0], ordered[1:] * count + ordered[:-1]])
        needers, needed = np.divmod(unique(pairs), count)
        bounds, flat = np.searchsorted(needers, np.arange(count + 1)).tolist(), needed.tolist()
        numbers = block.tolist()
        ops = [listing.ops[number] for number in numbers]
        collectives = {n: (ops[n], _look(listing, numbers[n])) for n in np.flatnonzero(sends[block]).tolist()}
        names = [called[kind] for kind in which[block].tolist()]
        needs = [flat[a:b] for a, b in pairwise(bounds)]
        blocks.append(_Block(ops, needs, shares[block], names, collectives, listing, numbers))
    return blocks


def _look(listing: Listing, number: int) -> Hashable:
    """Equal for ops with equal types, and equal ops in their regions."""
    end, offsets = int(listing.ends[number]), listing.operand_offsets
    first = int(listing.first_results[number])
    inside = listing.operands[offsets[number + 1] : offsets[end]] - first
    values = [*range(first, first + int(listing.results[number]))]
    values += listing.operands[offsets[number] : offsets[number + 1]].tolist()
    types = listing.types[values].tolist()
    return *types, -1, *listing.kinds[number + 1 : end].tolist(), -1, *inside.tolist()


# ---- Duplicates -----------------------------------------------------------------------------------------


def _repeated(block: _Block, traits: OpTraits, apart: Collection[Operation]) -> dict[int, int]:
    """The duplicate collectives of a block, each with the first one, by number. XLA would find these, but not
    after they are combined."""
    operations = block.operations
    return {
        n: first
        for n, first in _equal(block, traits).items()
        if block.names[n] in KINDS and operations[n] not in apart
    }


def _without(
    block: _Block, instead: Mapping[int, int]
) -> tuple[list[Any], list[list[int]], Mapping[int, int]]:
    """The ops of a block and their needs, with erased ops replaced by the ones ``instead``; and the new
    numbers of the others."""
    operations, needs = block.operations, block.needs
    if not instead:
        return operations, needs, dict(enumerate(range(len(operations))))
    for n, first in instead.items():
        operations[n].results[0].replace_all_uses_with(operations[first].results[0])
    kept = [n for n in range(len(operations)) if n not in instead]
    place = {n: i for i, n in enumerate(kept)}
    fewer = [sorted({place[instead.get(m, m)] for m in needs[n]}) for n in kept]
    for n in instead:
        operations[n].erase()
    return [operations[n] for n in kept], fewer, place


def _equal(block: _Block, traits: OpTraits) -> dict[int, int]:
    """The ops of a block that compute the same as an earlier one, with the first of these. Equal ops have
    equal operands, so only ops whose operands all have other users are compared, and users of equal ops."""
    operations, names = block.operations, block.names
    candidates = np.flatnonzero(block.shares).tolist()
    if not _some_equal(block, candidates, traits):  # which is quick to find, and so in most blocks
        return {}
    same: dict[int, int] = {}  # for values that are computed again, the first equal one
    firsts, compared = dict[int, int](), set[int]()
    takes: dict[
        Hashable, tuple[int, dict[Hashable, int]]
    ] = {}  # the same: the first op, and what each computes
    users = list[list[int]]([] for _ in operations)

    def look(n: int) -> None:
        compared.add(n)
        key = names[n], *[same.get(value, value) for value in block.takes(n)]
        first, does = takes.setdefault(key, (n, {}))
        if first == n:  # reading attributes is slower than reading operands
            return
        for m in (n,) if does else (first, n):
            what = _what_it_does(operations[m], traits)
            other = does.setdefault(m if what is None else what, m)
        if other != n:
            firsts[n] = other
            same.update(zip(block.gives(n), block.gives(other), strict=True))

    shares = block.shares.tolist()
    for n, needed in enumerate(block.needs):
        for m in needed:
            if m in firsts:
                before, users[firsts[m]] = users[firsts[m]], []
                for user in before:
                    if user not in compared:
                        look(user)
        if shares[n] or not firsts.keys().isdisjoint(needed):
            look(n)
        for m in needed:
            users[firsts.get(m, m)].append(n)
    return firsts


def _some_equal(block: _Block, candidates: Sequence[int], traits: OpTraits) -> bool:
    """Whether two of some ops compute the same from the same operands."""
    takes: dict[Hashable, list[int]] = {}
    for n in candidates:
        takes.setdefault((block.names[n], *block.takes(n)), []).append(n)
    for some in takes.values():
        if len(some) > 1:
            does = [_what_it_does(block.operations[n], traits) for n in some]
            computations = [computation for computation in does if computation is not None]
            if len(set(computations)) < len(computations):
                return True
    return False


def _what_it_does(op: Operation, traits: OpTraits) -> Hashable | None:
    """Equal for ops of one name that compute equal results from equal operands; None for an op like no
    other."""
    if (
        has_effect(op.name, traits) or traits.lowering(op.name) == "pass"
    ):  # values that are passed on may be kept apart
        return None
    try:
        attributes = tuple([(a, v) for a, v in op.attributes.items() if a not in _OWN])
    except TypeError:  # MLIR's bindings do not read constants of complex numbers
        return None
    return attributes, combination(op), tuple(r.type for r in op.results)


# ---- Groups ---------------------------------------------------------------------------------------------


@dataclass
class _Sends:
    """A collective of a block: the number of its op, the key of those that it can be combined with, the bytes
    of its result, the first collective that needs it (``by``), and the number of senders of a permutation."""

    place: int
    key: Hashable
    size: int
    by: int
    senders: int


def _each_needs_the_last(needs: Sequence[Sequence[int]], collectives: Collection[int]) -> bool:
    """Whether each collective of a block needs the one before, so that no two are independent."""
    latest, before = list[int](), -1  # for each op the last collective that it needs, or is
    for n, needed in enumerate(needs):
        last = max([latest[m] for m in needed], default=-1)
        if n in collectives:
            if last != before:
                return False
            last = before = n
        latest.append(last)
    return True


def _groups(
    operations: Sequence[Operation],
    needs: Sequence[Sequence[int]],
    sends: dict[int, _Sends],
    fits: Callable[[list[Any], Any], bool],
    most: int,
) -> list[list[int]]:
    """The collectives of a block that become one, in order, by number.

    Of the collectives that depend on no other pending one, the one that is needed first runs, with all those
    that it can be combined with.
    """
    users = list[list[int]]([] for _ in operations)
    for n, needed in enumerate(needs):
        for m in needed:
            users[m].append(n)
    missing = [len(needed) for needed in needs]
    ready: dict[Hashable, dict[int, _Sends]] = defaultdict(dict)
    queue, groups = list[tuple[int, int]](), list[list[int]]()

    def run(waiting: list[int]) -> None:
        """Runs ops whose needs are met, and those that become ready, up to the next collectives."""
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
            small = total + each.size <= most
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
    collectives: Mapping[int, tuple[Any, Hashable]],
    needs: Sequence[Sequence[int]],
    apart: Collection[Operation],
    key: _Key,
    executions: Executions,
) -> dict[int, _Sends]:
    """The collectives of a block, by the numbers of their ops. Loop-invariant data is sent only once, unless
    it is combined with other data."""
    by_op, by = dict[int, _Sends](), [len(needs)] * len(needs)
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
            by_op[n] = _Sends(n, n if own is None else (times, own), data.size, first, senders)
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


def combination(op: Operation) -> Hashable:
    """Equal for regions that combine two values by the same op, and for ops without regions."""
    if not len(op.regions):
        return ""
    combining, *rest = children(op) if len(op.regions) == 1 else (op,)
    given = [v.arg_number if isinstance(v, ir.BlockArgument) else -1 for v in combining.operands]
    plain = given == [0, 1] and len(rest) == 1 and not len(combining.attributes)
    same = plain and list(rest[0].operands) == list(combining.results)
    return str(combining.name) if same else id(op)  # unlike any other


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


# ---- The order of ops -----------------------------------------------------------------------------------


def _reorder(
    operations: Sequence[Operation], needs: Sequence[Sequence[int]], groups: Sequence[Sequence[int]]
) -> None:
    """Reorders the ops of a block so that each group is adjacent, at the first use of any of its results."""
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
    """Reorders ops of a block that are out of place."""
    first, done = 0, [False] * len(operations)  # the first op that does not follow those placed so far
    for n in order:
        while done[first]:
            first += 1
        if n != first:
            operations[n].move_before(operations[first])
        done[n] = True


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
