"""Matching: the tensors of one run that are tensors of another."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from functools import partial

from ...program.ids import Item
from ...runs.records.record import Op, RunRecord, TensorValue

_SSA = re.compile(r"(@[\w.$-]+(#\d+)?:)?%|result#\d+$")
_COPY = re.compile(r"['.]\d+$")
_TAKEN = ("operand", "returned", "source 0")


def matched(a: RunRecord, b: RunRecord) -> list[tuple[TensorValue, TensorValue]]:
    """The tensors that both runs have, in the order of the first.

    Where both are of the same program, tensors are matched by name. Otherwise values match if the same ops
    compute them from the same arguments, with the same uses if possible. Of the rest, values of the same
    op, type and place in the user's program match. Last, values whose ops have the same name in JAX match,
    whatever the ops are. Among equals the n-th is the n-th.
    """
    ours, theirs = list(a.values()), list(b.values())
    if [(v.name, v.type) for v in ours] == [(v.name, v.type) for v in theirs]:
        return list(zip(ours, theirs, strict=True))
    if _written(ours) == _written(theirs):  # import or completion added something
        there = {(v.name, v.type): v for v in theirs}
        return [(v, there[v.name, v.type]) for v in ours if (v.name, v.type) in there]
    numbers = _Numbers()
    by_path = all(any(not _SSA.match(name) for name in record.names()) for record in (a, b))
    left, right = (
        _EqualComputations(a, numbers, by_path=by_path),
        _EqualComputations(b, numbers, by_path=by_path),
    )
    pairs_found: list[tuple[TensorValue, TensorValue]] = []
    for key in (
        _EqualComputations.used,
        _EqualComputations.value,
        _EqualComputations.place,
        _EqualComputations.origin,
    ):
        pairs = _paired(ours, theirs, partial(key, left), partial(key, right))
        paired = {v.number for v, _ in pairs}, {v.number for _, v in pairs}
        ours = [v for v in ours if v.number not in paired[0]]
        theirs = [v for v in theirs if v.number not in paired[1]]
        pairs_found += pairs
    return sorted(pairs_found, key=lambda pair: pair[0].number)


def _written(values: list[TensorValue]) -> list[tuple[str, str]]:
    """The names and types of values of the program, as written."""
    return [(v.name, v.type) for v in values if not _COPY.search(v.name)]


def _paired(
    ours: list[TensorValue],
    theirs: list[TensorValue],
    our_key: Callable[[TensorValue], Hashable],
    their_key: Callable[[TensorValue], Hashable],
) -> list[tuple[TensorValue, TensorValue]]:
    """Values with equal keys, the n-th of one side with the n-th of the other."""
    waiting: dict[Hashable, list[TensorValue]] = {}
    for value in reversed(theirs):
        waiting.setdefault(their_key(value), []).append(value)
    return [(value, same.pop()) for value in ours if (same := waiting.get(our_key(value)))]


class _Numbers:
    """Numbers for things, equal ones for equal things."""

    def __init__(self) -> None:
        self._of: dict[Hashable, int] = {}

    def __call__(self, *thing: object) -> int:
        return self._of.setdefault(thing, len(self._of))


class _EqualComputations:
    """The computations of the values of a run, as numbers that equal computations share."""

    def __init__(self, record: RunRecord, numbers: _Numbers, *, by_path: bool) -> None:
        self._record, self._numbers = record, numbers
        self._transparent: dict[str, bool] = {}  # ops that return their operand
        self._ops: list[Op] = []
        self._made: dict[int, tuple[int, str]] = {}  # value -> the op that makes it, and as what
        self._uses: dict[int, list[tuple[int, str]]] = {}
        self._items: list[Item] = []
        for item, op in record.ops():
            for value, role in zip(op.values, op.roles, strict=True):
                if role.startswith(("operand", "returned")):
                    self._uses.setdefault(value, []).append((len(self._ops), role))
                elif not role.startswith("source"):
                    self._made.setdefault(value, (len(self._ops), role))
            self._ops.append(op)
            self._items.append(item)
            if op.name not in self._transparent:
                self._transparent[op.name] = bool(record.op_facts(item).get("same_value"))
        self._names = {number: name for name, number in record.names().items()}
        if by_path:
            self._names |= {n: name for name, n in record.names().items() if not _SSA.match(name)}
        self._values = {value.number: value for value in record.values()}
        self._known: dict[int, int] = {}

    # ---- What tells a value from others -----------------------------------------------------------------

    def used(self, value: TensorValue) -> Hashable:
        """A key for the computation of a value and for its uses."""
        uses = self._uses.get(value.number, ())
        for op, _ in uses:
            for operand in self._operands(op):
                self.value(self._tensor(operand))
        return self.value(value), tuple(sorted((self._op(op), role) for op, role in uses))

    def value(self, value: TensorValue) -> Hashable:
        """A key for the computation of a value."""
        waiting = [value.number]
        while waiting:
            number = waiting[-1]
            missing = [n for n in self._sources(number) if n not in self._known]
            if missing and number not in self._known:
                self._known[number] = self._numbers("cycle")
                waiting += missing
            else:
                waiting.pop()
                self._known[number] = self._number(number)
        return self._known[value.number]

    def place(self, value: TensorValue) -> Hashable:
        """The op that makes a value, and where the user wrote it."""
        definition = self._made.get(value.number)
        maker = (
            (self._ops[definition[0]].name, definition[1]) if definition else self._names.get(value.number)
        )
        return maker, value.type, value.where

    def origin(self, value: TensorValue) -> Hashable:
        """The identity of an op in the user's program. If that is unknown, its values match no others."""
        definition = self._made.get(value.number)
        origin = self._record.origin(self._items[definition[0]]) if definition else None
        name = origin.primitive if origin is not None and origin.frames else ""
        return (name, value.type, value.where) if name else object()

    # ---- Numbers ----------------------------------------------------------------------------------------

    def _sources(self, number: int) -> list[int]:
        """The values that a value is computed from."""
        if (through := self._through(number)) != number:
            return [through]
        if number in self._made:
            return self._operands(self._made[number][0])
        place = self._tensor(number).place
        return [] if place == number else [place]

    def _operands(self, op: int) -> list[int]:
        """The operands of an op; of a data-flow edge, its first source."""
        record_op = self._ops[op]
        taken = [
            v for v, role in zip(record_op.values, record_op.roles, strict=True) if role.startswith(_TAKEN)
        ]
        return [self._through(v) for v in taken]

    def _through(self, number: int) -> int:
        """The value behind one that differs from it in its sharding only."""
        while number in self._made and self._transparent[self._ops[self._made[number][0]].name]:
            number = self._ops[self._made[number][0]].values[0]
        return number

    def _number(self, number: int) -> int:
        type_, through = self._tensor(number).type, self._through(number)
        if through != number:
            return self._known[through]
        if number in self._made:
            op, role = self._made[number]
            return self._numbers("made", self._op(op), role, type_)
        if sources := self._sources(number):
            return self._numbers("inside", type_, self._known[sources[0]])
        return self._numbers("given", self._names.get(number, ""), type_)

    def _op(self, op: int) -> int:
        taken = (self._known.get(v, -1) for v in self._operands(op))
        return self._numbers("op", self._ops[op].name, *taken)

    def _tensor(self, number: int) -> TensorValue:
        return self._values.get(number) or self._record.value(number)
