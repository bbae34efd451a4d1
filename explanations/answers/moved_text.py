"""Why a partitioned program has a collective, as text."""

from __future__ import annotations

from collections.abc import Sequence

from ...runs.table import time_text
from ..questions.collective import Because, Moved, Way
from .text import why_text, wrapped

_DOES = {
    "all-gather": "puts the parts of {value} together",
    "all-reduce": "combines the partial values of {value}",
    "reduce-scatter": "combines the partial values of {value}, each device a part",
    "all-to-all": "splits {value} along another dimension",
    "collective-permute": "gives each device the part of {value} that another one has",
}


def moved_text(moved: Moved, *, full: bool = False) -> str:
    """The collective, the op that it serves, how that is computed, and where the axes come from."""
    made = moved.collective
    over = f" over {', '.join(f'{chr(34)}{axis}{chr(34)}' for axis in made.axes)}" if made.axes else ""
    times = "an unknown number of times" if made.executions is None else _times(made.executions)
    lines = [
        f"{made.kind} {made.number}{over}: {made.bytes:,} bytes from each of {made.group} devices, {times}"
    ]
    does = _DOES[made.kind].format(value=made.value or "a value")
    lines += wrapped(
        "  ", f"it {does} for {made.slot} of {made.op}{f' at {made.where}' if made.where else ''}"
    )
    if moved.before or moved.partial:
        partial = f', partial over "{moved.partial}"' if moved.partial else ""
        lines.append(f"    before: {_dims(moved.before)}{partial}")
        lines.append(f"    after:  {_dims(moved.after)}")
    if beside := moved.beside:
        lines += wrapped("  ", f"{beside.sentence} [rules/cost/beside.dl]")
        apart, both = time_text(beside.apart), time_text(beside.beside)
        products = "1 product" if beside.products == 1 else f"{beside.products} products"
        lines.append(f"    {beside.devices} parts, beside {products}: {both} in place of {apart}")
    if moved.because:
        lines.append(f"  {made.op} is computed in parts:")
        for because in moved.because:
            lines += _because(because)
    if len(moved.ways) > 1:
        together = any(way.bytes < moved.ways[0].bytes for way in moved.ways)
        least = "which costs least with all ops around it; alone" if together else "which costs least"
        lines.append(f"  {least}, in bytes that a device sends, and work in excess:")
        lines += [line for way in moved.ways for line in _way(way)]
    for cause in moved.causes:
        lines += [f"  {line}" for line in why_text(cause, full=full).splitlines()]
    return "\n".join(lines)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _dims(dims: Sequence[str]) -> str:
    return f"[{', '.join(f'{{{axes}}}' for axes in dims)}]"


def _because(because: Because) -> list[str]:
    lines = [f'    factor {because.factor} on "{because.axes}"']
    return lines + wrapped("        ", f"{because.sentence} [{because.rule}]") if because.sentence else lines


def _way(way: Way) -> list[str]:
    factors = ", ".join(f'{factor} on "{axes}"' for factor, axes in way.factors) or "whole"
    taken = "" if way.lost else "  <- taken"
    return [f"    {way.bytes:12,}  {factors}{taken}"]
