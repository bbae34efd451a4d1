"""The effects of pins, and the reasons of chosen shardings, as JSON and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...program.elements import bytes_text
from ...program.mlir.origins import at
from ...runs.choice import ProgramChoice
from ...runs.table import time_text
from .text import dims_text, wrapped

_MOVES = 6


@dataclass(frozen=True)
class Total:
    """The cost of a program.

    It has the bytes that a device sends, its seconds on the machine, and the bytes of memory that it needs.
    """

    bytes: int
    seconds: float
    memory: int


@dataclass(frozen=True)
class ChangedCollectives:
    """Collectives that only one of two programs has.

    They have their kind, the slot of an op that they serve, which holds ``value``, and its place. Also how
    many there are, and the bytes that they send.
    """

    collective: str
    op: str
    slot: str
    value: str
    where: str
    stack: str
    count: int
    bytes: int


@dataclass(frozen=True)
class ProgramChange:
    """Two programs side by side: the cost of each, and the collectives that only one of them has."""

    before: Total
    after: Total
    gone: tuple[ChangedCollectives, ...]
    new: tuple[ChangedCollectives, ...]


@dataclass(frozen=True)
class Pin:
    """A pinned value.

    It has its sharding with the pin, a text per dimension; its sharding without it, with the axes over
    which it is then a partial sum; and propagation's.
    """

    value: str
    pinned: tuple[str, ...]
    chosen: tuple[str, ...]
    partial: str
    propagated: tuple[str, ...]


@dataclass(frozen=True)
class Pinned:
    """The effects of pins in the ``program`` that is chosen without them.

    ``topology`` is the machine on which times are counted.
    """

    program: ProgramChoice
    topology: str
    pins: tuple[Pin, ...]
    change: ProgramChange

    def __str__(self) -> str:
        return pinned_text(self)

    def as_json(self) -> dict[str, Any]:
        """The change as JSON has it."""
        return asdict(self) | {"program": str(self.program)}


@dataclass(frozen=True)
class OtherSharding:
    """A sharding that a value could have had.

    It has a text per dimension, and the axes over which the value would be a partial sum. Also the extra
    cost of the program if this value alone had it: in bytes that are sent, or, on a machine, in the bytes
    that could be sent in the time, and in ``seconds``.
    """

    dims: tuple[str, ...]
    partial: str
    more: float
    seconds: float | None


@dataclass(frozen=True)
class ChosenSharding:
    """Why the sharding of a value in the chosen ``program`` differs from propagation's.

    It has both (and the axes over which the value is a partial sum), the changes if propagation's is
    pinned, and the shardings that lost. ``least`` is the total that the choice minimises: "bytes" that are
    sent, or "time" on the topology. ``carried``: this is about the value inside a loop, whose sharding may
    differ behind the loop.
    """

    program: ProgramChoice
    value: str
    carried: bool
    topology: str
    least: str
    dims: tuple[str, ...]
    partial: str
    propagated: tuple[str, ...]
    otherwise: ProgramChange
    lost: tuple[OtherSharding, ...]

    def __str__(self) -> str:
        return f"{self.program.line}\n{chosen_text(self)}"

    def as_json(self) -> dict[str, Any]:
        """The explanation as JSON has it."""
        return asdict(self) | {"program": str(self.program)}


def pinned_text(pinned: Pinned, *, full: bool = False) -> str:
    """The changes by pins: shardings, costs, and collectives."""
    lines = [pinned.program.line]
    for pin in pinned.pins:
        chosen = _sharding(pin.chosen, pin.partial)
        lines.append(f"{pin.value} pinned to {dims_text(pin.pinned)}, otherwise {chosen}")
        if pin.propagated != pin.chosen:
            lines[-1] += f" (propagation says {dims_text(pin.propagated)})"
    return "\n".join([*lines, *_change(pinned.change, pinned.topology, "with it", "without it", full=full)])


def chosen_text(chosen: ChosenSharding, *, full: bool = False) -> str:
    """Why a value's sharding differs from propagation's."""
    about = "the value that the loop carries for " if chosen.carried else ""
    sharded = f"{about}{chosen.value} is sharded {_sharding(chosen.dims, chosen.partial)}"
    lines = wrapped(
        "", f"{sharded}, and not {dims_text(chosen.propagated)} as propagation says: {_reason(chosen)}"
    )
    lines += _change(chosen.otherwise, chosen.topology, "as propagation says", "as it is", full=full)
    for other in chosen.lost:
        more = f"{round(other.more):+,} bytes" if other.seconds is None else _more_time(other.seconds)
        lines.append(f"  lost: {_sharding(other.dims, other.partial)}: {more}, if it alone were so")
    return "\n".join(lines)


def _reason(chosen: ChosenSharding) -> str:
    """Why the choice has it so, as far as the costs of the whole program say it, too."""
    before, after = chosen.otherwise.before, chosen.otherwise.after
    more = after.bytes - before.bytes if chosen.least == "bytes" else after.seconds - before.seconds
    if more > 0:
        return "that costs less"
    whole = "costs as much either way" if more == 0 else "would cost less as propagation says"
    return f"that costs less as the choice counts, op by op; counted as a whole, the program {whole}"


def _sharding(dims: Sequence[str], partial: str) -> str:
    return f"{dims_text(dims)}{f', partial sums over {partial}' if partial else ''}"


def _change(change: ProgramChange, topology: str, then: str, now: str, *, full: bool) -> list[str]:
    before, after = change.before, change.after
    more = after.bytes - before.bytes
    seconds = after.seconds - before.seconds
    lines = [
        f"  sent by each device: {before.bytes:,} bytes, {after.bytes:,} {then}: {more:+,}",
        f"  time on {topology}: {time_text(before.seconds)}, {time_text(after.seconds)} {then}: "
        f"{_more_time(seconds)}",
        f"  memory: {bytes_text(before.memory)}, {bytes_text(after.memory)} {then}",
    ]
    for moves, head in ((change.new, f"moves only {then}"), (change.gone, f"moves only {now}")):
        lines += moves_text(moves, head, full=full)
    return lines


def _more_time(seconds: float) -> str:
    """A time with its sign. The difference of two equal sums is zero."""
    rounded = round(seconds, 9)
    return f"{'-' if rounded < 0 else '+'}{time_text(abs(rounded))}"


def moves_text(moves: Sequence[ChangedCollectives], head: str, *, full: bool) -> list[str]:
    """A line for each of the first moves, or for all of them. ``head`` ("gone", "new") begins each line."""
    shown = moves if full else moves[:_MOVES]
    lines = []
    for m in shown:
        count = f"{m.count} x " if m.count > 1 else ""
        move = f"{count}{m.collective} of {m.value or '-'} for {m.slot} of {m.op}{at(m.where, m.stack)}"
        lines.append(f"  {head}: {move}, {m.bytes:,} bytes")
    left = len(moves) - len(shown)
    return [*lines, f"  ... {left} more (--full shows all)"] if left else lines
