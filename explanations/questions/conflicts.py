"""Conflicts: tensors that must move at an op, as it takes them otherwise than they lie.

They are the reshards of the program that each device runs (``partition/``): what moves, by which collectives,
and how much of it a device sends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ...partition.device_program import partition
from ...partition.executions import Executions
from ...program.ids import Place
from ...runs.collectives import OpNames
from ...runs.records.live import Live
from ...runs.records.record import Annotation, Op, Run
from .why import Explainer

if TYPE_CHECKING:
    from ...partition.building import Sent
    from ...partition.layouts import Layout, Pieces


@dataclass(frozen=True)
class Conflict:
    """A tensor that must move at an op: how it is sharded and how the op needs it (a text per dimension), and
    the axes over which its values are partial, to be combined.

    ``collective`` names the collectives that do it, in order. ``bytes`` is what a device gets for it in a
    run of the program, and sends, loops and calls counted; a loop that does not say how many turns it takes
    has one.
    ``origin`` is the annotation that the tensor's axes come from and ``against`` the one that the op's come
    from; None where no axis is behind it. ``number`` is the tensor's, -1 where it was not in the program as
    it was read.
    """

    op: str
    where: str
    tensor: str
    type: str
    slot: str
    has: tuple[str, ...]
    needs: tuple[str, ...]
    partial: str
    collective: str
    bytes: int
    origin: Annotation | None
    against: Annotation | None
    number: int

    @property
    def given(self) -> tuple[Annotation, ...]:
        """The annotations that meet."""
        return tuple(dict.fromkeys(given for given in (self.origin, self.against) if given))

    def as_json(self) -> dict[str, Any]:
        """The conflict as JSON has it."""
        names = ("op", "where", "tensor", "type", "slot", "partial", "collective", "bytes")
        found = {name: getattr(self, name) for name in names}
        found |= {"has": list(self.has), "needs": list(self.needs)}
        return found | {name: str(getattr(self, name) or "") for name in ("origin", "against")}


def conflicts(run: Run) -> list[Conflict]:
    """The conflicts of a run, most bytes first, and then in the order of the program."""
    explainer = Explainer(run)
    if not isinstance(explainer.record, Live):  # a saved run has shardings, and no module with them
        explainer = Explainer(explainer.record.result)
    return sorted(_Finder(explainer).conflicts(), key=lambda conflict: -conflict.bytes)


class _Finder:
    def __init__(self, explainer: Explainer) -> None:
        self.explainer, self.history = explainer, explainer.history
        assert isinstance(explainer.record, Live)
        self.record = record = explainer.record
        run, self.names = record.run, OpNames(record)
        with run.source.places():
            shardings, modes = run.program.shardings, run.options.modes
            self.program = partition(run.module, shardings, run.book, modes, refuse=False)
        self.axes = self.program.axes
        self.executions = Executions(self.program.module)

    def conflicts(self) -> Iterator[Conflict]:
        """The conflicts in the order of the program."""
        with self.program.module.context:
            # A reshard takes one collective or several.
            for _, sent in groupby(self.program.sent, lambda each: id(each.purpose)):
                yield self._conflict(list(sent))

    def _conflict(self, sent: list[Sent]) -> Conflict:
        purpose = sent[0].purpose
        op, slot = self.names.of(purpose)
        start, goal = purpose.start, purpose.goal
        if start is None:  # parts exchange what they need of each other
            start = goal = purpose.held[purpose.slot] if purpose.slot < len(purpose.held) else None
        times = [self.executions.of(each.op) for each in sent]
        number = op.values[slot] if slot < len(op.values) else -1
        origin, against = self._given(op, purpose, sent)
        return Conflict(
            op.name,
            op.where,
            op.slots[slot],
            self.explainer.record.value(number).type if number >= 0 else "",
            op.roles[slot],
            self._dims(start),
            self._dims(goal),
            self._text(start.partial) if start is not None else "",
            ", ".join(dict.fromkeys(each.kind.replace("_", "-") for each in sent)),
            sum(each.bytes * (1 if n is None else n) for each, n in zip(sent, times, strict=True)),
            origin,
            against,
            number,
        )

    def _text(self, pieces: Pieces) -> str:
        return ",".join(self.axes.names(pieces))

    def _dims(self, layout: Layout | None) -> tuple[str, ...]:
        return () if layout is None else tuple(map(self._text, layout.dims))

    # ---- Where the axes come from -----------------------------------------------------------------------

    def _given(
        self, op: Op, purpose: Any, sent: Iterable[Sent]
    ) -> tuple[Annotation | None, Annotation | None]:
        """The annotations behind the axes that the tensor has, and behind those that the op has."""
        moved = tuple(dict.fromkeys(p for each in sent for p in each.pieces))
        start, goal = purpose.start, purpose.goal
        if start is not None and goal is not None:
            pairs = zip(start.dims, goal.dims, strict=True)
            moved += tuple(p for one, other in pairs if one != other for p in (*one, *other))
        held = dict(enumerate(purpose.held))
        own = held.pop(purpose.slot, start)
        found = self._first(op, {} if own is None else {purpose.slot: own}, moved)
        return found, self._first(op, held, moved) or self._spec(purpose)

    def _spec(self, purpose: Any) -> Annotation | None:
        """The spec by which an operand enters a ``shard_map``."""
        item = self.names.item(purpose)
        inside = None if item is None else self.record.entering(item, purpose.slot)
        if inside is None:
            return None
        cell = self.history.cell(inside)
        return next((a for a in self.record.given_shardings() if a.spec and a.cell == cell), None)

    def _first(self, op: Op, held: dict[int, Layout], moved: Pieces) -> Annotation | None:
        """The annotation behind the first of the pieces that a slot has."""
        for slot, layout in held.items():
            for dim, pieces in enumerate(layout.dims):
                for piece in pieces:
                    if piece in moved and slot < len(op.values):
                        annotation = self._origin(op.values[slot], dim, piece)
                        if annotation is not None:
                            return annotation
        return None

    def _origin(self, number: int, dim: int, piece: int) -> Annotation | None:
        wanted = self.axes.pieces[piece]
        place: Place = self.explainer.record.value(number).place
        cell = self.history.cell(place)
        held = self.history.facts(self.history.content(cell, self.history.end)).get("sharded", ())
        atoms = (self.explainer.meshes.atoms[x] for d, _, x in held if d == dim)
        for atom in atoms:
            same = (atom.mesh, atom.axis) == (wanted.mesh, wanted.axis)
            if same and wanted.pre <= atom.lo and atom.hi <= wanted.pre * wanted.size:
                return self.explainer.annotation(self.explainer.origin(cell, dim, atom.id)[1])
        return None
