"""The findings of lints."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..explanations.answers.text import wrapped
from ..program.mlir.origins import at


@dataclass(frozen=True)
class Finding:
    """A finding of a lint: the tensor or op, its place in the user's program, the name stack there, and the
    reason.

    ``bytes`` are per device; 0 if none are lost.
    """

    lint: str
    what: str
    where: str
    stack: str
    bytes: int
    sentence: str
    because: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The finding as JSON has it."""
        return {**asdict(self), "because": list(self.because)}

    def __str__(self) -> str:
        place = at(self.where, self.stack)
        lines = [f"{self.lint}: {self.what}{place}", *wrapped("  ", self.sentence)]
        return "\n".join([*lines, *(text for reason in self.because for text in wrapped("      ", reason))])
