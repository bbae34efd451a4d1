"""What a machine makes of the partitioner's choices: the prices of collectives and of work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..partition.reshards.prices import Groups, Price, Prices, Signature
from ..rulebook.shipped import shipped
from .machine import Link, Machine


def sending(
    kind: str, group: int, sent: float, link: Link, together: int = 1
) -> dict[str, list[tuple[Any, ...]]]:
    """The facts about a collective that ``rules/cost/cost.dl`` takes: its kind, how many devices are in a
    group, the bytes that each of them sends along a link, and of how many collectives one is made."""
    return {
        "together": [(together,)],
        "kind": [(kind,)],
        "devices": [(group,)],
        "sends": [(sent,)],
        "link": [(link.bandwidth, link.latency, link.start)],
        "through_others": [()] if link.ring else [],
    }


_TOLD = ("slot", "dim", "element", "attribute_number", "attribute_item")  # of what an op is told


def told(signature: Signature) -> dict[str, Iterable[tuple[Any, ...]]]:
    """What ``rules/cost/cost.dl`` is told of an op as all rules are."""
    return {name: signature.get(name, ()) for name in _TOLD}


def prices(machine: Machine) -> Prices:
    """Prices by the time that a machine takes, in bytes that a device sends in that time along a link without
    a rule of its own."""
    unit = machine.link.bandwidth
    shared: dict[str, list[tuple[Any, ...]]] = {
        "memory": [(machine.memory_bandwidth,)],
        "platform": [(machine.allocation.platform,)],
        "elementwise_op": [],
    }
    solver = shipped("cost/cost").solver(shared)
    slower: dict[Any, float] = {}  # by op and ranks

    def collective(kind: str, group: int, axes: tuple[str, ...], groups: Groups) -> Price:
        link = machine.link_of(axes, groups)

        def seconds(sent: float) -> float:
            ((found,),) = solver.solve(sending(kind, group, sent, link))["seconds"]
            return float(found)

        once = seconds(0.0)
        return Price(seconds(unit) - once, once * unit)

    def multiplications(element: str, signature: Signature) -> float:
        key = *signature.get("op", ()), *signature.get("slot", ())
        if key not in slower:
            facts = {"kind": signature.get("op", ()), **told(signature)}
            slower[key] = next((times for (times,) in solver.solve(facts)["slower"]), 1.0)
        return machine.peak(element) / 2 / unit / slower[key]

    touched = machine.memory_bandwidth * machine.fuses / unit
    combined = frozenset(kind.replace("-", "_") for kind in machine.combines)
    return Prices(multiplications, touched, 0.0, 0.0, True, collective, combined)
