"""How far results may be off when sums are taken in another order.

An op that sums n products of a type with relative precision eps is off by at most 2 n eps of the sum of
their magnitudes. It is off by more than 8 sqrt(n) eps only once in 10^13, because rounding errors are
nearly independent (Higham and Mary, "A new approach to probabilistic rounding error analysis"). The op
rules say how many elements an op sums up. The bound of a result is the sum of these along the longest way
from an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxlib.mlir import ir

from ..exporters.tokens import is_token
from ..partition.executions import Executions
from ..program.elements import dtype_of
from ..program.mlir.modules import main_function, symbols
from ..program.mlir.types import Operation, Value

if TYPE_CHECKING:
    from ..runs.result import Result

_OP = 4  # of an elementwise op, in eps: approximations are good to a few units in the last place
_TURNS = 1000  # of a loop that does not say how many it takes
_MOVES = {"identity", "slice", "pad", "reverse", "concatenate", "gather", "update", "constant", "iota"}


class Roundings:
    """The rounding allowed for the results of a run, as parts of their magnitude."""

    def __init__(self, result: Result) -> None:
        self._result, self._record, self._items = result, result.record, result.items
        self._functions = symbols(result.module, "func.func")
        self._traits = result.book.traits
        self._executions = Executions(result.module, self._traits)
        self._calls: dict[Any, list[float]] = {}

    def results(self) -> list[float]:
        """For each result that is an array; 0 for integers."""
        with self._result.module.context:
            main = self._functions[main_function(self._functions)]
            errors = self._block(main.regions[0].blocks[0], [0.0] * len(main.type.inputs), {})
            kinds = zip(errors, main.type.results, strict=True)
            return [error for error, kind in kinds if not is_token(kind)]

    def _block(self, block: ir.Block, given: Sequence[float], around: dict[Value, float]) -> list[float]:
        error_of = around | dict(zip(block.arguments, given, strict=True))
        operations = list(block.operations)
        for op in operations[:-1]:
            operation = op.operation
            errors = self._op(operation, [error_of[value] for value in operation.operands], error_of)
            for value, error in zip(operation.results, errors, strict=True):
                error_of[value] = error if _eps(value.type) else 0.0
        return [error_of[value] if _eps(value.type) else 0.0 for value in operations[-1].operands]

    def _op(self, operation: Operation, given: list[float], error_of: dict[Value, float]) -> Sequence[float]:
        lowering = self._traits.lowering(operation.name)
        if lowering == "loop":
            body = operation.regions[1].blocks[0]
            turn = self._block(body, [0.0] * len(given), error_of)
            turns = self._executions.turns(operation)
            growth = max(turn, default=0.0) * (_TURNS if turns is None else turns)
            return [max(given, default=0.0) + growth] * len(given)
        if lowering == "branches":
            ways = [self._block(region.blocks[0], [], error_of) for region in operation.regions]
            return [max(errors) for errors in zip(*ways, strict=True)]
        if lowering == "body":
            return self._block(operation.regions[0].blocks[0], given, {})
        if lowering in ("call", "composite"):
            label = "callee" if lowering == "call" else "decomposition"
            return self._call(ir.FlatSymbolRefAttr(operation.attributes[label]).value, given)
        if lowering == "pass":
            return given
        before = max(given, default=0.0)
        if lowering in _MOVES:
            return [before] * len(operation.results)
        own = _sum(self._summed(operation))
        return [before + own * _eps(value.type) for value in operation.results]

    def _call(self, name: str, given: list[float]) -> list[float]:
        key = name, tuple(given)
        if key not in self._calls:
            block = self._functions[name].regions[0].blocks[0]
            self._calls[key] = self._block(block, given, {})
        return self._calls[key]

    def _summed(self, operation: Operation) -> int:
        """How many elements one of a result is made of."""
        if operation.name == "stablehlo.custom_call":
            shapes = [v.type.shape for v in operation.operands if isinstance(v.type, ir.RankedTensorType)]
            return max((prod(shape) for shape in shapes), default=1)
        item = self._items.get(operation)
        facts = {} if item is None else self._record.op_facts(item)
        sizes: dict[int, int] = dict(facts.get("factor", ()))
        apart = {factor for factor, kind in facts.get("kind", ()) if kind != "pass_through"}
        return prod(sizes[factor] for factor in apart)


def _sum(n: int) -> float:
    return _OP + min(2.0 * n, 8 * sqrt(n)) if n > 1 else _OP


def eps_of(element: str) -> float:
    """The distance from 1 to the next number of a type of elements; 0 for integers."""
    import ml_dtypes

    name = dtype_of(element)
    if name.startswith("complex"):
        name = f"float{int(name.removeprefix('complex')) // 2}"
    if "float" not in name:
        return 0.0
    return float(ml_dtypes.finfo(np.dtype(name)).eps)  # type: ignore[no-untyped-call]


def _eps(type_: ir.Type) -> float:
    return eps_of(str(getattr(type_, "element_type", type_)))
