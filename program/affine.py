"""Affine expressions: which multiples of dimensions they add up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from jaxlib.mlir import ir


@dataclass(frozen=True)
class Linear:
    """A sum of multiples of dimensions, and of a constant. ``multiples`` has the coefficient of each
    dimension that is in it."""

    multiples: dict[int, int]
    constant: int


def linear(expression: ir.AffineExpr) -> Linear | None:
    """An affine expression as a sum; None where it divides, or uses symbols."""
    multiples, constant = Counter[int](), 0
    waiting = [(expression, 1)]
    while waiting:
        part, times = waiting.pop()
        if isinstance(part, ir.AffineConstantExpr):
            constant += times * part.value
        elif isinstance(part, ir.AffineDimExpr):
            multiples[part.position] += times
        elif isinstance(part, ir.AffineAddExpr):
            waiting += [(part.lhs, times), (part.rhs, times)]
        elif isinstance(part, ir.AffineMulExpr) and isinstance(part.rhs, ir.AffineConstantExpr):
            waiting.append((part.lhs, times * part.rhs.value))  # MLIR puts a constant on this side
        else:
            return None
    return Linear({dim: times for dim, times in multiples.items() if times}, constant)
