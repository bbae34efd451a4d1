"""A plan as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..errors import ShardlogError, closest
from ..program.elements import bytes_text
from .plan import AutoPlan, Placed, axes_of

_NUMBER = re.compile(r"(?<![A-Za-z])\d+")


def plan_text(plan: AutoPlan) -> str:
    """A plan: the mesh, its cost, the bound, the plans that were compared, and the specs. Names that differ
    only in numbers share a line."""
    within = f" (at most {bytes_text(plan.memory)})" if plan.memory is not None else ""
    lines = [
        f"mesh {plan.mesh} on {plan.topology}",
        f"{seconds_text(plan.seconds)} a step, {bytes_text(plan.peak)} at the peak{within}",
        f"sum {seconds_text(plan.sum)}, bound {seconds_text(plan.bound)}: gap {plan.gap:.2%}",
        *(f"{len(plan.state)} results come back as arguments" for _ in plan.state and (1,)),
        "",
        "plan                 mesh                    seconds  peak",
        *(
            f"{tried.name:<20} {tried.mesh:<20} {seconds_text(tried.seconds):>10}  {bytes_text(tried.peak)}"
            for tried in plan.tried
        ),
        "",
        *_specs("argument", plan.arguments),
        *_specs("result", plan.results),
    ]
    return "\n".join(lines)


def seconds_text(seconds: float) -> str:
    """A time with its unit."""
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.4g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.4g} us"


def _specs(what: str, placed: Sequence[Placed]) -> Iterator[str]:
    groups: dict[tuple[str, str], int] = {}
    for each in placed:
        key = _NUMBER.sub("*", each.name), spec_text(each)
        groups[key] = groups.get(key, 0) + 1
    width = max((len(name) for name, _ in groups), default=0)
    for (name, spec), count in groups.items():
        yield f"{what} {name:<{width}}  {spec}" + (f"  ({count})" if count > 1 else "")


def spec_text(placed: Placed) -> str:
    """A spec as JAX writes it."""
    parts = [
        "None" if not names else repr(names[0]) if len(names) == 1 else repr(names)
        for names in axes_of(placed.spec)
    ]
    while parts and parts[-1] == "None":
        parts.pop()
    return f"P({', '.join(parts)})"


def why_text(plan: AutoPlan, argument: str) -> str:
    """The spec of an argument, and those that come next, with their price and the op that decides.

    Raises ShardlogError for a name that no argument has.
    """
    names = {placed.name: n for n, placed in enumerate(plan.arguments)}
    names |= {f"%arg{n}": n for n in range(len(plan.arguments))}
    if argument not in names:
        hint = closest(argument, names)
        raise ShardlogError(f"the plan has no argument {argument}", where="why-plan", hint=hint)
    n = names[argument]
    placed, others = plan.arguments[n], plan.others[n] if n < len(plan.others) else ()
    lines = [f"{placed.name} has {spec_text(placed)} on {plan.mesh}"]
    if not others:
        lines.append("nothing else was weighed: it was kept, or the plan is a known strategy")
    for other in others:
        more = f"+{seconds_text(other.seconds)}" if other.seconds > 0 else "no more"
        why = f"{other.op} at {other.where}" if other.op else "memory: no op costs more"
        lines.append(f"  {spec_text(Placed('', other.spec)):<28} {more:<12} {why}")
    return "\n".join(lines)
