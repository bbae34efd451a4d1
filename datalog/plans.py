"""The plan of an evaluation: the steps of each rule that ran, with the rows expected and found after each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..engine.evaluate.store import Counted
from ..engine.plan.plan import PlanStep, QueryPlan, Relation, Rule

_VERSIONS = {"all": "", "delta": " of the last round", "old": " of earlier rounds"}


@dataclass(frozen=True)
class StepRows:
    """A step of a rule, and the rows after it in all applications.

    ``expected`` is estimated from the sizes of relations and from how many tuples share a key."""

    step: str
    expected: float
    rows: int


@dataclass(frozen=True)
class RulePlan:
    """A rule in one order of its joins: how often it was applied, the seconds and new tuples.

    ``order`` numbers the orders of a rule from 0 on. Each time the one is applied that should look at the
    fewest tuples."""

    place: str
    text: str
    order: int
    applied: int
    seconds: float
    tuples: int
    steps: tuple[StepRows, ...]


@dataclass(frozen=True)
class Plan:
    """The rules that ran, in the order of the plan. It prints as a table of steps for each."""

    rules: tuple[RulePlan, ...]

    def as_json(self) -> dict[str, Any]:
        """The plan as JSON has it."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(line for rule in self.rules for line in _lines(rule))


def _lines(rule: RulePlan) -> Iterator[str]:
    yield f"{rule.place}  {' '.join(rule.text.split())}"
    times = "once" if rule.applied == 1 else f"{rule.applied:,} times"
    yield f"  applied {times}, {rule.seconds:.6f} s, {rule.tuples:,} new tuples"
    rows = [("expected", "rows", ""), *((f"{s.expected:,.0f}", f"{s.rows:,}", s.step) for s in rule.steps)]
    widths = [max(len(row[i]) for row in rows) for i in (0, 1)]
    for expected, actual, step in rows:
        yield f"  {expected:>{widths[0]}}  {actual:>{widths[1]}}  {step}".rstrip()


def plan_of(counted: Iterable[Counted], plan: QueryPlan) -> Plan:
    """The plan that the counts of an evaluation make."""
    rules = []
    for number, order, applied, seconds, new, expected, rows in counted:
        written = plan.rules[number]
        rule, source = written.orders[order - 1] if order else written, plan.sources[written.source]
        steps = tuple(
            StepRows(text, *pair)
            for text, pair in zip(_texts(rule, plan), zip(expected, rows, strict=True), strict=True)
        )
        place = f"{source.file}:{source.line}"
        rules.append(RulePlan(place, source.text, order, applied, seconds, new, steps))
    return Plan(tuple(rules))


def _texts(rule: Rule, plan: QueryPlan) -> list[str]:
    """The text of each step, with registers as variables, named by the columns that give them a value."""
    names: dict[int, str] = {}
    return [_text(step, plan, names) for step in rule.steps]


def _text(step: PlanStep, plan: QueryPlan, names: dict[int, str]) -> str:
    parts: Sequence[Any] = step
    kind = parts[0]
    if kind == "scan":
        _, number, version, bound, free = parts
        relation = plan.relations[number]
        where = _where(relation, bound, names)
        for column, register in free:
            names[register] = f"{relation.name}.{relation.columns[column].name}"
        return f"{'' if free else 'exists '}{relation.name}{_VERSIONS[version]}{where}"
    if kind == "absent":
        relation = plan.relations[parts[1]]
        return f"not {relation.name}{_where(relation, parts[2], names)}"
    if kind == "test":
        return f"{_value(parts[3], names)} {parts[1]} {_value(parts[4], names)}"
    if kind == "let":
        names[parts[1]] = _value(parts[2], names)
        return f"compute {names[parts[1]]}"
    if kind == "unpack":
        record = _value(parts[1], names)
        names.update({register: f"{record}[{i}]" for i, register in enumerate(parts[2]) if register >= 0})
        return f"fields of {record}"
    if kind == "range":
        ends = [_value(value, names) for value in parts[3:] if value is not None]
        names[parts[1]] = f"range({', '.join(ends)})"
        return names[parts[1]]
    if kind == "aggregate":
        inner = "; ".join(_text(each, plan, names) for each in parts[5])
        target = "" if parts[4] is None else f" {_value(parts[4], names)}"
        names[parts[1]] = parts[2]
        return f"{parts[2]}{target} : {{ {inner} }}"
    names[parts[1]] = {"next": "autoinc()", "round": "recursive_iteration_cnt()"}[kind]
    return f"compute {names[parts[1]]}"


def _where(relation: Relation, bound: Iterable[tuple[int, Sequence[Any]]], names: dict[int, str]) -> str:
    """The values that columns must have."""
    values = ", ".join(f"{relation.columns[column].name} = {_value(value, names)}" for column, value in bound)
    return f" where {values}" if values else ""


def _value(expression: Sequence[Any], names: dict[int, str]) -> str:
    tag, *rest = expression
    if tag == "reg":
        return names.get(rest[0], f"#{rest[0]}")
    if tag == "const":
        return "nil" if rest[1] is None else repr(rest[1]) if rest[0] != "symbol" else f'"{rest[1]}"'
    args = [_value(each, names) for each in (rest if tag == "record" else rest[2:])]
    if tag == "record":
        return f"[{', '.join(args)}]"
    return (
        f"{args[0]} {rest[0]} {args[1]}"
        if len(args) == 2 and not rest[0].isalpha()
        else f"{rest[0]}({', '.join(args)})"
    )
