"""Products that overlap with their collectives: collective matmul, also called windowed einsum.

An all-gather before products becomes a ring: each device passes its part on to the next one, and multiplies
it meanwhile. A reduce-scatter after a product becomes a sum that goes around the ring, to which each device
adds its product for the device at the end. The bytes stay the same, but the transfers overlap with the
products. ``rules/cost/beside.dl`` decides whether that takes less time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir

from ...program.mlir.types import Operation, PlacedOperation, Value
from ...rulebook.traits import OpTraits
from ..choice.choosing import SUM
from ..facts.knowledge import Knowledge, RuleReader
from ..forms import Form
from ..layouts import Axes
from ..writing.building import OUTSIDE, Builder, Scope, Sent, element_of, shape_of


@dataclass(frozen=True, eq=False)
class Product:
    """A product of a window: its slot that is gathered or scattered, and the factor along which."""

    op: Any
    knowledge: Knowledge
    slot: int
    factor: int

    def dim(self, slot: int) -> int | None:
        """The dimension of a slot along the factor; None without one."""
        dims = [d for d, factors in enumerate(self.knowledge.maps[slot]) if self.factor in factors]
        return dims[0] if dims else None


@dataclass(frozen=True, eq=False)
class Window:
    """A collective that can overlap with products: an all-gather without other users, or a reduce-scatter of
    the result of one product."""

    sent: Sent
    products: tuple[Product, ...]

    @property
    def ops(self) -> tuple[Any, ...]:
        """The collective and the products."""
        return self.sent.op, *(product.op for product in self.products)

    @property
    def gathers(self) -> bool:
        """Whether the products use the result of the collective."""
        return self.sent.kind == "all_gather"


def windows(sent: Sequence[Sent], reader: RuleReader) -> Iterator[Window]:
    """The collectives of a device program that can overlap with products, in order."""
    places: dict[Any, dict[Any, int]] = {}
    for each in sent:
        products: tuple[Product, ...] = ()
        if len(each.op.operands) > 1:  # the user wrote it
            continue
        if each.kind == "all_gather":
            block = each.op.block
            if block not in places:
                places[block] = {op.operation: n for n, op in enumerate(block.operations)}
            products = _gathered(each.op, reader, places[block])
        elif each.kind == "reduce_scatter":
            products = _scattered(each.op, reader)
        if products:
            yield Window(each, products)


def _gathered(op: PlacedOperation, reader: RuleReader, place: Mapping[Any, int]) -> tuple[Product, ...]:
    """The products that use a gathered value. None if something else uses it, or if the parts exist before
    the other operands."""
    dim = ir.IntegerAttr(op.attributes["all_gather_dim"]).value
    uses = [_product(use.owner.operation, use.operand_number, dim, op, reader) for use in op.results[0].uses]
    products = [product for product in uses if product is not None]
    if not products or len(products) < len(uses) or len({p.op for p in products}) < len(uses):
        return ()
    products.sort(key=lambda product: place[product.op])
    first = place[products[0].op]
    others = (v.owner for p in products for v in p.op.operands if not isinstance(v.owner, ir.Block))
    return tuple(products) if all(place.get(owner.operation, -1) < first for owner in others) else ()


def _scattered(op: PlacedOperation, reader: RuleReader) -> tuple[Product, ...]:
    """The product whose result is scattered, if nothing else uses it."""
    dim, value = ir.IntegerAttr(op.attributes["scatter_dimension"]).value, op.operands[0]
    combining = op.regions[0].blocks[0].operations[0].operation.name
    if isinstance(value.owner, ir.Block) or len(list(value.uses)) > 1 or combining != SUM:
        return ()
    maker = value.owner.operation
    product = _product(maker, len(maker.operands), dim, op, reader)
    return (product,) if product else ()


def _product(
    op: PlacedOperation, slot: int, dim: int, collective: PlacedOperation, reader: RuleReader
) -> Product | None:
    """An op as a product along a dimension of one of its slots, if it can be computed part by part."""
    if op.block != collective.block or len(op.regions) or len(op.results) != 1:
        return None
    knowledge = reader.knowledge(op)
    special = (
        knowledge.refused
        or knowledge.reads
        or knowledge.local_sizes
        or knowledge.counts
        or knowledge.looks_up
    )
    if (
        not knowledge.multiplies
        or special
        or knowledge.lowering != "parts"
        or len(knowledge.maps[slot][dim]) != 1
    ):
        return None
    (factor,) = knowledge.maps[slot][dim]
    alone = all(factors == (factor,) for maps in knowledge.maps for factors in maps if factor in factors)
    once = all(sum(factor in factors for factors in maps) <= 1 for maps in knowledge.maps)
    summed = factor not in knowledge.partial or knowledge.combine == SUM
    return (
        Product(op, knowledge, slot, factor)
        if factor in knowledge.splits and alone and once and summed
        else None
    )


# ---- Writing --------------------------------------------------------------------------------------------


def write(
    windows: Sequence[Window],
    copies: Mapping[Any, Any],
    axes: Axes,
    traits: OpTraits,
    form: Form,
    channel: int,
) -> set[Any]:
    """Writes windows in a copy of the device program. Returns the collectives that pass parts on. ``copies``
    maps the ops of the program to those of the copy, and ``channel`` is the last channel in use."""
    passing = set[Any]()
    for window in windows:
        builder = Builder(axes, form, channel, traits)
        _Ring(builder, window, copies).write()
        passing.update(sent.op for sent in builder.sent)
        channel = builder.channel
    return passing


class _Ring:
    """Writes one window. The device at place k of its group sends to the one at place k - 1."""

    def __init__(self, builder: Builder, window: Window, copies: Mapping[Any, Any]) -> None:
        self.builder, self.window = builder, window
        self.op = copies[window.sent.op]
        self.products = [(product, copies[product.op]) for product in window.products]
        groups = np.asarray(ir.DenseIntElementsAttr(self.op.attributes["replica_groups"]))
        self.count = groups.shape[1]
        self.place = np.zeros(groups.size, np.int64)
        self.place[groups] = np.arange(self.count)
        self.pairs = np.stack([np.roll(groups, -1, axis=1).ravel(), groups.ravel()], axis=1)

    def write(self) -> None:
        """Writes the window in place of its collective and products."""
        _, first = self.products[0]
        self.builder.scope, self.builder.loc = Scope(first.block, before=first), first.location
        if self.window.gathers:
            for (_, op), result in zip(self.products, self._gathered(), strict=True):
                op.results[0].replace_all_uses_with(result)
        else:
            self.op.results[0].replace_all_uses_with(self._scattered())
        ops = [op for _, op in self.products]
        for op in [*ops, self.op] if self.window.gathers else [self.op, *ops]:
            op.erase()

    def _gathered(self) -> list[Any]:
        """The products, of parts that arrive one after the other."""
        part, results = self.op.operands[0], [None for _ in self.products]
        for step in range(self.count):
            coming = self._handed_on(part) if step < self.count - 1 else None
            which = (self.place + step) % self.count
            for n, (product, op) in enumerate(self.products):
                local = self._part(product, op, which, {product.slot: part})
                results[n] = self._joined(product, op, results[n], local, which)
            part = coming
        return results

    def _scattered(self) -> Any:
        """The sum for this device, which comes last. Sums for others go around before."""
        ((product, op),) = self.products
        total = None
        for step in range(self.count):
            coming = None if total is None else self._handed_on(total)
            total = self._part(product, op, (self.place + step + 1) % self.count, {})
            if coming is not None:
                total = self.builder.binary(SUM, coming, total)
        return total

    def _handed_on(self, value: Value) -> Any:
        size = int(np.prod(shape_of(value)))
        return self.builder.collective("collective_permute", value, value.type, (), size, pairs=self.pairs)

    def _part(
        self, product: Product, op: Operation, which: npt.NDArray[np.int64], there: Mapping[int, Any]
    ) -> Any:
        """A product for a part of its factor, by device; operands in ``there`` are parts already."""
        operands = [
            there.get(slot) or self._cut(product, slot, v, which) for slot, v in enumerate(op.operands)
        ]
        shape, dim = shape_of(op.results[0]), product.dim(len(operands))
        if dim is not None:
            shape[dim] //= self.count
        attributes = {name: value for name, value in op.attributes.items() if name not in OUTSIDE}
        type_ = self.builder.tensor(shape, element_of(op.results[0]))
        return self.builder.one(op.name, operands, type_, attributes)

    def _cut(self, product: Product, slot: int, value: Value, which: npt.NDArray[np.int64]) -> Any:
        dim = product.dim(slot)
        if dim is None:
            return value
        size = shape_of(value)[dim] // self.count
        return self.builder.rows(value, dim, self.builder.lookup(which * size), size)

    def _joined(self, product: Product, op: Operation, before: Any, part: Any, which: Any) -> Any:
        """A result after one more part: the part is put in its place, or added."""
        result, builder = op.results[0], self.builder
        dim = product.dim(len(op.operands))
        if dim is None:
            return part if before is None else builder.binary(SUM, before, part)
        whole = builder.zero(element_of(result), shape_of(result)) if before is None else before
        starts: list[Any] = [0] * len(shape_of(result))
        starts[dim] = builder.lookup(which * shape_of(part)[dim])
        return builder.put(whole, part, starts)
