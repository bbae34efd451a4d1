"""Refuses an annotated module that drops unreduced axes without a reshard, as Shardy does.

``rules/propagation/unreduced.dl`` decides, from facts about the operands and results of each op.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from jaxlib.mlir import ir

from ..errors import ShardlogError
from ..program.function import location
from ..program.meshes import quoted
from ..program.mlir.modules import operations_in
from ..program.mlir.types import Operation, Value
from ..program.shardings import Sharding, Shardings, reduction_numbered
from ..rulebook.book import RuleBook
from .values import ValueShardings

Shard = Sharding | None  # of a value; None: it has none


def check_unreduced(module: ir.Module, shardings: Shardings, book: RuleBook, names: Collection[str]) -> None:
    """Raises ShardlogError at the first op whose unreduced axes Shardy refuses; ``names`` are the names of
    the module's ops."""
    reduces = {name for (name,) in book.unreduced({})["of_shardings"]}
    if shardings.has_unreduced or not reduces.isdisjoint(names):
        _UnreducedCheck(module, shardings, book).run()


class _UnreducedCheck:
    def __init__(self, module: ir.Module, shardings: Shardings, book: RuleBook) -> None:
        self.shardings, self.book = shardings, book
        self.values = ValueShardings(module, shardings, book)
        self.looked_through = {name for (name,) in book.unreduced({})["looks_through"]}

    def run(self) -> None:
        for function in self.values.functions.values():
            for op in operations_in(function, ir.WalkOrder.POST_ORDER):
                if op != function.operation:
                    self.check(op)

    def check(self, op: Operation) -> None:
        """Raises ShardlogError if the rules refuse an op."""
        for tensors in self.steps(op):
            facts = self.facts(op, tensors)
            if refused := self.book.unreduced(facts)["refused"]:
                _, message, hint = min(refused)
                raise ShardlogError(f"{op.name} {message}", where=location(op), hint=hint)

    def steps(self, op: Operation) -> Iterator[list[tuple[str, Any, Shard]]]:
        """The tensors of an op, each with its role, its value if it is an operand, and its sharding: all of
        them, or, if they are passed on, each with the value that it becomes."""
        operands = [("operand", value, self.values.of(self.source(value))) for value in op.operands]
        results = [("result", None, self.values.of(self.source(value))) for value in op.results]
        if "callee" in op.attributes:
            function = self.values.called(op)
            takes, gives = (self.values.boundary(function, label) for label in ("arg_attrs", "res_attrs"))
            yield from ([o, ("result", None, taken)] for o, taken in zip(operands, takes, strict=True))
            yield from ([("operand", None, given), r] for given, r in zip(gives, results, strict=True))
        elif not op.results and (becomes := self.returned(op)):
            yield from ([o, ("result", None, r)] for o, r in zip(operands, becomes, strict=True))
        else:
            yield [*operands, *results]

    def facts(self, op: Operation, tensors: Sequence[tuple[str, Any, Shard]]) -> dict[str, Any]:
        """The facts for the rules."""
        made_by, on_mesh, unreduced = list[Any](), list[Any](), list[Any]()
        for slot, (_, value, sharding) in enumerate(tensors):
            if value is not None and not isinstance(owner := self.source(value).owner, ir.Block):
                made_by.append((slot, owner.operation.name))
            if sharding is not None:
                on_mesh.append((slot, self.shardings.meshes.same[sharding.mesh]))
                unreduced += [
                    (slot, x, quoted(axis.name), sharding.reduction)
                    for axis in sharding.unreduced
                    for x in self.shardings.meshes.split(sharding.mesh, axis)
                ]
        reduction = op.attributes.get("reduction_op")
        own = op.name.startswith("sdy.")
        return {
            "op": [(op.name,)],
            "tensor": [(slot, role) for slot, (role, _, _) in enumerate(tensors)],
            "made_by": made_by,
            "on_mesh": on_mesh,
            "unreduced": unreduced,
            "ends_in": sorted({(name,) for name in _returned_by(op)}) if unreduced else [],
            "reduces": [(reduction_numbered(reduction),)] if own else [],
        }

    def source(self, value: Value) -> Any:
        """The value that a value is, through ops that are looked through."""
        while not isinstance(value.owner, ir.Block) and value.owner.operation.name in self.looked_through:
            value = value.owner.operation.operands[0]
        return value

    def returned(self, op: Operation) -> list[Shard]:
        """The shardings of the values that the operands of a body's terminator become."""
        around = op.parent.operation
        if around.name == "func.func":
            return self.values.boundary(around.opview, "res_attrs")
        if "out_shardings" in around.attributes:
            return self.values.inside(around, "out_shardings")
        return []


def _returned_by(op: Operation) -> Iterator[str]:
    """The ops that make the returned values of an op's first region; none is an empty name."""
    blocks = op.regions[0].blocks if len(op.regions) else []
    for block in list(blocks)[:1]:
        for value in list(block.operations)[-1].operands:
            owner = value.owner
            yield "" if isinstance(owner, ir.Block) else owner.operation.name
