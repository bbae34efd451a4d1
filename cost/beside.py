"""The collectives of a device program that overlap with products, by ``rules/cost/beside.dl``."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from ..engine.provenance.proof import Derivations
from ..partition.finishing.collective_matmul import Product, Window, windows
from ..rulebook.shipped import shipped
from .pricing import Pricing, groups_of

if TYPE_CHECKING:
    from ..partition.device_program import DeviceProgram
    from ..partition.layouts import Axes


@dataclass(frozen=True)
class Beside:
    """A collective that overlaps with the products of its window: the number of products, the devices of a
    ring, the seconds of the collective followed by the products, of both overlapping, and of the products
    alone; and the sentence of the rule that makes it faster (empty if it is not)."""

    products: int
    devices: int
    apart: float
    beside: float
    computing: float
    sentence: str

    @property
    def exposed(self) -> float:
        """The seconds of the collective that are not hidden behind the products."""
        return self.beside - self.computing


class Besides:
    """The times of windows on one machine."""

    def __init__(self, axes: Axes, pricing: Pricing) -> None:
        self.axes, self.pricing, self.machine = axes, pricing, pricing.machine
        self._shared: dict[str, list[tuple[Any, ...]]] = {"overlaps": [()] if self.machine.overlaps else []}
        self._program = shipped("cost/beside")
        self._solver = self._program.solver(self._shared)

    def of(self, window: Window) -> Beside:
        """The times of a window."""
        sent, pricing = window.sent, self.pricing
        groups = groups_of(sent.op)
        link = self.machine.link_of(self.axes.names(sent.pieces), groups)
        kind = sent.kind.replace("_", "-")
        step = sent.bytes // (sent.group - 1)  # a part, or a sum of parts
        whole = [pricing.of_op(product.op).seconds for product in window.products]
        hop = pricing.sent("collective-permute", 2, step, self.machine.one_way(link)).seconds
        facts: dict[str, list[tuple[Any, ...]]] = {
            "devices": [(sent.group,)],
            "collective": [(pricing.sent(kind, sent.group, sent.bytes, link).seconds,)],
            "hop": [(hop,)],
            "whole": list(enumerate(whole)),
            "part": [(n, self._part(p, sent.group)) for n, p in enumerate(window.products)],
        }
        answers, sentence = self._solver.solve(facts), ""
        if answers["faster"]:
            proof = Derivations(self._program, {**facts, **self._shared}, ["faster"]).proof("faster", ())
            sentence = proof.source.sentence if proof and proof.source else ""
        ((apart,),), ((beside,),) = answers["apart"], answers["beside"]
        return Beside(len(whole), sent.group, apart, beside, sum(whole), sentence)

    def _part(self, product: Product, count: int) -> float:
        """The seconds of a product of one part. A partial sum is read and written again."""
        contraction, touched = product.knowledge, 0
        for slot, (shape, width) in enumerate(zip(contraction.shapes, contraction.widths, strict=True)):
            size = width * prod(shape or ())
            summed = contraction.roles[slot] == "result" and product.dim(slot) is None
            touched += size // count if product.dim(slot) is not None else size * (2 if summed else 1)
        return self.pricing.of_part(product.op.name, contraction, touched, count).seconds


def beside(program: DeviceProgram, pricing: Pricing) -> list[tuple[Window, Beside]]:
    """The collectives of a device program that overlap with products on a machine, in order, and their times.
    Of several for one product, the one that saves most."""
    times = Besides(program.axes, pricing)
    timed = [(window, times.of(window)) for window in windows(program.sent, pricing.reader)]
    timed = [(window, priced) for window, priced in timed if priced.sentence]
    taken, chosen = set[Any](), set[Window]()
    for window, _ in sorted(timed, key=lambda pair: pair[1].beside - pair[1].apart):
        ops = {product.op for product in window.products}
        if not ops & taken:
            taken |= ops
            chosen.add(window)
    return [(window, priced) for window, priced in timed if window in chosen]
