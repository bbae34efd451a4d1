"""The prices of collectives and of work on a machine, for the partitioner's choices."""

from __future__ import annotations

from ..partition.facts.knowledge import Knowledge
from ..partition.reshards.prices import Groups, Price, Prices
from ..program.elements import bits_of
from ..rulebook.traits import OpTraits
from .facts import op_facts, sending, solver_of
from .machine import Machine
from .tasks import MachineTasks

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
    slower: dict[Knowledge, float] = {}

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

    def multiplications(knowledge: Knowledge) -> float:
        if knowledge not in slower:
            kind = {"kind": knowledge.signature.get("op", ())}
            facts = {**kind, **op_facts(knowledge, knowledge.shapes)}
            slower[knowledge] = next((times for (times,) in solver.solve(facts, ["slower"])["slower"]), 1.0)
        element = knowledge.element
        return machine.peak(element) * _reached(machine, element) / 2 / unit / slower[knowledge]

    touched = machine.memory_bandwidth * machine.fuses / unit
    return Prices(
        multiplications,
        touched,
        once=0.0,
        begins=0.0,
        all_work=True,
        collective=collective,
        combined=machine.combines,
        tasks=MachineTasks(machine, traits),
    )
