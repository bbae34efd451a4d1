"""The differences between two runs, as JSON and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...markup import element
from ...program.mlir.origins import at
from ..steps import Site
from .alike import groups, left_out, others
from .text import dims_text, wrapped

_MOST_PARTINGS = 6
_MOST_DIMS = 4
_ALL = "(--full shows all)"


@dataclass(frozen=True)
class TensorDiff:
    """A tensor that is sharded otherwise in the second run: its axes by dimension, in both.

    ``other`` is its name in the second run, ``other_where`` and ``other_stack`` its place there.
    """

    value: str
    other: str
    type: str
    where: str
    stack: str
    other_where: str
    other_stack: str
    first: tuple[str, ...]
    second: tuple[str, ...]


@dataclass(frozen=True)
class Parting:
    """A point at which two runs part: ``op`` gives ``site`` an axis in only one of them (``has`` is 1 or 2).

    ``why`` is the step there, ``why_not`` the reason that stopped the axis in the other run, and ``dims`` are
    the dimensions that differ because of it.
    """

    has: int
    axis: str
    site: Site
    op: str
    where: str
    stack: str
    why: str
    why_not: str
    dims: tuple[tuple[str, int], ...]


@dataclass(frozen=True, repr=False)
class Diff:
    """The differences between two runs.

    ``compared`` is the number of tensors that both have, ``alone`` how many only the first and only the
    second have. ``partings`` are sorted by how much follows from them.
    """

    names: tuple[str, str]
    compared: int
    alone: tuple[int, int]
    tensors: tuple[TensorDiff, ...]
    partings: tuple[Parting, ...]

    def __repr__(self) -> str:
        return diff_text(self)

    def _repr_html_(self) -> str:
        return element("pre", repr(self))

    def as_json(self) -> dict[str, Any]:
        """The difference as JSON has it."""
        return {
            "runs": list(self.names),
            "compared": self.compared,
            "alone": list(self.alone),
            "tensors": [asdict(t) | {"first": list(t.first), "second": list(t.second)} for t in self.tensors],
            "partings": [
                asdict(p) | {"dims": [{"value": value, "dim": dim} for value, dim in p.dims]}
                for p in self.partings
            ],
        }


def diff_text(diff: Diff, *, labels: tuple[str, str] = ("1", "2"), full: bool = False) -> str:
    """The points at which two runs part, as text, those with the most consequences first.

    ``labels`` are the names of the runs.
    """
    alone = [
        f"{n} {'are' if n > 1 else 'is'} in {label} only"
        for label, n in zip(labels, diff.alone, strict=True)
        if n
    ]
    differ = f"{len(diff.tensors)} of {diff.compared} tensors are sharded otherwise"
    lines = ["; ".join([differ, *alone])]
    alike = [[p] for p in diff.partings]
    if not full:
        alike = groups(diff.partings, lambda p: "\n".join(_told(p, labels)))
    shown = alike if full else alike[:_MOST_PARTINGS]
    for first, *same in shown:
        lines += _parting(first, same, labels, full=full)
    if len(shown) < len(alike):
        lines.append(f"  {left_out(sum(map(len, alike[len(shown) :])), 'place')}")
    if full:
        lines += map(_tensor, diff.tensors)
    return "\n".join(lines)


def _parting(parting: Parting, alike: Sequence[Parting], labels: tuple[str, str], *, full: bool) -> list[str]:
    every = [dim for one in (parting, *alike) for dim in one.dims]
    dims = every if full else every[:_MOST_DIMS]
    differ = ", ".join(f"{value} dim {dim}" for value, dim in dims)
    rest = len(every) - len(dims)
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


def _tensor(tensor: TensorDiff) -> str:
    other = "" if tensor.other == tensor.value else f" ({tensor.other})"
    first, second = dims_text(tensor.first), dims_text(tensor.second)
    return f"  {tensor.value}{other} : {tensor.type}{at(tensor.where, tensor.stack)}: {first} -> {second}"
