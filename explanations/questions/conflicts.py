"""Where operands and results disagree after propagation, so that data must move.

An op computes along its factors, each sharded as the result has it; a factor that no result has is
sharded as the operand with the most shards of it has it, but for axes that other factors use. An operand
or result that is sharded otherwise along some factor must move. Bytes are those that a device receives,
with the usual algorithms: of an all-gather all but its own part, of an all-to-all the parts of others, of
a collective-permute everything. What a device has already is cut out without moving anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

from ...program.elements import size_of
from ...program.meshes import axis_text
from ...runs.record import Annotation, Key, Op, Run
from .why import Explainer

Axes = Mapping[tuple[int, int], tuple[int, ...]]  # (slot, factor) -> the atoms of the factor in the slot
Dims = Mapping[int, Mapping[tuple[int, int], int]]  # slot -> (dimension, position) -> factor
Wanted = dict[int, tuple[int, tuple[int, ...]]]  # factor -> the slot that decides on it, its atoms
End = tuple[int, int, int]  # a slot, a dimension of it and an atom
_FACTS = ["on", "maps", "factor", "tensor"]


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
    """A slot that must move: its atoms by dimension, those that it needs, and whose atoms are in its way."""

    slot: int
    has: tuple[tuple[int, ...], ...]
    needs: tuple[tuple[int, ...], ...]
    own: tuple[int, int] | None  # a dimension of the slot and an atom of it
    other: End | None


class _Finder:
    def __init__(self, explainer: Explainer) -> None:
        self.explainer, self.history = explainer, explainer.history
        self.meshes = explainer.meshes
        self.moves: dict[Key, list[_Move]] = {}

    def conflicts(self, item: int, key: Key) -> Iterable[Conflict]:
        """The conflicts at an item with its neighbourhood at the end."""
        if key not in self.moves:
            self.moves[key] = list(self._moves(key))
        if not self.moves[key]:
            return
        op, places = self.explainer.values.op(item), self.history.slots(item)
        for move in self.moves[key]:
            type_ = self.explainer.values.type(places[move.slot])
            collective, received = self._cost(move, type_)
            if received:
                yield self._conflict(op, places, move, type_, collective, received)

    def _conflict(
        self, op: Op, places: list[int], move: _Move, type_: str, collective: str, received: int
    ) -> Conflict:
        place = places[move.slot]
        own = move.own and (place, *move.own)
        other = move.other and (places[move.other[0]], *move.other[1:])
        return Conflict(
            op.name,
            op.where,
            op.slots[move.slot],
            type_,
            op.roles[move.slot],
            tuple(map(self._text, move.has)),
            tuple(map(self._text, move.needs)),
            collective,
            received,
            self._origin(own),
            self._origin(other),
            op.values[move.slot],
        )

    # ---- Who disagrees ----------------------------------------------------------------------------------

    def _moves(self, key: Key) -> Iterable[_Move]:
        facts = self.history.solve(key, _FACTS)
        axes: dict[tuple[int, int], tuple[int, ...]] = {}
        for t, f, _, x in sorted(facts["on"]):
            axes[t, f] = (*axes.get((t, f), ()), x)
        dims: dict[int, dict[tuple[int, int], int]] = {}  # slot -> (dimension, position) -> factor
        for t, d, j, f in facts["maps"]:
            dims.setdefault(t, {})[d, j] = f
        results = [t for t, role in facts["tensor"] if role == "result"]
        wanted = self._wanted(axes, dims, results, [f for f, _ in facts["factor"]])
        for t, positions in sorted(dims.items()):
            wrong = [f for f in positions.values() if axes.get((t, f), ()) != wanted[f][1]]
            if wrong:
                yield self._move(t, dims, axes, wanted, wrong)

    def _wanted(self, axes: Axes, dims: Dims, results: list[int], factors: list[int]) -> Wanted:
        """The slot that decides on each factor, and the atoms that the op has it sharded on."""
        found: Wanted = {}
        used: set[int] = set()
        has = {f: [t for t, positions in sorted(dims.items()) if f in positions.values()] for f in factors}
        # The factors of results come first.
        for f in sorted(factors, key=lambda f: not any(t in results for t in has[f])):
            slots = [t for t in has[f] if t in results] or has[f]
            if not slots:
                continue
            slot = slots[0]
            if slot not in results:
                slot = max(slots, key=lambda t: self._size(axes.get((t, f), ())))
            atoms: list[int] = []
            for x in axes.get((slot, f), ()):
                if x in used:
                    break
                atoms.append(x)
            used.update(atoms)
            found[f] = (slot, tuple(atoms))
        return found

    def _move(self, slot: int, dims: Dims, axes: Axes, wanted: Wanted, wrong: list[int]) -> _Move:
        positions = dims[slot]
        rank = 1 + max(d for d, _ in positions)
        has: list[tuple[int, ...]] = [()] * rank
        needs: list[tuple[int, ...]] = [()] * rank
        own: tuple[int, int] | None = None
        for (d, _), f in sorted(positions.items()):
            mine = axes.get((slot, f), ())
            has[d] += mine
            needs[d] += wanted[f][1]
            if f in wrong and own is None and mine:
                own = (d, mine[0])
        other = self._other(slot, dims, axes, wanted, wrong)
        return _Move(slot, tuple(has), tuple(needs), own, other)

    def _other(self, slot: int, dims: Dims, axes: Axes, wanted: Wanted, wrong: list[int]) -> End | None:
        """What the slot gives way to: other axes of a factor, or another factor with its axes."""
        for f in wrong:
            lost = set(axes.get((slot, f), ()))
            for g, (decides, atoms) in wanted.items():
                x = next((x for x in atoms if g == f or x in lost), None)
                if x is not None:
                    return decides, next(d for (d, _), h in dims[decides].items() if h == g), x
        return None

    # ---- What it costs ----------------------------------------------------------------------------------

    def _cost(self, move: _Move, type_: str) -> tuple[str, int]:
        """The collective and the bytes that a device receives."""
        has, needs = _places(move.has), _places(move.needs)
        gathered, cut = has.keys() - needs.keys(), needs.keys() - has.keys()
        moved = [x for x in has.keys() & needs.keys() if has[x] != needs[x]]
        local = size_of(type_) // self._size(has)
        if moved:
            return "all-to-all", int(local * self._size(gathered) - local // self._size(moved))
        if gathered and self._size(gathered) == self._size(cut):
            return "collective-permute", local
        if gathered:
            return "all-gather", int(local * (self._size(gathered) - 1))
        same = [list(x) for x in move.has] == [list(x) for x in move.needs]
        return ("slice", 0) if cut or same else ("collective-permute", local)

    def _size(self, atoms: Iterable[int]) -> Fraction:
        """How many shards atoms make; those of an axis with several primes are not whole on their own."""
        found = (self.meshes.atoms[x] for x in atoms)
        return prod((Fraction(atom.hi, atom.lo) for atom in found), start=Fraction(1))

    # ---- Names ------------------------------------------------------------------------------------------

    def _text(self, atoms: tuple[int, ...]) -> str:
        if not atoms:
            return ""
        mesh = self.meshes.meshes[self.meshes.atoms[atoms[0]].mesh]
        return ",".join(axis_text(part, mesh) for part in self.meshes.merge(atoms))

    def _origin(self, sharded: tuple[int, int, int] | None) -> Annotation | None:
        if sharded is None:
            return None
        place, dim, atom = sharded
        return self.explainer.annotation(self.explainer.origin(self.history.cell(place), dim, atom)[1])


def _places(dims: Iterable[tuple[int, ...]]) -> dict[int, int]:
    """The dimension of each atom."""
    return {x: d for d, atoms in enumerate(dims) for x in atoms}
