"""The prices of collectives and of work on a machine, for the partitioner's choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..engine import Solver
from ..partition.reshards.prices import Groups, Price, Prices
from ..program.classes import Facts
from ..program.elements import bits_of
from ..rulebook.shipped import shipped
from ..rulebook.traits import OpTraits
from .machine import Link, Machine


def sending(
    kind: str, group: int, sent: float, link: Link, together: int = 1
) -> dict[str, list[tuple[Any, ...]]]:
    """The facts about a collective for ``rules/cost/cost.dl``: its kind, the number of devices in a group,
    the bytes that each sends along a link, and the number of collectives that are combined with it."""
    return {
        "together": [(together,)],
        "kind": [(kind,)],
        "devices": [(group,)],
        "sends": [(sent,)],
        "link": [(share * link.bandwidth, latency, start) for share, latency, start in link.ways],
        "in_switches": [] if link.switches is None else [link.switches],
        "through_others": [()] if link.ring else [],
    }


def solver_of(machine: Machine, traits: OpTraits) -> Solver:
    """A solver of ``rules/cost/cost.dl`` for one machine, and ops with these traits."""
    program = shipped("cost/cost")
    shared: dict[str, Sequence[tuple[Any, ...]]] = {
        "memory": [(machine.memory_bandwidth,)],
        "platform": [(machine.allocation.platform,)],
        "given": sorted(machine.ops.items()),
        **traits.given_to(program),
    }
    return program.solver(shared)


_TOLD = ("slot", "dim", "element", "attribute_number", "attribute_item")  # of the facts about an op


def op_facts(signature: Facts) -> Facts:
    """The facts about an op for ``rules/cost/cost.dl``."""
    return {name: signature.get(name, ()) for name in _TOLD}


_USUAL = float(1 << 20), float(1 << 25)  # bytes that a device sends at once
_WIDE, _TILE = 32, (128, 256)  # bits of an element; rows and columns of a large tile
_MACHINES = 8  # whose prices are kept
_PRICES: dict[tuple[str, OpTraits], Prices] = {}


def prices(machine: Machine, traits: OpTraits) -> Prices:
    """Prices by the time on a machine, in bytes that a device sends in that time along a link without a rule
    of its own. Equal machines share one object, so that decisions by these prices can be reused."""
    key = repr(machine), traits
    of_machine = _PRICES.pop(key, None) or _prices(machine, traits)
    _PRICES[key] = of_machine  # the last one
    if len(_PRICES) > _MACHINES:
        del _PRICES[next(iter(_PRICES))]
    return of_machine


def _reached(machine: Machine, element: str) -> float:
    """The part of the peak that large products reach, as ``rules/cost/kernels.dl`` has them on a GPU."""
    if not machine.kernels:
        return 1.0
    efficiency = "product_efficiency" if bits_of(element) < _WIDE else "wide_efficiency"
    return machine.kernels[efficiency] / (1 + machine.kernels["tile_edge"] * sum(1 / n for n in _TILE))


def _prices(machine: Machine, traits: OpTraits) -> Prices:
    unit = machine.link.bandwidth
    solver = solver_of(machine, traits)
    slower: dict[Any, float] = {}  # by op and ranks

    def collective(kind: str, group: int, axes: tuple[str, ...], groups: Groups) -> Price:
        link = machine.link_of(axes, groups)

        def seconds(sent: float) -> float:
            ((took,),) = solver.solve(sending(kind, group, sent, link))["seconds"]
            return float(took)

        if not link.protocols:
            once = seconds(0.0)
            return Price(seconds(unit) - once, once * unit)
        little, much = _USUAL  # most bytes are sent by so many at once; others take another protocol
        byte = (seconds(much) - seconds(little)) / (much - little)
        return Price(byte * unit, (seconds(little) - byte * little) * unit)

    def multiplications(element: str, signature: Facts) -> float:
        key = *signature.get("op", ()), *signature.get("slot", ())
        if key not in slower:
            facts = {"kind": signature.get("op", ()), **op_facts(signature)}
            slower[key] = next((times for (times,) in solver.solve(facts, ["slower"])["slower"]), 1.0)
        return machine.peak(element) * _reached(machine, element) / 2 / unit / slower[key]

    touched = machine.memory_bandwidth * machine.fuses / unit
    return Prices(
        multiplications,
        touched,
        once=0.0,
        begins=0.0,
        all_work=True,
        collective=collective,
        combined=machine.combines,
    )
