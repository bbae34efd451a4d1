"""Turns solved by the engine, as `turns.solved_by_souffle` does it with stock Soufflé."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from shardlog.engine import LoadedProgram, load
from shardlog.engine.evaluate.program import Backend

from .turns import RULES, Case, Facts, Row


@cache
def turn(name: str = "turn.dl") -> LoadedProgram:
    return load([RULES / name], key="item", include_from=[RULES.parent])


def solved(cases: Sequence[Case], backend: Backend) -> list[dict[int, Any]]:
    """The gains of each case; meshes must have different numbers and atoms, or be equal."""
    axes = sorted({row for case in cases for row in case.mesh.facts()})
    solver = turn().solver({"axis": axes}, backend)
    return [case.gained(solver.solve(case.facts())) for case in cases]


def answers(
    axes: Iterable[Row], facts: Facts, *, program: str = "turn.dl", maximal: Iterable[int] = ()
) -> Facts:
    """The outputs that are not empty, for the facts of one item."""
    solver = turn(program).solver({"axis": list(axes), "maximal": [(m,) for m in maximal]})
    return {name: rows for name, rows in solver.solve(facts).items() if rows}
