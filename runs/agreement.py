"""Agreement with XLA: a run's module, compared with an XLA dump's module after propagation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from ..importers.sources.lines import SAME
from ..importers.sources.text import Text, parse_module
from ..program.function import location
from ..program.mlir.modules import side_by_side, symbols
from .data import RunData

_SAME = SAME | {"sdy.reshard": "sdy.sharding_constraint"}  # which its constraints are by then
_SHARDINGS = ("sdy.sharding", "sharding", "in_shardings", "out_shardings")
_SHOWN = 5


@dataclass(frozen=True)
class XlaAgreement:
    """The number of ops of a module with the shardings that XLA gave them, functions included, and
    messages about the first ones that differ."""

    ops: int
    equal: int
    different: tuple[str, ...]

    def __str__(self) -> str:
        if self.equal == self.ops:
            return f"XLA decided the same: all {self.ops:,} ops have the shardings of its propagation"
        head = (
            f"XLA decided otherwise: {self.ops - self.equal:,} of {self.ops:,} ops differ from those after "
        )
        lines = [f"{head}its propagation", *(f"  {text}" for text in self.different)]
        if (more := self.ops - self.equal - len(self.different)) > 0:
            lines.append(f"  and {more:,} more")
        return "\n".join(lines)


def agreement(run: RunData) -> XlaAgreement | None:
    """The agreement of a run with XLA; None where the program is not from a dump, or its shardings are
    open."""
    if not run.source.after or not run.options.closed:
        return None
    theirs = parse_module(Text(run.source.after, "what XLA made of it"))
    ours = symbols(run.module, "func.func")
    ops = equal = 0
    different: list[str] = []
    for name, function in symbols(theirs, "func.func").items():
        if name not in ours:
            count = sum(_is_op(op) for op, _ in side_by_side(function, function))
            ops += count
            different.append(f"@{name}: only XLA has this function")
            continue
        for a, b in side_by_side(ours[name], function):
            if not _is_op(a) and not _is_op(b):
                continue
            ops += 1
            if text := _difference(a, b, run.source):
                different.append(text)
            else:
                equal += 1
    return XlaAgreement(ops, equal, tuple(different[:_SHOWN]))


def _is_op(op: object) -> bool:
    return op is not None and not isinstance(op, ir.Value)


def _difference(ours: Any, theirs: Any, source: Text) -> str:
    if ours is None or theirs is None:
        op = theirs if ours is None else ours
        return f"{_named(op, source)}: only {'XLA has' if ours is None else 'we have'} this op"
    names = [_SAME.get(op.operation.name, op.operation.name) for op in (ours, theirs)]
    if names[0] != names[1]:
        return f"{_named(ours, source)}: XLA has {names[1]} there"
    mine, other = _shardings(ours), _shardings(theirs)
    for key in mine | other:
        if mine.get(key) != other.get(key):
            return f"{_named(ours, source)}: {mine.get(key, 'none')}, XLA has {other.get(key, 'none')}"
    return ""


def _named(op: Any, source: Text) -> str:
    return f"{op.operation.name} at {source.line(location(op))}"


def _shardings(op: Any) -> dict[str, str]:
    """The shardings that stand on an op, as text."""
    shardings = {name: str(op.attributes[name]) for name in _SHARDINGS if name in op.attributes}
    for label in ("arg_attrs", "res_attrs") if op.operation.name == "func.func" else ():
        entries: Any = op.attributes.get(label, ())
        given = ((i, entry) for i, entry in enumerate(entries) if "sdy.sharding" in entry)
        shardings |= {f"{label} {i}": str(entry["sdy.sharding"]) for i, entry in given}
    return shardings
