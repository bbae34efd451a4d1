"""Tactics become annotations of the main function's arguments and results, with priorities.

A dimension that a tactic shards is annotated with its axes, open, at the priority of the tactic. If a pattern
does not name a dimension, ``rules/propagation/tactics.dl`` chooses one, from the shardings that the earlier
tactics lead to. These come from propagating the earlier tactics.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal, TypeAlias

from jaxlib.mlir import ir

from ...errors import ShardlogError, closest
from ...importers.program import ImportedModule
from ...program.function import Function
from ...program.meshes import SubAxis
from ...program.mlir.modules import boundary_attributes, symbols, with_attributes
from ...program.mlir.places import argument_path, components, result_path, wildcard
from ...program.shardings import Dimension, Sharding
from ...rulebook.book import RuleBook
from .tactics import ReadTactic, TacticRule

# What a place holds after propagation, by the place and the rank of its tensor.
Held: TypeAlias = Callable[[int, int], Sharding | None]
_DIMENSION = re.compile(r"(.+)\[\s*(-?\d+|replicated)\s*\]")


@dataclass(frozen=True)
class TacticDimension:
    """A dimension of a tensor that a tactic shards; None: the axes are kept away from all of them."""

    tensor: str
    dim: int | None
    axes: tuple[str, ...]


@dataclass(frozen=True)
class Left:
    """A tensor that a tactic names but does not change, and why."""

    tensor: str
    axes: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Applied:
    """A tactic and the user priority at which its annotations come into force."""

    name: str
    priority: int
    given: tuple[TacticDimension, ...]
    left: tuple[Left, ...]


@dataclass(frozen=True)
class _Target:
    """An argument or result of the main function. ``shape`` is None where it is no tensor."""

    name: str
    paths: tuple[tuple[str, ...], ...]
    list: Literal["arg_attrs", "res_attrs"]
    number: int
    shape: tuple[int, ...] | None


def apply_schedule(
    steps: Sequence[ReadTactic],
    read: Callable[[], ImportedModule],
    decide: Callable[[ImportedModule], Held],
    rules: RuleBook,
) -> tuple[Applied, ...]:
    """Annotates the main function of a module with the steps of a schedule, see ``docs/tactics.md``.

    ``read`` imports the module and ``decide`` propagates the annotations so far. Tactics get the priorities
    after those in use, from 0 where there is no annotation. Raises ShardlogError where a tactic does not fit
    the program.
    """
    program = read()
    annotated = [s for s in program.initial.values() if not s.empty]
    first = 1 + max((d.priority or 0 for s in annotated for d in s.dimensions), default=0) if annotated else 0
    scheduler, applied = _Scheduler(program, rules.tactic), list[Applied]()

    def held() -> list[Sharding | None]:
        now = read() if applied else program
        decided = decide(now)
        return [decided(*target) for target in _places(now)]

    for priority, step in enumerate(steps, first):
        applied.append(scheduler.apply(step, priority, held))
        scheduler.write()
    return tuple(applied)


def last_priority(until: str | int | None, applied: Sequence[Applied], program: ImportedModule) -> int | None:
    """The priority that ``until`` names: a tactic's, or a number. Raises ShardlogError."""
    if until is None:
        return None
    names = {tactic.name: tactic.priority for tactic in applied}
    used = {0, *names.values(), *(d.priority or 0 for s in program.initial.values() for d in s.dimensions)}
    names |= {str(priority): priority for priority in sorted(used)}
    if str(until) not in names:
        message = f"there is no tactic or priority {until}"
        raise ShardlogError(message, where=f"--until {until}", hint=closest(str(until), names))
    return names[str(until)]


