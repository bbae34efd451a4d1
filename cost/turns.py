"""The trip counts of loops in a compiled program, by their counters, because XLA for TPUs does not report
them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..partition.executions import trip_count

_OP = re.compile(r"^ +(ROOT )?%?([\w.\-]+) = .*? ([a-z][\w\-]*)\(([^()]*)\)(.*)$")
_NAME = re.compile(r"%([\w.\-]+)")
_SAME = frozenset({"bitcast", "convert", "copy", "copy-done", "copy-start", "reshape"})  # of a counter


class _HloOp(NamedTuple):
    """The function of an op, its operands, and its attributes."""

    kind: str = ""
    given: str = ""
    attributes: str = ""

    @property
    def operands(self) -> list[str]:
        return _NAME.findall(self.given)

    def attribute(self, name: str) -> str:
        """An attribute of one word."""
        match = re.search(rf"\b{name}=%?([\w.\-]+)", self.attributes)
        return match[1] if match else ""


_NONE = _HloOp()


class HloComputation:
    """The ops of a computation by name, and its root."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.ops: dict[str, _HloOp] = {}
        self.root = _NONE
        for line in lines:
            if match := _OP.match(line):
                op = self.ops[match[2]] = _HloOp(*match.groups()[2:])
                self.root = op if match[1] else self.root


class _Sum(NamedTuple):
    """A number: an element of a computation's argument (None: nothing), plus a constant."""

    element: int | None
    plus: int


def turns(loop: str, inside: HloComputation, read: Callable[[str], HloComputation]) -> int | None:
    """The trip count of a loop, given by its line, the computation around it, and a reader of other
    computations. None if its condition does not compare a counter with a constant."""
    (here,) = HloComputation([loop]).ops.values()
    condition, body = (read(here.attribute(name)) for name in ("condition", "body"))
    first = inside.ops.get(here.operands[0], _NONE)
    if (condition.root.kind, first.kind, body.root.kind) != ("compare", "tuple", "tuple"):
        return None
    sides = list[tuple[int, int]]()  # the initial value, and the increment per iteration
    for name in condition.root.operands:
        side = _sum(condition, name)
        if side is None:
            return None
        start, step = side, 0
        if side.element is not None:
            begins = _sum(inside, first.operands[side.element])
            goes_on = _sum(body, body.root.operands[side.element])
            if begins is None or goes_on is None or goes_on.element != side.element:
                return None
            start, step = _Sum(begins.element, begins.plus + side.plus), goes_on.plus
        if start.element is not None:
            return None
        sides.append((start.plus, step))
    left, right = sides
    return trip_count(left, right, condition.root.attribute("direction"))


def _sum(computation: HloComputation, name: str) -> _Sum | None:
    """A number of a computation as a sum, if known."""
    op = computation.ops.get(name)
    if op is None:
        return None
    if op.kind == "constant":
        return _Sum(None, int(op.given)) if re.fullmatch(r"-?\d+", op.given) else None
    if op.kind in _SAME:
        return _sum(computation, op.operands[0])
    if op.kind == "get-tuple-element":
        whole, element = computation.ops.get(op.operands[0]), int(op.attribute("index"))
        if whole is not None and whole.kind == "tuple":
            return _sum(computation, whole.operands[element])
        return _Sum(element, 0) if whole is not None and whole.kind == "parameter" else None
    if op.kind not in ("add", "subtract"):
        return None
    left, right = (_sum(computation, operand) for operand in op.operands)
    if left is None or right is None:
        return None
    if op.kind == "subtract":
        return _Sum(left.element, left.plus - right.plus) if right.element is None else None
    if left.element is not None and right.element is not None:
        return None
    return _Sum(left.element if right.element is None else right.element, left.plus + right.plus)
