"""Conflicts: operands and results that disagree after propagation, so that data must move.

``rules/partition`` decides how an op is computed, what must move for that, by which collective, and how much
of it a device receives.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ...program.elements import size_of
from ...program.ids import Item, Place
from ...rulebook.book import partition
from ...runs.records.record import Annotation, Key, Op, Row, Run
from .why import Explainer

End = tuple[int, int, int]  # a slot, a dimension of it and an atom
_HELD = ("factor_sharded", "maps", "tensor")  # of a turn


@dataclass(frozen=True)
class Conflict:
    """A tensor that must move at an op: how it is sharded and how the op needs it (a text per dimension).

    ``bytes`` is what a device receives. ``origin`` is the annotation that the tensor's axes come from and
    ``against`` the one that the op's come from; None where no axis is behind it. ``number`` is the tensor's.
    """

    op: str
    where: str
    tensor: str
    type: str
    slot: str
    has: tuple[str, ...]
    needs: tuple[str, ...]
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
        names = ("op", "where", "tensor", "type", "slot", "collective", "bytes")
        found = {name: getattr(self, name) for name in names}
        found |= {"has": list(self.has), "needs": list(self.needs)}
        return found | {name: str(getattr(self, name) or "") for name in ("origin", "against")}


def conflicts(run: Run) -> list[Conflict]:
    """The conflicts of a run, most bytes first, and then in the order of the program."""
    explainer = Explainer(run)
    finder = _Finder(explainer)
    found = [conflict for item, key in explainer.history.ends() for conflict in finder.conflicts(item, key)]
    return sorted(found, key=lambda conflict: -conflict.bytes)


@dataclass(frozen=True)
class _Move:
    """A slot that must move: its atoms by dimension, those that it needs, the collective, how much it moves,
    and whose atoms meet. Of the ``shards`` that the slot is in, a device puts together ``assembles``; it has
    ``owns`` of them already."""

    slot: int
    has: tuple[tuple[int, ...], ...]
    needs: tuple[tuple[int, ...], ...]
    collective: str
    shards: Fraction
    assembles: Fraction
    owns: Fraction
    own: End | None
    other: End | None


class _Finder:
    def __init__(self, explainer: Explainer) -> None:
        self.explainer, self.history = explainer, explainer.history
        self.meshes = explainer.meshes
        self.solver = partition({"axis": self.meshes.facts()["axis"]})
        self.moves: dict[Key, list[_Move]] = {}

    def conflicts(self, item: Item, key: Key) -> Iterable[Conflict]:
        """The conflicts at an item with its neighbourhood at the end."""
        if key not in self.moves:
            self.moves[key] = list(self._moves(key))
        if not self.moves[key]:
            return
        op, places = self.explainer.values.op(item), self.history.slots(item)
        for move in self.moves[key]:
            type_ = self.explainer.values.type(places[move.slot])
            shard = size_of(type_) // move.shards
            received = int(shard * move.assembles) - int(shard * move.owns)
            if received:
                yield self._conflict(op, places, move, type_, received)

    def _conflict(self, op: Op, places: list[Place], move: _Move, type_: str, received: int) -> Conflict:
        return Conflict(
            op.name,
            op.where,
            op.slots[move.slot],
            type_,
            op.roles[move.slot],
            tuple(self.meshes.text(axes, ",") for axes in move.has),
            tuple(self.meshes.text(axes, ",") for axes in move.needs),
            move.collective,
            received,
            self._origin(places, move.own),
            self._origin(places, move.other),
            op.values[move.slot],
        )

    def _moves(self, key: Key) -> Iterable[_Move]:
        held = self.history.solve(key, _HELD)
        found = self.solver.solve(held)
        shards, assembles, owns = (
            {slot: Fraction(count, per) for slot, count, per in found[name]}
            for name in ("shards", "assembles", "owns")
        )
        for slot, collective in found["collective"]:
            rank = 1 + max(dim for t, dim, *_ in held["maps"] if t == slot)
            # Rows are in order: of several axes that meet, the first are named.
            own = next(((t, dim, atom) for t, dim, _, atom in found["own_axis"] if t == slot), None)
            other = next((row[-3:] for row in found["gives_way"] if row[0] == slot), None)
            yield _Move(
                slot,
                _by_dimension(found["held"], slot, rank),
                _by_dimension(found["needed"], slot, rank),
                collective,
                shards[slot],
                assembles[slot],
                owns[slot],
                own,
                other,
            )

    # ---- Names ------------------------------------------------------------------------------------------

    def _origin(self, places: list[Place], end: End | None) -> Annotation | None:
        if end is None:
            return None
        slot, dim, atom = end
        cell = self.history.cell(places[slot])
        held = self.history.facts(self.history.content(cell, self.history.end)).get("sharded", ())
        if not any((d, x) == (dim, atom) for d, _, x in held):
            return None  # a manual axis, which a tensor inside of the computation does not hold
        return self.explainer.annotation(self.explainer.origin(cell, dim, atom)[1])


def _by_dimension(rows: Iterable[Row], slot: int, rank: int) -> tuple[tuple[int, ...], ...]:
    """The atoms of each dimension of a slot."""
    atoms: list[list[int]] = [[] for _ in range(rank)]
    for t, dim, _, _, atom in rows:
        if t == slot:
            atoms[dim].append(atom)
    return tuple(map(tuple, atoms))
