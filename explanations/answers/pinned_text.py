"""What pins cost, and why shardings were chosen, as text."""

from __future__ import annotations

from collections.abc import Sequence

from ...program.elements import bytes_text
from ...program.mlir.origins import at
from ...runs.table import time_text
from ..questions.pins import Change, Chosen, Move, Pinned
from .text import dims_text, wrapped

_MOST = 6


def pinned_text(found: Pinned, *, full: bool = False) -> str:
    """What pins change: shardings, costs, and what moves."""
    lines = [found.program.line]
    for pin in found.pins:
        chosen = _sharding(pin.chosen, pin.partial)
        lines.append(f"{pin.value} pinned to {dims_text(pin.pinned)}, otherwise {chosen}")
        if pin.propagated != pin.chosen:
            lines[-1] += f" (propagation says {dims_text(pin.propagated)})"
    return "\n".join([*lines, *_change(found.change, found.topology, "with it", "without it", full=full)])


def chosen_text(found: Chosen, *, full: bool = False) -> str:
    """Why a value is sharded otherwise than propagation said."""
    about = "what the loop carries for " if found.carried else ""
    said = f"{about}{found.value} is sharded {_sharding(found.dims, found.partial)}"
    lines = wrapped(
        "", f"{said}, and not {dims_text(found.propagated)} as propagation says: {_reason(found)}"
    )
    lines += _change(found.otherwise, found.topology, "as propagation says", "as it is", full=full)
    for other in found.lost:
        more = f"{round(other.more):+,} bytes" if other.seconds is None else _more_time(other.seconds)
        lines.append(f"  lost: {_sharding(other.dims, other.partial)}: {more}, if it alone were so")
    return "\n".join(lines)


def _reason(found: Chosen) -> str:
    """Why the choice has it so, as far as the costs of the whole program say it, too."""
    before, after = found.otherwise.before, found.otherwise.after
    more = after.bytes - before.bytes if found.least == "bytes" else after.seconds - before.seconds
    if more > 0:
        return "that costs less"
    whole = "costs as much either way" if more == 0 else "would cost less as propagation says"
    return f"that costs less as the choice counts, op by op; counted as a whole, the program {whole}"


def _sharding(dims: Sequence[str], partial: str) -> str:
    return f"{dims_text(dims)}{f', partial sums over {partial}' if partial else ''}"


def _change(change: Change, topology: str, then: str, now: str, *, full: bool) -> list[str]:
    before, after = change.before, change.after
    more = after.bytes - before.bytes
    seconds = after.seconds - before.seconds
    lines = [
        f"  sent by each device: {before.bytes:,} bytes, {after.bytes:,} {then}: {more:+,}",
        f"  time on {topology}: {time_text(before.seconds)}, {time_text(after.seconds)} {then}: "
        f"{_more_time(seconds)}",
        f"  memory: {bytes_text(before.memory)}, {bytes_text(after.memory)} {then}",
    ]
    for moves, what in ((change.new, f"moves only {then}"), (change.gone, f"moves only {now}")):
        lines += _moves(moves, what, full=full)
    return lines


def _more_time(seconds: float) -> str:
    """A time with its sign; what is left of two equal sums is none."""
    rounded = round(seconds, 9)
    return f"{'-' if rounded < 0 else '+'}{time_text(abs(rounded))}"


def _moves(moves: Sequence[Move], what: str, *, full: bool) -> list[str]:
    shown = moves if full else moves[:_MOST]
    found = []
    for m in shown:
        count = f"{m.count} x " if m.count > 1 else ""
        said = f"{count}{m.collective} of {m.value or '-'} for {m.slot} of {m.op}{at(m.where, m.stack)}"
        found.append(f"  {what}: {said}, {m.bytes:,} bytes")
    left = len(moves) - len(shown)
    return [*found, f"  ... {left} more (--full shows all)"] if left else found
