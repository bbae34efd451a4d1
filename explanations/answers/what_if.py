"""The effects of changed annotations, as JSON and as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...markup import element
from ...runs.choice import ProgramChoice
from .conflicts import Conflict
from .diff import Diff, diff_text


@dataclass(frozen=True, repr=False)
class WhatIf:
    """The effects of changed annotations.

    They are those on shardings, and on the tensors that must move in the chosen ``program``.
    ``unpartitioned`` is why the latter are unknown, if the program cannot be partitioned.
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
        return what_if_text(self)

    def _repr_html_(self) -> str:
        return element("pre", repr(self))

    def as_json(self) -> dict[str, Any]:
        """The change as JSON has it."""
        moved = self.bytes and dict(zip(("before", "after"), self.bytes, strict=True))
        return {
            "program": str(self.program),
            "bytes": moved,
            "unpartitioned": self.unpartitioned,
            "diff": self.diff.as_json(),
        }


def what_if_text(answer: WhatIf, *, full: bool = False) -> str:
    """The differences as text, and the change in the bytes that move."""
    moved = f"the bytes that must move are not known: {answer.unpartitioned}"
    if answer.bytes:
        before, after = answer.bytes
        moved = f"{before:,} bytes must move to each device before, {after:,} after: {after - before:+,}"
    return f"{answer.program.line}\n{moved}\n{diff_text(answer.diff, labels=('before', 'after'), full=full)}"
