"""What-if: the run again with other annotations, and the differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ...errors import ShardlogError, closest
from ...importers.given import Given
from ...program.ids import Cell
from ...runs.choice import ProgramChoice
from ...runs.records.record import Record, Run, record
from .conflicts import Conflict, conflicts_or_error
from .diff import Diff, diff
from .values import Values


@dataclass(frozen=True, repr=False)
class WhatIf:
    """The effects of changed annotations: on shardings, and on what must move in the ``program`` that is
    meant.

    ``unpartitioned`` says why that is not known where the program cannot be partitioned.
    """

    program: ProgramChoice
    diff: Diff
    before: tuple[Conflict, ...]
    after: tuple[Conflict, ...]
    unpartitioned: str = ""

    @property
    def bytes(self) -> tuple[int, int] | None:
        """The bytes that each device sends without the change, and with it; None where that is not known."""
        if self.unpartitioned:
            return None
        return sum(c.bytes for c in self.before), sum(c.bytes for c in self.after)

    def __repr__(self) -> str:
        from ..answers.diff_text import what_if_text

        return what_if_text(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

    def as_json(self) -> dict[str, Any]:
        """The change as JSON has it."""
        moved = self.bytes and dict(zip(("before", "after"), self.bytes, strict=True))
        return {
            "program": str(self.program),
            "bytes": moved,
            "unpartitioned": self.unpartitioned,
            "diff": self.diff.as_json(),
        }


def what_if(
    run: Run, annotate: Given = (), drop: Sequence[str] = (), choice: ProgramChoice | None = None
) -> WhatIf:
    """The differences if values are annotated (as in ``shardlog.run``) and the annotations of others dropped.

    What moves is that of the program that ``choice`` means. ``drop`` are names of values, or patterns of
    them. Raises ShardlogError for values that do not exist or have no annotation, and for annotations that do
    not fit.
    """
    base, choice = record(run), choice or ProgramChoice()
    cells = sorted({cell for name in drop for cell in _annotated(base, name)})
    changed = base.again(annotate, cells) if annotate or cells else base.result
    before, error = conflicts_or_error(run, choice)
    after, later = conflicts_or_error(changed, choice)
    return WhatIf(choice, diff(base, changed), before, after, str(error or later or ""))


def _annotated(run: Record, name: str) -> list[Cell]:
    """The annotated cells that a name or pattern stands for."""
    given, known = run.given_shardings(), run.annotations()
    found = {value.name: run.cell(value.place) for value in Values(run).matching(name)}
    named = [a for a in given if a.value in found or a.cell in found.values()]
    cells = [a.cell for a in named if a.by == "user"]
    if not cells:
        if specs := [a for a in named if a.spec]:
            message = f"{name} has its sharding by {specs[0]}, which cannot be dropped"
            hint = "a shard_map needs its specs: change them in the program"
            raise ShardlogError(message, where=run.name, hint=hint)
        hint = closest("", [annotation.value for annotation in known])
        raise ShardlogError(f"{name} has no annotation", where=run.name, hint=hint)
    return cells
