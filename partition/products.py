"""Products with their operands exchanged: they give the same, with its dimensions in another order.

XLA for CPUs takes the left operand of a product with the dimensions that are summed behind the others, and
copies what has them elsewhere into this order, the right one as it is. If what it copies is computed
elementwise, it computes it as it copies, across memory, which takes about three times as long. Gradients of
weights sum over the first dimensions of both operands, so one of them is copied: XLA takes the one on the
left, however large it is.
"""

from __future__ import annotations

from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from ..program.mlir.modules import ops_in
from ..rulebook.book import family
from .building import element_of, shape_of

_COMPUTED = 3.0  # what it takes to copy an element across memory that is computed so, for one that lies there


def exchangeable(op: Any) -> bool:
    """Whether an op is a product whose operands may be exchanged."""
    return op.name in family("exchanges_operands") and "algorithm" not in op.attributes


def exchanged_order(product: Any) -> list[int]:
    """The dimensions of what a product gives, in the order in which it gives them with its operands
    exchanged."""
    numbers = stablehlo.DotDimensionNumbers(product.attributes["dot_dimension_numbers"])
    batch, rank = len(numbers.lhs_batching_dimensions), len(shape_of(product.results[0]))
    left = len(shape_of(product.operands[0])) - len(numbers.lhs_contracting_dimensions)
    return [*range(batch), *range(left, rank), *range(batch, left)]


def exchange(product: Any) -> None:
    """Exchanges the operands of a product. The type of its result stays as it is."""
    numbers = stablehlo.DotDimensionNumbers(product.attributes["dot_dimension_numbers"])
    product.attributes["dot_dimension_numbers"] = stablehlo.DotDimensionNumbers.get(
        lhs_batching_dimensions=numbers.rhs_batching_dimensions,
        rhs_batching_dimensions=numbers.lhs_batching_dimensions,
        lhs_contracting_dimensions=numbers.rhs_contracting_dimensions,
        rhs_contracting_dimensions=numbers.lhs_contracting_dimensions,
    )
    if "precision_config" in product.attributes:
        each = list(ir.ArrayAttr(product.attributes["precision_config"]))
        product.attributes["precision_config"] = ir.ArrayAttr.get(each[::-1])
    left, right = product.operands
    product.operands[0], product.operands[1] = right, left


# ---- For CPUs --------------------------------------------------------------------------------------------


def copy_less(module: ir.Module) -> None:
    """Writes the products of a module so that XLA for CPUs copies as little as it can."""
    with module.context, ir.Location.unknown():
        for op in list(ops_in(module)):
            if exchangeable(op.operation):
                _copy_less(op.operation)


def _copy_less(product: Any) -> None:
    """Exchanges the operands of a product where that saves more than it takes to copy what it gives back into
    its order. A barrier keeps XLA from making one op of the product and this copy, and from exchanging the
    operands itself, as it does where the program transposes what it gives."""
    by_itself = _order_behind(product) == exchanged_order(product)
    copied = _copied(product, exchanged=by_itself)
    if copied <= _copied(product, exchanged=not by_itself) + prod(shape_of(product.results[0])):
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


def _order_behind(product: Any) -> list[int]:
    """The order of the dimensions that a product gives behind the transposes that alone use it."""
    value = product.results[0]
    order = list(range(len(shape_of(value))))
    while len(uses := list(value.uses)) == 1 and uses[0].owner.name in family("reorders_dims"):
        order = [order[d] for d in uses[0].owner.attributes["permutation"]]
        value = uses[0].owner.results[0]
    return order


def _copied(product: Any, *, exchanged: bool) -> float:
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
            computed = not isinstance(value.owner, ir.Block) and value.owner.name in family("elementwise_op")
            total += prod(shape_of(value)) * (_COMPUTED if computed else 1.0)
    return total
