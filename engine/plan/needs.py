"""The dependencies of relations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from .plan import PlanStep, QueryPlan, Stratum


def needed(plan: QueryPlan, strata: Sequence[Stratum], wanted: Iterable[int]) -> list[Stratum]:
    """The strata that the ``wanted`` relations depend on, in order."""
    return _traced(plan, strata, set(wanted))


def needed_relations(plan: QueryPlan, wanted: Iterable[str]) -> set[str]:
    """The relations that the ``wanted`` ones depend on, and these."""
    needed = {plan.index(name) for name in wanted}
    _traced(plan, plan.strata, needed)
    return {plan.relations[index].name for index in needed}


def _traced(plan: QueryPlan, strata: Sequence[Stratum], relations: set[int]) -> list[Stratum]:
    """The strata that ``relations`` depend on, in order; adds their inputs to these."""
    needed = []
    for stratum in reversed(strata):
        if not relations.isdisjoint(stratum.relations):
            needed.append(stratum)
            for index in (*stratum.rules, *stratum.recursive, *stratum.after):
                relations.update(_read(plan.rules[index].steps))
    return needed[::-1]


def _read(steps: Sequence[PlanStep]) -> Iterator[int]:
    """The relations that steps read."""
    for step in cast(Sequence[tuple[Any, ...]], steps):
        if step[0] in ("scan", "absent"):
            yield step[1]
        elif step[0] == "aggregate":
            yield from _read(step[5])
