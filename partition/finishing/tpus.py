"""Rewrites collectives that XLA for TPUs would send twice, or does not support."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from jaxlib.mlir import ir

from ...program.mlir.modules import ops_in
from ...program.mlir.types import Operation
from ...rulebook.traits import OpTraits
from ..writing.building import element_of, shape_of
from .collectives import FROM_EACH, TO_EACH, WriterBefore, count, dimension
from .combining import combining
from .unsupported import exchange_and_combine

_LANES, _SUBLANES = 128, 8  # elements in a row of a tile of a TPU's memory, and rows
_TOGETHER = 1 << 16  # bytes: copying more into one buffer takes longer than the steps of a collective


def combine_loose(module: ir.Module, traits: OpTraits, apart: Collection[Operation] = ()) -> None:
    """Combines gathers of vectors that do not fill tiles, and reduce-scatters whose parts are at most a tile,
    except those that stay ``apart``. XLA combines other sums itself."""
    combining.combine(module, traits, apart, lambda op: _is_loose(op) or _is_small(op))


def combine_matrices(module: ir.Module, traits: OpTraits, apart: Collection[Operation] = ()) -> None:
    """Combines gathers and scatters of matrices with the same number of columns, except those that stay
    ``apart``."""
    combining.combine_matrices(module, traits, apart, lambda op: _columns(op, traits), _TOGETHER)


def fit_tiles(module: ir.Module) -> None:
    """Writes gathers of vectors that do not fill tiles as those of rows, and scatters of parts that end
    inside a tile as those of whole matrices. Reduce-scatters whose parts are at most a tile, or of numbers in
    two parts, become exchanges and sums."""
    with module.context, ir.Location.unknown():
        for op in [each.operation for each in ops_in(module)]:
            if _is_loose(op):
                _gather_row(op)
            elif _is_small(op) or _has_two_parts(op):
                exchange_and_combine(op)
            elif _ends_in_tile(op):
                _scatter_matrices(op)


def _is_loose(gather: Operation) -> bool:
    """Whether the gathered parts are contiguous vectors that end inside a row of a tile."""
    if gather.name != "stablehlo.all_gather" or len(gather.operands) != 1:
        return False
    shape = shape_of(gather.operands[0])
    behind = prod(shape[: dimension(gather, FROM_EACH[gather.name])]) == 1
    return behind and prod(shape) == max(shape, default=1) > 1 and prod(shape) % _LANES != 0


def _columns(op: Operation, traits: OpTraits) -> int | None:
    """The columns of the matrices that a collective gathers or scatters; None for others. An operand of a
    product is gathered unchanged, because XLA rounds it before it is sent, if nothing else is sent with
    it."""
    if op.name == "stablehlo.all_gather":
        rounding = traits.family("rounds_operands")
        rounds = any(use.owner.operation.name in rounding for use in op.results[0].uses)
        sent = None if rounds else op.operands[0]
    else:
        sent = op.results[0] if op.name == "stablehlo.reduce_scatter" else None
    shape = [] if sent is None or _is_small(op) or _has_two_parts(op) else shape_of(sent)
    return shape[-1] if len(shape) > 1 and all(shape) else None


def _gather_row(op: Operation) -> None:
    """Writes a gather of a vector as that of a row. The barrier keeps XLA from undoing this."""
    write, value = WriterBefore(op, op.location), op.operands[0]
    row = write.reshaped(value, [1, prod(shape_of(value))])
    row = write.one("stablehlo.optimization_barrier", [row], row.type, {})
    gathered = write.along_first(op, row, write.type([count(op), *shape_of(row)[1:]], row))
    op.results[0].replace_all_uses_with(write.reshaped(gathered, shape_of(op.results[0])))
    op.erase()


def _scatters(op: Operation) -> bool:
    """Whether the op scatters sums of one tensor."""
    return bool(op.name == "stablehlo.reduce_scatter" and len(op.operands) == 1)


def _is_small(op: Operation) -> bool:
    """Whether the scattered parts are at most a tile: then TPUs compute all sums on every device."""
    if not _scatters(op):
        return False
    *others, columns = shape_of(op.results[0])
    return prod(others) * -(-columns // _LANES) <= _SUBLANES


def _ends_in_tile(scatter: Operation) -> bool:
    """Whether TPUs scatter these sums in parts that are larger than a tile and end inside one."""
    if not _scatters(scatter) or not isinstance(element_of(scatter.operands[0]), ir.F32Type | ir.BF16Type):
        return False
    shape, d = shape_of(scatter.results[0]), dimension(scatter, TO_EACH[scatter.name])
    *others, rows, columns = _matrices(shape)
    if len(shape) == 1:  # which it does not turn into a matrix itself
        return shape[0] % (_SUBLANES * _LANES) == 0
    if d == len(others) + 1:
        return columns % _LANES != 0
    return (
        d == len(others) and prod(others) == 1 and rows % _SUBLANES != 0
    )  # or XLA chooses another memory layout


def _matrices(shape: Sequence[int]) -> list[int]:
    """The shape of a value that fills tiles: a vector as a matrix of their rows."""
    return [prod(shape) // _LANES, _LANES] if len(shape) == 1 else list(shape)


def _scatter_matrices(op: Operation) -> None:
    """Writes a scatter as one of matrices, with as many for each device as its part has."""
    write, n = WriterBefore(op, op.location), count(op)
    *others, rows, columns = _matrices(shape_of(op.results[0]))
    part = [prod(others), rows, columns]
    value = write.reshaped(write.rows(op), [n * part[0], *part[1:]])
    scattered = write.along_first(op, value, write.type(part, value))
    op.results[0].replace_all_uses_with(write.reshaped(scattered, shape_of(op.results[0])))
    op.erase()


def _has_two_parts(op: Operation) -> bool:
    """Whether scattered sums are complex, or so wide that TPUs store them as two numbers."""
    return _scatters(op) and isinstance(element_of(op.operands[0]), ir.ComplexType | ir.F64Type)
