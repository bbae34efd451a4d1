"""Refuses an annotated module in which what is unreduced stops being so without a reshard, as Shardy does.

What is refused is decided by ``rules/propagation/unreduced.dl``, which is told of each op what its operands
and results are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..errors import ShardlogError
from ..program.boundaries import boundary_axes, boundary_shardings, without_manual
from ..program.function import RESULT_SHARDING, location
from ..program.meshes import quoted
from ..program.mlir.modules import operations_in, symbols
from ..program.shardings import Sharding, Shardings, reduction_numbered
from ..rulebook.book import RuleBook

Shard = Sharding | None  # of a value; None: it has none


def check_unreduced(module: ir.Module, shardings: Shardings, book: RuleBook, names: Collection[str]) -> None:
    """Raises ShardlogError at the first op at which Shardy refuses what becomes of unreduced axes; ``names``
    are those of the module's ops."""
    reduces = {name for (name,) in book.unreduced({})["of_shardings"]}
    if shardings.has_unreduced or not reduces.isdisjoint(names):
        _Check(module, shardings, book).run()


class _Check:
    def __init__(self, module: ir.Module, shardings: Shardings, book: RuleBook) -> None:
        self.shardings, self.book = shardings, book
        self.functions = symbols(module, "func.func")
        self.looked_through = {name for (name,) in book.unreduced({})["looks_through"]}

    def run(self) -> None:
        for function in self.functions.values():
            for op in operations_in(function, ir.WalkOrder.POST_ORDER):
                if op != function.operation:
                    self.check(op)

    def check(self, op: Any) -> None:
        """Raises ShardlogError if the rules refuse an op."""
        for tensors in self.steps(op):
            facts = self.facts(op, tensors)
            if refused := self.book.unreduced(facts)["refused"]:
                _, message, hint = min(refused)
                raise ShardlogError(f"{op.name} {message}", where=location(op), hint=hint)

    def steps(self, op: Any) -> Iterator[list[tuple[str, Any, Shard]]]:
        """The tensors of an op, each with its role, its value if it is an operand, and its sharding: all of
        them, or, where they are handed on, each with what it becomes."""
        operands = [("operand", value, self.of(value)) for value in op.operands]
        results = [("result", None, self.of(value)) for value in op.results]
        if "callee" in op.attributes:
            function = self.functions[ir.FlatSymbolRefAttr(op.attributes["callee"]).value]
            takes, gives = (self.boundary(function, label) for label in ("arg_attrs", "res_attrs"))
            yield from ([o, ("result", None, taken)] for o, taken in zip(operands, takes, strict=True))
            yield from ([("operand", None, given), r] for given, r in zip(gives, results, strict=True))
        elif not op.results and (becomes := self.returned(op)):
            yield from ([o, ("result", None, r)] for o, r in zip(operands, becomes, strict=True))
        else:
            yield [*operands, *results]

    def facts(self, op: Any, tensors: Sequence[tuple[str, Any, Shard]]) -> dict[str, Any]:
        """What the rules are told."""
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
        said = op.attributes.get("reduction_op")
        own = op.name.startswith("sdy.")
        return {
            "op": [(op.name,)],
            "tensor": [(slot, role) for slot, (role, _, _) in enumerate(tensors)],
            "made_by": made_by,
            "on_mesh": on_mesh,
            "unreduced": unreduced,
            "ends_in": sorted({(name,) for name in _returned_by(op)}) if unreduced else [],
            "reduces": [(reduction_numbered(said),)] if own else [],
        }

    # ---- Shardings of values ------------------------------------------------------------------------------

    def source(self, value: Any) -> Any:
        """The value that a value is, through ops that are looked through."""
        while not isinstance(value.owner, ir.Block) and value.owner.operation.name in self.looked_through:
            value = value.owner.operation.operands[0]
        return value

    def of(self, value: Any) -> Shard:
        """The sharding of a value."""
        value = self.source(value)
        owner = value.owner
        if not isinstance(owner, ir.Block):
            return self.of_results(owner.operation)[ir.OpResult(value).result_number]
        number, op = ir.BlockArgument(value).arg_number, owner.owner.operation
        if op.name == "func.func":
            return self.boundary(op.opview, "arg_attrs")[number]
        if "in_shardings" in op.attributes:
            return self.inside(op, "in_shardings")[number]
        if [r.type for r in op.results] == [a.type for a in owner.arguments]:
            return self.of_results(op)[number]  # it is carried from one pass to the next
        return None

    def of_results(self, op: Any) -> list[Shard]:
        """The shardings of the results of an op."""
        attributes, where = op.attributes, location(op)
        for label in ("out_shardings", "sdy.sharding"):
            if label in attributes:
                found = sdy.TensorShardingPerValueAttr(attributes[label]).shardings
                return [self.shardings.read(sharding, where) for sharding in found]
        own = [label for label in RESULT_SHARDING if op.name.startswith("sdy.") and label in attributes]
        return [self.shardings.read(attributes[own[0]], where) if own else None] * len(op.results)

    def inside(self, op: Any, label: str) -> list[Shard]:
        """The shardings that a computation with a body says, as they are inside."""
        found = sdy.TensorShardingPerValueAttr(op.attributes[label]).shardings
        read, names = self.shardings.read, boundary_axes(op)
        return [without_manual(read(sharding, location(op)), names) for sharding in found]

    def boundary(self, function: Any, label: str) -> list[Shard]:
        """The shardings of the arguments or the results of a function."""
        return boundary_shardings(function, label, self.shardings)

    def returned(self, op: Any) -> list[Shard]:
        """The shardings of what the operands of the last op of a body become."""
        around = op.parent.operation
        if around.name == "func.func":
            return self.boundary(around.opview, "res_attrs")
        if "out_shardings" in around.attributes:
            return self.inside(around, "out_shardings")
        return []


def _returned_by(op: Any) -> Iterator[str]:
    """The ops that make what the first region of an op returns; none is an empty name."""
    blocks = op.regions[0].blocks if len(op.regions) else []
    for block in list(blocks)[:1]:
        for value in list(block.operations)[-1].operands:
            owner = value.owner
            yield "" if isinstance(owner, ir.Block) else owner.operation.name
