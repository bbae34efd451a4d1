"""Ops that one device computes for all others. An effect outside of the program happens once, and random
numbers are the same everywhere."""

from __future__ import annotations

from math import prod
from typing import Any

from jaxlib.mlir import ir

from ....program.mlir.types import Value
from ...layouts import Pieces
from ..building import Scope, element_of, shape_of
from .local import LocalSite, clone


def once(site: LocalSite, operands: list[Value]) -> list[Any]:
    """The op on the first device; the others contribute zeros, so that the sum is its result."""
    builder, pieces = site.builder, _others(site)
    if not pieces:
        return clone(site, operands)
    types = [result.type for result in site.op.results]
    first = builder.lookup(builder.axes.index(pieces))
    case = builder.op("stablehlo.case", [first], types, regions=2)
    outer = builder.scope
    for number, region in enumerate(case.regions):
        builder.scope = Scope(region.blocks.append(), outer)
        results = clone(site, operands) if number == 0 else [_nothing(site, type_) for type_ in types]
        builder.op("stablehlo.return", results, [])
    builder.scope = outer
    return [_spread(site, value, pieces) for value in case.results]


def spread(site: LocalSite, operands: list[Value]) -> list[Any]:
    """The op on all devices; the result of the first one is broadcast to the others."""
    builder, pieces = site.builder, _others(site)
    results = clone(site, operands)
    if not pieces:
        return results
    first = builder.compare("EQ", builder.lookup(builder.axes.index(pieces)), builder.number(0))
    everywhere = []
    for value in results:
        shape = shape_of(value)
        nothing = builder.zero(element_of(value), shape)
        kept = builder.select(builder.spread(first, shape), value, nothing)
        everywhere.append(_spread(site, kept, pieces))
    return everywhere


def _others(site: LocalSite) -> Pieces:
    """The pieces along which devices do the same work: those outside of manual computations."""
    axes = site.builder.axes
    on_main = (p for p in axes.numbers if axes.pieces[p].mesh == axes.main)
    return tuple(p for p in on_main if p not in site.builder.manual)


def _nothing(site: LocalSite, type_: ir.Type) -> Any:
    if not isinstance(type_, ir.RankedTensorType):
        return site.builder.one("stablehlo.after_all", [], type_)
    return site.builder.zero(type_.element_type, type_.shape)


def _spread(site: LocalSite, value: Value, pieces: Pieces) -> Any:
    if not isinstance(value.type, ir.RankedTensorType):
        return value
    n, size = site.builder.axes.product(pieces), prod(shape_of(value))
    boolean = str(element_of(value)) == "i1"
    combine = "stablehlo.or" if boolean else "stablehlo.add"
    sends = 2 * size * (n - 1) / n
    return site.builder.collective("all_reduce", value, value.type, pieces, sends, combine=combine)
