"""Two runs tensor by tensor: the differences, where they begin, and why.

An axis that only one run has on a dimension is followed back in that run as long as the other run lacks it
there too. The runs part where both have it, at the op that passes the axis on in one run only, or at an
annotation. The step of that op explains the run with the axis, and ``why_not`` explains the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...errors import ShardlogError
from ...program.ids import Cell, first_place
from ...program.meshes import Meshes
from ...runs.records.history import Event
from ...runs.records.record import RunRecord, TensorValue
from ..answers.diff import Diff, Parting, TensorDiff
from ..answers.text import dim_text
from ..answers.why import short_why
from ..answers.why_not import short_why_not
from ..steps import PARTIAL, Site, WhyStep
from .match import matched
from .why import Explainer
from .why_not import WhyNotSearch

# An atom by the name of its axis and its bounds, or by the name alone where the axis has another size in the
# other run.
Axis = tuple[str, int, int]


def diff(first: RunRecord, second: RunRecord) -> Diff:
    """The differences between two runs, of one program or of two versions of it."""
    return _Comparison(first, second).all()


class _Side:
    """One of two runs, with the tensors of the other that are its own."""

    def __init__(
        self, record: RunRecord, other: RunRecord, pairs: Iterable[tuple[TensorValue, TensorValue]]
    ) -> None:
        self.record = record
        sizes = _sizes(record.meshes), _sizes(other.meshes)
        self._resized = {axis for axis, size in sizes[0].items() if sizes[1].get(axis, size) != size}
        self.explainer = Explainer(record)
        self.other = {mine.number: theirs for mine, theirs in pairs}
        self._axes: dict[int, list[list[Axis]]] = {}
        self._searches: dict[str, WhyNotSearch] = {}

    def axes(self, value: TensorValue) -> list[list[Axis]]:
        """The axes of every dimension."""
        if value.number not in self._axes:
            by_dim = self.record.axes(value.number)
            self._axes[value.number] = [list(dict.fromkeys(map(self.axis, atoms))) for atoms in by_dim]
        return self._axes[value.number]

    def axis(self, atom: int) -> Axis:
        """An atom, as both runs call it."""
        known_atom = self.record.meshes.atoms[atom]
        return (
            (known_atom.axis, 0, 0)
            if known_atom.axis in self._resized
            else (known_atom.axis, known_atom.lo, known_atom.hi)
        )

    def text(self, value: TensorValue) -> tuple[str, ...]:
        """The axes of every dimension as text."""
        return tuple(self.record.meshes.text(atoms, ",") for atoms in self.record.axes(value.number))

    def lacks(self, value: TensorValue, dim: int, axis: str, *, annotated: bool) -> str:
        """Why a dimension is not sharded on an axis, to which in the other run it is ``annotated`` or not."""
        if annotated or not self.record.stages:
            return (
                self.explainer.visits.annotated(self.explainer, self.record.cell(value.place))
                or "not annotated"
            )
        if axis not in {atom.axis for atom in self.record.meshes.atoms}:
            return f'no mesh has an axis "{axis}"'
        if axis not in self._searches:
            self._searches[axis] = WhyNotSearch(self.explainer, axis)
        try:
            return short_why_not(self._searches[axis].explain(value, dim, most=1))
        except ShardlogError as error:  # it has it, but not all of it, or not in the same place
            return error.message


@dataclass(frozen=True)
class _Origin:
    """The origin of an axis that a dimension has in one run only: a change, a visit of completion, or an
    annotation."""

    has: int
    axis: str
    event: Event | None
    cell: Cell
    dim: int
    visit: WhyStep | None = None


class _Comparison:
    def __init__(self, first: RunRecord, second: RunRecord) -> None:
        self.pairs = matched(first, second)
        self.sides = (
            _Side(first, second, self.pairs),
            _Side(second, first, ((b, a) for a, b in self.pairs)),
        )
        self._found: dict[tuple[int, int, int, int], _Origin] = {}
        self._atoms: dict[_Origin, dict[int, None]] = {}

    def all(self) -> Diff:
        first, second = self.sides
        tensors: list[TensorDiff] = []
        origins: dict[_Origin, dict[tuple[str, int], None]] = {}
        for a, b in self.pairs:
            if first.axes(a) != second.axes(b):
                places = a.where, a.stack, b.where, b.stack
                tensors.append(TensorDiff(a.name, b.name, a.type, *places, first.text(a), second.text(b)))
                for origin, dim in (*self._only(1, a, b), *self._only(2, b, a)):
                    origins.setdefault(origin, {})[a.name, dim] = None
        partings = (self._parting(origin, tuple(dims)) for origin, dims in origins.items())
        alone = [sum(1 for _ in side.record.values()) - len(self.pairs) for side in self.sides]
        return Diff(
            (first.record.name, second.record.name),
            len(self.pairs),
            (alone[0], alone[1]),
            tuple(tensors),
            tuple(sorted(partings, key=lambda parting: -len(parting.dims))),
        )

    def _only(self, has: int, value: TensorValue, other: TensorValue) -> Iterator[tuple[_Origin, int]]:
        """The points at which the runs part, for every axis that a dimension has in only one of them."""
        side, there = self.sides[has - 1], self.sides[2 - has].axes(other)
        for dim, atoms in enumerate(side.record.axes(value.number)):
            for atom in atoms:
                if side.axis(atom) not in there[dim]:
                    yield self._origin(has, value, dim, atom), dim

    def _origin(self, has: int, value: TensorValue, dim: int, atom: int) -> _Origin:
        side, other = self.sides[has - 1], self.sides[2 - has]
        history, axis = side.explainer.history, side.axis(atom)
        cell, before = history.cell(value.place), history.end
        trail: list[tuple[int, int, int, int]] = []
        origin: _Origin | None = None
        while origin is None:
            event = history.gained(cell, dim, atom, before)
            trail.append((has, -1 - cell if event is None else event.number, dim, atom))
            origin = self._found.get(trail[-1])
            source = None if event is None else side.explainer.source(event, dim, atom)
            if event is None or source is None:
                origin = origin or self._visited(has, cell, dim, atom)
                origin = origin or _Origin(has, axis[0], event, cell, dim)
                continue
            place = history.slots(event.item)[source[0]]
            counterpart = side.other.get(place)
            if counterpart is not None and axis in other.axes(counterpart)[source[1]]:
                origin = origin or _Origin(has, axis[0], event, cell, dim)
            cell, dim, before = history.cell(place), source[1], history.start(event)
        self._found.update(dict.fromkeys(trail, origin))
        self._atoms.setdefault(origin, {})[atom] = None
        return origin

    def _visited(self, has: int, cell: Cell, dim: int, atom: int) -> _Origin | None:
        """The visit of completion, or the annotation behind visits, at which the runs part; None where the
        program annotates the cell."""
        side, other = self.sides[has - 1], self.sides[2 - has]
        explainer, axis = side.explainer, side.axis(atom)
        begin = explainer.site(first_place(cell), dim)
        steps, given = explainer.visits.chain(explainer, cell, lambda: begin, (atom,))
        for step in steps:
            at, source = (side.record.named(site.value) for site in (step.site, step.source))
            there = [side.other.get(value.number) for value in source]
            partial = step.source.dim == PARTIAL
            if partial or any(v is not None and axis in other.axes(v)[step.source.dim] for v in there):
                cell = side.record.cell(at[0].place) if at else cell
                return _Origin(has, axis[0], None, cell, step.site.dim, step)
        return _Origin(has, axis[0], None, given, steps[-1].source.dim) if steps else None

    def _parting(self, origin: _Origin, dims: tuple[tuple[str, int], ...]) -> Parting:
        side, other = self.sides[origin.has - 1], self.sides[2 - origin.has]
        history, event = side.explainer.history, origin.event
        place = first_place(origin.cell) if event is None else history.slots(event.item)[event.slot]
        value = side.record.value(place)
        if origin.visit is not None:
            (value,) = side.record.named(origin.visit.site.value)[:1] or (value,)
        counterpart = side.other.get(value.number)
        lacks = "it has no such tensor"
        if counterpart is not None:
            annotated = event is None and origin.visit is None
            lacks = other.lacks(counterpart, origin.dim, origin.axis, annotated=annotated)
        atoms = sorted(self._atoms[origin])
        if (visit := origin.visit) is not None:
            name, spot = visit.op, (visit.where, visit.stack)
            says = f"from {dim_text(visit.source)}; {visit.stage.strategy}; {visit.candidate}"
        elif event is None:
            annotation = side.record.annotation(origin.cell)
            name, says = "annotation", f"annotated {annotation.text}"
            spot = annotation.where, annotation.stack
        else:
            op = side.record.op(event.item)
            name, spot = op.name, (op.where, op.stack)
            says = short_why(side.explainer.explain(value, origin.dim, atoms))
        site = Site(value.name, value.type, origin.dim, value.where, value.stack)
        axis = side.record.meshes.text(atoms, ",")
        return Parting(origin.has, axis, site, name, *spot, says, lacks, dims)


def _sizes(meshes: Meshes) -> dict[str, int]:
    """The sizes of the axes by name."""
    return {axis: size for mesh in meshes.meshes for axis, size in mesh.axes}
