"""What XLA for CPUs would copy, written so that it copies less.

Of a collective of columns it turns all of the tensor, so it is written as one of rows. Of a product it takes
the left operand with the dimensions that are summed behind the others, and copies what has them elsewhere
into this order, the right one as it is. If what it copies is computed elementwise, it computes it as it
copies, across memory, which takes about three times as long. Gradients of weights sum over the first
dimensions of both operands, so one of them is copied: XLA takes the one on the left, however large it is.
"""

from __future__ import annotations

from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from ...program.mlir.modules import ops_in
from ...rulebook.traits import OpTraits
from ..writing.building import element_of, shape_of
from .collectives import FROM_EACH, TO_EACH, dimension
from .combining import write_as_one
from .products import exchange, exchangeable, exchanged_order

_COMPUTED = 3.0  # what it takes to copy an element across memory that is computed so, for one that lies there


# ---- Collectives -----------------------------------------------------------------------------------------


def send_rows(module: ir.Module) -> None:
    """Writes gathers and scatters of a module as those of rows where their parts are not one behind the other
    in memory: XLA for CPUs would turn all of the tensor, element by element, so that they are."""
    with module.context, ir.Location.unknown():
        for op in [each.operation for each in ops_in(module)]:
            if len(op.operands) == 1 and _lies_apart(op):
                write_as_one([op], op)
                op.erase()


def _lies_apart(op: Any) -> bool:
    """Whether the parts of what is scattered or gathered are several pieces of memory each."""
    if (op.name in TO_EACH) == (op.name in FROM_EACH):  # who sends to each and gets of each sends pieces
        return False
    scatters = op.name in TO_EACH
    whole, name = (op.operands[0], TO_EACH[op.name]) if scatters else (op.results[0], FROM_EACH[op.name])
    return prod(shape_of(whole)[: dimension(op, name)]) > 1


# ---- Products --------------------------------------------------------------------------------------------


def copy_less(module: ir.Module, traits: OpTraits) -> None:
    """Exchanges the operands of products of a module where XLA for CPUs would copy the larger one."""
    with module.context, ir.Location.unknown():
        for op in list(ops_in(module)):
            if exchangeable(op.operation, traits):
                _copy_less(op.operation, traits)


def _copy_less(product: Any, traits: OpTraits) -> None:
    """Exchanges the operands of a product where that saves more than it takes to copy what it gives back into
    its order. A barrier keeps XLA from making one op of the product and this copy, and from exchanging the
    operands itself, as it does where the program transposes what it gives."""
    by_itself = _order_behind(product, traits) == exchanged_order(product)
    copied = _copied(product, traits, exchanged=by_itself)
    if copied <= _copied(product, traits, exchanged=not by_itself) + prod(shape_of(product.results[0])):
        return
    (result,), order = product.results, exchanged_order(product)
    shape, element, type_ = shape_of(result), element_of(result), result.type
    uses = list(result.uses)
    if not by_itself:
        exchange(product)
        result.set_type(ir.RankedTensorType.get([shape[d] for d in order], element))
    after = ir.InsertionPoint.after(product)
    given = _op("stablehlo.optimization_barrier", result, result.type, {}, product, after)
    if not by_itself:
        back = {"permutation": ir.DenseI64ArrayAttr.get([order.index(d) for d in range(len(order))])}
        given = _op("stablehlo.transpose", given, type_, back, product, after)
    for use in uses:
        use.owner.operands[use.operand_number] = given


def _op(name: str, value: Any, type_: Any, attributes: dict[str, Any], like: Any, where: Any) -> Any:
    """What an op gives of a value; it stands behind another one in the program that was read."""
    return ir.Operation.create(
        name, results=[type_], operands=[value], attributes=attributes, loc=like.location, ip=where
    ).result


def _order_behind(product: Any, traits: OpTraits) -> list[int]:
    """The order of the dimensions that a product gives behind the transposes that alone use it."""
    value = product.results[0]
    order = list(range(len(shape_of(value))))
    turning = traits.family("reorders_dims")
    while len(uses := list(value.uses)) == 1 and uses[0].owner.operation.name in turning:
        order = [order[d] for d in uses[0].owner.attributes["permutation"]]
        value = uses[0].owner.results[0]
    return order


def _copied(product: Any, traits: OpTraits, *, exchanged: bool) -> float:
    """How many elements XLA for CPUs copies for a product, those that are computed so counted as what they
    take."""
    numbers = stablehlo.DotDimensionNumbers(product.attributes["dot_dimension_numbers"])
    left, right = product.operands
    dims = [
        (left, list(numbers.lhs_batching_dimensions), list(numbers.lhs_contracting_dimensions)),
        (right, list(numbers.rhs_batching_dimensions), list(numbers.rhs_contracting_dimensions)),
    ]
    total = 0.0
    for place, (value, batch, summed) in enumerate(reversed(dims) if exchanged else dims):
        rank = len(shape_of(value))
        others = [d for d in range(rank) if d not in (*batch, *summed)]
        orders = [[*batch, *others, *summed], [*batch, *summed, *others]]
        if list(range(rank)) not in orders[: place + 1]:
            elementwise = traits.family("elementwise_op")
            computed = not isinstance(value.owner, ir.Block) and value.owner.operation.name in elementwise
            total += prod(shape_of(value)) * (_COMPUTED if computed else 1.0)
    return total
