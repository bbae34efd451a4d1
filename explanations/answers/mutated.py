"""The effects of sharding options of ops, as JSON and as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ...cost.formulas import Formulas
from ...runs.choice import ProgramChoice
from ...runs.table import short_table, table
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


@dataclass(frozen=True, repr=False)
class MutatedFormulas:
    """The effects of sharding ``options`` of ops where sizes of the grid are not known.

    It has formulas in these sizes, before and after.
    """

    options: tuple[str, ...]
    before: Formulas
    after: Formulas

    def __repr__(self) -> str:
        return mutated_text(self)

    def as_json(self) -> dict[str, Any]:
        """The change as JSON has it."""
        return asdict(self)


def _formulas_text(mutated: MutatedFormulas) -> str:
    """Tables of the shapes and of the collectives, before and after."""
    before, after = mutated.before, mutated.after
    shapes = [
        (f"{name} {i}", *pair)
        for name in ("argument", "result")
        for i, pair in enumerate(zip(getattr(before, f"{name}s"), getattr(after, f"{name}s"), strict=True))
    ]
    sent = [
        (when, each.kind, ", ".join(each.axes), each.bytes, each.place)
        for when, formulas in (("before", before), ("after", after))
        for each in formulas.received
    ]
    heads = ("program", "collective", "axes", "bytes received by a device", "place")
    lines = [f"with {option}" for option in mutated.options]
    lines += ["", table(("of each device", "before", "after"), shapes), ""]
    return "\n".join([*lines, table(heads, sent) if sent else "nothing is sent"])


def mutated_text(mutated: Mutated | MutatedFormulas, *, full: bool = False) -> str:
    """A table of the metrics before and after, and the collectives that only one of the programs has."""
    if isinstance(mutated, MutatedFormulas):
        return _formulas_text(mutated)
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
