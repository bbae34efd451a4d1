"""The data of the page as JSON: tables by column, and numbers in place of everything that repeats."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict
from math import prod
from typing import Any

from ...program.elements import size_of
from ...program.folding import stands_for
from ...program.ids import Content
from ...program.meshes import axis_text
from ...program.mlir.origins import place_text
from ...runs.choice import ProgramChoice
from ...runs.records.record import TensorValue
from ...version import __version__
from ..answers.conflicts import Conflict
from ..partitioned import Programs
from .cost import costs
from .steps import ChangeKinds

_SAID = ("slot", "collective", "has", "partial", "needs", "bytes", "executions")  # of a conflict


def collect(
    programs: Programs,
    tell: Callable[[str, float], None] = lambda stage, done: None,
    choice: ProgramChoice | None = None,
) -> dict[str, Any]:
    """All data of a run for the page; ``run.js`` reads it. Collectives and costs are those of the program
    that ``choice`` means.

    ``tell`` is called with the fraction of the page that is done.
    """
    choice = choice or ProgramChoice()
    document = _Collector(programs, tell, choice).all()
    tell("counting costs", 0.8)
    means = {"means": choice.line, "arguments": shlex.join(choice.arguments)}
    return {**document, **means, **costs(programs, choice)}


class _Numbered:
    """Numbers for things, in the order in which they come."""

    def __init__(self) -> None:
        self.of: dict[Any, int] = {}

    def __call__(self, entry: object) -> int:
        return self.of.setdefault(entry, len(self.of))


class _Collector:
    def __init__(self, programs: Programs, tell: Callable[[str, float], None], choice: ProgramChoice) -> None:
        self.tell, self.choice = tell, choice
        self.programs, self.explainer, self.record = programs, programs.explainer, programs.result.record
        self.history = self.explainer.history
        self.history.keep(self.record.log())
        self.meshes = self.record.meshes
        self.string, self.roles, self.content = _Numbered(), _Numbered(), _Numbered()
        self.sizes = {axis: size for mesh in self.meshes.meshes for axis, size in mesh.axes}
        self.manual = _Numbered()  # axes, by name
        self.manual(())
        self.tensor = _Numbered()  # by the number of the value
        self.item = _Numbered()

    def all(self) -> dict[str, Any]:
        record = self.record
        for value in record.values():
            self.tensor(value.number)
        shown = len(self.tensor.of)
        for item in record.ordered.items:
            self.item(item)
        program, groups = len(self.item.of), record.ordered.groups
        log = self.log()  # which may have ops and tensors that are not there any more
        ops = self.ops()
        tensors = self.tensors()
        self.tell("looking for conflicts", 0.65)
        return {
            "version": __version__,
            "module": record.name,
            "strategy": record.strategy,
            "meshes": [{"name": m.name, "axes": m.axes, "devices": m.device_ids} for m in self.meshes.meshes],
            "atoms": [[atom.mesh, atom.axis, self.explainer.axis(atom.id)] for atom in self.meshes.atoms],
            "stages": self.stages(),
            "unknown": record.unknown_ops,
            "shown": shown,
            "program": program,
            "tensors": tensors,
            "ops": ops,
            "log": log,
            **self.conflicts(stands_for(groups, program)),
            "annotations": self.annotations(),
            "groups": [group.as_json() for group in groups],
            "roles": list(self.roles.of),
            "manual": list(self.manual.of),
            "contents": [self.sharding(content) for content in self.content.of],
            "strings": list(self.string.of),
        }

    # ---- Tables -----------------------------------------------------------------------------------------

    def tensors(self) -> dict[str, list[Any]]:
        values = [self.record.value(number) for number in self.tensor.of]
        cells = [self.record.cell(value.place) for value in values]
        return {
            "name": [value.name for value in values],
            "type": [self.string(value.type) for value in values],
            "bytes": [size_of(value.type) * self.parts_of(value) for value in values],
            "manual": [self.manual(tuple(axis for axis, _ in value.manual)) for value in values],
            "where": [self.string(place_text(value.where, value.stack)) for value in values],
            "cell": cells,
            "first": [self.content(self.record.contents(cell)[0]) for cell in cells],
        }

    def parts_of(self, value: TensorValue) -> int:
        """The number of parts of a tensor along the manual axes around it; its type is that of one part."""
        return prod(self.sizes[axis] for axis, _ in value.manual)

    def ops(self) -> dict[str, list[Any]]:
        ops = [self.record.op(item) for item in self.item.of]
        return {
            "name": [self.string(op.name) for op in ops],
            "where": [self.string(place_text(op.where, op.stack)) for op in ops],
            "roles": [self.roles(op.roles) for op in ops],
            "slots": [self.tensor(number) for op in ops for number in op.values],
        }

    def stages(self) -> list[dict[str, Any]]:
        names = ("turns", "distinct", "changes")
        return [
            {**asdict(stage), **dict(zip(names, numbers, strict=True))}
            for stage, numbers in zip(self.record.stages, self.record.statistics, strict=True)
        ]

    def log(self) -> dict[str, Any]:
        """The changes by column: stage, first change of the turn, op and kind."""
        history, kinds = self.history, ChangeKinds(self.explainer, self.record)
        stage, start, op, kind = [], [], [], []
        for number in range(history.end):
            if number % 256 == 0:
                self.tell("explaining", 0.1 + 0.5 * number / history.end)
            event = history.event(number)
            stage.append(event.stage)
            start.append(history.start(event))
            op.append(self.item(event.item))
            kind.append(kinds.number(event))
        rows = [{**row, "content": self.content(row["content"])} for row in kinds.rows]
        return {"stage": stage, "start": start, "op": op, "kind": kind, "kinds": rows, "steps": kinds.steps}

    def annotations(self) -> list[list[Any]]:
        """``[cell, tensor, text, where, by]`` of what was given; tensor -1 is not there any more."""
        names = self.record.names()
        shardings = [a for a in self.record.given_shardings() if a.by != "import"]
        return [
            [
                a.cell,
                self.tensor.of.get(names.get(a.value, -1), -1),
                a.text,
                place_text(a.where, a.stack),
                a.by,
            ]
            for a in shardings
        ]

    def conflicts(self, stands: Sequence[int]) -> dict[str, Any]:
        """The conflicts, most bytes first, those that repeat with the ops one after the other; how many there
        are of each (``alike``); and why nothing is known of them, where it is not. ``stands``: op -> the one
        that it repeats."""
        conflicts, error = self.programs.conflicts_or_error(self.choice)
        by_key: dict[Any, list[dict[str, Any]]] = {}
        for row in map(self.conflict, conflicts):
            at = row["at"]
            about = [str(row[name]) for name in _SAID]
            key = stands[at] if 0 <= at < len(stands) else (row["op"], row["where"]), *about
            by_key.setdefault(key, []).append(row)
        alike = sorted(by_key.values(), key=lambda same: -same[0]["bytes"] * len(same))
        rows = [row for same in alike for row in same]
        return {"conflicts": rows, "alike": list(map(len, alike)), "unpartitioned": str(error or "")}

    def conflict(self, conflict: Conflict) -> dict[str, Any]:
        """A conflict, with the numbers of its tensor and op (-1: not on the page), and the cells of
        annotations."""
        ends = (("origin", conflict.origin), ("against", conflict.against))
        row = {
            **conflict.as_json(),
            "where": place_text(conflict.where, conflict.stack),
            **{end: a.cell if a else -1 for end, a in ends},
        }
        return {
            **row,
            "number": self.tensor.of.get(conflict.number, -1),
            "at": self.item.of.get(conflict.item, -1),
        }

    # ---- Shardings --------------------------------------------------------------------------------------

    def sharding(self, content: Content) -> list[Any] | None:
        """``[mesh, {dimension: [[axis, shards, atoms], ...]}, closed dimensions, fixed axes]``; None where
        there is none."""
        facts = self.history.facts(content)
        if not facts.get("mesh"):
            return None
        dims: dict[int, list[int]] = {}
        for d, _, atom in sorted(facts.get("sharded", ())):
            dims.setdefault(d, []).append(atom)
        closed = sorted(d for (d,) in facts.get("closed", ()))
        fixed = [[self.explainer.axis(x), why] for x, why in sorted(facts.get("fixed", ()))]
        return [facts["mesh"][0][0], {d: self.parts(atoms) for d, atoms in dims.items()}, closed, fixed]

    def parts(self, atoms: Sequence[int]) -> list[Any]:
        """``[text, number of shards, atoms]`` of every axis or sub-axis."""
        parts, rest = [], list(atoms)
        for part in self.meshes.merge(atoms):
            mesh, own = self.meshes.atoms[rest[0]].mesh, list[int]()
            while not own or (rest and self.meshes.atoms[own[-1]].hi < part.pre * part.size):
                own.append(rest.pop(0))
            parts.append([axis_text(part, self.meshes.meshes[mesh]), part.size, own])
        return parts
