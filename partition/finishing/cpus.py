"""Changes for XLA's CPU compiler, so that it copies less.

It transposes the whole tensor for a collective of columns, so this is written as a collective of rows. In
products, it takes the left operand with contracted dimensions innermost and copies it if they are elsewhere;
the right operand stays as it is. If the copied operand is computed elementwise, it is computed during the
copy, with strided writes, which takes about three times as long. Gradients of weights contract the first
dimensions of both operands, so one is copied: XLA copies the left one, however large it is.
"""

from __future__ import annotations

from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from ...program.mlir.modules import ops_in
from ...program.mlir.types import Operation
from ...rulebook.traits import OpTraits
from ..choice import tuning
from ..writing.building import element_of, shape_of
from .collectives import FROM_EACH, TO_EACH, dimension
from .combining.combining import write_as_one
from .products import exchange, exchangeable, exchanged_order

# ---- Collectives -----------------------------------------------------------------------------------------


def send_rows(module: ir.Module) -> None:
    """Writes gathers and scatters of a module as those of rows, if their parts are not contiguous in memory.
    XLA for CPUs would transpose the whole tensor, element by element."""
    with module.context, ir.Location.unknown():
        for op in [each.operation for each in ops_in(module)]:
            if len(op.operands) == 1 and _lies_apart(op):
                write_as_one([op], op)
                op.erase()


def _lies_apart(op: Operation) -> bool:
    """Whether the scattered or gathered parts are not contiguous in memory."""
    if (op.name in TO_EACH) == (
        op.name in FROM_EACH
    ):  # a device that sends to all, or receives from all, sends pieces
        return False
    scatters = op.name in TO_EACH
    whole, name = (op.operands[0], TO_EACH[op.name]) if scatters else (op.results[0], FROM_EACH[op.name])
    return prod(shape_of(whole)[: dimension(op, name)]) > 1


# ---- Products --------------------------------------------------------------------------------------------


def copy_less(module: ir.Module, traits: OpTraits) -> None:
    """Exchanges the operands of products of a module if XLA for CPUs would copy the larger one."""
    with module.context, ir.Location.unknown():
        for op in list(ops_in(module)):
            if exchangeable(op.operation, traits):
                _copy_less(op.operation, traits)


def _copy_less(product: Operation, traits: OpTraits) -> None:
    """Exchanges the operands of a product if that saves more than transposing the result back costs. A
    barrier keeps XLA from fusing the product with this transpose, and from exchanging the operands again, as
    it does if the program transposes the result."""
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
    after = ir.InsertionPoint.after(product.operation)
    given = _op("stablehlo.optimization_barrier", result, result.type, {}, product, after)
    if not by_itself:
        back = {"permutation": ir.DenseI64ArrayAttr.get([order.index(d) for d in range(len(order))])}
        given = _op("stablehlo.transpose", given, type_, back, product, after)
    for use in uses:
        use.owner.operands[use.operand_number] = given


def _op(name: str, value: Any, type_: Any, attributes: dict[str, Any], like: Any, where: Any) -> Any:
    """The result of an op on a value, written after another op of the input program."""
    return ir.Operation.create(
        name, results=[type_], operands=[value], attributes=attributes, loc=like.location, ip=where
    ).result


def _order_behind(product: Operation, traits: OpTraits) -> list[int]:
    """The order of dimensions of a product's result after the transposes that are its only users."""
    value = product.results[0]
    order = list(range(len(shape_of(value))))
    turning = traits.family("reorders_dims")
    while len(uses := list(value.uses)) == 1 and uses[0].owner.operation.name in turning:
        order = [order[d] for d in uses[0].owner.attributes["permutation"]]
        value = uses[0].owner.results[0]
    return order


def _copied(product: Operation, traits: OpTraits, *, exchanged: bool) -> float:
    """The number of elements that XLA for CPUs copies for a product. Elements computed during the copy count
    as much as they cost."""
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
            total += prod(shape_of(value)) * (tuning.COMPUTED if computed else 1.0)
    return total
