"""Small functions, such as many of ``jnp``, are inlined. Before layouts are chosen, so that each call may
have its own. And after a program is written, so that collectives of several calls can be combined. XLA
inlines functions as well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from jaxlib.mlir import ir

from ...program.carried import SPELLING
from ...program.ids import Slot
from ...program.mlir.modules import (
    copy_of,
    is_used,
    main_function,
    named_by,
    operations_in,
    put_in_place_of,
    symbols,
)
from ...program.mlir.types import Operation, Value
from ...rulebook.traits import OpTraits
from ..choice.purposes import Purpose
from ..facts.kinds import Kinds
from ..finishing.collectives import KINDS
from ..layouts import Layout
from .batching import PICKING, batch_own_rows, own_rows
from .blocks import asks_for_blocks, put_in_blocks
from .computations import Computation, put_in_place_of_ops
from .cutting import cut_before_joining, cuts_of_joined

T = TypeVar("T")

_SMALL = 128  # ops of a function: larger ones, such as layers, have little to do with their surroundings
_MORE = 4096  # the most ops that a module may gain, because each takes time
# Temporary attributes: the original of an op, that the op computes a part of it, and that it is inside
# of a computation for it.
_ORIGINAL, _PART, _INSIDE = "shardlog.original", "shardlog.part", "shardlog.inside"
_MOVING = {*PICKING, "slice", "concatenate", "call"}  # ops that may be replaced
_OF_A_CALL = {"callee", "sdy.sharding", "mhlo.sharding"}  # the attributes of a call without others


def put_in_place_of_calls(module: ir.Module, traits: OpTraits, apart: Collection[Operation] = ()) -> bool:
    """Inlines small functions that send something, except those with ops that stay ``apart``. Returns whether
    there were any."""
    functions = _called(module)
    taken = set[str]()
    with module.context:
        while senders := {name for name, func in functions.items() if _sends(func, apart)}:
            calls = [op for op in operations_in(module) if _is_plain(op, traits) and _callee(op) in senders]
            if not calls:
                break
            for call in calls:
                taken.add(name := _callee(call))
                put_in_place_of(call, functions[name])
        _erase_unnamed(module, {name: functions[name] for name in taken})
    return bool(taken)


def _called(module: ir.Module) -> dict[str, Any]:
    """The functions of a module other than main, by name."""
    functions = symbols(module, "func.func")
    del functions[main_function(functions)]
    return functions


def _erase_unnamed(module: ir.Module, functions: dict[str, Operation], naming: Collection[str] = ()) -> None:
    """Erases those of some functions that nothing refers to any more. Only ops named ``naming`` refer to
    functions."""
    if not functions:
        return
    ops = (op for op in operations_in(module) if not naming or op.name in naming)
    named = set[str]().union(*map(named_by, ops))
    for name in sorted(functions.keys() - named):
        functions.pop(name).erase()


def _erase_unused(kinds: Kinds, traits: OpTraits) -> set[int]:
    """Erases ops of a module without users and effects. Returns them, with those inside."""
    pure, ops, gone = traits.family("pure_op"), kinds.ops, set[int]()
    if not any(ops[number].name in pure for number in kinds.unused()):
        return gone
    for number in range(len(ops) - 1, 0, -1):
        op = ops[number]
        if op.name in pure and not is_used(op):
            gone.update(range(number, int(kinds.listing.ends[number])))
            op.erase()
    return gone


def _sends(func: Operation, apart: Collection[Operation]) -> bool:
    """Whether a function is small and has collectives, none of them ``apart``."""
    ops = operations_in(func)
    return len(ops) <= _SMALL and any(op.name in KINDS for op in ops) and not any(op in apart for op in ops)


def _callee(op: Operation) -> str:
    """The function that a call calls."""
    return str(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)


# ---- Each call for itself -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unshared:
    """A module with small functions inlined, batching dimensions for a batch's own rows, and slices of
    concatenations read from their parts. ``of`` has the original of each op, in order, or none if the module
    is unchanged. Ops in ``parts`` compute a part of the original, or an op that needs it. Ops ``inside`` are
    in a user's computation."""

    module: ir.Module
    kinds: Kinds
    of: Sequence[Any] = ()
    parts: frozenset[Any] = frozenset()
    inside: frozenset[Any] = frozenset()

    def copies(self, value: Any) -> Iterator[Any]:
        """The values in the module for a result of an op, or a block argument: one for each call."""
        owner = value.owner
        if not isinstance(owner, ir.Block):
            for op in self._copies.get(owner.operation, [owner]):
                yield op.results[value.result_number]
            return
        around, region = owner.owner.operation, _region_of(owner)
        for op in self._copies.get(around, [around]):
            yield op.regions[region].blocks[0].arguments[value.arg_number]

    @cached_property
    def originals(self) -> dict[Any, Any]:
        """The original op of each op."""
        return dict(zip(self.kinds.ops[1:], self.of, strict=True)) if self.of else {}

    @cached_property
    def _copies(self) -> dict[Any, list[Any]]:
        copies = dict[Any, list[Any]]()
        for copy, op in self.originals.items():
            if copy not in self.parts and copy not in self.inside:
                copies.setdefault(op, []).append(copy)
        return copies

    def original(self, value: Any) -> Any:
        """The original value of a value of the module."""
        if not self.of:
            return value
        owner = value.owner
        block = isinstance(owner, ir.Block)
        copy = (owner.owner if block else owner).operation
        op = self.originals.get(copy)
        if op is None:
            return value
        if not block:
            return op.results[value.result_number]
        return op.regions[_region_of(owner)].blocks[0].arguments[value.arg_number]

    def homes(self, moved: Mapping[Any, Layout]) -> dict[Any, tuple[Layout, ...]]:
        """The layouts of original values, each once, from those of the module's values."""
        by_original = dict[Any, dict[Layout, None]]()
        for value, home in moved.items():
            if not self._part(value):
                by_original.setdefault(self.original(value), {})[home] = None
        return {value: tuple(layouts) for value, layouts in by_original.items()}

    def by_original(self, others: Mapping[Any, T]) -> dict[Any, T]:
        """A mapping from original values, taken from the first copy of each."""
        if not self.of:
            return dict(others)
        values = [value for value in others if not self._part(value)]
        originals = {self.original(value): value for value in reversed(values)}
        return {value: others[copy] for value, copy in originals.items()}

    def _part(self, value: Value) -> bool:
        """Whether a value is a part of an original value, or inside of a user's computation."""
        owner = value.owner
        if not isinstance(owner, ir.Block):
            return owner.operation in self.parts or owner.operation in self.inside
        around = owner.owner.operation
        original = self.originals.get(around, around)
        return around in self.inside or len(original.regions) < len(around.regions)

    def _for_none(self, value: Value) -> bool:
        """Whether an op made a value for one that gives none."""
        owner = value.owner
        op = None if isinstance(owner, ir.Block) else self.originals.get(owner.operation)
        return op is not None and not len(op.results)

    def name(self, purpose: Purpose) -> None:
        """Makes the purpose of a collective refer to original ops and values."""
        if not self.of:
            return
        copy = purpose.op.operation
        purpose.op = op = self.originals.get(copy, purpose.op)
        if copy in self.inside:
            purpose.inside, purpose.to = True, None
            purpose.slot = Slot(len(op.operands))
            purpose.value = op.results[0] if len(op.results) else None
            return
        purpose.value, purpose.to = (
            None if value is None or self._for_none(value) else self.original(value)
            for value in (purpose.value, purpose.to)
        )


