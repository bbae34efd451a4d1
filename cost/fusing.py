"""Which ops of a GPU's program are computed in which kernels, as ``rules/cost/fusing.dl`` says."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..rulebook.shipped import shipped
from ..rulebook.traits import OpTraits


class Fusing:
    """What ``rules/cost/fusing.dl`` says of ops with these traits."""

    def __init__(self, traits: OpTraits) -> None:
        program = shipped("cost/fusing")
        self._solver = program.solver(traits.given_to(program))
        self._forms: dict[str, tuple[str, bool]] = {}
        self._merges: dict[str, bool] = {}
        self._renames: dict[Any, bool] = {}
        self._fused: dict[Any, tuple[bool, bool]] = {}

    def form(self, name: str) -> str:
        """How ops that are called so are computed."""
        return self._named(name)[0]

    def in_place(self, name: str) -> bool:
        """Whether ops that are called so write where their first operand is."""
        return self._named(name)[1]

    def merges(self, form: str) -> bool:
        """Whether kernels of a form become one with others."""
        if form not in self._merges:
            self._merges[form] = bool(self._solver.solve({"of_form": [(form,)]}, ["merges"])["merges"])
        return self._merges[form]

    def renames(self, name: str, made_from: str, rank: int, keeps_all: bool) -> bool:
        """Whether an op that is called so gives what it takes, under another type: made by a kernel of a
        form, of so many dimensions, with all of the elements."""
        key = name, made_from, rank, bool(keeps_all)
        if key not in self._renames:
            facts: dict[str, list[tuple[Any, ...]]] = {"made_by": [(name,)], "made_from": [(made_from,)]}
            facts |= {"rank": [(rank,)], "keeps_all": [()] if keeps_all else []}
            self._renames[key] = bool(self._solver.solve(facts, ["renames"])["renames"])
        return self._renames[key]

    def _named(self, name: str) -> tuple[str, bool]:
        if name not in self._forms:
            said = self._solver.solve({"made_by": [(name,)]}, ["form", "in_place"])
            self._forms[name] = said["form"][0][0], bool(said["in_place"])
        return self._forms[name]

    def fused(self, facts: tuple[tuple[str, Any], ...]) -> tuple[bool, bool]:
        """Whether an op of which these facts are known is computed in the kernels that use it, and as the
        rows of a normalisation."""
        if facts not in self._fused:
            said = self._solver.solve(dict(facts), ["fused", "normalises"])
            self._fused[facts] = bool(said["fused"]), bool(said["normalises"])
        return self._fused[facts]


@lru_cache(maxsize=16)
def fusing(traits: OpTraits) -> Fusing:
    """The rules for ops with these traits; what they have said is kept."""
    return Fusing(traits)
