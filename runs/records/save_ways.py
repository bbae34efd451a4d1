"""The gains of a run: which change gave a dimension an axis, and from which gain before it came.

A pass over the log. What a turn changed is decided by its neighbourhood, so the proofs of equal ones are read
once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...program.columns import column
from .history import History, given
from .live import Live
from .record import Key
from .save_columns import Distinct

_MOST_NEEDED = (
    1 << 22
)  # cells that the sets of ``needs`` may have together; beyond, they are found when asked for


class _Gain(NamedTuple):
    """An atom that a change of a slot in a neighbourhood gave to a dimension; ``code`` stands for both."""

    dim: int
    atom: int
    code: int
    source: tuple[int, int] | None  # the slot and the code that it comes from
    uses: tuple[tuple[int, int], ...]  # all that its proof rests on
    annotated: bool  # the proof rests on an annotation of the cell


class Ways:
    """The gains of a run as ``columns``, the neighbourhoods of all changes as ``keys``, and by neighbourhood
    the rows that it gave in ``gained``. ``needs`` are sets of annotated cells; None: they are too many."""

    def __init__(self, record: Live, history: History, dims: int) -> None:
        """``dims`` is the largest number of dimensions of a tensor."""
        self._history, self._atoms = history, max(1, len(record.meshes.atoms))
        self._codes = self._atoms * max(1, dims)
        self._templates: dict[tuple[Key, int, int, int], list[_Gain]] = {}
        self.gained: dict[Key, set[tuple[int, int, int, int]]] = {}
        self.keys: list[Key] = []
        names = ("change", "dim", "atom", "before", "length", "origin", "way", "needs")
        self.columns = {name: column() for name in names}
        self._sets, self._bits = Distinct[int](), Distinct[int]()
        self._read(record)
        cells = list(self._bits)
        total = sum(mask.bit_count() for mask in self._sets)
        self.needs = [_members(mask, cells) for mask in self._sets] if total <= _MOST_NEEDED else None

    def _read(self, record: Live) -> None:
        # A loop over all changes of a run: everything that it uses is local.
        (changes, dims, atoms, befores, lengths, origins, ways, needs) = self.columns.values()
        current: dict[int, int] = {}  # cell and code -> the gain that gave it
        sets, bits, masks = self._sets, self._bits, list[int]()  # by number
        pending: list[tuple[int, int]] = []  # gains of a turn, which it does not see itself
        templates, keys, last, cells = self._templates, self.keys, -1, list[int]()
        one: dict[Key, Key] = {}  # equal keys are one object
        codes = self._codes
        for n, (start, key, held, slot, cell, old, new) in enumerate(record.turns_in_order()):
            if start != last:
                last, cells = start, held
                current.update(pending)
                pending.clear()
            key = one.setdefault(key, key)
            keys.append(key)
            same: dict[int, int] = {}  # ways of this change by the gains behind them
            gains = templates.get((key, slot, old, new))
            if gains is None:
                gains = templates[key, slot, old, new] = self._made(key, slot, old, new)
            for dim, atom, code, source, uses, annotated in gains:
                before, origin, length, behind = -1, cell, 1, -1 - cell
                if source is not None:
                    origin = cells[source[0]]
                    before = current.get(origin * codes + source[1], -1)
                    behind = -1 - origin
                    if before >= 0:
                        origin, length, behind = origins[before], lengths[before] + 1, ways[before]
                mask = 1 << bits[cell] if annotated else 0
                for at, used in uses:
                    gain = current.get(cells[at] * codes + used, -1)
                    mask |= masks[needs[gain]] if gain >= 0 else 1 << bits[cells[at]]
                if (number := sets[mask]) == len(masks):
                    masks.append(mask)
                pending.append((cell * codes + code, len(changes)))
                changes.append(n)
                dims.append(dim)
                atoms.append(atom)
                befores.append(before)
                lengths.append(length)
                origins.append(origin)
                ways.append(same.setdefault(behind, len(changes)))
                needs.append(number)

    def _made(self, key: Key, slot: int, old: int, new: int) -> list[_Gain]:
        history = self._history
        held = {(d, x) for d, _, x in history.held(old).get("sharded", ())}
        gained = self.gained.setdefault(key, set())
        gains = []
        for d, p, x in history.held(new).get("sharded", ()):
            if (d, x) not in held:
                gained.add((slot, d, p, x))
                proof = history.proof_in(key, (slot, d, p, x))
                uses = tuple((row.slot, self._code(row.dim, row.axis), row.axis) for row in given(proof))
                source = next(((at, code) for at, code, axis in uses if axis == x), None)
                annotated = any(step.relation == "annotation" for step in proof.steps())
                used = tuple((at, code) for at, code, _ in uses)
                gains.append(_Gain(d, x, self._code(d, x), source, used, annotated))
        return gains

    def _code(self, dim: int, atom: int) -> int:
        return dim * self._atoms + atom


def _members(mask: int, cells: list[int]) -> list[int]:
    members: list[Any] = [cells[bit] for bit in range(mask.bit_length()) if mask >> bit & 1]
    return sorted(members)
