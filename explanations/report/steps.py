"""The derivation of every change of a run, each kind of change once.

What a turn does depends on nothing but its neighbourhood, so the thousands of changes of a run are of a few
hundred kinds. A kind says what the slot gained, why, and what else was in the running and lost; the page
puts the names of the slots of the op at hand into it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from ...engine.provenance.proof import Proof
from ...program.factors import factor_name
from ...program.ids import Item
from ...rulebook.columns import SLOT, Loses
from ...runs.records.history import Event, given
from ...runs.records.live import Live
from ..questions.why import Explainer, factor_along
from ..steps import rule_place


class ChangeKinds:
    """The kinds of the changes of a run.

    ``rows`` has an object for each: ``slot``, ``content`` (the new one) and ``gains``, a list of
    ``[dimension, atom, step]``. ``steps`` are ``[source slot, source dimension, factor, sentence, rule,
    rests, lost]``; the slot is -1 where a priority came. ``rests`` are ``[slot, dimension, atom]``, ``lost``
    are ``[slot, dimension, source slot, source dimension, atom, axis, factor, reason, sentence, rule]``.
    Sentences have ``{0}`` for the name of slot 0.
    """

    def __init__(self, explainer: Explainer, record: Live) -> None:
        self.explainer, self.history, self.record = explainer, explainer.history, record
        self.meshes = explainer.meshes
        self.rows: list[dict[str, Any]] = []
        self.steps: list[tuple[Any, ...]] = []
        self._kinds: dict[tuple[Any, ...], int] = {}
        self._steps: dict[tuple[Any, ...], int] = {}
        taken: dict[tuple[tuple[int, int], ...], int] = {}  # numbers of the static facts of all passes
        self._statics = cache(
            lambda class_: taken.setdefault(tuple(self.record.statics(class_).items()), len(taken))
        )
        self._besides = cache(lambda item: tuple(self._what_else(item)))
        self._prioritised = frozenset(record.prioritised)

    def number(self, event: Event) -> int:
        """The kind of a change."""
        key = (self.history.around(event), event.slot, event.old, event.new, *self._besides(event.item))
        if key not in self._kinds:
            self._kinds[key] = len(self.rows)
            before = {(d, x) for d, _, x in self.history.facts(event.old).get("sharded", ())}
            after = [(d, x) for d, _, x in sorted(self.history.facts(event.new).get("sharded", ()))]
            together: dict[tuple[Any, ...], list[int]] = {}  # the atoms of an axis mostly go together
            for d, x in after:
                if (d, x) not in before:
                    source = self.explainer.source(event, d, x)
                    together.setdefault((d, source, self.meshes.atoms[x].axis), []).append(x)
            gains = [
                [d, x, self._step(event, d, x, dict.fromkeys(atoms, self.meshes.text(atoms)))]
                for (d, *_), atoms in together.items()
                for x in atoms
            ]
            self.rows.append({"slot": event.slot, "content": event.new, "gains": gains})
        return self._kinds[key]

    def _what_else(self, item: Item) -> Iterator[Any]:
        """The part of a reason that is not in the neighbourhood: the other stages, annotations with
        priorities."""
        yield self._statics(self.record.class_of(item))
        cells = map(self.history.cell, self.history.slots(item))
        yield tuple(cell for cell in cells if cell in self._prioritised)

    def _step(self, event: Event, dim: int, atom: int, axes: Mapping[int, str]) -> int:
        proof = self.explainer.proof(event, dim, atom)
        source = self.explainer.source(event, dim, atom)
        slot, from_dim = source or (-1, -1)
        factor, says = self.explainer.says(proof, atom)
        rests = sorted({(t, d, x) for t, d, _, x in given(proof)} - {(slot, from_dim, atom)})
        along = factor_along(proof, atom)
        lost = () if along is None else tuple(dict.fromkeys(self._lost(event, along)))
        step = (slot, from_dim, factor, self._sentence(says, axes), rule_place(says), tuple(rests), lost)
        if step not in self._steps:
            self._steps[step] = len(self.steps)
            self.steps.append(step)
        return self._steps[step]

    def _lost(self, event: Event, factor: int) -> Iterator[tuple[Any, ...]]:
        rows = self.explainer.obstacles.lost(event, factor)
        maps = self.explainer.obstacles.maps(event.item) if rows else []
        dims = {(row.slot, row.factor): row.dim for row in maps}
        together: dict[tuple[Loses, str], list[tuple[Loses, Proof]]] = {}
        for row, says in rows:
            key = (row._replace(position=0, axis=0), self.meshes.atoms[row.axis].axis)
            together.setdefault(key, []).append((row, says))
        for (loss, _), alike in together.items():
            parts = sorted((row.position, row.axis) for row, _ in alike)
            atoms, says = [x for _, x in parts], alike[0][1]
            axis = self.meshes.text(atoms)
            ends = (loss.loser, dims[loss.loser, loss.losing], loss.holder, dims[loss.holder, loss.losing])
            sentence = self._sentence(says, dict.fromkeys(atoms, axis))
            yield *ends, atoms[0], axis, factor_name(loss.losing), loss.reason, sentence, rule_place(says)

    def _sentence(self, proof: Proof, axes: Mapping[int, str]) -> str:
        names = [f"{{{slot}}}" for slot in range(max(proof.values(SLOT), default=-1) + 1)]
        return self.explainer.sentence(proof, names, axes)
