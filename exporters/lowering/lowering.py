"""A module in StableHLO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from ...errors import ShardlogError
from ...program.function import location
from ...program.mlir.modules import copy_of, entries_of, operations_in, symbols
from ...program.mlir.types import FunctionOp, Operation, Value
from ...program.signature import DescribedParts, describe, looks_at
from ...rulebook.book import RuleBook
from .formulas import value_of_formula
from .loops import Loops, Nest
from .moves import MOVES, Move, constant_of
from .writer import OpWriter, element_of, is_float, shape_of, written_element, written_type

_WRITTEN = "stablehlo."


def lowered(module: ir.Module, book: RuleBook) -> ir.Module:
    """The module with ops of other dialects written in StableHLO: a copy, or the module itself where it has
    none that rules say how to write. What they do not know stays.

    Raises ShardlogError for ops that are known but cannot be written so.
    """
    how = _How(book)
    if not any(op.name in how.known for op in operations_in(module)):
        return module
    copy = copy_of(module)
    with copy.context, ir.Location.unknown():
        for function in symbols(copy, "func.func").values():
            _FunctionLowering(how).function(function)
    return copy


def runnable(module: ir.Module, book: RuleBook) -> ir.Module:
    """As ``lowered``, for XLA. Raises ShardlogError for ops that XLA does not have, too."""
    stablehlo_module = lowered(module, book)
    for op in operations_in(stablehlo_module.operation):
        registered = op.name.partition(".")[0] in _OF_XLA and op.context.is_registered_operation(op.name)
        if not registered:  # XLA may end the process
            raise _not_of_xla(op)
    return stablehlo_module


def _not_of_xla(op: Operation) -> ShardlogError:
    """The error that XLA does not have an op."""
    hint = "lower it to StableHLO to run it; run, partition and cost need no lowering"
    return ShardlogError(f"XLA does not have the op {op.name}", where=location(op), hint=hint)


_OF_XLA = ("builtin", "func", "stablehlo", "chlo", "mhlo", "sdy")  # dialects


@dataclass
class _How:
    """The rules' answers about ops by name, and about signatures."""

    book: RuleBook
    told: DescribedParts = field(default_factory=DescribedParts)

    def __post_init__(self) -> None:
        relations = self.book.traits.relations
        self.written: Mapping[str, str] = dict(relations["written_as"])
        self.formulas: Mapping[str, str] = dict(relations["formula"])
        self.cases: dict[str, list[tuple[str, int, str]]] = {}
        for name, attribute, value, text in relations["formula_if"]:
            self.cases.setdefault(name, []).append((attribute, value, text))
        self.zeros: dict[str, dict[int, int]] = {}
        for name, operand, of in relations["zero_point"]:
            self.zeros.setdefault(name, {})[of] = operand
        self.takes_zero: dict[str, list[int]] = {}
        for name, operand in relations["takes_zero"]:
            self.takes_zero.setdefault(name, []).append(operand)
        self.known = {*self.written, *self.formulas, *self.cases}
        self.around = looks_at(self.book.looks_at)

    def formula(self, op: Operation) -> str | None:
        """The formula of an op, if it is elementwise."""
        for attribute, value, text in self.cases.get(op.name, ()):
            held: Any = op.attributes.get(attribute)
            if held is not None and int(held.value) == value:
                return text
        if op.name in self.cases:
            raise _refused(op, "its attributes are not supported")
        return self.formulas.get(op.name)

    def loops(self, op: Operation) -> Loops:
        """An op as loops."""
        facts = describe(op, False, self.around, self.told)
        answers, local = self.book.classify(facts), self.book.localize(facts)
        moves: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for t, d, loop, step in sorted(answers["moves_along"]):
            moves.setdefault((t, d), []).append((loop, step))
        return Loops(
            dict(sorted(answers["iterates"])),
            dict(answers["turns"]),
            {place: tuple(rows) for place, rows in moves.items()},
            {(t, d): element for t, d, element in answers["moves_from"]},
            next((_WRITTEN + how.removeprefix(_WRITTEN) for (how,) in local["combined_by"]), ""),
            tuple(sorted(t for (t,) in answers["starts_from"])),
            self.zeros.get(op.name, {}),
        )


