"""Differences between runs as text that fits a screen."""

from __future__ import annotations

from collections.abc import Sequence

from ...program.mlir.origins import at
from ..questions.diff import Diff, Parting, Tensor
from ..questions.what_if import WhatIf
from .alike import groups, left_out, others
from .text import dims_text, wrapped

_MOST_PARTINGS = 6
_MOST_DIMS = 4
_ALL = "(--full shows all)"


def diff_text(found: Diff, *, labels: tuple[str, str] = ("1", "2"), full: bool = False) -> str:
    """The points at which two runs part as text, most consequences first; ``labels`` are the names of the
    runs."""
    alone = [f"{n} are in {label} only" for label, n in zip(labels, found.alone, strict=True) if n]
    differ = f"{len(found.tensors)} of {found.compared} tensors are sharded otherwise"
    lines = ["; ".join([differ, *alone])]
    alike = [[p] for p in found.partings]
    if not full:
        alike = groups(found.partings, lambda p: "\n".join(_told(p, labels)))
    shown = alike if full else alike[:_MOST_PARTINGS]
    for first, *same in shown:
        lines += _parting(first, same, labels, full=full)
    if len(shown) < len(alike):
        lines.append(f"  {left_out(sum(map(len, alike[len(shown) :])), 'place')}")
    if full:
        lines += map(_tensor, found.tensors)
    return "\n".join(lines)


def what_if_text(found: WhatIf, *, full: bool = False) -> str:
    """The differences as text, and the change in the bytes that move."""
    moved = f"the bytes that must move are not known: {found.unpartitioned}"
    if found.bytes:
        before, after = found.bytes
        moved = f"{before:,} bytes must move to each device before, {after:,} after: {after - before:+,}"
    return f"{found.program.line}\n{moved}\n{diff_text(found.diff, labels=('before', 'after'), full=full)}"


def _parting(parting: Parting, alike: Sequence[Parting], labels: tuple[str, str], *, full: bool) -> list[str]:
    found = [dim for one in (parting, *alike) for dim in one.dims]
    dims = found if full else found[:_MOST_DIMS]
    differ = ", ".join(f"{value} dim {dim}" for value, dim in dims)
    rest = len(found) - len(dims)
    more = f", ... {rest} more {_ALL}" if rest else ""
    same = [f"{one.site.value} dim {one.site.dim}" for one in alike]
    return [
        *_told(parting, labels),
        *(wrapped("      ", f"so it is of {others(same)}") if same else []),
        *wrapped("      ", f"so differ {differ}{more}"),
    ]


def _told(parting: Parting, labels: tuple[str, str]) -> list[str]:
    has, lacks = labels[parting.has - 1], labels[2 - parting.has]
    site, place = parting.site, at(parting.where, parting.stack)
    return [
        f'  {has} only: "{parting.axis}" on {site.value} dim {site.dim}, by {parting.op}{place}',
        *wrapped("      ", f"{has}: {parting.why}"),
        *wrapped("      ", f"{lacks}: {parting.why_not}"),
    ]


def _tensor(tensor: Tensor) -> str:
    other = "" if tensor.other == tensor.value else f" ({tensor.other})"
    first, second = dims_text(tensor.first), dims_text(tensor.second)
    return f"  {tensor.value}{other} : {tensor.type}{at(tensor.where, tensor.stack)}: {first} -> {second}"
