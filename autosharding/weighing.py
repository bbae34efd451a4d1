"""Other layouts of an argument in a plan, weighed by the cost of their programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from ..cost.cost import Cost
from ..errors import ShardlogError, closest
from ..partition.improving import TooLargeError
from .options import AutoOptions
from .plan import AutoPlan, Spec, pattern_of, spec_of
from .searching import Search


@dataclass(frozen=True)
class Weighed:
    """Another spec of an argument: the ``seconds`` of a step and the ``peak`` bytes of a device, and the op
    whose time rises most, with its place; empty for none. If all programs are ``over`` the plan's limit on
    memory, the peak is the least of them, and seconds are None."""

    spec: Spec
    seconds: float | None
    peak: int
    op: str = ""
    where: str = ""
    over: bool = False


def number_of(plan: AutoPlan, argument: str) -> int:
    """The number of an argument by its name, or as in %arg3. Raises ShardlogError if the plan has none."""
    names = {placed.name: n for n, placed in enumerate(plan.arguments)}
    names |= {f"%arg{n}": n for n in range(len(plan.arguments))}
    if argument not in names:
        hint = closest(argument, names)
        raise ShardlogError(f"the plan has no argument {argument}", where="why-plan", hint=hint)
    return names[argument]


def weighed(
    source: Any, plan: AutoPlan, argument: str, progress: Callable[[str, float], None] | None = None
) -> tuple[Weighed, ...]:
    """All other specs of an argument in whole axes, of equal parts: those within the limit first, and of
    these the fastest. Arguments whose names differ only in numbers, and that have the same spec, change with
    it, and so do the results that become them. All else stays.

    Raises ShardlogError for a program that is not the plan's, and for a name that it does not have.
    """
    tell = progress or (lambda stage, done: None)
    n = number_of(plan, argument)
    options = AutoOptions(topology=plan.topology, memory=plan.memory)
    search = Search(source, plan.mesh, options, lambda stage, done: None)
    if [end.name for end in search.ends.arguments] != [placed.name for placed in plan.arguments]:
        message = "a plan of another program"
        raise ShardlogError(message, where="why-plan", hint="give the module that the plan was found for")
    group = [
        m
        for m, other in enumerate(plan.arguments)
        if pattern_of(other.name) == pattern_of(plan.arguments[n].name)
        and other.spec == plan.arguments[n].spec
    ]
    specs = {m: placed.spec for m, placed in enumerate(plan.arguments)}
    results = {m: placed.spec for m, placed in enumerate(plan.results)}
    before = search.cost(search.candidate_of("plan", specs, results))
    others = [spec for spec in _specs(search.ends.arguments[n].shape or (), search.axes) if spec != specs[n]]
    alternatives = list[Weighed]()
    for tried, spec in enumerate(others):
        tell(f"costing {argument} otherwise", tried / len(others))
        candidate = search.candidate_of("other", specs | dict.fromkeys(group, spec), results)
        try:
            cost = search.cost(candidate)
            alternatives.append(Weighed(spec, cost.seconds, cost.peak, *_dearest(before, cost)))
        except TooLargeError as error:
            alternatives.append(Weighed(spec, None, error.least, over=True))
    return tuple(sorted(alternatives, key=lambda each: (each.over, each.seconds or 0.0, each.peak)))


def _specs(shape: Sequence[int], axes: Sequence[tuple[str, int]]) -> Iterator[Spec]:
    """The specs by which whole axes divide a shape evenly, each axis on one dimension or none."""
    sizes = dict(axes)
    for places in product(range(-1, len(shape)), repeat=len(axes)):
        dims = tuple(
            tuple(name for (name, _), at in zip(axes, places, strict=True) if at == dim)
            for dim in range(len(shape))
        )
        if all(
            not size % prod(sizes[name] for name in names) for size, names in zip(shape, dims, strict=True)
        ):
            yield spec_of(dims)


def _dearest(before: Cost, after: Cost) -> tuple[str, str]:
    """The op whose time rises most, with the collectives that serve it, and its place; empty for none."""
    rises = defaultdict[tuple[str, str], float](float)
    for cost, sign in ((after, 1), (before, -1)):
        for item in cost.items:
            rises[item.serves or item.op, item.where] += sign * item.seconds
    most = max(rises, key=lambda key: rises[key], default=("", ""))
    return most if rises[most] > 0 else ("", "")
