"""The annotations that a what-if drops."""

from __future__ import annotations

from collections.abc import Iterable

from ...errors import ShardlogError, closest
from ...program.ids import Cell
from ...runs.records.record import RunRecord
from .values import Values


def dropped(record: RunRecord, names: Iterable[str]) -> list[Cell]:
    """The annotated cells that names of values, or patterns of them, stand for.

    Raises ShardlogError for values that do not exist or have no annotation.
    """
    return sorted({cell for name in names for cell in _annotated(record, name)})


def _annotated(run: RunRecord, name: str) -> list[Cell]:
    """The annotated cells that a name or pattern stands for."""
    given, annotations = run.given_shardings(), run.annotations()
    cell_of = {value.name: run.cell(value.place) for value in Values(run).matching(name)}
    named = [a for a in given if a.value in cell_of or a.cell in cell_of.values()]
    cells = [a.cell for a in named if a.by == "user"]
    if not cells:
        if specs := [a for a in named if a.spec]:
            message = f"{name} has its sharding by {specs[0]}, which cannot be dropped"
            hint = "a shard_map needs its specs: change them in the program"
            raise ShardlogError(message, where=run.name, hint=hint)
        hint = closest("", [annotation.value for annotation in annotations])
        raise ShardlogError(f"{name} has no annotation", where=run.name, hint=hint)
    return cells