def _region_of(block: ir.Block) -> int:
    """The number of the region that contains a block, among those of its op."""
    return next(n for n, region in enumerate(block.owner.regions) if block in region.blocks)


def unshared(
    kinds: Kinds,
    traits: OpTraits,
    *,
    cut: bool,
    computations: Mapping[Any, Computation] | None = None,
) -> Unshared:
    """A copy of a module in which each call of a small function has its own ops, if the module does not grow
    much by that. A batch's own rows have batching dimensions. With ``cut``, slices of concatenations
    are read from their parts. ``computations`` replace ops of the module. Returns the module itself if there
    is nothing to do."""
    module, examples = kinds.module, kinds.examples()
    with module.context:
        there = {traits.lowering(op.name) for op in examples}
        functions = _called(module) if "call" in there else {}
        small = bool(functions) and _of_small_ones(kinds.ops, traits, functions)
        picks, cut = bool(there & PICKING), cut and ("slice" in there or bool(computations))
        blocks = SPELLING in module.operation.attributes and any(map(asks_for_blocks, examples))
        changes = computations or small or blocks or (picks and own_rows(kinds.ops, traits))
        if not (changes or (cut and cuts_of_joined(kinds.ops, traits))):
            return Unshared(module, kinds)
        copied = copy_of(module)
        originals, copies = kinds.ops[1:], operations_in(copied)
        marked = _marked(kinds, traits, computations or {})
        if blocks:
            marked = dict.fromkeys(range(len(originals)))
        integers = ir.IntegerType.get_signless(64)
        for number in marked:
            copies[number].attributes[_ORIGINAL] = ir.IntegerAttr.get(integers, number)
        if computations:
            pairs = zip(originals, copies, strict=True)
            computed = [(copy, computations[op]) for op, copy in pairs if op in computations]
            put_in_place_of_ops(copied, computed, _mark_inside)
            copies = operations_in(copied)
        naming = set() if computations else {op.name for op in examples if named_by(op)}
        functions, room = _called(copied), _MORE
        while calls := _of_small_ones(copies, traits, functions, room):
            copies = []  # Python must hold no op while one around it is erased
            for call in calls:
                function = functions[_callee(call)]
                room -= len(operations_in(function))
                put_in_place_of(call, function)
            _erase_unnamed(copied, functions, naming)
            copies = operations_in(copied)
        if blocks:
            put_in_blocks(copies, traits, symbols(copied, "sdy.mesh"), _mark)
            copies = operations_in(copied)
        new = (picks or bool(computations)) and batch_own_rows(copies, traits, _mark)
        new |= cut and cut_before_joining(operations_in(copied) if new else copies, traits, _mark)
        return _with_originals(copied, operations_in(copied) if new else copies, originals, marked, traits)


