"""How often a device runs each op of a program: loops multiply by their trip count, functions by their calls.
A loop-invariant op runs once, before the loop: shardlog moves it there, or compilers do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from jaxlib.mlir import ir

from ..program.mlir.modules import main_function, named_in, operations_in, symbols
from ..program.mlir.types import Operation, Value
from ..program.signature import text_of
from ..rulebook.traits import OpTraits

_Count = Counter[
    int
]  # how often, per iteration of loops of unknown trip count; the number of such loops around it


def has_effect(name: str, traits: OpTraits) -> bool:
    """Whether ops with this name, or ops in their regions, may have side effects. Such ops keep their
    order."""
    return name in traits.family("keeps_order_op")


class Executions:
    """Counts for one module. Ops in a branch count as if the branch were taken."""

    def __init__(self, module: ir.Module, traits: OpTraits) -> None:
        self._module, self._traits = module, traits
        self._main = main_function(symbols(module, "func.func"))
        self._functions: dict[str, _Count] = {}
        self._turns: dict[Any, int | None] = {}
        self._blocks: dict[Any, _Count] = {}
        self._loops: dict[Any, Any] = {}
        self._alike: dict[Any, dict[Any, None]] = {}

    @cached_property
    def _callers(self) -> dict[str, list[Any]]:
        """The calls of each function, found only if ops of functions other than main are asked about."""
        callers: dict[str, list[Any]] = {}
        for op in operations_in(self._module):
            if self._traits.lowering(op.name) in ("call", "composite"):
                for name in named_in(op):
                    callers.setdefault(name, []).append(op)
        return callers

    def of(self, op: Operation) -> int | None:
        """How often an op runs, or a value is computed. None inside a loop of unknown trip count."""
        return self._known(self._of(op))

    @staticmethod
    def _known(count: _Count) -> int | None:
        return count.get(0, 0) if not any(count) else None

    def times(self, block: ir.Block) -> tuple[int | None, int]:
        """How often the ops of a block run, as in ``of`` and ``often``."""
        count = self._at(block)
        return self._known(count), count.total()

    def often(self, op: Operation) -> int:
        """How often an op runs, if every loop of unknown trip count has one iteration."""
        return self._of(op).total()

    def _of(self, what: Any) -> _Count:
        if isinstance(what, ir.Value):
            value = self._begun(what)
            if isinstance(value.owner, ir.Block):
                return self._at(value.owner)
            what = value.owner
        operation = what.operation
        block = operation.block
        while (loop := self._loop(block)) is not None and operation in self.same(loop):
            block = loop.block
        return self._at(block)

    def of_all(self, block: ir.Block) -> int | None:
        """``often`` for the ops of a block; None where some run before the loop that it is the body of."""
        return self._at(block).total() if self._loop(block) is None else None

    def same(self, loop: Operation) -> dict[Any, None]:
        """The loop-invariant ops of a loop, those in nested loops included, in order."""
        if loop not in self._alike:
            body = loop.regions[1].blocks[0]
            carried = zip(body.arguments, _returned(body), strict=True)
            varies, invariant = (
                {argument for argument, given in carried if argument != given},
                dict[Any, None](),
            )
            for op in self._run_in(body):
                if has_effect(op.name, self._traits) or not varies.isdisjoint(
                    self._begun(value, body) for each in with_inner(op) for value in each.operands
                ):
                    varies.update(op.results)
                else:
                    invariant[op] = None
            self._alike[loop] = invariant
        return self._alike[loop]

    def _run_in(self, body: ir.Block) -> Iterator[Any]:
        """The ops of a loop's body without its terminator, and those that run before nested loops."""
        *ops, _ = body.operations
        for each in ops:
            op = each.operation
            if self._traits.lowering(op.name) == "loop":
                yield from self.same(op)
            yield op

    def _at(self, block: ir.Block) -> _Count:
        if block not in self._blocks:
            self._blocks[block] = self._inside(block)
        return self._blocks[block]

    def _inside(self, block: ir.Block) -> _Count:
        """How often the ops of a block run."""
        outer = block.owner.operation
        if outer.name == "func.func":
            return self._called(text_of(outer.attributes["sym_name"]))
        count = self._at(outer.block)
        if self._traits.lowering(outer.name) != "loop":
            return count
        turns = self.turns(outer)
        if turns is None:
            return Counter({loops + 1: times for loops, times in count.items()})
        turns += block == outer.regions[0].blocks[0]  # the condition is evaluated once more at the end
        return Counter({loops: times * turns for loops, times in count.items()})

    def _called(self, name: str) -> _Count:
        if name == self._main:
            return Counter({0: 1})
        if name not in self._functions:
            count = self._functions[name] = _Count()
            for call in self._callers.get(name, ()):
                count.update(self._of(call))
        return self._functions[name]

    def turns(self, loop: Operation) -> int | None:
        """The trip count of a loop whose condition compares a counter with a constant, as JAX writes ``scan``
        and ``fori_loop``. None for other loops."""
        if loop not in self._turns:
            self._turns[loop] = _turns(loop, self._traits)
        return self._turns[loop]

    def _loop(self, block: ir.Block) -> Any:
        """The loop of which a block is the body, or None."""
        if block not in self._loops:
            outer = block.owner.operation
            is_loop = self._traits.lowering(outer.name) == "loop"
            self._loops[block] = outer if is_loop and block == outer.regions[1].blocks[0] else None
        return self._loops[block]

    def _begun(self, value: Any, inside: Any = None) -> Any:
        """The initial value of a value that the loops around it carry unchanged, up to the block that it is
        ``inside``."""
        while isinstance(value.owner, ir.Block) and (loop := self._loop(value.owner)) is not None:
            if inside is not None and value.owner == inside:
                break
            number = ir.BlockArgument(value).arg_number
            if _returned(value.owner)[number] != value:
                break
            value = loop.operands[number]
        return value


