"""Differences between runs as text that fits a screen."""

from __future__ import annotations

from .diff import Diff, Parting, Tensor
from .text import dims_text, wrapped
from .what_if import WhatIf

_MOST_PARTINGS = 6
_MOST_DIMS = 4
_ALL = "(--full shows all)"


def diff_text(found: Diff, *, labels: tuple[str, str] = ("1", "2"), full: bool = False) -> str:
    """Where two runs part, most consequences first; ``labels`` is what they are called."""
    alone = [f"{n} are in {label} only" for label, n in zip(labels, found.alone, strict=True) if n]
    differ = f"{len(found.tensors)} of {found.compared} tensors are sharded otherwise"
    lines = ["; ".join([differ, *alone])]
    shown = found.partings if full else found.partings[:_MOST_PARTINGS]
    for parting in shown:
        lines += _parting(parting, labels, full=full)
    if len(shown) < len(found.partings):
        lines.append(f"  ... {len(found.partings) - len(shown)} more places {_ALL}")
    if full:
        lines += map(_tensor, found.tensors)
    return "\n".join(lines)


def what_if_text(found: WhatIf, *, full: bool = False) -> str:
    """What differs, and the change in what must move."""
    before, after = found.bytes
    moved = f"{before:,} bytes must move to each device before, {after:,} after: {after - before:+,}"
    return f"{moved}\n{diff_text(found.diff, labels=('before', 'after'), full=full)}"


def _parting(parting: Parting, labels: tuple[str, str], *, full: bool) -> list[str]:
    has, lacks = labels[parting.has - 1], labels[2 - parting.has]
    site, at = parting.site, f" at {parting.where}" if parting.where else ""
    dims = parting.dims if full else parting.dims[:_MOST_DIMS]
    differ = ", ".join(f"{value} dim {dim}" for value, dim in dims)
    rest = len(parting.dims) - len(dims)
    more = f", ... {rest} more {_ALL}" if rest else ""
    return [
        f'  {has} only: "{parting.axis}" on {site.value} dim {site.dim}, by {parting.op}{at}',
        *wrapped("      ", f"{has}: {parting.why}"),
        *wrapped("      ", f"{lacks}: {parting.why_not}"),
        *wrapped("      ", f"so differ {differ}{more}"),
    ]


def _tensor(tensor: Tensor) -> str:
    other = "" if tensor.other == tensor.value else f" ({tensor.other})"
    first, second = dims_text(tensor.first), dims_text(tensor.second)
    at = f" at {tensor.where}" if tensor.where else ""
    return f"  {tensor.value}{other} : {tensor.type}{at}: {first} -> {second}"