def _marked(kinds: Kinds, traits: OpTraits, computations: Mapping[Any, Computation]) -> dict[int, None]:
    """The ops of a module that carry a mark of their original, except those that stay in place."""
    moving = kinds.numbers_of(lambda op: traits.lowering(op.name) in _MOVING)
    marked = dict.fromkeys(number - 1 for number in moving)
    if computations:
        marked.update((n - 1, None) for n, op in enumerate(kinds.ops) if op in computations)
    listed = kinds.listing.functions
    main = main_function(symbols(kinds.module, "func.func"))
    for name, number in listed.items():
        if name != main:
            marked.update(dict.fromkeys(range(number - 1, int(kinds.listing.ends[number]) - 1)))
    return marked


def _with_originals(
    module: ir.Module,
    copies: Sequence[Operation],
    originals: Sequence[Operation],
    marked: Collection[int],
    traits: OpTraits,
) -> Unshared:
    """A module with the original of each op: ``marked`` ops say theirs, the others are in the original order.
    Unused ops are dropped."""
    unmarked = iter([number for number in range(len(originals)) if number not in marked])
    numbers, special = list[int](), {_PART: list[int](), _INSIDE: list[int]()}
    for place, op in enumerate(copies):
        attributes = op.attributes
        if _ORIGINAL not in attributes:
            numbers.append(next(unmarked))
            continue
        numbers.append(ir.IntegerAttr(attributes[_ORIGINAL]).value)
        del attributes[_ORIGINAL]  # before ops become keys: their hashes depend on their attributes
        for label, places in special.items():
            if label in attributes:
                places.append(place)
                del attributes[label]
    kinds = Kinds(module, copies)
    gone = _erase_unused(kinds, traits)
    there = [place for place in range(len(numbers)) if place + 1 not in gone]
    if gone:
        kinds = Kinds(module)
    left = dict(zip(there, kinds.ops[1:], strict=True))
    parts, inside = (
        frozenset(left[place] for place in special[label] if place in left) for label in (_PART, _INSIDE)
    )
    return Unshared(module, kinds, [originals[numbers[place]] for place in there], parts, inside)


def _mark_inside(copy: Any, op: Operation, inside: bool) -> None:
    """Marks an op with the op that it was made for, and whether it is inside of a user's computation."""
    copy.attributes[_ORIGINAL] = op.attributes[_ORIGINAL]
    if inside:
        copy.attributes[_INSIDE] = ir.UnitAttr.get()


def _mark(copy: Any, op: Operation, whole: bool) -> None:
    """Marks an op with its original, and whether it is a part."""
    if not whole:
        copy.attributes[_PART] = ir.UnitAttr.get()
    elif _PART in copy.attributes:
        del copy.attributes[_PART]
    else:  # it was there before
        return
    copy.attributes[_ORIGINAL] = op.attributes[_ORIGINAL]


def _of_small_ones(
    ops: Sequence[Operation], traits: OpTraits, functions: dict[str, Operation], room: int = _MORE
) -> list[Any]:
    """Those of some calls whose functions are small, as long as there is room."""
    calls = [op for op in ops if _is_plain(op, traits)] if functions else []
    times, taken = Counter(map(_callee, calls)), set[str]()
    for name, function in functions.items():
        if not times[name] or (size := len(operations_in(function))) > _SMALL:
            continue
        if size * times[name] <= room:
            room -= size * times[name]
            taken.add(name)
    return [call for call in calls if _callee(call) in taken]


def _is_plain(op: Operation, traits: OpTraits) -> bool:
    """Whether an op is a call without further attributes, such as where to compute it."""
    return traits.lowering(op.name) == "call" and set(op.attributes) <= _OF_A_CALL | {_ORIGINAL}
