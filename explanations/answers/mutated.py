"""What sharding options of ops change, as JSON and as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ...runs.choice import ProgramChoice
from ...runs.table import short_table
from .pins import ChangedCollectives, moves_text


@dataclass(frozen=True)
class Metrics:
    """The work of a device in a program.

    It has the bytes that the device ``received`` by kind of collective, its floating-point operations, how
    many of them other devices do too, and its peak memory in bytes.
    """

    received: Mapping[str, int]
    flops: float
    redundant: float
    memory: int


@dataclass(frozen=True, repr=False)
class Mutated:
    """The effects of sharding ``options`` of ops in the chosen ``program``.

    It has the metrics of each device, and the collectives that are ``gone`` and ``new``.
    """

    program: ProgramChoice
    options: tuple[str, ...]
    before: Metrics
    after: Metrics
    gone: tuple[ChangedCollectives, ...]
    new: tuple[ChangedCollectives, ...]

    def __repr__(self) -> str:
        return mutated_text(self)

    def as_json(self) -> dict[str, Any]:
        """The change as JSON has it."""
        return asdict(self) | {"program": str(self.program)}


def mutated_text(mutated: Mutated, *, full: bool = False) -> str:
    """A table of the metrics before and after, and the collectives that only one of the programs has."""
    before, after = mutated.before, mutated.after
    kinds = sorted({*before.received, *after.received})
    pairs: list[tuple[str, float, float]] = [
        (f"bytes received, {kind}", before.received.get(kind, 0), after.received.get(kind, 0))
        for kind in kinds
    ]
    pairs += [
        ("bytes received", sum(before.received.values()), sum(after.received.values())),
        ("operations", before.flops, after.flops),
        ("redundant operations", before.redundant, after.redundant),
        ("bytes of memory", before.memory, after.memory),
    ]
    rows = [(name, f"{b:,.0f}", f"{a:,.0f}", f"{a - b:+,.0f}") for name, b, a in pairs]
    lines = [mutated.program.line, *(f"with {option}" for option in mutated.options)]
    lines += short_table(("of each device", "before", "after", "change"), rows, None)
    lines.append("")
    lines += moves_text(mutated.gone, "gone", full=full) + moves_text(mutated.new, "new", full=full)
    return "\n".join(lines).rstrip()
