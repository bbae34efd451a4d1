"""What a machine makes of the partitioner's choices: the prices of collectives and of work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..engine import Solver
from ..partition.reshards.prices import Groups, Price, Prices
from ..program.classes import Facts
from ..rulebook.shipped import shipped
from ..rulebook.traits import OpTraits
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


def solver_of(machine: Machine, traits: OpTraits) -> Solver:
    """What solves ``rules/cost/cost.dl`` for one machine, and ops with these traits."""
    program = shipped("cost/cost")
    shared: dict[str, Sequence[tuple[Any, ...]]] = {
        "memory": [(machine.memory_bandwidth,)],
        "platform": [(machine.allocation.platform,)],
        **traits.given_to(program),
    }
    return program.solver(shared)


_TOLD = ("slot", "dim", "element", "attribute_number", "attribute_item")  # of what an op is told


def told(signature: Facts) -> Facts:
    """What ``rules/cost/cost.dl`` is told of an op as all rules are."""
    return {name: signature.get(name, ()) for name in _TOLD}


def prices(machine: Machine, traits: OpTraits) -> Prices:
    """Prices by the time that a machine takes, in bytes that a device sends in that time along a link without
    a rule of its own."""
    unit = machine.link.bandwidth
    solver = solver_of(machine, traits)
    slower: dict[Any, float] = {}  # by op and ranks

    def collective(kind: str, group: int, axes: tuple[str, ...], groups: Groups) -> Price:
        link = machine.link_of(axes, groups)

        def seconds(sent: float) -> float:
            ((found,),) = solver.solve(sending(kind, group, sent, link))["seconds"]
            return float(found)

        once = seconds(0.0)
        return Price(seconds(unit) - once, once * unit)

    def multiplications(element: str, signature: Facts) -> float:
        key = *signature.get("op", ()), *signature.get("slot", ())
        if key not in slower:
            facts = {"kind": signature.get("op", ()), **told(signature)}
            slower[key] = next((times for (times,) in solver.solve(facts, ["slower"])["slower"]), 1.0)
        return machine.peak(element) / 2 / unit / slower[key]

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
