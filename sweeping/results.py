"""The results of a sweep: a table, as text and as CSV, and a plot."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..autosharding.pictures import PlotPoint, picture
from ..autosharding.plan import front
from ..errors import ShardlogError
from ..program.elements import bytes_text
from ..runs.table import table, time_text
from .running import file_of
from .tasks import Task

_HEAD = ("model", "asked", "topology", "memory", "mesh", "seconds", "peak", "gap", "front", "refused")


@dataclass(frozen=True)
class TaskRow:
    """The result of a task: the cost of its plan, or why there is none. ``front``: no plan for this model and
    machine is both faster and smaller."""

    task: Task
    mesh: str
    seconds: float | None
    peak: int | None
    gap: float | None
    refused: str
    front: bool = False


def rows_of(tasks: Sequence[Task], folder: Path) -> list[TaskRow]:
    """The rows of the tasks that are done, in order. Raises ShardlogError for a damaged file."""
    rows = [_row(task, path) for task in tasks if (path := file_of(folder, task)).exists()]
    groups: dict[tuple[str, str], list[int]] = {}
    for n, row in enumerate(rows):
        groups.setdefault((row.task.model, row.task.options.topology), []).append(n)
    best = set[int]()
    for numbers in groups.values():
        costs = {n: point.cost for n in numbers if (point := _point(rows[n])) is not None}
        best.update(front(costs, costs.__getitem__))
    return [TaskRow(**{**vars(row), "front": n in best}) for n, row in enumerate(rows)]


def _row(task: Task, path: Path) -> TaskRow:
    try:
        result: dict[str, Any] = json.loads(path.read_text())
        plan, refused = result["plan"], str(result["refused"])
        if plan is None:
            return TaskRow(task, "", None, None, None, refused)
        gap = plan["gap"] if plan["gap"] is None else float(plan["gap"])
        return TaskRow(task, str(plan["mesh"]), float(plan["seconds"]), int(plan["peak"]), gap, refused)
    except (ValueError, KeyError, TypeError):
        hint = "delete it, and the task is done again"
        raise ShardlogError("not the result of a task", where=str(path), hint=hint) from None


def _asked(task: Task) -> tuple[str, str, str, str]:
    options = task.options
    mesh = options.mesh or (f"{options.devices} devices" if options.devices else "its own")
    memory = "" if options.memory is None else bytes_text(options.memory)
    return task.model, mesh, options.topology, memory


def table_text(rows: Sequence[TaskRow]) -> str:
    """The results as a table."""
    return table(
        ("model", "asked", "machine", "limit", "mesh", "time", "peak", "gap", "front", "refused"),
        [
            (
                *(cell or "-" for cell in _asked(row.task)),
                row.mesh or "-",
                "-" if row.seconds is None else time_text(row.seconds, 4),
                "-" if row.peak is None else bytes_text(row.peak),
                "-" if row.gap is None else f"{row.gap:.2%}",
                "yes" if row.front else "-",
                row.refused or "-",
            )
            for row in rows
        ],
    )


def csv_text(rows: Sequence[TaskRow]) -> str:
    """The results as CSV: seconds and bytes."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_HEAD)
    for row in rows:
        model, mesh, topology, _ = _asked(row.task)
        cells = (model, mesh, topology, row.task.options.memory, row.mesh, row.seconds, row.peak, row.gap)
        writer.writerow([*cells, int(row.front), row.refused])
    return file.getvalue()


def plot(rows: Sequence[TaskRow]) -> str | None:
    """The plans as a picture, with labels on the front of each model and machine; None without plans."""
    points = [point for row in rows if (point := _point(row)) is not None]
    return picture(points, "plans of the sweep", each_series=True) if points else None


def _point(row: TaskRow) -> PlotPoint | None:
    if row.seconds is None or row.peak is None:
        return None
    return PlotPoint(f"{row.task.model} on {row.task.options.topology}", row.mesh, row.seconds, row.peak)
