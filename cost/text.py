"""A cost as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..program.elements import bytes_text
from ..runs.table import table
from .cost import Cost
from .layers import Layer

_MOST = 10
_UNITS = ("", "K", "M", "G", "T", "P")


def cost_text(cost: Cost, *, full: bool = False) -> str:
    """The totals, then the collectives, the layers, the ops and the source lines that take longest, and what
    is computed more than once."""
    machine, limited, total = cost.machine, cost.limited(), cost.seconds
    parts = ", ".join(f"{what} {time_text(seconds)}" for what, seconds in limited.items() if seconds)
    redundant = f", {_part(cost.redundant, cost.flops)} redundant" if cost.redundant else ""
    touched, sent = bytes_text(round(cost.touched)), bytes_text(round(cost.sent))
    lines = [
        f"{time_text(total)} on {machine.name}, one after the other, limited by: {parts or 'nothing'}",
        f"{counted(cost.flops)} operations{redundant}; {touched} of memory read or written; {sent} sent",
        f"{bytes_text(cost.peak)} of {bytes_text(machine.memory)} memory at most",
    ]
    most = None if full else _MOST
    made = [
        (
            i.op,
            i.serves,
            i.where,
            f"{i.times:,}",
            f"{round(i.bytes):,}",
            time_text(i.seconds),
            _first(i.causes),
        )
        for i in cost.collectives()
    ]
    names = ("collective", "for", "place", "times", "bytes", "time", "from")
    lines += _table(names, made, most)
    if any(layer.parts or layer.times > 1 for layer in cost.layers):
        lines += _table(
            ("layer", "times", "time", "of all", "links"), list(_layers(cost.layers, total)), None
        )
    for name, title in (("op", "op"), ("where", "place")):
        found = cost.by(name)
        rows = [(key or "-", time_text(seconds), f"{100 * part:.0f} %") for key, seconds, part in found]
        lines += _table((title, "time", "of all"), rows, most)
    held = [
        (h.what, h.where or "-", f"{h.count:,}", bytes_text(h.bytes), _part(h.bytes, cost.peak))
        for h in cost.held
    ]
    lines += _table(("held at the peak", "place", "count", "memory", "of all"), held, most)
    again = sorted((i for i in cost.items if i.redundant >= 1), key=lambda i: -i.redundant)
    work = [(i.op, i.where, counted(i.redundant), _part(i.redundant, i.flops)) for i in again]
    lines += _table(("redundant", "place", "operations", "of its own"), work, most)
    return "\n".join(lines)


def time_text(seconds: float) -> str:
    """A time in the largest unit that it reaches."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def _layers(layers: Iterable[Layer], total: float, depth: int = 0) -> Iterable[tuple[str, ...]]:
    for layer in layers:
        row = (
            time_text(layer.seconds),
            _part(layer.seconds, total),
            _part(layer.limited["links"], layer.seconds),
        )
        yield f"{'  ' * depth}{layer.label}", f"{layer.times:,}", *row
        yield from _layers(layer.parts, total, depth + 1)


def _table(names: Sequence[str], rows: Sequence[Sequence[str]], most: int | None) -> list[str]:
    if not rows:
        return []
    left = len(rows) - most if most is not None and len(rows) > most else 0
    found = ["", table(names, rows[:most])]
    return [*found, f"... {left} more (--full shows all)"] if left else found


def _part(some: float, whole: float) -> str:
    return f"{100 * some / whole:.0f} %" if whole else "0 %"


def counted(number: float) -> str:
    """A number in the largest unit that it reaches."""
    power = 0
    while number >= 1000 and power < len(_UNITS) - 1:
        number, power = number / 1000, power + 1
    return f"{number:.3g}{' ' if power else ''}{_UNITS[power]}"


def _first(causes: Sequence[str]) -> str:
    return f"{causes[0]}{f' and {len(causes) - 1} more' if len(causes) > 1 else ''}" if causes else "-"
