"""Slices and padding that their users skip: the users read the source instead, and the slice is not
computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from ...program.mlir.types import Operation
from ..layouts import Layout, replicated
from .kinds import Kinds
from .knowledge import Knowledge, RuleReader, joins, only_read, reading_through, shifting, shifts
from .reading import Reading

_COPIED = ("parts", "constant")  # ops that make scalars that are made once more


class Cut(NamedTuple):
    """A skipped op: what is known of the op that slices or pads a value, and the number of that value.
    ``fill`` is the padding value, if a function that the op calls does the padding. ``then`` is the name of
    the op that negates the slice, if there is one: its user negates what it reads."""

    knowledge: Knowledge
    number: int
    fill: Any = None
    then: str = ""


class Bypasses:
    """The slices and padding of a module that their users skip. ``functions`` are the functions that ops may
    call, and ``reading`` knows the layouts of values."""

    def __init__(
        self, kinds: Kinds, reader: RuleReader, functions: Mapping[str, Operation], reading: Reading
    ) -> None:
        self._kinds, self._knowledge, self._functions = kinds, reader.knowledge, functions
        self._reading, self._negations = reading, reader.traits.family("changes_sign")
        self._cuts: dict[int, Cut] = {}

    def take(self, number: int, knowledge: Knowledge) -> bool:
        """Whether to skip an op. It may slice its operand for a single op that joins the rows with others, as
        in a rotation. An op that negates the rows before they are joined is skipped, too. Or it may pad an
        operand for ops that slice as much off again, as in stencils. These users then read the operand
        itself."""
        kinds = self._kinds
        if self.touch(kinds.results(number)):  # the slice that it negates is skipped
            return True
        if self.touch(kinds.operands(number)):
            return False
        cut: Cut | None
        if read := only_read(knowledge):
            cut = Cut(knowledge, kinds.operands(number)[0])
        else:
            cut = self._padded(number, knowledge)
        if cut is None:
            return False
        (result,) = kinds.results(number)
        uses = kinds.users(result)
        if read and len(uses) == 1 and kinds.name(uses[0][0]) in self._negations:
            (result,) = kinds.results(uses[0][0])
            cut, uses = cut._replace(then=kinds.name(uses[0][0])), kinds.users(result)
        users = [(self._knowledge(kinds.ops[user]), slot) for user, slot in uses]
        if read:
            through = len(users) == 1 and joins(*users[0], read.dim) and self._pays(number, read.dim)
        else:
            through = bool(users) and all(shifts(user, cut.knowledge) for user, _ in users)
        if through:
            self._cuts[result] = cut
        return through

    def _pays(self, number: int, dim: int) -> bool:
        """Whether skipping a slice with one use saves communication: if the rows are in parts and few of them
        change devices, or if other rows of the same value are joined with them."""
        op = self._kinds.ops[number]
        if self._reading.homes(op)[0].dims[dim]:
            return True
        (use,) = op.results[0].uses
        makers = (value.owner for value in use.owner.operands if not isinstance(value.owner, ir.Block))
        same = [maker for maker in makers if maker.operands and maker.operands[0] == op.operands[0]]
        return len(same) > 1 or op.operands[0] in list(use.owner.operands)

    def _padded(self, number: int, knowledge: Knowledge) -> Cut | None:
        """The operand that an op pads, or that its function pads and does nothing else; None for other
        ops."""
        op, operands = self._kinds.ops[number], self._kinds.operands(number)
        if knowledge.lowering == "pad":
            return Cut(knowledge, operands[0])
        if knowledge.lowering != "call":
            return None
        func = self._functions[ir.FlatSymbolRefAttr(op.attributes["callee"]).value]
        *before, last = [each.operation for each in func.regions[0].blocks[0].operations]
        if not before or list(last.operands) != list(before[-1].results):
            return None
        *scalars, pads = before
        padding = self._knowledge(pads)
        if padding.lowering != "pad" or not isinstance(pads.operands[0].owner, ir.Block):
            return None
        makers = map(self._knowledge, scalars)
        if any(each.lowering not in _COPIED or any(each.shapes) for each in makers):
            return None
        slot = ir.BlockArgument(pads.operands[0]).arg_number
        return Cut(padding, operands[slot], pads.operands[1])

    def touch(self, operands: Sequence[int]) -> bool:
        """Whether any of these values is skipped."""
        return bool(self._cuts) and not self._cuts.keys().isdisjoint(operands)

    def reading(self, number: int, knowledge: Knowledge) -> tuple[Knowledge, list[int]]:
        """The knowledge of an op that skips slices, and the values that it reads."""
        operands = self._kinds.operands(number)
        cuts = [self._cuts.get(value) for value in operands]
        read = [cut.number if cut else value for cut, value in zip(cuts, operands, strict=True)]
        if (first := cuts[0]) and not only_read(first.knowledge):
            return shifting(knowledge, first.knowledge), read
        sources = [cut and (cut.knowledge, cut.then) for cut in cuts]
        return reading_through(knowledge, (*sources, *[None] * (len(knowledge.roles) - len(operands)))), read

    def filling(
        self, number: int, copy: Callable[[Any, list[Any]], Any], get: Callable[[int, Layout], Any]
    ) -> Any:
        """The padding around a value that an op shifts. ``copy`` applies an op to other operands, and ``get``
        returns a value by its number, in a layout."""
        (operand,) = self._kinds.operands(number)
        padding, fill = self._kinds.operands(self._kinds.definer(operand)), self._cuts[operand].fill

        def beside(value: Any) -> Any:
            """A scalar of the called function, at the call."""
            if isinstance(value.owner, ir.Block):
                return get(padding[ir.BlockArgument(value).arg_number], replicated(0))
            return copy(value.owner, [beside(operand) for operand in value.owner.operands])

        return get(padding[1], replicated(0)) if fill is None else beside(fill)
