"""Op rules as ``sdy.sharding_rule`` attributes, the notation in which Shardy attaches them to ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..program.factors import MARKED
from ..program.signature import RULE, describe, looks_at
from ..rulebook.book import RuleBook

Facts = Mapping[str, Sequence[tuple[Any, ...]]]


def attach_rules(module: ir.Module, book: RuleBook, modes: Sequence[str] = ()) -> None:
    """Gives every op in ``module`` its rule as an attribute; an op that has one keeps it. ``modes`` are the
    modes of the run."""
    around = looks_at(book.looks_at)
    mode_facts: Facts = {mode: [()] for mode in modes}

    def visit(op: ir.Operation) -> ir.WalkResult:
        symbol = op.parent is None or "sym_name" in op.attributes  # a function or a mesh
        if not symbol and RULE not in op.attributes:
            rule = rule_attribute(op, book.classify({**describe(op, False, around), **mode_facts}))
            if rule is not None:
                op.attributes[RULE] = rule
        return ir.WalkResult.ADVANCE

    with module.context:
        module.operation.walk(visit)


def rule_attribute(op: ir.Operation, answers: Facts) -> ir.Attribute | None:
    """``#sdy.op_sharding_rule<...>`` from the op rules for an op; None if it has no rule."""
    if not answers["known"] or answers["no_rule"] or answers["edge"]:
        return None
    mappings: list[list[list[int]]] = []
    for value in (*op.operands, *op.results):
        rank = value.type.rank if isinstance(value.type, ir.RankedTensorType) else 0
        mappings.append([[] for _ in range(rank)])
    for t, d, _, f in answers["maps"]:
        mappings[t][d].append(f)
    tensors = [sdy.TensorMappingAttr.get([sdy.DimMappingAttr.get(fs) for fs in dims]) for dims in mappings]
    factors: list[Any] = [[f for f, kind in answers["kind"] if kind == wanted] for wanted in MARKED]
    factors.append([f for (f,) in answers["blocked"]])
    sizes = [size for _, size in answers["factor"]]
    operands = len(op.operands)
    return sdy.OpShardingRuleAttr.get(sizes, tensors[:operands], tensors[operands:], *factors)
