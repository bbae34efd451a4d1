"""A cost as text."""

from __future__ import annotations

from ..program.elements import bytes_text
from ..runs.table import table
from .cost import Cost

_MOST = 10


def cost_text(cost: Cost, *, full: bool = False) -> str:
    """The totals, then the collectives, the ops and the source lines that take longest."""
    machine, limited = cost.machine, cost.limited()
    total = cost.seconds
    parts = ", ".join(f"{what} {_time(seconds)}" for what, seconds in limited.items() if seconds)
    lines = [
        f"{_time(total)} on {machine.name}, one after the other, limited by: {parts or 'nothing'}",
        f"{bytes_text(cost.peak)} of {bytes_text(machine.memory)} memory at most, if nothing is fused",
    ]
    most = None if full else _MOST
    if made := cost.collectives():
        each = [
            (i.op, i.serves, i.where, f"{i.times:,}", f"{round(i.bytes):,}", _time(i.seconds)) for i in made
        ]
        lines += ["", table(("collective", "for", "place", "times", "bytes", "time"), each[:most])]
        lines += _more(len(each), most)
    for name, title in (("op", "op"), ("where", "place")):
        found = cost.by(name)
        rows = [(key or "-", _time(seconds), f"{100 * part:.0f} %") for key, seconds, part in found]
        lines += ["", table((title, "time", "of all"), rows[:most]), *_more(len(rows), most)]
    return "\n".join(lines)


def _more(count: int, most: int | None) -> list[str]:
    return [f"... {count - most} more (--full shows all)"] if most is not None and count > most else []


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"
