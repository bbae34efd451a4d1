"""Golden shardings: a run compared with a file of expectations, and the cause of each difference."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import ShardlogError
from ..explanations.answers.text import wrapped
from ..explanations.answers.why import Explanation, short_why
from ..explanations.answers.why_not import WhyNot, short_why_not
from ..explanations.questions.why_not import WhyNotSearch
from ..importers.annotations import parse_sharding
from ..importers.sources.text import Text, parse_module
from ..outputs import write
from ..program.meshes import quoted, symbol
from ..program.mlir.origins import at
from ..program.mlir.places import NameScope
from ..program.shardings import Dimension, Sharding, Shardings
from ..runs.records.record import TensorValue
from ..session import Session
from .expectations import Expectation, Expectations, line, read_expectations
from .patterns import folded

_LAST = chr(0x10FFFF)  # sorts after all that names have
_HEADER = "# Checked by `shardlog expect`; `shardlog expect --update` updates it."


@dataclass(frozen=True)
class Cause:
    """Why a dimension is not as expected: an axis too many, explained, or one that is missing."""

    dim: int
    axis: str
    missing: bool
    explanation: Explanation | WhyNot | None
    sentence: str


@dataclass(frozen=True)
class Difference:
    """A value that is not sharded as expected, or an expectation without a value.

    ``where`` is the line of the expectation, ``place`` the line of the value in the user's program. ``found``
    is its sharding, None if there is no value, and ``causes`` explain it.
    """

    where: str
    key: str
    value: str
    type: str
    place: str
    stack: str
    expected: str
    found: str | None
    causes: tuple[Cause, ...]

    def as_json(self) -> dict[str, Any]:
        """The difference as JSON has it."""
        names = ("where", "key", "value", "type", "place", "stack", "expected", "found")
        return {name: getattr(self, name) for name in names} | {
            "causes": [
                {
                    "dim": cause.dim,
                    "axis": cause.axis,
                    "missing": cause.missing,
                    "sentence": cause.sentence,
                    "explanation": cause.explanation and cause.explanation.as_json(),
                }
                for cause in self.causes
            ]
        }

    def __str__(self) -> str:
        if self.found is None:
            return f"{self.where}: {self.causes[0].sentence}"
        place = at(self.place if self.place != self.value else "", self.stack)
        lines = [f"{self.where}: {self.value} : {self.type}{place}"]
        lines.append(f"  expected {self.expected}, is {self.found}")
        for cause in self.causes:
            verb = "is not" if cause.missing else "is"
            if cause.axis:
                lines.append(f'  dim {cause.dim} {verb} sharded on "{cause.axis}"')
            lines += wrapped("      ", cause.sentence)
        return "\n".join(lines)


class Expected:
    """A run beside a file of expectations."""

    def __init__(self, session: Session) -> None:
        self.session, self.explainer, self.record = session, session.explainer, session.record
        self.values = self.explainer.values
        self.meshes = self.explainer.meshes
        if not self.meshes.meshes:
            hint = "give it one, as in --mesh data=2,model=4"
            raise ShardlogError("the module has no mesh", where=self.record.name, hint=hint)
        self._searches: dict[str, WhyNotSearch] = {}
        self._shardings = Shardings(self.meshes, {m.name: i for i, m in enumerate(self.meshes.meshes)})
        self._module = parse_module(Text(self._declared().encode(), self.record.name))

    def _declared(self) -> str:
        """A module with the meshes alone."""
        lines = []
        for mesh in self.meshes.meshes:
            axes = ", ".join(f"{quoted(name)}={size}" for name, size in mesh.axes)
            ids = f", device_ids=[{', '.join(map(str, mesh.device_ids))}]" if mesh.device_ids else ""
            lines.append(f"sdy.mesh {symbol(mesh.name)} = <[{axes}]{ids}>")
        return "\n".join(lines)

    # ---- Shardings as text ------------------------------------------------------------------------------

    def sharding(self, value: TensorValue) -> Sharding:
        """The sharding of a value to write: its axes, and its unreduced axes."""
        held = self.record.facts(self.record.contents(self.record.cell(value.place))[1])
        mesh = held["mesh"][0][0] if held.get("mesh") else 0
        if self.meshes.meshes[mesh].maximal:
            return Sharding(mesh, ())
        merge = self.meshes.merge
        dimensions = tuple(Dimension(tuple(merge(atoms))) for atoms in self.record.axes(value.number))
        sharding = self._shardings.sharding({"mesh": [(mesh,)], "fixed": held.get("fixed", [])}, 0)
        none = Sharding(mesh, ())
        return replace(sharding or none, dimensions=dimensions, replicated=())

    def text(self, value: TensorValue) -> str:
        """The sharding of a value, as a file of expectations has it."""
        return self._text(self.sharding(value))

    def _text(self, sharding: Sharding) -> str:
        text = self._shardings.text(sharding, closed=True).removeprefix("#sdy.sharding")
        mesh = self.meshes.meshes[sharding.mesh].name
        several = len(self.meshes.meshes) > 1
        return text if several else text.removeprefix(f"<{symbol(mesh)}, ").removesuffix(">")

    def _read(self, text: str, where: str, rank: int | None) -> Sharding:
        with self._module.context:
            sharding = self._shardings.read(parse_sharding(self._module, text.strip(), where, rank), where)
        return replace(
            sharding, dimensions=tuple(Dimension(d.axes) for d in sharding.dimensions), replicated=()
        )

    # ---- Comparison -------------------------------------------------------------------------------------

    def differences(self, file: Expectations) -> list[Difference]:
        """Every value that is not as ``file`` expects it, in the order of the file.

        A plain name comes before patterns that match it too. Raises ShardlogError for shardings that
        cannot be read, and axes that no mesh has.
        """
        plain = {entry.key for entry in file.entries}
        return [
            difference
            for entry in file.entries
            for difference in self._compared(file.where(entry), entry, plain)
        ]

    def _compared(self, where: str, entry: Expectation, plain: set[str]) -> Iterator[Difference]:
        values, missing = list[tuple[str, TensorValue]](), None
        try:
            values = self._values(entry, plain)
        except ShardlogError as error:
            missing = error
        ranks = {len(value.shape) for _, value in values}
        rank = ranks.pop() if len(ranks) == 1 else None
        expected = [self._read(text, where, rank) for text in entry.shardings]
        if missing is not None:
            cause = Cause(-1, "", True, None, f"{missing.message}; {missing.hint}")
            yield Difference(where, entry.key, "", "", "", "", ", ".join(entry.shardings), None, (cause,))
            return
        if len(expected) > 1 and len(expected) != len(values):
            message = f"{len(expected)} shardings for {entry.key}, of which there are {len(values)}"
            cause = Cause(-1, "", True, None, message)
            yield Difference(where, entry.key, "", "", "", "", ", ".join(entry.shardings), None, (cause,))
            return
        for (name, value), wanted in zip(values, expected * (len(values) // len(expected)), strict=True):
            if not _same(self.sharding(value), wanted):
                yield Difference(
                    where,
                    entry.key,
                    name,
                    value.type,
                    *self.values.source(value.place),
                    self._text(wanted),
                    self.text(value),
                    tuple(self._causes(value, wanted)),
                )

    def _values(self, entry: Expectation, plain: set[str]) -> list[tuple[str, TensorValue]]:
        """The values of an expectation, with their names there.

        Raises ShardlogError if there are none.
        """
        pattern = entry.pattern
        if pattern is None:
            values = self.values.find(entry.key)
            return [(entry.key if len(values) == 1 else value.name, value) for value in values]
        start = entry.key.partition("*")[0]
        near = self._sorted[bisect_left(self._sorted, start) : bisect_right(self._sorted, start + _LAST)]
        names = [name for name in near if pattern.fullmatch(name)]
        if not names:  # what is no scope either is not there
            values = self.record.in_scope(NameScope(entry.key)) or self.values.find(entry.key)
            return [(value.name, value) for value in values]
        return [(n, self._names[n]) for n in sorted(names, key=self._rank.__getitem__) if n not in plain]

    @cached_property
    def _names(self) -> Mapping[str, TensorValue]:
        return self.values.names()

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._names)

    @cached_property
    def _rank(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self._names)}

    def _causes(self, value: TensorValue, wanted: Sharding) -> Iterator[Cause]:
        has = self.sharding(value)
        if has.mesh != wanted.mesh and not has.empty:
            yield Cause(-1, "", True, None, "it is on another mesh")
            return
        if len(value.shape) != len(wanted.dimensions):
            yield Cause(-1, "", True, None, f"it has rank {len(value.shape)}, not {len(wanted.dimensions)}")
            return
        for d, (is_, should) in enumerate(zip(has.dimensions, wanted.dimensions, strict=True)):
            held = [x for axis in is_.axes for x in self.meshes.split(has.mesh, axis)]
            wished = [x for axis in should.axes for x in self.meshes.split(has.mesh, axis)]
            for axis in self._axes(x for x in held if x not in wished):
                explanation = self.explainer.why(value.name, d, axis)[0]
                yield Cause(d, axis, False, explanation, short_why(explanation))
            for axis in self._axes(x for x in wished if x not in held):
                yield self._missing(value, d, axis)

    def _missing(self, value: TensorValue, dim: int, axis: str) -> Cause:
        search = self._searches.setdefault(axis, WhyNotSearch(self.explainer, axis))
        try:
            explanation = search.explain(value, dim)
        except ShardlogError:  # it is there, but for what the boundary of the module takes
            size = value.shape[dim]
            sentence = f"it was, but arguments and results must be divided evenly, and the size is {size}"
            return Cause(dim, axis, True, None, f"{sentence} [rules/propagation/boundary.dl]")
        return Cause(dim, axis, True, explanation, short_why_not(explanation))

    def _axes(self, atoms: Iterable[int]) -> list[str]:
        return list(dict.fromkeys(self.meshes.atoms[x].axis for x in atoms))

    # ---- Writing ----------------------------------------------------------------------------------------

    def fresh(self) -> str:
        """A file with the shardings of all arguments and results, where it can with patterns for numbers."""
        texts = {name: (self.text(value),) for name, value in self._boundary_names()}
        entries = folded(texts, self._holds)
        return "".join(f"{text}\n" for text in [_HEADER, *(line(*entry) for entry in entries)])

    def updated(self, file: Expectations) -> str:
        """The file with the actual shardings in place of entries that do not hold.

        Other entries are unchanged.
        """
        plain = {entry.key for entry in file.entries}
        changes: dict[Expectation, list[tuple[str, tuple[str, ...]]]] = {}
        for entry in file.entries:
            if not any(self._compared(file.where(entry), entry, plain)):
                continue
            try:
                values = self._values(entry, plain)
            except ShardlogError:
                changes[entry] = []
                continue
            texts = tuple(self.text(value) for _, value in values)
            usual = max(texts, key=texts.count)
            if entry.pattern is None and len(set(texts)) > 1:
                changes[entry] = [(entry.key, texts)]
                continue
            others = [(n, (text,)) for (n, _), text in zip(values, texts, strict=True) if text != usual]
            changes[entry] = [(entry.key, (usual,)), *others]
        return file.text(changes)

    def _boundary_names(self) -> Iterator[tuple[str, TensorValue]]:
        """Arguments and results of the main function, by JAX path where they have one."""
        graph = self.session.result.program.graph
        numbers = {graph.main.place + v for v in graph.main.function.arguments}
        numbers |= set(graph.result_places.tolist())
        best: dict[int, tuple[str, TensorValue]] = {}
        for name, value in self._names.items():
            if value.number in numbers:
                best.setdefault(value.number, (name, value))  # paths come before numbers
        return iter(best.values())

    def _holds(self, pattern: str, shardings: tuple[str, ...]) -> bool:
        """Whether all names that match a pattern are sharded so."""
        values = self._values(Expectation(pattern, shardings, 0, 0), set())
        return all((self.text(value),) == shardings for _, value in values)


def _same(one: Sharding, other: Sharding) -> bool:
    """Whether two shardings have the same axes; closed dimensions and replicated axes do not count."""
    axes = [[dimension.axes for dimension in sharding.dimensions] for sharding in (one, other)]
    return (
        axes[0] == axes[1]
        and (one.unreduced, one.reduction) == (other.unreduced, other.reduction)
        and (one.mesh == other.mesh or not any(axes[0]))
    )


def check(session: Session, path: Path) -> list[Difference]:
    """The differences between a run and the expectations in a file.

    Raises ShardlogError for a malformed file.
    """
    return Expected(session).differences(read_expectations(path))


def update(session: Session, path: Path) -> bool:
    """Writes the actual shardings into a file, completely or not at all. Returns whether it changed.

    Entries that hold are not changed. A new file has all arguments and results.
    """
    expected = Expected(session)
    if path.exists():
        file = read_expectations(path)
        old, text = "".join(f"{text}\n" for text in file.lines), expected.updated(file)
    else:
        old, text = "", expected.fresh()
    if old != text:
        write(path, text.encode())
    return old != text