class _Scheduler:
    def __init__(
        self, program: ImportedModule, decide: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    ) -> None:
        self.decide = decide
        self.shardings = program.shardings
        meshes = program.shardings.meshes.meshes
        declared = symbols(program.module, "sdy.mesh")
        numbers = [number for number, mesh in enumerate(meshes) if mesh.axes and mesh.name in declared]
        if len(numbers) != 1:
            have = f"the module has {len(numbers) or 'no'} mesh{'es' if numbers else ''}"
            hint = "tactics need a module with one" if numbers else "give it one, as in --mesh data=2,model=4"
            raise ShardlogError(have, where="schedule", hint=hint)
        self.number = numbers[0]
        self.mesh = meshes[self.number]
        self.function = program.graph.main.function
        self.targets = list(_targets(program))
        given = [
            *map(self.function.attributes.get, self.function.arguments),
            *self.function.result_attributes,
        ]
        read = self.shardings.read
        self.annotations = {t: read(a) for t, a in zip(self.targets, given, strict=True) if a is not None}
        self.annotated_by: dict[tuple[_Target, int], str] = {}

    def apply(self, step: ReadTactic, priority: int, held: Callable[[], list[Sharding | None]]) -> Applied:
        """Annotates the tensors that the rules of a tactic name. Rules that name a dimension come first.

        ``held`` returns the shardings of the targets after the earlier tactics.
        """
        matches = [(rule, *self.find(rule)) for rule in step.rules]
        given: dict[tuple[_Target, tuple[str, ...]], TacticDimension] = {}
        for rule, targets, label in matches:
            self.check_axes(rule)
            for target in targets if label else ():
                dim = None if label == "replicated" else self.dimension(target, int(label), rule)
                given[target, rule.axes] = TacticDimension(target.name, dim, rule.axes)
                if dim is None:
                    self.replicate(target, rule)
                else:
                    self.shard(target, dim, rule, step.name, priority)
        left = []
        now = dict(zip(self.targets, held(), strict=True)) if any(not label for *_, label in matches) else {}
        for rule, targets, label in matches:
            for target in targets if not label else ():
                if (target, rule.axes) in given:
                    continue
                free = self.free_dimension(target, rule, now[target])
                if isinstance(free, str):
                    left.append(Left(target.name, rule.axes, free))
                else:
                    given[target, rule.axes] = TacticDimension(target.name, free, rule.axes)
                    self.annotate(target, free, rule, step.name, priority)
        return Applied(step.name, priority, tuple(given.values()), tuple(left))

    # ---- What a rule names --------------------------------------------------------------------------------

    def find(self, rule: TacticRule) -> tuple[list[_Target], str]:
        """The tensors that a pattern names, and the dimension; empty where it names none."""
        whole = self.matching(rule.pattern)
        if whole:
            return whole, ""
        match = _DIMENSION.fullmatch(rule.pattern)
        targets = self.matching(match[1]) if match else []
        if match and targets:
            return targets, match[2]
        raise self.unknown(match[1] if match else rule.pattern, rule.where)

    def matching(self, pattern: str) -> list[_Target]:
        """The arguments whose path starts as a pattern says, or else such results."""
        parts = [wildcard(part, ".") for part in components(pattern)]
        targets = [
            target for target in self.targets if parts and any(_starts(path, parts) for path in target.paths)
        ]
        return [t for t in targets if t.list == "arg_attrs"] or targets

    def unknown(self, pattern: str, where: str) -> ShardlogError:
        paths: dict[str, None] = {}
        for target in self.targets:
            for path in target.paths:
                parts = ["*" if part.isdigit() else part for part in path]
                paths |= {".".join(parts[:n]): None for n in range(1, len(parts) + 1)}
        hint = closest(".".join(components(pattern)) or pattern, paths)
        if all(len(target.paths) == 1 for target in self.targets):
            hint += "; the module has no names of its arguments: lower it with debug_info=True"
        return ShardlogError(f"there is no argument or result {pattern}", where=where, hint=hint)

    def check_axes(self, rule: TacticRule) -> None:
        for axis in rule.axes:
            if axis not in self.mesh.sizes:
                message = f"the mesh @{self.mesh.name} has no axis {axis}"
                raise ShardlogError(message, where=rule.where, hint=closest(axis, self.mesh.sizes))
            if rule.axes.count(axis) > 1:
                hint = "name every axis once"
                raise ShardlogError(f"the axis {axis} is listed twice", where=rule.where, hint=hint)

    # ---- What it does to a tensor -------------------------------------------------------------------------

    def sharding(self, target: _Target) -> Sharding:
        """The annotation of a tensor so far."""
        nothing = Sharding.open(self.number, len(target.shape or ()))
        return self.annotations.get(target, nothing)

    def dimension(self, target: _Target, dim: int, rule: TacticRule) -> int:
        self.check_tensor(target, rule)
        rank = len(target.shape or ())
        if not -rank <= dim < rank:
            has = f"{target.name} has {rank} dimension{'s' * (rank != 1)}"
            hint = "dimensions are counted from 0; without one, the first that the axis divides is taken"
            raise ShardlogError(f"{has}, there is none {dim}", where=rule.where, hint=hint)
        return dim % rank

    def shard(self, target: _Target, dim: int, rule: TacticRule, tactic: str, priority: int) -> None:
        """Annotates a dimension that the user named. Raises ShardlogError where that cannot be."""
        self.check_unused(target, rule)
        old, named = self.sharding(target).dimensions[dim], f"dimension {dim} of {target.name}"
        if (target, dim) in self.annotated_by:
            both = ", ".join([*(axis.name for axis in old.axes), *rule.axes])
            hint = f"a dimension has one priority; name its axes at once, {target.name}[{dim}] -> ({both})"
            by = self.annotated_by[target, dim]
            raise ShardlogError(f"{named} is sharded by tactic {by} already", where=rule.where, hint=hint)
        if old.axes or old.closed:
            state = "annotated" if old.axes else "closed"
            hint = "leave it to the module's annotation, or open that, as in [{?}, {?}]"
            raise ShardlogError(f"{named} is {state} in the module", where=rule.where, hint=hint)
        size, parts = (target.shape or ())[dim], self.parts(rule)
        if size % parts:
            hint = f"{' and '.join(rule.axes)} split a dimension into {parts} equal parts"
            raise ShardlogError(
                f"{named} has size {size}, which {parts} does not divide", where=rule.where, hint=hint
            )
        self.annotate(target, dim, rule, tactic, priority)

    def replicate(self, target: _Target, rule: TacticRule) -> None:
        """Keeps axes away from a tensor, at all priorities."""
        self.check_tensor(target, rule)
        self.check_unused(target, rule)
        old = self.sharding(target)
        axes = sorted(
            {*old.replicated, *self.axes(rule)}, key=lambda axis: list(self.mesh.sizes).index(axis.name)
        )
        self.annotations[target] = replace(old, replicated=tuple(axes))

    def check_tensor(self, target: _Target, rule: TacticRule) -> None:
        if target.shape is None or self.sharding(target).mesh != self.number:
            why = "is not a tensor" if target.shape is None else "lives on another mesh"
            raise ShardlogError(f"{target.name} {why}", where=rule.where, hint="name other arguments")

    def check_unused(self, target: _Target, rule: TacticRule) -> None:
        for axis, how in _uses(self.sharding(target)):
            if axis in rule.axes:
                hint = "a tensor has an axis once"
                message = f"{target.name} is {how} on {axis} already"
                raise ShardlogError(message, where=rule.where, hint=hint)

    def free_dimension(self, target: _Target, rule: TacticRule, held: Sharding | None) -> int | str:
        """The dimension that gets the axes of a rule which names none; or why there is none."""
        shardings = [self.sharding(target), *([] if held is None else [held])]
        facts: dict[str, Any] = {
            "wants": [(i, axis, self.mesh.sizes[axis]) for i, axis in enumerate(rule.axes)],
            "not_tensor": [()] if target.shape is None else [],
            "scalar": [()] if target.shape == () else [],
            "dim": list(enumerate(target.shape or ())),
            "other_mesh": [()] if any(s.mesh != self.number for s in shardings) else [],
            "uses": sorted({use for s in shardings for use in _uses(s)}),
            "occupied": sorted(
                {(d,) for s in shardings for d, of in enumerate(s.dimensions) if of.axes or of.closed}
            ),
        }
        decision = self.decide(facts)
        decided: int | str
        ((decided,),) = decision["shards"] or decision["leaves"]
        return decided

    def annotate(self, target: _Target, dim: int, rule: TacticRule, tactic: str, priority: int) -> None:
        dimensions = list(self.sharding(target).dimensions)
        dimensions[dim] = Dimension(self.axes(rule), priority=priority or None)
        self.annotations[target] = replace(self.sharding(target), dimensions=tuple(dimensions))
        self.annotated_by[target, dim] = tactic

    def axes(self, rule: TacticRule) -> tuple[SubAxis, ...]:
        return tuple(SubAxis(axis, 1, self.mesh.sizes[axis]) for axis in rule.axes)

    def parts(self, rule: TacticRule) -> int:
        """Into how many parts the axes of a rule split a dimension."""
        return prod(self.mesh.sizes[axis] for axis in rule.axes)

    def write(self) -> None:
        """Puts the annotations into the module."""
        attributes = self.function.op.attributes
        for label in ("arg_attrs", "res_attrs"):
            targets = [target for target in self.targets if target.list == label]
            if not any(target in self.annotations for target in targets):
                continue
            entries = boundary_attributes(self.function.op, label)
            for target in targets:
                if target in self.annotations:
                    attribute = self.shardings.attribute(self.annotations[target], closed=False)
                    added = {"sdy.sharding": attribute}
                    entries[target.number] = with_attributes(entries[target.number], added)
            attributes[label] = ir.ArrayAttr.get(entries)


