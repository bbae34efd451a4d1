"""Ops that are loops. Operands are broadcast over the loops, the body is computed on all elements at once,
and the results are combined along the loops that reduce. A sum of products of two operands is a
``dot_general``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from ...errors import ShardlogError
from ...importers.dialects.bodies import body
from ...partition.writing.neutral import neutral, zero
from ...program.function import location
from ...program.mlir.types import Operation, Value
from .writer import OpWriter, element_of, shape_of, written_element

_PRODUCT = "multiply"  # of two operands, of which sums are products of tensors


@dataclass(frozen=True)
class Loops:
    """An op according to the rules: its loops in order, with their kinds and sizes; how they move along each
    slot, as (loop, step), and from which element; how partial results are combined; the operands that results
    start from, and the operands that are zero points of others."""

    kinds: Mapping[int, str]
    sizes: Mapping[int, int]
    moves: Mapping[tuple[int, int], tuple[tuple[int, int], ...]]
    first: Mapping[tuple[int, int], int]
    combine: str
    starts: tuple[int, ...]
    zeros: Mapping[int, int]

    @property
    def reduced(self) -> list[int]:
        """The loops that reduce."""
        return [loop for loop, kind in self.kinds.items() if kind == "reduction"]


def _with_body(op: Operation) -> Any:
    """An op with the region that a named op has by its name; None for ops that have none."""
    kinds = [str(getattr(operand.type, "element_type", operand.type)) for operand in op.operands]
    inputs = len(kinds) - len(op.results)
    words = {label: str(op.attributes[label]) for label in op.attributes}
    region = body(op.name, kinds[:inputs], kinds[inputs:], words)
    if region is None:
        return None
    return ir.Operation.parse(f'"{op.name}"() ({{ {region} }}) : () -> ()')


Body = Callable[[OpWriter, Any, Mapping[Any, Any], Sequence[int], Sequence[int]], Any]


class Nest:
    """An op as loops. ``values`` are its written operands, ``body`` writes the ops of its region."""

    def __init__(
        self, writer: OpWriter, op: Operation, loops: Loops, values: Sequence[Value], body: Body
    ) -> None:
        self.writer, self.op, self.loops, self.values, self.body = writer, op, loops, values, body
        self.operands = len(op.operands)
        around = op if len(op.regions) else _with_body(op)
        self.around = None if around is None else around.operation  # which has the region

    def results(self) -> list[Any]:
        """The results of the op."""
        if self.around is not None:
            return self._of_region(self.around.regions[0].blocks[0])
        return [self._of_operands()]

    # ---- Without a region: what the rules combine ----------------------------------------------------------

    def _of_operands(self) -> Any:
        """The sum of the products of the operands that have loops, or another combination of them."""
        loops, writer = self.loops, self.writer
        element = written_element(ir.RankedTensorType(self.op.results[0].type).element_type)
        taken = [
            t
            for t in range(self.operands)
            if t not in loops.starts and t not in loops.zeros.values() and self._loops_of(t)
        ]
        terms = [(self._given(t, element), t) for t in taken]
        if len(terms) == 2 and (product := self._product(terms[0], terms[1], element)) is not None:
            result = product
        else:
            space = list(loops.kinds)
            values = [self._spread(value, t, space) for value, t in terms]
            result = values[0]
            for value in values[1:]:
                result = writer.op(_PRODUCT, [result, value])
            result = self._combined(result, space)
        for t in loops.starts:
            start = writer.converted(self._spread(self.values[t], t, self._kept), element)
            result = writer.op("add", [result, start])
        return self._placed(result, self.operands)

    def _given(self, slot: int, element: ir.Type) -> Any:
        """An operand for a product, minus its zero point."""
        value, of = self.values[slot], self.loops.zeros.get(slot)
        several = len(self.loops.reduced) and self.loops.combine == "stablehlo.add"
        if not several:
            return value
        value = self.writer.converted(value, element)
        if of is None or of >= len(self.values):
            return value
        point = self.writer.converted(self.writer.reshaped(self.values[of], []), element)
        return self.writer.op("subtract", [value, self.writer.repeated(point, shape_of(value))])

    # ---- With a region ------------------------------------------------------------------------------------

    def _of_region(self, block: ir.Block) -> list[Any]:
        inputs = self.operands - len(self.op.results)
        returned = list(block.operations)[-1].operation.operands
        if not self.loops.reduced:
            space, spread = list(self.loops.kinds), dict[Any, Any]()
            for t, argument in enumerate(block.arguments):
                if any(True for _ in argument.uses):
                    spread[argument] = self._spread(self.values[t], t, space)
            results = []
            for i, value in enumerate(returned):
                computed = self.body(self.writer, value, spread, space, self._shape(space))
                computed = self.writer.repeated(computed, self._shape(space))
                results.append(self._placed(computed, self.operands + i))
            return results
        if len(returned) != 1:
            raise self._refused("it reduces, and has several results")
        value, combine = returned[0], self.loops.combine
        accumulated = block.arguments[inputs] if len(block.arguments) > inputs else None
        if not combine or accumulated is None or isinstance(value.owner, ir.Block):
            raise self._refused("its body combines elements in a way that is not known")
        combining = value.owner.operation
        others = [operand for operand in combining.operands if operand != accumulated]
        if len(others) != 1:
            raise self._refused("its body combines elements in a way that is not known")
        result = self._sum_of_products(block, others[0], inputs)
        if result is None:
            space = list(self.loops.kinds)
            spread = {
                argument: self._spread(self.values[t], t, space)
                for t, argument in enumerate(list(block.arguments)[:inputs])
                if any(True for _ in argument.uses)
            }
            computed = self.body(self.writer, others[0], spread, space, self._shape(space))
            result = self._combined(self.writer.repeated(computed, self._shape(space)), space)
        start = self._spread(self.values[inputs], inputs, self._kept)
        result = self.writer.create(combine, [start, result], start.type, {})
        return [self._placed(result, self.operands)]

    def _sum_of_products(self, block: ir.Block, value: Value, inputs: int) -> Any:
        """A product of tensors, if the body multiplies two factors that each depend on one operand; otherwise
        None."""
        if self.loops.combine != "stablehlo.add" or isinstance(value.owner, ir.Block):
            return None
        product = value.owner.operation
        if not self.body(self.writer, product, {}, [], []):
            return None
        arguments = list(block.arguments)[:inputs]
        scalars = {t for t in range(inputs) if not self._loops_of(t)}  # such as zero points
        each = [self._arguments_of(factor, arguments) for factor in product.operands]
        sides = [taken - scalars for taken in each]
        if any(len(side) != 1 for side in sides) or sides[0] == sides[1]:
            return None
        terms = []
        for factor, taken, (t,) in zip(product.operands, each, sides, strict=True):
            if t < 0:
                return None
            space = self._loops_of(t)
            spread = {arguments[u]: self._spread(self.values[u], u, space) for u in sorted(taken)}
            terms.append((self.body(self.writer, factor, spread, space, self._shape(space)), space))
        (one, left), (other, right) = terms
        element = element_of(one)
        return self._contracted(one, left, other, right, element)

    def _arguments_of(self, value: Value, arguments: list[Any]) -> set[int]:
        """The arguments that a value in the body is computed of; -1 for all else but constants."""
        if value in arguments:
            return {arguments.index(value)}
        if isinstance(value.owner, ir.Block):
            return {-1}
        op = value.owner.operation
        if op.parent != self.around:
            return {-1}
        if not len(op.operands):
            return {-1, -2}  # a constant, or where the body is: by elements
        return set[int]().union(*(self._arguments_of(operand, arguments) for operand in op.operands))

    # ---- Products of tensors -----------------------------------------------------------------------------

    def _product(self, one: tuple[Any, int], other: tuple[Any, int], element: ir.Type) -> Any:
        if self.loops.combine != "stablehlo.add":
            return None
        left, right = self._loops_of(one[1]), self._loops_of(other[1])
        values = self._spread(*one, left), self._spread(*other, right)
        return self._contracted(values[0], left, values[1], right, element)

    def _contracted(self, one: Any, left: list[int], other: Any, right: list[int], element: ir.Type) -> Any:
        """The sum of products of two tensors with these loops, over the loops that reduce; None if only one
        of them has such a loop."""
        reduced = set(self.loops.reduced)
        if (set(left) ^ set(right)) & reduced or reduced - set(left):
            return None
        batch = [loop for loop in left if loop in right and loop not in reduced]
        free = [
            [loop for loop in side if loop not in batch and loop not in reduced] for side in (left, right)
        ]
        given = [*batch, *free[0], *free[1]]
        lists = {
            "lhs_batching_dimensions": [left.index(loop) for loop in batch],
            "rhs_batching_dimensions": [right.index(loop) for loop in batch],
            "lhs_contracting_dimensions": [left.index(loop) for loop in self.loops.reduced],
            "rhs_contracting_dimensions": [right.index(loop) for loop in self.loops.reduced],
        }
        numbers = ir.Attribute.parse(f"#stablehlo.dot<{', '.join(f'{k} = {v}' for k, v in lists.items())}>")
        product = self.writer.op(
            "dot_general", [one, other], self._shape(given), element, dot_dimension_numbers=numbers
        )
        return self._ordered(product, given, self._kept)

    # ---- Loops and dimensions ----------------------------------------------------------------------------

    @property
    def _kept(self) -> list[int]:
        return [loop for loop in self.loops.kinds if self.loops.kinds[loop] != "reduction"]

    def _shape(self, space: Sequence[int]) -> list[int]:
        return [self.loops.sizes.get(loop, 1) for loop in space]

    def _loops_of(self, slot: int) -> list[int]:
        """The loops that move along a slot, in their order."""
        moving = {loop for (t, _), moves in self.loops.moves.items() if t == slot for loop, _ in moves}
        return [loop for loop in self.loops.kinds if loop in moving]

    def _combined(self, value: Value, space: Sequence[int]) -> Any:
        dims = [d for d, loop in enumerate(space) if self.loops.kinds[loop] == "reduction"]
        if not dims:
            return value
        if not self.loops.combine:
            raise self._refused("it combines elements in a way that is not known")
        element = element_of(value)
        start = self._constant(neutral(self.loops.combine, element), element)
        return self.writer.reduced(value, dims, self.loops.combine, start)

    def _constant(self, text: str, element: ir.Type) -> Any:
        type_ = ir.RankedTensorType.get([], element)
        return self.writer.constant(ir.Attribute.parse(f"dense<{text}> : {type_}"))

    def _ordered(self, value: Value, given: Sequence[int], space: Sequence[int]) -> Any:
        """A value with dimensions for the ``given`` loops, reordered to those of ``space``. Missing loops
        have size 1."""
        missing = [loop for loop in space if loop not in given]
        sizes = [self.loops.sizes.get(loop, 1) for loop in [*given, *missing]]
        value = self.writer.reshaped(value, sizes)
        order = [[*given, *missing].index(loop) for loop in space]
        return self.writer.transposed(value, order)

    def _spread(self, value: Value, slot: int, space: Sequence[int]) -> Any:
        """An operand over a space of loops: the element that they are at."""
        loops, writer, given = self.loops, self.writer, list[int]()
        shape = shape_of(value)
        value = self._within(value, slot, shape)
        d = 0
        for dim in range(len(shape)):
            moves, first = loops.moves.get((slot, dim), ()), loops.first.get((slot, dim), 0)
            first += self._margins[dim]
            size = shape_of(value)[d]
            if not moves or size == 1:
                value = writer.taken(value, np.asarray([first if size > 1 else 0]), d)
                value = writer.reshaped(value, [n for i, n in enumerate(shape_of(value)) if i != d])
                continue
            counts = [loops.sizes.get(loop, 1) for loop, _ in moves]
            places = np.full(counts, first)
            for axis, (_, step) in enumerate(moves):
                turns = step * np.arange(counts[axis])
                places = places + turns.reshape([-1 if i == axis else 1 for i in range(len(counts))])
            value = writer.taken(value, places, d)
            given += [loop for loop, _ in moves]
            d += len(moves)
        if len(set(given)) < len(given):
            raise self._refused("it reads a diagonal")
        return writer.spread(value, self._shape(space), [list(space).index(loop) for loop in given])

    def _within(self, value: Value, slot: int, shape: Sequence[int]) -> Any:
        """An operand padded, where loops go beyond it, with what changes nothing."""
        low, high = [0] * len(shape), [0] * len(shape)
        for dim, size in enumerate(shape):
            moves = self.loops.moves.get((slot, dim), ())
            if size == 1 and len(moves) < 2:
                continue
            least = last = self.loops.first.get((slot, dim), 0)
            for loop, step in moves:
                far = step * (self.loops.sizes.get(loop, 1) - 1)
                least, last = least + min(far, 0), last + max(far, 0)
            low[dim], high[dim] = max(-least, 0), max(last - size + 1, 0)
        self._margins = low
        element = element_of(value)
        sums = self.loops.combine in ("", "stablehlo.add")
        text = zero(element) if sums else neutral(self.loops.combine, element)
        return (
            self.writer.padded(value, low, high, self._constant(text, element)) if any(low + high) else value
        )

    def _placed(self, value: Value, slot: int) -> Any:
        """A result, from a value over the loops that it has."""
        result = self.op.results[slot - self.operands]
        shape = list(ir.RankedTensorType(result.type).shape)
        moves = [self.loops.moves.get((slot, d), ()) for d in range(len(shape))]
        order = [loop for dim in moves for loop, _ in sorted(dim, key=lambda each: -each[1])]
        value = self._ordered(value, self._kept, [*order, *(x for x in self._kept if x not in order)])
        if prod(shape_of(value)) != prod(shape):
            raise self._refused("it does not write each element once")
        return self.writer.reshaped(value, shape)

    def counts(self) -> Any:
        """How many elements of the first operand windows have, as an array over the loops of the result."""
        counts = np.ones([1] * len(self._kept), np.int64)
        whole = ir.RankedTensorType(self.op.operands[0].type).shape
        for (slot, dim), moves in self.loops.moves.items():
            if slot or len(moves) < 2:
                continue
            (loop, step), (window, spread) = sorted(moves, key=lambda each: each[0] in self.loops.reduced)
            turns, inner = np.arange(self.loops.sizes[loop]), np.arange(self.loops.sizes.get(window, 1))
            places = turns[:, None] * step + inner[None] * spread + self.loops.first.get((slot, dim), 0)
            number = ((places >= 0) & (places < whole[dim])).sum(1)
            counts = counts * number.reshape([-1 if x == loop else 1 for x in self._kept])
        return np.broadcast_to(counts, self._shape(self._kept))

    def _refused(self, why: str) -> ShardlogError:
        hint = "partition it with --as, which keeps the op, or write it in StableHLO"
        return ShardlogError(f"{self.op.name} cannot run: {why}", where=location(self.op), hint=hint)
