"""Products with exchanged operands: the result is the same, with its dimensions in another order."""

from __future__ import annotations

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from ...program.mlir.types import Operation
from ...rulebook.traits import OpTraits
from ..writing.building import shape_of


def exchangeable(op: Operation, traits: OpTraits) -> bool:
    """Whether an op is a product whose operands may be exchanged."""
    return op.name in traits.family("exchanges_operands") and "algorithm" not in op.attributes


def exchanged_order(product: Operation) -> list[int]:
    """The dimensions of a product's result, in the order after its operands are exchanged."""
    numbers = stablehlo.DotDimensionNumbers(product.attributes["dot_dimension_numbers"])
    batch, rank = len(numbers.lhs_batching_dimensions), len(shape_of(product.results[0]))
    left = len(shape_of(product.operands[0])) - len(numbers.lhs_contracting_dimensions)
    return [*range(batch), *range(left, rank), *range(batch, left)]


def exchange(product: Operation) -> None:
    """Exchanges the operands of a product. The type of its result does not change."""
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
