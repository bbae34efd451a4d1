"""An account of the effects of each user priority (tactic), from the log of one run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..exporters.relations import value_names
from ..importers.graph.inside import values_inside
from ..program.elements import bytes_text, size_of
from ..program.meshes import axis_text
from ..program.mlir.origins import at
from ..program.mlir.places import argument_path, result_path
from ..program.shardings import Sharding
from ..propagation.schedules.schedule import Applied, Left, TacticDimension
from .result import Result

Axes = tuple[tuple[str, ...], ...]  # by dimension, major to minor
T = TypeVar("T")


@dataclass(frozen=True)
class Tensor:
    """A tensor of the program.

    ``kind`` is "argument" or "result" of the main function, or "value". ``where`` says where it is
    computed, and ``stack`` is the name stack there.
    Inside of a ``shard_map`` it is a device's own part along the axes in ``manual``.
    """

    name: str
    kind: str
    where: str
    stack: str
    type: str
    shape: tuple[int, ...]
    bytes: int
    manual: tuple[str, ...] = ()


@dataclass(frozen=True)
class HeldAxes:
    """A tensor and its axes, by dimension."""

    tensor: Tensor
    axes: Axes


@dataclass(frozen=True)
class Account:
    """The effects of a user priority.

    ``given`` are the annotations that came into force. ``left`` are the values that a tactic names but
    could not shard. ``axes`` counts the tensors that gained an axis, by axis and dimension, and ``gained``
    these tensors. ``changed`` are the arguments and results that gained axes, with all that they have now.
    ``replicated`` are the tensors that no axis shards yet, manual ones of a ``shard_map`` neither, largest
    first; scalars are not counted.
    """

    name: str
    priority: int
    given: tuple[TacticDimension, ...]
    left: tuple[Left, ...]
    tensors: int
    gained: int
    axes: tuple[tuple[str, int, int], ...]
    changed: tuple[HeldAxes, ...]
    unchanged: int
    replicated: tuple[Tensor, ...]


def accounts(result: Result) -> tuple[Account, ...]:
    """An account of every user priority of a run, in order."""
    return _Accountant(result).accounts()


class _Accountant:
    def __init__(self, result: Result) -> None:
        self.result = result
        self.graph = result.program.graph
        self.tactics = {tactic.priority: tactic for tactic in result.tactics}
        self._axes: dict[tuple[int, tuple[int, ...], bool], Axes] = {}

    def accounts(self) -> tuple[Account, ...]:
        last = self.result.fixpoint.last
        priorities = {stage.priority for stage in self.result.stages}
        priorities |= {p for p in self.tactics if last is None or p <= last}  # also where all was left
        before = np.zeros(self.graph.places, np.int32)  # nothing is sharded at first
        accounts = []
        for priority in sorted(priorities):
            after = self.contents(priority)
            accounts.append(self.account(priority, before, after))
            before = after
        return tuple(accounts)

    def contents(self, priority: int) -> npt.NDArray[np.int32]:
        """The content of every place after the last stage of a priority."""
        fixpoint, log = self.result.fixpoint, self.result.fixpoint.outcome.log
        of_pass = np.asarray([fixpoint.stages[stage].priority for stage in fixpoint.stage_of])
        done = of_pass[log.number] <= priority
        contents, cells = fixpoint.initial.copy(), fixpoint.graph.place_cell
        contents[cells[log.place[done]]] = log.new[done]  # of several changes the last one counts
        return np.asarray(contents[cells])

    def account(self, priority: int, before: npt.NDArray[np.int32], after: npt.NDArray[np.int32]) -> Account:
        axes: Counter[tuple[str, int]] = Counter()
        changed, replicated, gained, boundary = [], [], 0, 0
        for tensor, place in self.tensors:
            had = self.axes(int(before[place]), tensor)
            has = self.axes(int(after[place]), tensor)
            new = {(axis, d) for d, row in enumerate(has) for axis in row if axis not in had[d]}
            axes.update(new)
            gained += bool(new)
            if tensor.kind != "value":
                boundary += 1
                changed += [HeldAxes(tensor, has)] if new else []
            if not any(has) and not tensor.manual:
                replicated.append(tensor)
        tactic = self.tactics.get(priority, Applied("annotations", priority, tuple(self.given(priority)), ()))
        return Account(
            tactic.name,
            priority,
            tactic.given,
            tactic.left,
            len(self.tensors),
            gained,
            tuple((axis, d, n) for (axis, d), n in sorted(axes.items())),
            tuple(changed),
            boundary - len(changed),
            tuple(sorted(replicated, key=lambda tensor: (-tensor.bytes, tensor.type))),
        )

    def axes(self, content: int, tensor: Tensor) -> Axes:
        """The axes of a tensor with a content; at the boundary of the module, the written ones."""
        entry = tensor.kind != "value"
        key = (content, tensor.shape, entry)
        if key not in self._axes:
            written = self.result.written
            sharding = written.of(content, len(tensor.shape))
            if entry:
                sharding = written.fitted(sharding, tensor.shape, entry=True)
            self._axes[key] = self.names(sharding) if sharding else ((),) * len(tensor.shape)
        return self._axes[key]

    def names(self, sharding: Sharding) -> Axes:
        mesh = self.result.program.shardings.meshes.meshes[sharding.mesh]
        return tuple(tuple(axis_text(axis, mesh) for axis in d.axes) for d in sharding.dimensions)

    def given(self, priority: int) -> Iterator[TacticDimension]:
        """The annotations of the module that come into force at a priority."""
        if self.result.fixpoint.strategy != "user-priority":
            priority = -1  # all at once
        annotated = {
            instance.place + int(instance.layout.place[v]): sharding
            for instance in self.graph.instances
            for v, sharding in instance.function.annotations.items()
            if v not in instance.function.specs
        }
        returned = self.graph.main.function.result_annotations
        annotated |= {int(p): s for p, s in zip(self.graph.result_places, returned, strict=True) if s}
        for tensor, place in self.tensors:
            sharding = annotated.pop(place, None)
            if sharding is None:
                continue
            for d, axes in enumerate(self.names(sharding)):
                if axes and priority in (-1, sharding.dimensions[d].priority or 0):
                    yield TacticDimension(tensor.name, d, axes)

    def source(self, number: int) -> tuple[str, str]:
        """The line and the name stack that a value comes from."""
        value = self.result.record.value(number)
        return value.where, value.stack

    @cached_property
    def tensors(self) -> list[tuple[Tensor, int]]:
        """Every tensor of the program that is no scalar, arguments first, results last; and the place that
        holds its sharding."""
        program, main = self.result.program, self.graph.main
        names = self.result.names
        shapes = program.classes.signatures.shapes
        types = {
            n: (str(type_), size_of(str(type_))) for type_, n in program.classes.signatures.types.items()
        }
        tensors: list[tuple[Tensor, int]] = []

        inside = values_inside(self.graph)

        def add(name: str, kind: str, type_: int, place: int, number: int = -1) -> None:
            shape, manual = shapes[type_], tuple(axis for axis, _ in inside.get(number, ()))
            if shape and prod(shape) > 1:
                where, stack = self.source(number) if kind == "value" else ("", "")
                tensor = Tensor(name, kind, where, stack, types[type_][0], shape, types[type_][1], manual)
                tensors.append((tensor, place))

        for instance in self.graph.instances:
            function, read = instance.function, names[instance.function.name]
            called = value_names(program, instance, read.values)
            places = (instance.place + instance.layout.place).tolist()
            for v, argument in zip(function.arguments, function.op.arguments, strict=True):
                kind = "argument" if instance is main else "value"
                path = argument_path(argument.location) if instance is main else ""
                add(path or called[v], kind, function.types[v], places[v], instance.place + v)
            for node in function.order:
                for v in function.results[node]:
                    add(called[v], "value", function.types[v], places[v], instance.place + v)
            for v in (v for regions in function.regions.values() for r in regions for v in r.arguments):
                add(called[v], "value", function.types[v], places[v], instance.place + v)
        returned = main.function.operands[main.function.terminator]
        for i, (place, v) in enumerate(zip(self.graph.result_places, returned, strict=True)):
            name = result_path(main.function.op, i) or f"result#{i}"
            add(name, "result", main.function.types[v], int(place))
        return tensors


# ---- As text ---------------------------------------------------------------------------------------------


def accounts_text(accounts: Sequence[Account]) -> str:
    """The text that ``--stages`` prints. Tensors whose paths differ in an index only share a line."""
    return "\n\n".join("\n".join(_account(account)) for account in accounts)


def _account(account: Account) -> Iterator[str]:
    yield f"{account.name} (user priority {account.priority})"
    yield from _lines("given", _given(account.given))
    yield from _lines("left", _left(account.left))
    yield from _lines("gained", _gained(account))
    for kind in ("argument", "result"):
        held = [one for one in account.changed if one.tensor.kind == kind]
        yield from _lines(f"{kind}s", _held(held))
    yield from _lines("unchanged", [f"{account.unchanged:,} arguments and results"])
    yield from _lines("replicated", _replicated(account.replicated))


def _lines(label: str, lines: Sequence[str]) -> Iterator[str]:
    for i, line in enumerate(lines):
        yield f"  {label if i == 0 else '':<10}  {line}"


def _given(given: Sequence[TacticDimension]) -> list[str]:
    of_tensor: dict[str, list[str]] = {}
    for one in given:
        limit = "kept off" if one.dim is None else f"dim {one.dim} on"
        of_tensor.setdefault(one.tensor, []).append(f"{limit} {', '.join(one.axes)}")
    groups = _groups(of_tensor.items(), lambda one: one[0], lambda one: tuple(one[1]))
    return _columns([(name, "; ".join(dims)) for name, (_, dims) in groups]) or ["nothing"]


def _left(left: Sequence[Left]) -> list[str]:
    groups = _groups(left, lambda one: one.tensor, lambda one: (one.axes, one.reason))
    return _columns([(name, f"not on {', '.join(one.axes)}: {one.reason}") for name, one in groups])


def _gained(account: Account) -> list[str]:
    lines = [f"{account.gained:,} of {account.tensors:,} tensors"]
    for axis, rows in groupby(account.axes, lambda row: row[0]):
        lines.append(f"{axis}: {', '.join(f'{n:,} in dim {d}' for _, d, n in rows)}")
    return lines


def _held(changed: Sequence[HeldAxes]) -> list[str]:
    groups = _groups(changed, lambda one: one.tensor.name, lambda one: (one.tensor.type, one.axes))
    return _columns([(name, one.tensor.type, _sharding(one.axes)) for name, one in groups])


def _replicated(tensors: Sequence[Tensor]) -> list[str]:
    if not tensors:
        return ["nothing"]
    rows = []
    for _, group in groupby(tensors, lambda tensor: (-tensor.bytes, tensor.type)):
        same = list(group)
        where = Path(same[0].where).name if same[0].where else ""
        first = same[0].name + at(where, same[0].stack)
        more = f" and {len(same) - 1:,} more" if len(same) > 1 else ""
        rows.append((bytes_text(same[0].bytes), same[0].type, f"{first}{more}"))
    total = bytes_text(sum(tensor.bytes for tensor in tensors))
    return [f"{len(tensors):,} tensor{'s' * (len(tensors) > 1)}, {total}", *_columns(rows, 4)]


def _groups(
    answers: Iterable[T], name: Callable[[T], str], key: Callable[[T], Hashable]
) -> list[tuple[str, T]]:
    """One thing of each group of things that are alike, with a name for all of the group."""
    groups: dict[Any, list[T]] = {}
    for answer in answers:
        pattern = re.sub(r"\[\d+\]", "[*]", name(answer)) if "%" not in name(answer) else "%"
        groups.setdefault((pattern, key(answer)), []).append(answer)
    named = []
    for (pattern, _), same in groups.items():
        first = name(same[0])
        if len(same) > 1:
            first = f"{pattern} ({len(same):,})" if "*" in pattern else f"{first} and {len(same) - 1:,} more"
        named.append((first, same[0]))
    return named


def _columns(rows: Sequence[Sequence[str]], most: int = 12) -> list[str]:
    """The first rows, in columns, and how many there are besides."""
    shown = rows[:most] if len(rows) > most + 1 else rows
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in shown]
    return lines + ([f"... and {len(rows) - len(shown)} more lines"] if len(rows) > len(shown) else [])


def _sharding(axes: Axes) -> str:
    return "[" + ", ".join("{" + ", ".join(row) + "}" for row in axes) + "]"
