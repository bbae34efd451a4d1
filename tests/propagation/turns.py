"""Cases of one turn: what the slots of an item hold, as facts for the rules and as answers read back."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..support import tools

RULES = Path(__file__).parents[2] / "rules" / "propagation"

# A sub-axis: name, first and last size of its run, e.g. ("x", 2, 4) is "x":(2)2.
SubAxis = tuple[str, int, int]
Slot = tuple[tuple[int, ...], ...]  # the factors of every dimension, major to minor
Row = tuple[Any, ...]
Facts = dict[str, list[Row]]


@dataclass(frozen=True)
class Mesh:
    """A mesh: its axes with their sizes, and the atoms that they are cut into."""

    axes: tuple[tuple[str, int], ...]
    number: int = 0
    first: int = 0  # the number of its first atom

    @cached_property
    def atoms(self) -> dict[int, SubAxis]:
        """The atoms by number."""
        cuts = [
            (name, lo, hi)
            for name, size in self.axes
            for lo, hi in _pairs([n for n in range(1, size + 1) if size % n == 0])
        ]
        return dict(enumerate(cuts, self.first))

    @cached_property
    def _starts(self) -> dict[tuple[str, int], int]:
        return {(name, lo): x for x, (name, lo, _) in self.atoms.items()}

    def cut(self, axis: SubAxis) -> list[int]:
        """The atoms of a sub-axis, major to minor."""
        name, pre, end = axis
        found = []
        while True:
            x = self._starts[name, pre]
            found.append(x)
            pre = self.atoms[x][2]
            if pre >= end:
                return found

    def merged(self, atoms: Iterable[int]) -> list[SubAxis]:
        """The sub-axes of a list of atoms: adjacent ones are one sub-axis."""
        merged: list[SubAxis] = []
        for x in atoms:
            name, lo, hi = self.atoms[x]
            if merged and merged[-1][0] == name and merged[-1][2] == lo and hi > lo:
                merged[-1] = (name, merged[-1][1], hi)
            else:
                merged.append((name, lo, hi))
        return merged

    def facts(self) -> list[Row]:
        """The relation `axis`."""
        return [(x, self.number, *atom) for x, atom in self.atoms.items()]


def _pairs(cuts: Sequence[int]) -> Iterable[tuple[int, int]]:
    return pairwise(cuts) if len(cuts) > 1 else [(1, 1)]


@dataclass(frozen=True)
class Held:
    """A sharding: axes and closedness per dimension, and what is explicitly replicated or unreduced."""

    dims: tuple[tuple[tuple[SubAxis, ...], bool], ...]
    replicated: tuple[SubAxis, ...] = ()
    unreduced: tuple[SubAxis, ...] = ()


@dataclass(frozen=True)
class Case:
    """The turn of an op: its slots are operands, then results."""

    mesh: Mesh
    factors: tuple[int, ...]
    operands: tuple[Slot, ...]
    results: tuple[Slot, ...]
    held: tuple[Held | None, ...]
    strategy: str
    flows: tuple[tuple[str, ...], ...] = ()  # the roles, for each factor; default: both
    elementwise: bool = False
    gains: dict[int, tuple[tuple[tuple[SubAxis, ...], bool], ...]] = field(default_factory=dict)
    priorities: dict[tuple[int, int], int] = field(
        default_factory=dict
    )  # user priorities by slot and dimension

    @property
    def slots(self) -> tuple[Slot, ...]:
        return self.operands + self.results

    def facts(self) -> Facts:
        """The keyed relations, without their key."""
        facts: Facts = {"strategy": [(self.strategy,)], "elementwise": [()] if self.elementwise else []}
        facts["factor"] = list(enumerate(self.factors))
        flows = self.flows or (("operand", "result"),) * len(self.factors)
        facts["flows"] = [(f, role) for f, roles in enumerate(flows) for role in roles]
        roles = ["operand"] * len(self.operands) + ["result"] * len(self.results)
        facts["tensor"] = list(enumerate(roles))
        facts["maps"] = [
            (t, d, j, f)
            for t, dims in enumerate(self.slots)
            for d, factors in enumerate(dims)
            for j, f in enumerate(factors)
        ]
        held = [(t, h) for t, h in enumerate(self.held) if h is not None]
        facts["mesh"] = [(t, self.mesh.number) for t, _ in held]
        facts["sharded"] = [
            (t, d, p, x)
            for t, h in held
            for d, (axes, _) in enumerate(h.dims)
            for p, x in enumerate(x for axis in axes for x in self.mesh.cut(axis))
        ]
        facts["closed"] = [(t, d) for t, h in held for d, (_, closed) in enumerate(h.dims) if closed]
        facts["fixed"] = [
            (t, x, why)
            for t, h in held
            for why, axes in (("replicated", h.replicated), ("unreduced", h.unreduced))
            for axis in axes
            for x in self.mesh.cut(axis)
        ]
        return facts

    def gained(self, answer: Mapping[str, Iterable[Row]]) -> dict[int, Any]:
        """The new dimensions of the slots that change, from the output relations."""
        changed = sorted(t for (t,) in answer["changed"])
        rows = sorted(answer["becomes_sharded"])
        closed = set(answer["becomes_closed"])
        return {
            t: tuple(
                (tuple(self.mesh.merged(x for u, e, _, x in rows if (u, e) == (t, d))), (t, d) in closed)
                for d in range(len(self.slots[t]))
            )
            for t in changed
        }


OUTPUTS = ("changed", "becomes_mesh", "becomes_sharded", "becomes_closed", "becomes_fixed")


def run_souffle(program: Path, facts: Mapping[str, Iterable[Row]], outputs: Sequence[str]) -> Facts:
    """The output relations of a program in stock Soufflé; numbers are read as int."""
    command = tools.souffle()
    assert command is not None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = "".join(p.read_text() for p in sorted(program.parent.glob("*.dl")))
        inputs = {n.strip() for line in re.findall(r"^\.input (.*)$", text, re.M) for n in line.split(",")}
        for relation in inputs | set(facts):
            rows = facts.get(relation, ())
            (folder / f"{relation}.facts").write_text("".join("\t".join(map(str, r)) + "\n" for r in rows))
        done = subprocess.run(
            [command, "-F", name, "-D", name, "--no-warn", str(program)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return {output: _read(folder / f"{output}.csv") for output in outputs}


def _read(path: Path) -> list[Row]:
    return [
        tuple(int(c) if re.fullmatch(r"-?\d+", c) else c for c in line.split("\t"))
        for line in path.read_text().splitlines()
    ]


def solved_by_souffle(cases: Sequence[Case]) -> list[dict[int, Any]]:
    """The gains of each case, all in one run; meshes must have different numbers and atoms, or be equal."""
    facts: Facts = {"axis": sorted({row for case in cases for row in case.mesh.facts()})}
    for o, case in enumerate(cases):
        for relation, rows in case.facts().items():
            facts.setdefault(relation, []).extend((o, *row) for row in rows)
    answers: list[Facts] = [{output: [] for output in OUTPUTS} for _ in cases]
    for output, rows in run_souffle(RULES / "turn.dl", facts, OUTPUTS).items():
        for row in rows:
            answers[row[0]][output].append(row[1:])
    return [case.gained(answer) for case, answer in zip(cases, answers, strict=True)]
