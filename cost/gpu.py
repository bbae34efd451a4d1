"""The time of kernels of a GPU, by ``rules/cost/kernels.dl``."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..partition.facts.knowledge import Knowledge
from ..rulebook.shipped import shipped
from ..rulebook.traits import OpTraits
from .facts import Shapes, elements_of, op_facts
from .kernels import Amounts, Kernel, Kernels
from .known import Known
from .machine import Machine

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Taken:
    """The time of a kernel in seconds; its limit: "compute", "memory" or "launch"; the number of kernels that
    XLA splits it into; and how sure the time is, see ``OpPrice``."""

    seconds: float
    limited: str
    launches: int
    sure: str


class Time(NamedTuple):
    """The seconds of a kernel, and those of them in which it begins, however small it is."""

    seconds: float
    begins: float = 0.0


class Timing:
    """The times of kernels on one machine, for ops with these traits."""

    def __init__(self, machine: Machine, traits: OpTraits) -> None:
        program = shipped("cost/kernels")
        shared: dict[str, Any] = {
            "given": sorted(machine.kernels.items()),
            "numbers": [(machine.sure,)],
            **traits.given_to(program),
        }
        self._solver = program.solver(shared)

    def of(self, facts: Facts) -> Taken:
        """The time of a kernel with these facts."""
        answers = self._solver.solve(facts)
        ((seconds,),), ((limited,),), ((launches,),), ((sure,),) = (
            answers[name] for name in ("seconds", "limited", "launches", "sure")
        )
        return Taken(seconds, limited, launches, sure)

    def time(self, facts: Facts) -> Time:
        """The time of a kernel with these facts."""
        answers = self._solver.solve(facts, ["seconds", "begins"])
        return Time(answers["seconds"][0][0], answers["begins"][0][0])


class Gpu:
    """The kernels of one module on one machine."""

    def __init__(self, machine: Machine, rules: Known) -> None:
        self._traits = rules.reader.traits
        self.timing = Timing(machine, self._traits)
        self._machine, self._rules, self._graph = machine, rules, rules.graph
        self.kernels = Kernels(self._traits, rules.graph)
        self._known: dict[Any, tuple[Facts, Taken]] = {}

    def of(self, op: int) -> tuple[float, Taken] | None:
        """The bytes that the kernel with this root moves, and its time; None for ops that are not roots."""
        kernel = self._kernel(op)
        if kernel is None:
            return None
        amounts = self.amounts(kernel)
        return float(sum((*amounts.read, *amounts.written))), self._asked(kernel, amounts)[1]

    def facts(self, op: int) -> Facts | None:
        """The facts about the kernel with this root."""
        kernel = self._kernel(op)
        return None if kernel is None else self.facts_of(kernel, self.amounts(kernel))

    def amounts(self, kernel: Kernel) -> Amounts:
        """The work of a kernel."""
        return self.kernels.amounts(kernel, self.kernels.moved(kernel))

    def key(self, kernel: Kernel, amounts: Amounts) -> Hashable:
        """All that the facts about a kernel depend on."""
        root = kernel.root
        return self._graph.plain[root], self._rules.of(root), kernel.form, kernel.elements, amounts

    def part(self, name: str, knowledge: Knowledge, touched: int, parts: int) -> Taken:
        """The time of one of this many equal parts of a product, which moves this many bytes, while a
        collective sends others."""
        key = name, knowledge, touched, parts
        if key not in self._known:
            whole = {
                "root": ((name,),),
                "form": (("product",),),
                "elements": ((1.0,),),
                "part": ((float(parts),),),
                "beside": ((),),
            }
            facts = {
                **whole,
                "reads": ((0, float(touched)),),
                **product_facts(self._machine, knowledge, knowledge.shapes),
            }
            self._known[key] = facts, self.timing.of(facts)
        return self._known[key][1]

    def _kernel(self, op: int) -> Kernel | None:
        parent = self._graph.parents[op]
        if self._graph.in_first_region(op) and self._traits.lowering(self._graph.plain[parent]) == "loop":
            return None  # the host decides whether a loop continues
        return self.kernels.of(op)

    def _asked(self, kernel: Kernel, amounts: Amounts) -> tuple[Facts, Taken]:
        key = self.key(kernel, amounts)
        if key not in self._known:
            facts = self.facts_of(kernel, amounts)
            self._known[key] = facts, self.timing.of(facts)
        return self._known[key]

    def facts_of(self, kernel: Kernel, amounts: Amounts) -> Facts:
        """The facts about a kernel with these amounts."""
        name, knowledge = self._graph.plain[kernel.root], self._rules.of(kernel.root)
        return {
            "root": ((name,),),
            "form": ((kernel.form,),),
            "elements": ((float(kernel.elements),),),
            "reads": tuple((n, float(size)) for n, size in enumerate(amounts.read)),
            "writes": tuple((n, float(size)) for n, size in enumerate(amounts.written)),
            "copies": tuple((n, float(size)) for n, size in enumerate(amounts.copied)),
            "computes": tuple(
                (n, op, type_, float(number), float(times))
                for n, (op, type_, number, times) in enumerate(amounts.computed)
            ),
            "made_in_loop": tuple((slot,) for slot in amounts.loops),
            "followed": ((),) if amounts.followed else (),
            "after_product": ((),) if amounts.after_product else (),
            "part": ((1.0,),),
            **product_facts(self._machine, knowledge, knowledge.shapes),
        }


def product_facts(machine: Machine, knowledge: Knowledge, shapes: Shapes) -> dict[str, Any]:
    """The facts about the op that says how a kernel is computed, if its slots have these shapes."""
    multiplied = knowledge.multiplied(shapes)
    return {
        "peak": ((machine.peak(knowledge.element),),),
        "combines": ((),) if knowledge.combine else (),
        "multiplied": () if multiplied is None else ((float(multiplied),),),
        "slot_elements": tuple(enumerate(map(float, elements_of(shapes)))),
        **op_facts(knowledge, shapes),
    }
