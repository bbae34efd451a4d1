"""Which relations of the op rules name ops, as ``rules/ops/schema.dl`` says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..engine import Solver
from ..engine.plan.plan import QueryPlan
from .shipped import unbound_ops

Names = frozenset[str] | None  # ops and targets of custom calls; None: any


@dataclass(frozen=True)
class Naming:
    """Relations, each with the prefix of names in lists of op priorities ("@" for targets of custom calls).
    ``calls`` have the name of a signature's op in the second column. A fact of ``names`` describes the op in
    its first column."""

    calls: Mapping[str, str]
    names: Mapping[str, str]

    def known(self, plan: QueryPlan) -> Iterator[str]:
        """The names of ops that rules and facts have."""
        for relation, arguments in plan.facts:
            prefix = self.names.get(plan.relations[relation].name)
            if prefix is not None:
                yield f"{prefix}{arguments[0][2]}"
        for rule in plan.rules:
            yield from self._scanned(plan, rule.steps)

    def _scanned(self, plan: QueryPlan, steps: Any) -> Iterator[str]:
        for kind, *step in steps:
            if kind in ("scan", "absent"):
                bound = step[2] if kind == "scan" else step[1]
                prefix = self.calls.get(plan.relations[step[0]].name)
                # The key is no column of a plan.
                names = [of[2] for column, of in bound if column == 0 and of[0] == "const"]
                yield from (f"{prefix}{name}" for name in names if prefix is not None)
            elif kind == "aggregate":
                yield from self._scanned(plan, step[-1])


@cache
def shipped_naming() -> Naming:
    """The names in the op rules that come with shardlog."""
    return naming(unbound_ops())


def naming(rules: Solver) -> Naming:
    """The names in op rules."""
    relations = rules.solve({}, ["calls_op", "names_op"])
    return Naming(dict(relations["calls_op"]), dict(relations["names_op"]))


def speak_of(about: Names, facts: Mapping[str, Sequence[tuple[Any, ...]]]) -> bool:
    """Rules that are ``about`` some ops may say something about a signature: it has one of the names."""
    if not about:
        return about is None
    return any(v in about for rows in facts.values() for row in rows for v in row)
