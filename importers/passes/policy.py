"""The decisions of the rules on the way in, carried out on functions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...program.function import Function
from ...program.meshes import Meshes
from ...program.shardings import Sharding
from ...rulebook.book import RuleBook


@dataclass(frozen=True)
class Policy:
    """The rules of a run, for a module with these meshes and types of these ``shapes``."""

    rules: RuleBook
    meshes: Meshes
    shapes: Sequence[tuple[int, ...] | None]
    _decided: dict[Hashable, tuple[dict[int, int], set[int]]] = field(default_factory=dict)

    def constraint(self, facts: Mapping[str, Any]) -> Mapping[str, Sequence[Any]]:
        """The fate of a sharding constraint; see ``rules/propagation/constraints.dl``."""
        return self.rules.constraint(facts)

    @property
    def constrains_in_functions(self) -> bool:
        """Whether constraints are applied before calls are inlined."""
        return bool(self.constraint({"demanded": [("constraint",)]})["met_in_functions"])

    def fill(self, when: str, function: Function, values: Sequence[int]) -> None:
        """Gives siblings the shardings that ``rules/propagation/siblings.dl`` says."""
        annotations = function.annotations
        held = [annotations[v].mesh if v in annotations else None for v in values]
        question = (when, *held)
        if question not in self._decided:
            self._decided[question] = self.rules.siblings(when, held, self.meshes.meshes)
        opened, lost = self._decided[question]
        for i, mesh in opened.items():
            rank = len(self.shapes[function.types[values[i]]] or ())
            annotations[values[i]] = Sharding.open(mesh, rank)
        for i in lost:
            del annotations[values[i]]
