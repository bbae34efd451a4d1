"""The manual regions of a block: the ops between ``@SPMDFullToShardShape`` and
``@SPMDShardToFullShape``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ...errors import ShardlogError
from ...program.function import location
from ...program.mlir.modules import called, is_custom_call, is_used, operations_in
from ...program.mlir.types import Operation, Value

FULL_TO_SHARD, SHARD_TO_FULL = "SPMDFullToShardShape", "SPMDShardToFullShape"
PATTERN = "expected @Sharding and @SPMDFullToShardShape for every value that enters a manual region, and "
PATTERN += "@Sharding and @SPMDShardToFullShape for every value that leaves it, as JAX's shard_map writes it"
_ROUND = "a value leaves a manual region and comes back into it"
_APART = "end the region for all of its values, and begin another one"


def crosses(op: Operation) -> bool:
    """Whether a value enters or leaves a manual region by an op."""
    return is_custom_call(op, FULL_TO_SHARD) or is_custom_call(op, SHARD_TO_FULL)


def check_one(op: Operation) -> None:
    """Raises ShardlogError for a custom call of this notation that does not have one result. Another op
    replaces it, so users of a second result would lose their operand."""
    if len(op.operands) != 1 or len(op.results) != 1:
        message = f"{called(op)} has {len(op.operands)} operands and {len(op.results)} results"
        raise ShardlogError(message, where=location(op), hint="expected one operand and one result")


@dataclass
class OpRegion:
    """The ops by which values enter a region and leave it, and the ops inside. Also the values from outside
    that it uses unchanged: scalars, and values that are no tensors."""

    enter: list[Any] = field(default_factory=list)
    inside: list[Any] = field(default_factory=list)
    leave: list[Any] = field(default_factory=list)
    captured: list[Any] = field(default_factory=list)
    first: Any = None

    @property
    def taken(self) -> list[Any]:
        """The values of the region that come from outside, as the region sees them."""
        return [*(op.results[0] for op in self.enter), *self.captured]

    @property
    def location(self) -> ir.Location:
        """The place of its first op."""
        location: ir.Location = [*self.inside, *self.enter, *self.leave][0].location
        return location


@dataclass(eq=False)  # ops are no keys: their hashes depend on their operands
class _BlockEntry:
    """An op of the block, and the values from outside that it or ops in it use. Also its kind in its
    outermost region, and one entry of that region; the first entry has itself."""

    op: Any
    taken: list[Any]
    kind: str = ""
    first: Any = None

    @property
    def region(self) -> _BlockEntry:
        while self.first.first is not self.first:
            self.first = self.first.first
        first: _BlockEntry = self.first
        return first


class Regions:
    """The outermost regions of a block, in ``outermost``, in the order in which they begin.

    Raises ShardlogError for values that enter or leave no region.
    """

    def __init__(self, block: ir.Block) -> None:
        self._entries = [_BlockEntry(op.operation, [*_taken(op.operation)]) for op in block.operations]
        self._level: dict[Any, int] = {}  # value -> in how many regions it is
        self._known: dict[Any, bool] = {}  # value -> whether regions take it as it is
        self._copied: dict[Any, None] = {}  # ops of which regions have their own
        self.outermost = [*self._find()]

    # ---- Which ops are in a region -------------------------------------------------------------------------

    def _find(self) -> Iterator[OpRegion]:
        makers: dict[Any, _BlockEntry] = {}
        for entry in self._entries:
            entry.first, entry.kind = entry, self._kind(entry)
            makers.update((value, entry) for value in entry.op.results)
            for value in entry.taken if entry.kind else ():
                if self._level.get(value, 0):
                    entry.region.first = makers[value].region
        if self._entries[-1].kind:
            message = f"a value leaves a manual region, and not by @{SHARD_TO_FULL}"
            raise ShardlogError(message, where=location(self._entries[-1].op), hint=PATTERN)
        by_first: dict[_BlockEntry, OpRegion] = {}
        for entry in self._entries:
            if entry.kind:
                region = by_first.setdefault(entry.region, OpRegion(first=entry.region))
                getattr(region, entry.kind).append(entry.op)
                if entry.kind == "inside":
                    for value in self._captured(entry, region):
                        region.captured.append(value)
        for region in by_first.values():
            if not region.leave:
                message = f"no @{SHARD_TO_FULL} ends the manual region that begins here"
                raise ShardlogError(message, where=location(region.enter[0]), hint=PATTERN)
            yield region

    def _kind(self, entry: _BlockEntry) -> str:
        """The kind of an op in its outermost region; empty outside of regions. Its results are in as many
        regions as its operands, unless they enter or leave one."""
        op, here = entry.op, max((self._level.get(value, 0) for value in entry.taken), default=0)
        after, kind = here, "inside" if here else ""
        if crosses(op):
            check_one(op)
        if is_custom_call(op, FULL_TO_SHARD):
            after, kind = here + 1, "inside" if here else "enter"
        elif is_custom_call(op, SHARD_TO_FULL):
            if not here and self._own(op.operands[0]) is None:
                message = f"@{SHARD_TO_FULL} of a value that is in no manual region"
                raise ShardlogError(message, where=location(op), hint=PATTERN)
            after, kind = max(here - 1, 0), "inside" if here > 1 else "leave"
        self._level.update((value, after) for value in op.results)
        return kind

    def _makers(
        self, value: Value, leaves: Callable[[Value], bool] = lambda value: False
    ) -> list[Any] | None:
        """The ops that a value is made of, in order, up to values that are ``leaves``; None where it depends
        on the argument of a block."""
        makers, waiting = dict[Any, None](), [value.owner]
        while waiting:
            if isinstance(waiting[-1], ir.Block) or crosses(waiting[-1]):
                return None
            owners = [taken.owner for taken in _taken(waiting[-1].operation) if not leaves(taken)]
            left = [owner for owner in owners if isinstance(owner, ir.Block) or owner not in makers]
            waiting += left
            if not left:
                makers[waiting.pop().operation] = None
        return [*makers]

    def _is_shared(self, value: Value) -> bool:
        """Whether each region uses a value unchanged: it is no constant, and a scalar or no tensor."""
        if value not in self._known:
            scalar = not isinstance(value.type, ir.RankedTensorType) or not value.type.rank
            self._known[value] = scalar and self._makers(value) is None
        return self._known[value]

    def _own(self, value: Value) -> list[Any] | None:
        """The ops by which a region computes a value from outside itself, from constants and values that it
        uses unchanged; None where it cannot."""
        return [] if self._is_shared(value) else self._makers(value, self._is_shared)

    def _captured(self, entry: _BlockEntry, region: OpRegion) -> Iterator[Any]:
        """The values that an op of a region uses unchanged."""
        for value in entry.taken:
            if self._level.get(value, 0):
                continue
            own = self._own(value)
            if own is None:
                message = f"{entry.op.name} is in a manual region, and an operand of it is not"
                raise ShardlogError(message, where=location(entry.op), hint=PATTERN)
            taken = (value, *(each for op in own for each in _taken(op)))
            yield from (each for each in taken if self._is_shared(each) and each not in region.captured)

    # ---- Writing -------------------------------------------------------------------------------------------

    def put(
        self,
        region: OpRegion,
        make: Callable[[ir.InsertionPoint], sdy.ManualComputationOp],
        returned: Iterable[Any],
    ) -> sdy.ManualComputationOp:
        """Puts an op in the place of a region: ``make`` makes it. The ops of the region move into it, and it
        returns these values of them. Raises ShardlogError where it can stand nowhere."""
        own = {entry for entry in self._entries if entry.kind and entry.region is region.first}
        numbers = [n for n, entry in enumerate(self._entries) if entry in own]
        between = slice(numbers[0], numbers[-1] + 1)
        anchor = self._entries[between.stop]  # a block has an end
        behind = self._behind(region, own, self._entries[between])
        for entry in behind:
            entry.op.move_before(anchor.op)
        computation = make(ir.InsertionPoint((*behind, anchor)[0].op))
        self._fill(computation, region, returned)
        results = [op.results[0] for op in region.leave]
        instead = dict(zip(results, computation.results, strict=True))
        for entry in self._entries:
            if not instead.keys().isdisjoint(entry.taken):
                entry.taken = [instead.get(value, value) for value in entry.taken]
        left = [entry for entry in self._entries[between] if entry not in own and entry not in behind]
        self._entries[between] = [*left, _BlockEntry(computation.operation, [*computation.operands]), *behind]
        for op in (*region.leave, *region.enter):
            if op.results[0] in instead:
                op.results[0].replace_all_uses_with(instead[op.results[0]])
            op.erase()
        return computation

    def clean(self) -> None:
        """Erases what only regions used, which have their own of it."""
        for op in reversed(self._copied):
            if not is_used(op):
                op.erase()

    def _behind(
        self, region: OpRegion, own: set[_BlockEntry], between: Sequence[_BlockEntry]
    ) -> list[_BlockEntry]:
        """The ops between those of a region that depend on its results."""
        given, entries = {value for op in region.leave for value in op.results}, list[_BlockEntry]()
        for entry in between:
            if not given.isdisjoint(entry.taken):
                if entry in own:
                    raise ShardlogError(_ROUND, where=location(entry.op), hint=_APART)
                entries.append(entry)
                given.update(entry.op.results)
        return entries

    def _fill(self, computation: sdy.ManualComputationOp, region: OpRegion, returned: Iterable[Any]) -> None:
        block = computation.regions[0].blocks.append(*(value.type for value in region.taken))
        end = sdy.ReturnOp([*returned], loc=computation.location, ip=ir.InsertionPoint(block)).operation
        for op in region.inside:
            op.move_before(end)
        start = ir.InsertionPoint((*region.inside, end)[0])
        instead = dict(zip(region.taken, block.arguments, strict=True))
        for op in (*region.inside, end):
            for value in _taken(op):
                own = [] if value in instead or self._level.get(value, 0) else self._own(value)
                for maker in own or ():
                    if any(result not in instead for result in maker.results):
                        self._copied[maker] = None
                        copy = maker.clone(start)
                        instead.update(zip(maker.results, copy.results, strict=True))
                        _exchange(copy, instead)
            _exchange(op, instead)


def _taken(op: Operation) -> Iterator[Any]:
    """The values from outside that an op uses, or ops in its regions."""
    yield from op.operands
    if len(op.regions):
        inner = operations_in(op)
        own = {op.operation, *inner}
        for each in inner:
            for value in each.operands:
                owner = value.owner.owner if isinstance(value.owner, ir.Block) else value.owner
                if owner.operation not in own:
                    yield value


def _exchange(op: Operation, instead: Mapping[Value, Value]) -> None:
    """Has an op, and those in it, use other values."""
    for each in (op, *operations_in(op)) if len(op.regions) else (op,):
        for number, value in enumerate(each.operands):
            if value in instead:
                each.operands[number] = instead[value]
