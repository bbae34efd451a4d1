"""A plan as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..errors import ShardlogError, closest
from ..explanations.answers.visualize import ranges
from ..program.elements import bytes_text
from ..runs.table import time_text
from .comparing import PlanDiff
from .plan import AutoPlan, Placed, Spec, axes_of

_DIGITS = 4  # of a time: plans differ by less than a percent
_NUMBER = re.compile(r"(?<=\[)\d+(?=\])|(?<= arg)\d+$|(?<= result)\d+$")


def plan_text(plan: AutoPlan) -> str:
    """A plan: the mesh, its cost, the bound, the plans that were compared, and the specs. Names that differ
    only in numbers share a line."""
    within = f" (at most {bytes_text(plan.memory)})" if plan.memory is not None else ""
    lines = [
        f"mesh {plan.mesh} on {plan.topology}",
        f"{time_text(plan.seconds, _DIGITS)} a step, {bytes_text(plan.peak)} at the peak{within}",
        *_proof(plan),
        *plan.notes,
        *(f"{len(plan.state)} results come back as arguments" for _ in plan.state and (1,)),
        "",
        *_table(plan),
        "",
        *_specs("argument", plan.arguments),
        *_specs("result", plan.results),
    ]
    return "\n".join(lines)


def _proof(plan: AutoPlan) -> Iterator[str]:
    """How near a plan is to the best one, if it was searched for."""
    if plan.sum is not None and plan.bound is not None:
        yield (
            f"sum {time_text(plan.sum, _DIGITS)}, bound {time_text(plan.bound, _DIGITS)}: gap {plan.gap:.2%}"
        )


def _table(plan: AutoPlan) -> Iterator[str]:
    """The plans that were compared, a row each."""
    rows = [("plan", "mesh", "seconds", "peak")]
    rows += [
        (each.name, each.mesh, time_text(each.seconds, _DIGITS), bytes_text(each.peak)) for each in plan.tried
    ]
    name, mesh, seconds, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    for row in rows:
        yield f"{row[0]:<{name}}  {row[1]:<{mesh}}  {row[2]:>{seconds}}  {row[3]}"


def _specs(what: str, placed: Sequence[Placed]) -> Iterator[str]:
    """The specs, a line for all names that differ only in numbers."""
    return _grouped([(f"{what} {each.name}", spec_text(each)) for each in placed])


def _grouped(named: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A line for each name and what is said of it; a line for all names that differ only in numbers and of
    which the same is said."""
    groups: dict[tuple[tuple[str, ...], str], list[list[int]]] = {}
    for name, said in named:
        numbers = [int(number) for number in _NUMBER.findall(name)]
        groups.setdefault((tuple(_NUMBER.split(name)), said), []).append(numbers)
    lines = [(_named(parts, numbers), said, len(numbers)) for (parts, said), numbers in groups.items()]
    width = max((len(name) for name, _, _ in lines), default=0)
    for name, said, count in lines:
        yield f"{name:<{width}}  {said}" + (f"  ({count})" if count > 1 else "")


def _named(parts: Sequence[str], numbers: Sequence[Sequence[int]]) -> str:
    """The name with these parts, and ranges of numbers between them."""
    between = [ranges(sorted(set(each)), 2) for each in zip(*numbers, strict=True)]
    return "".join(part + inner for part, inner in zip(parts, [*between, ""], strict=True))


def spec_text(placed: Placed) -> str:
    """A spec as JAX writes it."""
    parts = [
        "None" if not names else repr(names[0]) if len(names) == 1 else repr(names)
        for names in axes_of(placed.spec)
    ]
    while parts and parts[-1] == "None":
        parts.pop()
    return f"P({', '.join(parts)})"


def diff_text(diff: PlanDiff) -> str:
    """Two plans compared: their meshes and costs, and the specs that differ. Names that differ only in
    numbers share a line."""
    rows = zip(diff.mesh, diff.seconds, diff.peak, strict=True)
    lines = [
        f"{mesh}: {time_text(seconds, _DIGITS)} a step, {bytes_text(peak)} at the peak"
        for mesh, seconds, peak in rows
    ]
    named = [
        (f"{each.what} {each.name}", f"{_or_nothing(each.before)} -> {_or_nothing(each.after)}")
        for each in diff.changed
    ]
    lines += ["", *_grouped(named)] if named else ["all arguments and results have the same specs"]
    return "\n".join(lines)


def _or_nothing(spec: Spec | None) -> str:
    return "not there" if spec is None else spec_text(Placed("", spec))


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
        lines.append("nothing else was weighed: it was kept or mutated, or the plan is a known strategy")
    for other in others:
        more = f"+{time_text(other.seconds, _DIGITS)}" if other.seconds > 0 else "no more"
        why = f"{other.op} at {other.where}" if other.op else "memory: no op costs more"
        lines.append(f"  {spec_text(Placed('', other.spec)):<28} {more:<12} {why}")
    return "\n".join(lines)