def _targets(program: ImportedModule) -> Iterator[_Target]:
    """The arguments of the main function, then its results."""
    function = program.graph.main.function
    shapes = [program.classes.signatures.shapes[function.types[v]] for v in _values(function)]
    count = len(function.arguments)
    for i, shape in enumerate(shapes):
        argument, number = i < count, i if i < count else i - count
        name = f"%arg{number}" if argument else f"result#{number}"
        path = (
            argument_path(function.op.arguments[i].location) if argument else result_path(function.op, number)
        )
        paths = ((name,), components(path) or (path,)) if path else ((name,),)
        yield _Target(path or name, paths, "arg_attrs" if argument else "res_attrs", number, shape)


def _places(program: ImportedModule) -> Iterator[tuple[int, int]]:
    """Place and rank of the targets, in their order."""
    graph, main = program.graph, program.graph.main
    function = main.function
    places = [main.place + int(main.layout.place[v]) for v in function.arguments]
    places += map(int, graph.result_places)
    for place, v in zip(places, _values(function), strict=True):
        yield place, len(program.classes.signatures.shapes[function.types[v]] or ())


def _values(function: Function) -> list[int]:
    return [*function.arguments, *function.operands[function.terminator]]


def _uses(sharding: Sharding) -> Iterator[tuple[str, str]]:
    """The axes that a sharding uses, and how."""
    yield from ((axis.name, "replicated") for axis in sharding.replicated)
    yield from ((axis.name, "unreduced") for axis in sharding.unreduced)
    yield from ((axis.name, "sharded") for dimension in sharding.dimensions for axis in dimension.axes)


def _starts(path: Sequence[str], parts: Sequence[re.Pattern[str]]) -> bool:
    """Whether the first components of a path are as the parts of a pattern say."""
    return len(parts) <= len(path) and all(p.fullmatch(c) for p, c in zip(parts, path, strict=False))
