"""Moves transposes and negations past collectives, because compilers cannot fuse them across one.

Programs transpose some products, such as gradients of weights, and compilers make the transpose part of the
product. With a collective in between they cannot. They use another memory layout for the collective and for
all that follows, and copy data back into the usual one. So the operands of such a product are exchanged, and
its result, sent as before, needs no transpose.

Compilers turn a sum of negated terms, as in gradients of normalizations, into a negated sum. Before a
collective, the negation would be an op of its own. So the result is negated after the collective, together
with its user.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from jaxlib.mlir import ir

from ...program.mlir.types import Operation
from ...program.signature import value_of
from ...rulebook.traits import OpTraits
from ..writing.building import element_of, shape_of
from ..writing.neutral import zero
from .collectives import DIMENSIONS, KINDS
from .products import exchange, exchangeable, exchanged_order


def turn_products(collectives: Iterable[Operation], traits: OpTraits) -> None:
    """Exchanges the operands of products that are transposed after their collective."""
    transposes = traits.family("reorders_dims")
    for op in collectives:
        while _turn_product(op, traits, transposes):  # once for each transpose after it
            pass


def negate_behind(collectives: Iterable[Operation], traits: OpTraits) -> None:
    """Negates sums after their collective, instead of their terms."""
    passed = traits.family("changes_sign") | traits.family("keeps_signs")
    for op in collectives:
        if len(op.operands) != 1 or isinstance(op.operands[0].owner, ir.Block):
            continue
        if op.operands[0].owner.operation.name in passed and len(op.regions) and _adds(op, traits):
            _negate_behind(op, traits)


# ---- Transposes ------------------------------------------------------------------------------------------


def _turn_product(first: Operation, traits: OpTraits, transposes: Container[str]) -> bool:
    """Exchanges the operands of the product before this collective, and reorders the collectives after it, if
    a transpose at the end then becomes unnecessary. Returns whether it does."""
    if isinstance(first.operands[0].owner, ir.Block):
        return False
    product = first.operands[0].owner.operation
    users = _users(product)
    if not users or users[-1].name not in transposes or not exchangeable(product, traits):
        return False
    *collectives, last = users
    order = exchanged_order(product)
    if list(last.attributes["permutation"]) != order:
        return False
    exchange(product)
    for op in (product, *collectives):
        _reorder(op, order)
    last.results[0].replace_all_uses_with(collectives[-1].results[0])
    last.erase()
    return True


def _users(op: Operation) -> list[Any]:
    """The chain of collectives that are each the only user of the previous value, starting from an op; and
    the next user, or the last of these."""
    chain = [op]
    while chain[-1] == op or chain[-1].name in KINDS:
        uses = list(chain[-1].results[0].uses)
        if len(uses) != 1 or len(chain[-1].results) != 1:
            break
        chain.append(uses[0].owner.operation)
    return chain[1:]


def _reorder(op: Operation, order: list[int]) -> None:
    """Gives the result of an op, and its attributes, another order of dimensions."""
    (result,) = op.results
    shape = shape_of(result)
    for name in DIMENSIONS:
        if name in op.attributes:
            held: Any = ir.IntegerAttr(op.attributes[name])
            op.attributes[name] = ir.IntegerAttr.get(held.type, order.index(held.value))
    result.set_type(ir.RankedTensorType.get([shape[d] for d in order], element_of(result)))


# ---- Signs -----------------------------------------------------------------------------------------------


def _negate_behind(collective: Operation, traits: OpTraits) -> None:
    """Negates the result of a collective instead of its operand."""
    user, odd, negation = collective, False, ""
    while not isinstance(user.operands[0].owner, ir.Block):
        maker = user.operands[0].owner.operation
        if maker.name in traits.family("changes_sign"):
            user.operands[0], odd, negation = maker.operands[0], not odd, maker.name
            if not any(True for _ in maker.results[0].uses):
                maker.erase()
        elif len(list(user.operands[0].uses)) == 1 and _keeps_signs(maker, traits):
            user = maker
        else:
            break
    if odd:
        result, after = collective.results[0], ir.InsertionPoint.after(collective.operation)
        negated = ir.Operation.create(
            negation, results=[result.type], operands=[result], loc=collective.location, ip=after
        )
        result.replace_all_uses_except(negated.results[0], negated)


def _keeps_signs(op: Operation, traits: OpTraits) -> bool:
    """Whether negating the operand of an op negates its result. An op that combines elements must be a sum
    that starts from zero."""
    if op.name not in traits.family("keeps_signs") or len(op.results) > 1:
        return False
    if not op.regions:
        return True
    start = op.operands[1].owner
    if (
        not _adds(op, traits)
        or isinstance(start, ir.Block)
        or traits.lowering(start.operation.name) != "constant"
    ):
        return False
    written = ir.Attribute.parse(f"dense<{zero(element_of(op.operands[1]))}> : {op.operands[1].type}")
    _, held = value_of(start.operation) or ("", None)
    return held == written


def _adds(op: Operation, traits: OpTraits) -> bool:
    """Whether an op that combines elements adds them."""
    return traits.computed_as(op.regions[0].blocks[0].operations[0].operation.name) == "add"
