"""A plan as text."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any

from ..explanations.answers.visualize import ranges
from ..program.elements import bytes_text
from ..runs.table import time_text
from .comparing import PlanDiff
from .plan import AutoPlan, Other, Placed, Spec, Tried, axes_of
from .searching import MISJUDGED
from .weighing import Weighed, number_of

_CLOSE = 0.99  # of a bound: a sum also has a low price of memory, and rounding
_DIGITS = 4  # of a time: plans differ by less than a percent
_NUMBER = re.compile(r"(?<=\[)\d+(?=\])|(?<= arg)\d+$|(?<= result)\d+$")


def plan_text(plan: AutoPlan) -> str:
    """A plan: the mesh, its cost, the bound, the plans that were compared, and the specs. Names that differ
    only in numbers share a line."""
    lines = [
        *_head(plan),
        "",
        *_table(plan),
        "",
        *_specs("argument", plan.arguments),
        *_specs("result", plan.results),
    ]
    return "\n".join(lines)


def _head(plan: AutoPlan) -> list[str]:
    """The mesh of a plan, its cost and its bound."""
    within = f" (at most {bytes_text(plan.memory)})" if plan.memory is not None else ""
    return [
        f"mesh {plan.mesh} on {plan.topology}",
        f"{time_text(plan.seconds, _DIGITS)} a step, {bytes_text(plan.peak)} at the peak{within}",
        *_proof(plan),
        *plan.notes,
        *(f"{len(plan.state)} results come back as arguments" for _ in plan.state and (1,)),
    ]


def _proof(plan: AutoPlan) -> Iterator[str]:
    """How near a plan is to the best one, if it was searched for."""
    if plan.sum is not None and plan.bound is not None:
        sum_, bound = (time_text(abs(each), _DIGITS) for each in (plan.sum, plan.bound))  # -0.0 is 0
        yield f"sum {sum_}, bound of the sum {bound}: gap {plan.gap:.2%}"
        times = plan.seconds / plan.sum if plan.sum else 1.0
        if times > MISJUDGED:
            yield f"the sum misjudges this program, which takes {times:.1f} times as long"
        elif 0 < plan.seconds < plan.bound * _CLOSE:
            yield (
                f"the sum misjudges this program, which takes {times:.2f} times as long: collectives "
                "are combined, ops are fused, or loops have an unknown number of iterations; "
                "the bound is of the sum only"
            )


def _table(plan: AutoPlan) -> Iterator[str]:
    """The plans that were compared, a row each, and which of them was taken."""
    costs = [(each.mesh, each.seconds, each.peak) if each.written else None for each in plan.tried]
    own = plan.mesh, plan.seconds, plan.peak
    taken = costs.index(own) if own in costs else None
    rows = [("plan", "mesh", "time", "peak"), *_rows(plan.tried)]
    name, mesh, time, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    for number, row in enumerate(rows, -1):  # the first is the heading
        mark = "  <- taken" if number == taken else ""
        yield f"{row[0]:<{name}}  {row[1]:<{mesh}}  {row[2]:>{time}}  {row[3]}{mark}"


def _rows(tried: Sequence[Tried]) -> Iterator[tuple[str, str, str, str]]:
    for each in tried:
        about = "" if each.written else "~"
        yield each.name, each.mesh, about + time_text(each.seconds, _DIGITS), bytes_text(each.peak)


def _specs(noun: str, placed: Sequence[Placed]) -> Iterator[str]:
    """The specs, a line for all names that differ only in numbers."""
    return _grouped([(f"{noun} {each.name}", spec_text(each)) for each in placed])


def _grouped(named: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A line for each name with its text. Names that differ only in numbers share a line if they have the
    same text."""
    groups: dict[tuple[tuple[str, ...], str], list[list[int]]] = {}
    for name, spec in named:
        numbers = [int(number) for number in _NUMBER.findall(name)]
        groups.setdefault((tuple(_NUMBER.split(name)), spec), []).append(numbers)
    lines = [(_named(parts, numbers), spec, len(numbers)) for (parts, spec), numbers in groups.items()]
    width = max((len(name) for name, _, _ in lines), default=0)
    for name, spec, count in lines:
        yield f"{name:<{width}}  {spec}" + (f"  ({count})" if count > 1 else "")


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


def shown(plan: AutoPlan, picture: str) -> dict[str, Any]:
    """A plan as the report shows it, with a picture (SVG)."""
    rows = [*_rows(plan.tried)]
    specs = [
        (f"argument {each.name}", spec_text(each), _next(plan, n)) for n, each in enumerate(plan.arguments)
    ]
    specs += [(f"result {each.name}", spec_text(each), "") for each in plan.results]
    return {
        "head": _head(plan),
        "tried": rows,
        "specs": specs,
        "picture": b64encode(picture.encode()).decode(),
    }


def _next(plan: AutoPlan, argument: int) -> str:
    """The next best specs of an argument, with their prices and the ops that decide."""
    others = plan.others[argument] if argument < len(plan.others) else ()
    return "; ".join(f"{spec_text(Placed('', each.spec))} {_price(each)}, {_why(each)}" for each in others)


def _price(other: Other) -> str:
    return _more(other.seconds) if other.seconds else "no more"


def _why(other: Other) -> str:
    return f"{other.op} at {other.where}" if other.op else "memory: no op costs more"


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


def weighed_text(plan: AutoPlan, argument: str, others: Sequence[Weighed]) -> str:
    """The spec of an argument, and the cost of the programs with others: how much slower they are, their
    memory, and the op or the limit that decides."""
    placed = plan.arguments[number_of(plan, argument)]
    lines = [
        f"{placed.name} has {spec_text(placed)} on {plan.mesh}: "
        f"{time_text(plan.seconds, _DIGITS)}, {bytes_text(plan.peak)}"
    ]
    rows = [("spec", "more time", "peak", "because of")]
    for other in others:
        if other.seconds is None:
            more, why = "-", f"the limit of {bytes_text(plan.memory or 0)}"
        else:
            more = _more(other.seconds - plan.seconds)
            why = f"{other.op} at {other.where}" if other.op else "-"
        rows.append((spec_text(Placed("", other.spec)), more, bytes_text(other.peak), why))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = (zip(row, widths, strict=True) for row in rows)
    return "\n".join([*lines, *("  ".join(f"{c:<{w}}" for c, w in row).rstrip() for row in cells)])


def _more(seconds: float) -> str:
    return f"{'+' if seconds >= 0 else '-'}{time_text(abs(seconds), _DIGITS)}"


def why_text(plan: AutoPlan, argument: str) -> str:
    """The spec of an argument, and the next best ones, with their prices and the op that decides.

    Raises ShardlogError if no argument has that name.
    """
    n = number_of(plan, argument)
    placed, others = plan.arguments[n], plan.others[n] if n < len(plan.others) else ()
    lines = [f"{placed.name} has {spec_text(placed)} on {plan.mesh}"]
    if not others:
        lines.append(
            "nothing else was weighed: it was kept, or the search has no prices beside this layout; "
            "--module MODULE costs programs with other layouts"
        )
    for other in others:
        lines.append(f"  {spec_text(Placed('', other.spec)):<28} {_price(other):<12} {_why(other)}")
    return "\n".join(lines)