def with_inner(op: Operation) -> Sequence[Any]:
    """An op, and those in its regions."""
    return (op, *operations_in(op)) if len(op.regions) else (op,)


def _turns(loop: Operation, traits: OpTraits) -> int | None:
    test, body = (region.blocks[0] for region in loop.regions)
    compared = _made_by(_returned(test)[0], "compare", traits)
    if compared is None:
        return None
    direction = str(compared.attributes["comparison_direction"]).rpartition(" ")[2].rstrip(">")
    left, right = compared.operands
    counter = _argument(left, test)
    if counter is None:
        left, right, direction = right, left, _MIRRORED[direction]
        counter = _argument(left, test)
    if counter is None:
        return None
    start, end = _constant(loop.operands[counter], traits), _constant(right, traits, loop)
    step = _step(_returned(body)[counter], counter, body, traits)
    if start is None or end is None or step is None:
        return None
    return trip_count((start, step), (end, 0), direction)


def trip_count(left: tuple[int, int], right: tuple[int, int], direction: str) -> int | None:
    """The iterations of a loop that continues while this comparison of left and right holds. Each side has an
    initial value and a step. None if neither side or both are counters, or if the loop does not end."""
    (start, step), (end, further) = left, right
    if further:
        start, step, end, further, direction = end, further, start, step, _MIRRORED[direction]
    if further or not step:
        return None
    if direction in ("GT", "GE"):
        start, end, step, direction = -start, -end, -step, _MIRRORED[direction]
    if direction == "NE":
        turns, rest = divmod(end - start, step)
        return turns if turns >= 0 and not rest else None
    if direction == "EQ":
        return int(start == end)
    end += direction == "LE"
    if start >= end:
        return 0
    return -((start - end) // step) if step > 0 else None


_MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}


def _step(value: Value, counter: int, body: ir.Block, traits: OpTraits) -> int | None:
    """The increment of the counter in one iteration."""
    for how, sign in (("add", 1), ("subtract", -1)):
        added = _made_by(value, how, traits)
        if added is not None:
            left, right = added.operands
            if _argument(right, body) == counter and sign > 0:
                left, right = right, left
            step = _constant(right, traits)
            return sign * step if _argument(left, body) == counter and step is not None else None
    return None


def _returned(block: ir.Block) -> list[Any]:
    return list(block.operations[-1].operands)


def _made_by(value: Value, how: str, traits: OpTraits) -> Any:
    """The op that makes a value, if it computes the same as this op of StableHLO; otherwise None."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    operation = owner.operation
    return operation if traits.computed_as(operation.name) == how else None


def _argument(value: Any, block: Any) -> int | None:
    """Which argument of a block a value is, or None."""
    return ir.BlockArgument(value).arg_number if value.owner == block else None


def _constant(value: Value, traits: OpTraits, loop: Operation | None = None) -> int | None:
    """The value of a constant integer scalar, or None. Loops may carry it unchanged."""
    if loop is not None:
        for region in loop.regions:
            number = _argument(value, region.blocks[0])
            if number is not None:
                body = loop.regions[1].blocks[0]
                unchanged = _argument(_returned(body)[number], body) == number
                return _constant(loop.operands[number], traits) if unchanged else None
    maker = _made_by(value, "constant", traits)
    constant = None if maker is None else maker.attributes["value"]
    if isinstance(constant, ir.DenseIntElementsAttr) and constant.is_splat:
        return int(constant[0])
    return None
