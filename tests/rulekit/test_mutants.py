"""Rules with a mistake in them: `check` finds every one that says something else about the op.

A factor that needs replication or a permutation says nothing about shards, so that mistakes in where such a
factor stands, or in which of the two it needs, cannot be found by computing. Nor does a factor that passes
through but stands in a single dimension; and whatever stands in results alone can be computed anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from shardlog.program.factors import KINDS
from shardlog.rulebook.book import RuleBook
from shardlog.rulekit.case import EXAMPLES, Case, file_cases
from shardlog.rulekit.check.check import Report, check
from shardlog.rulekit.show import notation

OPS = (
    "stablehlo.add",
    "stablehlo.broadcast_in_dim",
    "stablehlo.concatenate",
    "stablehlo.dot_general",
    "stablehlo.gather",
    "stablehlo.reduce",
    "stablehlo.reshape",
    "stablehlo.scatter",
    "stablehlo.sort",
    "stablehlo.transpose",
)
SILENT = ("need_replication", "permutation")


def other_kinds(case: Case) -> Iterator[Case]:
    """A factor has another kind."""
    for f in case.factors:
        slots = [t for t, _ in case.dims(f)]
        silent = (*SILENT, "pass_through") if len(slots) == 1 else SILENT
        for kind in KINDS if min(slots) < case.operands else ():
            if kind != case.kinds[f] and not {kind, case.kinds[f]} <= {*silent}:
                yield altered(case, kind=[(g, kind if g == f else k) for g, k in case.answers["kind"]])


def left_out(case: Case) -> Iterator[Case]:
    """A dimension, or all of them, do not belong to a factor."""
    new = max(case.factors) + 1
    for f, size in case.factors.items():
        dims = case.dims(f) if case.kinds[f] not in SILENT else []
        for gone in [dims, *([dim] for dim in dims)] if len(dims) > 1 else []:
            names = {dim: new + i for i, dim in enumerate(gone)}
            kept = [g for g in case.factors if g != f or gone != dims]
            yield altered(
                case,
                factor=[*((g, case.factors[g]) for g in kept), *((g, size) for g in names.values())],
                kind=[*((g, case.kinds[g]) for g in kept), *((g, "pass_through") for g in names.values())],
                maps=[
                    (t, d, j, names.get((t, d), g) if g == f else g) for t, d, j, g in case.answers["maps"]
                ],
            )


def other_sizes(case: Case) -> Iterator[Case]:
    """A factor has another size."""
    for f, size in case.factors.items():
        for other in (size + 1, 2 * size):
            yield altered(case, factor=[(g, other if g == f else n) for g, n in case.answers["factor"]])


def swapped(case: Case) -> Iterator[Case]:
    """Two dimensions of an operand or result have each other's factors."""
    for t, shape in enumerate(case.shapes):
        for e in range(len(shape or ())):
            for d in range(e):
                if not all(case.kinds[f] in SILENT for f in case.maps[t, d] + case.maps[t, e]):
                    at = {d: e, e: d}
                    rows = [(u, at.get(x, x) if u == t else x, j, f) for u, x, j, f in case.answers["maps"]]
                    yield altered(case, maps=rows)


def altered(case: Case, **answers: list[tuple[Any, ...]]) -> Case:
    return replace(case, answers={**case.answers, **answers})


def findings(report: Report) -> set[str]:
    return {finding.message for finding in report.findings}


MISTAKES = (other_kinds, left_out, other_sizes, swapped)


@pytest.mark.parametrize("name", OPS)
def test_mutants_are_found(name: str) -> None:
    cases = [c for c in file_cases(EXAMPLES, RuleBook()) if c.name == name and c.factors]
    mutants = [mutant for mistake in MISTAKES for case in cases for mutant in mistake(case)]
    listed = findings(check(cases))
    missed = [notation(mutant) for mutant in mutants if not findings(check([mutant])) - listed]
    assert mutants
    assert not missed