class _FunctionLowering:
    """Writes the ops of a function. ``values`` are the replacements of values; None if nothing replaces
    one."""

    def __init__(self, how: _How) -> None:
        self.how = how
        self.values: dict[Any, Any] = {}

    def function(self, function: FunctionOp) -> None:
        """Writes a function anew, in its place."""
        for region in function.operation.regions:
            for block in region.blocks:
                _set_types(block.arguments)
                self.block(block)
        inputs, results = (
            [written_type(t) or t for t in ts] for ts in (function.type.inputs, function.type.results)
        )
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))

    def block(self, block: ir.Block) -> None:
        """Writes the ops of a block."""
        written = []
        for op in [op.operation for op in block.operations]:
            if op.name in self.how.known:
                self.write(op)
                written.append(op)
                continue
            for i, operand in enumerate(op.operands):
                if self.values.get(operand) is not None:
                    op.operands[i] = self.values[operand]
            of_xla = op.name.partition(".")[0] in _OF_XLA
            for region in op.regions:
                for inner in region.blocks:
                    if of_xla:
                        _set_types(inner.arguments)
                    self.block(inner)
            if of_xla:
                _set_types(op.results)
        for op in reversed(written):
            op.erase()

    def value(self, value: Value) -> Any:
        """The replacement of a value."""
        return self.values.get(value, value if written_type(value.type) == value.type else None)

    def write(self, op: Any) -> None:
        """Writes an op in front of it, and records the replacements of its results."""
        writer, values = (
            OpWriter(ir.InsertionPoint(op), op.location),
            [self.value(value) for value in op.operands],
        )
        for operand, value in zip(op.operands, values, strict=True):
            if value is None and written_type(operand.type) is not None:  # a scalar of an op that stays
                raise _not_of_xla(
                    operand.owner.owner if isinstance(operand.owner, ir.Block) else operand.owner
                )
        zeros = self.how.takes_zero.get(op.name, ())
        if zeros and is_float(element_of(values[0])):
            zeros = ()  # floats have no zero points
        for operand in zeros:
            constant = constant_of(op.operands[operand]) if operand < len(op.operands) else 0
            if constant is None or np.any(np.asarray(constant) != 0):
                raise _refused(op, f"operand {operand} is not a constant zero")
        if (text := self.how.formula(op)) is not None:
            results = [self._elementwise(writer, op, text, values, None)]
        else:
            results = self._of_family(writer, op, values)
        for result, new in zip(op.results, results, strict=True):
            self.values[result] = new

    def _of_family(self, writer: OpWriter, op: Operation, values: Sequence[Value]) -> list[Any]:
        how = self.how.written[op.name]
        if how == "generated":
            return [self._generated(writer, op)]
        if how not in ("loops", "average"):
            return [MOVES[how](Move(writer, op, values, self.value))]
        nest = Nest(writer, op, self.how.loops(op), values, self.body)
        results = nest.results()
        if how == "average":
            (result,) = results
            counts = writer.integers(nest.counts(), ir.IntegerType.get_signless(32))
            counts = writer.converted(counts, element_of(result))
            results = [writer.op("divide", [result, writer.reshaped(counts, shape_of(result))])]
        return results

    def _generated(self, writer: OpWriter, op: Operation) -> Any:
        """A tensor whose elements the op's region computes from their indices."""
        shape, block = shape_of(op.results[0]), op.regions[0].blocks[0]
        i64 = ir.IntegerType.get_signless(64)
        indices = {index: writer.counted(shape, d, i64) for d, index in enumerate(block.arguments)}
        (returned,) = list(block.operations)[-1].operation.operands
        return writer.repeated(self.body(writer, returned, indices, range(len(shape)), shape), shape)

    def _elementwise(
        self, writer: OpWriter, op: Operation, text: str, values: Sequence[Value], shape: Sequence[int] | None
    ) -> Any:
        """An elementwise op, of operands that are repeated to the shape of the result."""
        kind = op.results[0].type
        element = written_element(getattr(kind, "element_type", kind))
        if shape is None:
            shape = list(written_type(kind).shape)
        ranked = [value for value in values if len(shape_of(value)) in (0, len(shape))]
        spread = [writer.repeated(value, shape) for value in ranked]
        attributes = entries_of(op.attributes)
        try:
            return value_of_formula(writer, text, spread, element, attributes)
        except IndexError:
            raise _refused(op, "it takes more operands") from None

    def body(
        self,
        writer: OpWriter,
        value: Value,
        values: Mapping[Any, Any],
        space: Sequence[int],
        shape: Sequence[int],
    ) -> Any:
        """Writes a value of an op's region over a space of loops, from the ``values`` that are written
        already. For an op in place of a value, returns whether it multiplies."""
        if isinstance(value, ir.Operation):
            return self.how.formula(value) == "multiply(a, b)" if value.name in self.how.known else False
        return _RegionBody(self, writer, dict(values), space, shape).value(value)


@dataclass
class _RegionBody:
    lowering: _FunctionLowering
    writer: OpWriter
    written: dict[Any, Any]
    space: Sequence[int]
    shape: Sequence[int]

    def value(self, value: Value) -> Any:
        """A value of the body, over the space, or a scalar."""
        if value not in self.written:
            self.written[value] = self._written(value)
        return self.written[value]

    def _written(self, value: Value) -> Any:
        outside = self.lowering.values.get(value)
        if outside is not None:
            return outside
        if isinstance(value.owner, ir.Block):
            return value
        op, how = value.owner.operation, self.lowering.how
        if op.name not in how.known:
            raise _refused(op, "it is in the body of another op")
        if (text := how.formula(op)) is not None:
            operands = [self.writer.repeated(self.value(operand), self.shape) for operand in op.operands]
            return self.lowering._elementwise(self.writer, op, text, operands, self.shape)
        if how.written[op.name] in ("constant", "applied"):
            operands = [self.writer.repeated(self.value(operand), self.shape) for operand in op.operands]
            return MOVES[how.written[op.name]](Move(self.writer, op, operands))
        if "dim" in op.attributes and not len(op.operands):
            dim: Any = op.attributes["dim"]
            i64 = ir.IntegerType.get_signless(64)
            return self.writer.counted(self.shape, list(self.space).index(dim.value), i64)
        raise _refused(op, "it is in the body of another op")


def _set_types(values: Any) -> None:
    """Gives values the types that StableHLO has in place of theirs."""
    for value in values:
        if (kind := written_type(value.type)) is not None and kind != value.type:
            value.set_type(kind)


def _refused(op: Operation, why: str) -> ShardlogError:
    hint = "partition it with --as, which keeps the op, or write it in StableHLO"
    return ShardlogError(f"{op.name} cannot run: {why}", where=location(op), hint=hint)
