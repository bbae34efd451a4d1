"""The facts about ops and collectives for ``rules/cost``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ..engine import Solver
from ..partition.facts.knowledge import Knowledge
from ..partition.layouts import Shape
from ..rulebook.shipped import shipped
from ..rulebook.traits import OpTraits
from .machine import Link, Machine

_TOLD = ("slot", "dim", "element", "attribute_number", "attribute_item")  # of the facts about an op
Shapes = Sequence[Shape | None]  # of slots


@dataclass(frozen=True)
class BytesMoved:
    """The bytes that an op reads from memory and writes to it; those of values that the program makes and
    does not return, ``inside`` of it, and the bytes of the ``largest`` of these values; whether it ``stores``
    its results."""

    touched: float = 0
    inside: float = 0
    largest: float = 0
    stores: bool = False


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


def op_facts(knowledge: Knowledge, shapes: Shapes) -> dict[str, Iterable[tuple[Any, ...]]]:
    """The facts about an op whose slots have these shapes, as far as its signature has them."""
    told: dict[str, Iterable[tuple[Any, ...]]] = {name: knowledge.signature.get(name, ()) for name in _TOLD}
    if shapes is not knowledge.shapes:
        told["dim"] = [(t, d, n) for t, shape in enumerate(shapes) for d, n in enumerate(shape or ())]
    return told


def elements_of(shapes: Shapes) -> list[int]:
    """The elements of slots."""
    return [prod(shape or ()) for shape in shapes]


def event_facts(
    machine: Machine, name: str, knowledge: Knowledge, shapes: Shapes, moved: BytesMoved, count: int = 1
) -> dict[str, Iterable[tuple[Any, ...]]]:
    """The facts for ``rules/cost/cost.dl`` about one of this many equal parts of an op, whose slots have
    these shapes."""
    sizes = list(zip(elements_of(shapes), knowledge.roles, strict=True))
    multiplied = knowledge.multiplied(shapes)
    return {
        "kind": [(name,)],
        "taken": [(float(max((n for n, role in sizes if role == "operand"), default=0)),)],
        "made": [(float(sum(n for n, role in sizes if role == "result")),)],
        "touched": [(float(moved.touched),)],
        "inside": [(float(moved.inside), float(moved.largest))] if moved.inside else [],
        "stores": [()] if moved.stores else [],
        "peak": [(machine.peak(knowledge.element),)],
        "multiplied": [] if multiplied is None else [(multiplied / count,)],
        **op_facts(knowledge, shapes),
    }
