"""The shardings of the values of an annotated module, for its passes.

The defining op of a value has its sharding. An argument of a region has the sharding that the op gives it, or
that of the result it flows into.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..program.boundaries import boundary_axes, boundary_shardings, without_manual
from ..program.function import RESULT_SHARDING, location, sharding_of
from ..program.mlir.modules import boundary_attributes, symbols
from ..program.mlir.types import FunctionOp, Operation, Value
from ..program.shardings import Sharding, Shardings
from ..program.signature import describe, looks_at, text_of
from ..rulebook.book import RuleBook


class ValueShardings:
    """The shardings of values, and the answers of the op rules about ops. ``modes`` are the modes of the
    run."""

    def __init__(
        self, module: ir.Module, shardings: Shardings, book: RuleBook, modes: Sequence[str] = ()
    ) -> None:
        self.shardings, self.book = shardings, book
        self.functions = symbols(module, "func.func")
        self._modes = {mode: [()] for mode in modes}
        self._around = looks_at([*book.looks_at, *book.partition_looks_at])
        self._said: dict[Any, Mapping[str, Any]] = {}
        self._arguments: dict[str, list[Any]] = {}

    def of(self, value: Value) -> Sharding | None:
        """The sharding of a value; None where it has none. Inside of a manual computation its arguments have
        no manual axes."""
        attribute = self.attribute(value)
        if attribute is None:
            return None
        owner = value.owner
        around = owner.owner if isinstance(owner, ir.Block) else owner
        sharding = self.shardings.read(attribute, location(around))
        if isinstance(owner, ir.Block) and "manual_axes" in around.attributes:
            return without_manual(sharding, boundary_axes(around))
        return sharding

    def attribute(self, value: Any) -> Any:
        """The sharding of a value as the module says it: of an argument inside of a manual computation, as it
        is outside."""
        owner = value.owner
        if not isinstance(owner, ir.Block):
            return self._of_result(owner.operation, ir.OpResult(value).result_number)
        around, index = owner.owner.operation, ir.BlockArgument(value).arg_number
        if around.name == "func.func":
            return self._of_arguments(around)[index]
        if "in_shardings" in around.attributes:
            return sdy.TensorShardingPerValueAttr(around.attributes["in_shardings"]).shardings[index]
        edge = self._edge_of(around, owner, index)
        return None if edge is None else self.attribute(edge)

    def inside(self, op: Operation, label: str) -> list[Sharding | None]:
        """The "in_shardings" or "out_shardings" of a computation with a body, seen from inside."""
        given = sdy.TensorShardingPerValueAttr(op.attributes[label]).shardings
        names, where = boundary_axes(op), location(op)
        return [without_manual(self.shardings.read(sharding, where), names) for sharding in given]

    def boundary(self, function: FunctionOp, label: str) -> list[Sharding | None]:
        """The shardings of the arguments ("arg_attrs") or results ("res_attrs") of a function."""
        return boundary_shardings(function, label, self.shardings)

    def called(self, op: Operation) -> Any:
        """The function that a call calls."""
        return self.functions[ir.FlatSymbolRefAttr(op.attributes["callee"]).value]

    def answers(self, op: Operation) -> Mapping[str, Any]:
        """The answers of the op rules about an op, solved once for ops that look alike."""
        kept = tuple((name, op.attributes[name]) for name in op.attributes if name != "sdy.sharding")
        types = (tuple(v.type for v in op.operands), tuple(v.type for v in op.results))
        key: Any = op if op.name in self._around or len(op.regions) else (op.name, types, kept)
        if key not in self._said:
            facts = {**describe(op, False, self._around), **self._modes}
            self._said[key] = {**self.book.classify(facts), **self.book.reshards(facts)}
        return self._said[key]

    def flows(self, op: Operation) -> bool:
        """Whether data flows through an op along edges, as through loops."""
        carries = len(op.regions) or op.name in self.book.traits.family("carries_op")
        return bool(carries and self.answers(op)["edge"])

    def _of_arguments(self, function: ir.Operation) -> list[Any]:
        name = text_of(function.attributes["sym_name"])
        if name not in self._arguments:
            self._arguments[name] = [*map(sharding_of, boundary_attributes(function.opview, "arg_attrs"))]
        return self._arguments[name]

    def _of_result(self, op: ir.Operation, index: int) -> Any:
        label = result_label(op)
        if label not in op.attributes:
            return None
        if label in RESULT_SHARDING:
            return op.attributes[label]
        entries = sdy.TensorShardingPerValueAttr(op.attributes[label]).shardings
        return entries[index] if index < len(entries) else None

    def _edge_of(self, op: ir.Operation, block: ir.Block, index: int) -> Any:
        """The result that has the sharding of an argument of a region; None where there is none."""
        regions = [region.blocks[0] for region in op.regions]
        end = ("argument", regions.index(block), index)
        answers = self.answers(op)
        owners = {e: owner for e, *owner in answers["edge_owner"]}
        for e, *target in answers["edge_target"]:
            if tuple(target) == end and owners[e][0] == "result":
                return op.results[owners[e][2]]
        return None


def result_label(op: ir.Operation) -> str:
    """The attribute in which the shardings of an op's results stand, or would stand."""
    if op.name.startswith("sdy."):
        for label in (*RESULT_SHARDING, "out_shardings"):
            if label in op.attributes:
                return label
    return "sdy.sharding"
