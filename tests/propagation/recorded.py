"""The recorded cases: single turns with the answers of Shardy, on meshes of prime axes."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from .turns import Case, Held, Mesh, Slot, SubAxis

DATA = Path(__file__).parents[1] / "data" / "op_turns.jsonl.gz"


@cache
def recorded() -> tuple[Case, ...]:
    """All recorded cases. Every atom is an axis of its own; meshes with equal axes are one."""
    meshes: dict[tuple[int, ...], Mesh] = {}
    atoms = 0
    cases = []
    with gzip.open(DATA, "rt") as file:
        for line in file:
            row = json.loads(line)
            sizes = tuple(row["axis_sizes"])
            if sizes not in meshes:
                axes = tuple((f"a{i}", size) for i, size in enumerate(sizes))
                meshes[sizes] = Mesh(axes, len(meshes), atoms)
                atoms += len(sizes)
            cases.append(_case(row, meshes[sizes]))
    return tuple(cases)


def _case(row: dict[str, Any], mesh: Mesh) -> Case:
    def axes(numbers: list[int]) -> tuple[SubAxis, ...]:
        return tuple((f"a{x}", 1, mesh.axes[x][1]) for x in numbers)

    def dims(rows: list[dict[str, Any]]) -> tuple[tuple[tuple[SubAxis, ...], bool], ...]:
        return tuple((axes(dim["axes"]), dim["closed"]) for dim in rows)

    def factors(slots: list[list[list[int]]]) -> tuple[Slot, ...]:
        return tuple(tuple(tuple(dim) for dim in slot) for slot in slots)

    return Case(
        mesh=mesh,
        factors=tuple(row["factor_sizes"]),
        operands=factors(row["operands"]),
        results=factors(row["results"]),
        held=tuple(h and Held(dims(h["dims"]), axes(h["fixed"])) for h in row["held"]),
        strategy=row["strategy"],
        flows=tuple(tuple(roles) for roles in row["flows"]),
        elementwise=row["elementwise"],
        gains={int(t): dims(rows) for t, rows in row["gains"].items()},
    )
