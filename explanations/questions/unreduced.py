"""Why a value is unreduced: where the partial values are made, and where they are combined.

Unreduced axes do not propagate: the annotation of the value says them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...program.reductions import UNREDUCED
from ...runs.records.record import Op, TensorValue
from ..answers.unreduced import Point, Unreduced
from .why import Explainer

_REDUCTIONS = {why: reduction for reduction, why in UNREDUCED.items()}


def unreduced(explainer: Explainer, name: str, axis: str | None = None) -> list[Unreduced]:
    """Why the values called ``name`` are unreduced, for each axis, or for ``axis`` alone. Raises
    ShardlogError for values that do not exist."""
    pairs = [
        (value, each)
        for value in explainer.values.find(name)
        for each in _axes(explainer, value.number)
        if axis in (None, each)
    ]
    flow = _Flow(explainer) if pairs else None
    return [] if flow is None else [flow.explain(*each) for each in pairs]


def _axes(explainer: Explainer, number: int) -> dict[str, tuple[str, list[int]]]:
    """The axes on which a value is unreduced, each with the reduction and its atoms."""
    record = explainer.record
    facts = record.facts(record.contents(record.cell(record.value(number).place))[1])
    by_axis: dict[str, tuple[str, list[int]]] = {}
    for atom, why in sorted(facts.get("fixed", ())):
        if why in _REDUCTIONS:
            by_axis.setdefault(explainer.meshes.atoms[atom].axis, (_REDUCTIONS[why], []))[1].append(atom)
    return by_axis


class _Flow:
    """Which ops use and make values."""

    def __init__(self, explainer: Explainer) -> None:
        self.explainer = explainer
        self.made_by: dict[int, Op] = {}
        self.used_by: dict[int, list[Op]] = {}
        for _, op in explainer.record.ops():
            for number, role in zip(op.values, op.roles, strict=True):
                if "result" in role:
                    self.made_by.setdefault(number, op)
                else:
                    self.used_by.setdefault(number, []).append(op)

    def explain(self, value: TensorValue, axis: str) -> Unreduced:
        explainer = self.explainer
        reduction, atoms = _axes(explainer, value.number)[axis]
        begins = list(dict.fromkeys(self.begins(value.number, axis)))
        kept, reduced, returned = self.ends(value.number, axis)
        return Unreduced(
            value.name,
            value.type,
            value.where,
            value.stack,
            explainer.axes(atoms),
            reduction,
            str(explainer.annotation(explainer.record.cell(value.place))),
            tuple(begins),
            tuple(kept),
            tuple(reduced),
            tuple(returned),
        )

    def begins(self, number: int, axis: str) -> Iterator[Point]:
        """The ops and arguments that make the partial values."""
        waiting, seen = [number], {number}
        for each in waiting:  # which grows
            op = self.made_by.get(each)
            before = [v for v in self.operands(op) if axis in _axes(self.explainer, v)]
            if not before:
                yield self.point("argument" if op is None else op.name, each)
            new = [v for v in before if v not in seen]
            seen.update(new)
            waiting += new

    def ends(self, number: int, axis: str) -> tuple[list[Point], list[Point], list[Point]]:
        """The values that pass it on, the ops for which it is reduced, and the results that return it
        unreduced."""
        waiting, seen = [number], {number}
        reduced, returned = dict[Point, None](), dict[Point, None]()
        for each in waiting:  # which grows
            for op in self.used_by.get(each, ()):
                results = [v for v, role in zip(op.values, op.roles, strict=True) if "result" in role]
                alike = [v for v in results if axis in _axes(self.explainer, v)]
                if any(role == "function result" for role in op.roles) and alike:
                    returned.update(dict.fromkeys(self.point("result", v) for v in alike))
                elif results and not alike:
                    reduced[Point(op.name, self.name(results[0]), op.where, op.stack)] = None
                new = [v for v in alike if v not in seen]
                seen.update(new)
                waiting += new
        ends = {point.value for point in returned}
        kept = [self.point(self.made_by[v].name, v) for v in waiting[1:] if self.name(v) not in ends]
        return kept, list(reduced), list(returned)

    @staticmethod
    def operands(op: Op | None) -> list[int]:
        if op is None:
            return []
        return [v for v, role in zip(op.values, op.roles, strict=True) if "result" not in role]

    def point(self, op: str, number: int) -> Point:
        value = self.explainer.record.value(number)
        return Point(op, value.name, value.where, value.stack)

    def name(self, number: int) -> str:
        return self.explainer.record.value(number).name
