"""The kernels of a GPU's program that its ops are computed in, by ``rules/cost/fusing.dl``."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..rulebook.shipped import shipped
from ..rulebook.traits import OpTraits


class Fusing:
    """The answers of ``rules/cost/fusing.dl`` about ops with these traits."""

    def __init__(self, traits: OpTraits) -> None:
        program = shipped("cost/fusing")
        self._solver = program.solver(traits.given_to(program))
        self._forms: dict[str, tuple[str, bool]] = {}
        self._merges: dict[str, bool] = {}
        self._renames: dict[Any, bool] = {}
        self._fused: dict[Any, tuple[bool, bool]] = {}

    def form(self, name: str) -> str:
        """The form of the kernels of ops with this name."""
        return self._named(name)[0]

    def in_place(self, name: str) -> bool:
        """Whether ops with this name overwrite their first operand."""
        return self._named(name)[1]

    def merges(self, form: str) -> bool:
        """Whether kernels of a form can be merged with others."""
        if form not in self._merges:
            self._merges[form] = bool(self._solver.solve({"of_form": [(form,)]}, ["merges"])["merges"])
        return self._merges[form]

    def renames(self, name: str, made_from: str, rank: int, keeps_all: bool) -> bool:
        """Whether an op with this name returns its operand under another type. The operand comes from a
        kernel of a form, with this rank, and the result has all of its elements."""
        key = name, made_from, rank, bool(keeps_all)
        if key not in self._renames:
            facts: dict[str, list[tuple[Any, ...]]] = {"made_by": [(name,)], "made_from": [(made_from,)]}
            facts |= {"rank": [(rank,)], "keeps_all": [()] if keeps_all else []}
            self._renames[key] = bool(self._solver.solve(facts, ["renames"])["renames"])
        return self._renames[key]

    def _named(self, name: str) -> tuple[str, bool]:
        if name not in self._forms:
            answers = self._solver.solve({"made_by": [(name,)]}, ["form", "in_place"])
            self._forms[name] = answers["form"][0][0], bool(answers["in_place"])
        return self._forms[name]

    def fused(self, facts: tuple[tuple[str, Any], ...]) -> tuple[bool, bool]:
        """Whether an op with these facts is computed in the kernels that use it; and whether as the rows of a
        normalisation."""
        if facts not in self._fused:
            answers = self._solver.solve(dict(facts), ["fused", "normalises"])
            self._fused[facts] = bool(answers["fused"]), bool(answers["normalises"])
        return self._fused[facts]


@lru_cache(maxsize=16)
def fusing(traits: OpTraits) -> Fusing:
    """The rules for ops with these traits. Answers are kept."""
    return Fusing(traits)
