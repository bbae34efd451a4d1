"""Formulas of elementwise ops, as in ``rules/ops/lowering.dl``: ``select(NE(a, a), b, maximum(a, 0))``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jaxlib.mlir import ir

from ...program.elements import bits_of
from ...program.mlir.types import Value
from .writer import OpWriter, element_of, is_float, shape_of

_TOKEN = re.compile(r"\s*([\w.#]+|[(),])")
_COMPARISONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
_OF_CHLO = frozenset({"acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh", "erf", "erfc", "tan"})


@dataclass(frozen=True)
class FormulaCall:
    """A function of other formulas, or a name or a number alone."""

    name: str
    arguments: tuple[FormulaCall, ...] = ()


@cache
def parsed(text: str) -> FormulaCall:
    """A formula as a tree."""
    tokens = _TOKEN.findall(text)

    def read(at: int) -> tuple[FormulaCall, int]:
        name, arguments = tokens[at], list[FormulaCall]()
        at += 1
        if at < len(tokens) and tokens[at] == "(":
            while tokens[at] != ")":
                argument, at = read(at + 1)
                arguments.append(argument)
            at += 1
        return FormulaCall(name, tuple(arguments)), at

    return read(0)[0]


def value_of_formula(
    writer: OpWriter,
    text: str,
    operands: Sequence[Value],
    element: ir.Type,
    attributes: Mapping[str, ir.Attribute],
) -> Any:
    """The value of a formula for ``operands`` of one shape; its elements have the type ``element``."""
    return _Formula(writer, operands, element, attributes).value(parsed(text))


class _Formula:
    def __init__(
        self,
        writer: OpWriter,
        operands: Sequence[Value],
        element: ir.Type,
        attributes: Mapping[str, ir.Attribute],
    ) -> None:
        self.writer, self.operands, self.element, self.attributes = writer, operands, element, attributes
        self.shape = shape_of(operands[0])

    def value(self, call: FormulaCall) -> Any:
        """The tensor that a formula stands for."""
        name, writer = call.name, self.writer
        if not call.arguments:
            return self.operands[ord(name) - ord("a")]
        if name in ("is_bit", "is_float"):
            of, yes, no = call.arguments
            element = self.element if of.name == "result" else element_of(self.value(of))
            holds = str(element) == "i1" if name == "is_bit" else is_float(element)
            return self.value(yes if holds else no)
        values = self.arguments(call.arguments)
        first = values[0]
        if name in _COMPARISONS:
            return writer.compare(name, *values)
        match name:
            case "select":
                return writer.op("select", values, self.shape, element_of(values[1]))
            case "convert":
                return writer.converted(first, self.element)
            case "convert_unsigned":
                return writer.converted(first, _with_sign(self.element, signed=False))
            case "unsigned" | "signed":
                return writer.bits(first, _with_sign(element_of(first), signed=name == "signed"))
            case "bits":
                width = bits_of(str(element_of(first)))
                return writer.bits(first, ir.IntegerType.get_signless(width))
            case "bitcast_convert":
                return writer.bits(first, self.element)
            case "nearest":
                rounds = (
                    is_float(element_of(first)) and not is_float(self.element) and str(self.element) != "i1"
                )
                return writer.op("round_nearest_even", values) if rounds else first
            case "is_finite":
                return writer.op(name, values, self.shape, ir.IntegerType.get_signless(1))
        return writer.op(name, values, dialect="chlo" if name in _OF_CHLO else "stablehlo")

    def arguments(self, arguments: Sequence[FormulaCall]) -> list[Any]:
        """The arguments of a function: numbers have the type of its first tensor."""
        values = [None if self._written(each) else self.value(each) for each in arguments]
        like = next((value for value in values if value is not None), self.operands[0])
        return [
            value
            if value is not None
            else self.writer.splat(self._number(each), element_of(like), self.shape)
            for value, each in zip(values, arguments, strict=True)
        ]

    @staticmethod
    def _written(call: FormulaCall) -> bool:
        return call.name[0].isdigit() or call.name[0] == "#"

    def _number(self, call: FormulaCall) -> Any:
        if call.name[0] == "#":
            attribute: Any = self.attributes[call.name[1:]]
            return attribute.value
        return float(call.name)


def _with_sign(element: Any, signed: bool) -> Any:
    text = str(element)
    if text == "i1" or is_float(element):
        return element
    width = bits_of(text)
    return ir.IntegerType.get_signless(width) if signed else ir.IntegerType.get_unsigned(width)
