"""A cost as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..program.elements import bytes_text
from ..runs.table import STACK, part_text, plural, short_table, time_text
from .account import HeldMemory
from .cost import Cost
from .items import Item
from .layers import Layer

_ROWS = 10  # rows of a table, unless all are asked for
_UNITS = ("", "K", "M", "G", "T", "P")


def cost_text(cost: Cost, *, full: bool = False) -> str:
    """The totals; then the collectives, layers, ops and source lines that take longest; and work that several
    devices repeat."""
    most = None if full else _ROWS
    layers = list(_layers(cost.layers, cost.seconds))
    lines = [
        *_totals(cost),
        *_collectives(cost, most),
        *short_table(("layer", "times", "time", "of all", "links"), layers, None),
        *_longest(cost, most),
        *_held(cost, most),
        *_redundant(cost, most),
    ]
    return "\n".join(lines)


def _totals(cost: Cost) -> list[str]:
    """The time of a step, what limits it, and the memory; on a GPU the kernels, too."""
    machine, total = cost.machine, cost.seconds
    parts = ", ".join(f"{limit} {time_text(seconds)}" for limit, seconds in cost.limited().items() if seconds)
    redundant = f", {part_text(cost.redundant, cost.flops)} redundant" if cost.redundant else ""
    touched, sent = bytes_text(round(cost.touched)), bytes_text(round(cost.sent))
    host = f"; {bytes_text(cost.host)} of the host's memory" if cost.host else ""
    lines = [
        cost.program.line,
        f"{time_text(total)} on {machine.name}, one after the other, limited by: {parts or 'nothing'}",
        f"{counted(cost.flops)} operations{redundant}; {touched} of memory read or written; {sent} sent",
        f"{bytes_text(cost.peak)} of {bytes_text(machine.memory)} memory at most{host}",
    ]
    if cost.launches:
        sure = ", ".join(f"{how} {part_text(part, total)}" for how, part in cost.sure().items())
        waits = cost.waits
        added = f"; the host adds {time_text(waits)}, {part_text(waits, total + waits)} of a step"
        kernels = plural(cost.launches, "kernel") + (added if waits else "")
        lines.append(f"{kernels}; how sure the time is: {sure}")
    if cost.open:
        lines.append("loops of unknown trip count count one iteration")
    return lines


def _collectives(cost: Cost, most: int | None) -> list[str]:
    """The collectives, those first that take longest."""
    every = cost.collectives()
    rows = [
        (
            _some(i.numbers),
            i.op,
            i.serves,
            *_place(i),
            f"{i.times:,}",
            f"{round(i.bytes):,}",
            time_text(i.seconds),
            _some(i.causes),
        )
        for i in every[:most]
    ]
    names = ("number", "collective", "for", "place", STACK, "times", "bytes", "time", "from")
    return short_table(names, rows, most, len(every))


def _longest(cost: Cost, most: int | None) -> list[str]:
    """The kinds of ops, source lines and name stacks that take longest."""
    lines = list[str]()
    for name, title in (("op", "op"), ("where", "place"), ("stack", STACK)):
        by_key = cost.by(name)
        if title == STACK and not any(key for key, *_ in by_key):
            continue
        shown = by_key[:most]
        rows: list[tuple[str, ...]] = [(k or "-", time_text(s), part_text(part, 1)) for k, s, part in shown]
        heads: tuple[str, ...] = (title, "time", "of all")
        if name == "op":
            by, heads = cost.limits(), (*heads, "by")
            rows = [(*row, by[key]) for row, (key, *_) in zip(rows, shown, strict=True)]
        lines += short_table(heads, rows, most, len(by_key))
    return lines


def _held(cost: Cost, most: int | None) -> list[str]:
    """The values in a device's memory at the peak, and those in the host's memory."""
    lines = list[str]()
    for memory, title, total in (
        ("device", "held at the peak", cost.peak),
        ("host", "held on the host", cost.host),
    ):
        rows = [
            (h.what, *_place(h), f"{h.count:,}", bytes_text(h.bytes), part_text(h.bytes, total))
            for h in cost.held
            if h.memory == memory
        ]
        lines += short_table((title, "place", STACK, "count", "memory", "of all"), rows, most)
    return lines


def _redundant(cost: Cost, most: int | None) -> list[str]:
    """The ops that several devices repeat."""
    rows = [
        (i.op, *_place(i), counted(i.redundant), part_text(i.redundant, i.flops))
        for i in cost.computed_again()
    ]
    return short_table(("redundant", "place", STACK, "operations", "of its own"), rows, most)


def _place(item: Item | HeldMemory) -> tuple[str, str]:
    """The cells for the source line and the name stack."""
    return item.where or "-", item.stack or "-"


def _layers(layers: Iterable[Layer], total: float, depth: int = 0) -> Iterable[tuple[str, ...]]:
    """The rows of layers, those of a layer's parts below it."""
    for layer in layers:
        row = (
            time_text(layer.seconds),
            part_text(layer.seconds, total),
            part_text(layer.limited["links"], layer.seconds),
        )
        yield f"{'  ' * depth}{layer.label}", f"{layer.times:,}", *row
        yield from _layers(layer.parts, total, depth + 1)


def counted(number: float) -> str:
    """A number in the largest unit that it reaches."""
    power = 0
    while number >= 1000 and power < len(_UNITS) - 1:
        number, power = number / 1000, power + 1
    return f"{number:.3g}{' ' if power else ''}{_UNITS[power]}"


def _some(items: Sequence[object]) -> str:
    """The first few items, and the number of the others."""
    return f"{items[0]}{f' and {len(items) - 1} more' if len(items) > 1 else ''}" if items else "-"
