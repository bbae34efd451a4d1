"""Answers as tuples of explanations that show themselves: as text, and as HTML in notebooks."""

from __future__ import annotations

from typing import Generic, TypeVar

from ...markup import joined
from .graphs import dot, mermaid
from .text import folded
from .unreduced import Unreduced
from .why import Explanation

T = TypeVar("T")


class Answers(tuple[T, ...], Generic[T]):
    """Explanations as a tuple that shows as text, and as HTML in notebooks."""

    _nothing = "nothing"

    def __repr__(self) -> str:
        sites = [entry.site for entry in self]  # type: ignore[attr-defined]
        return folded(sites, list(map(str, self))) or self._nothing

    def _repr_html_(self) -> str:
        entries = (entry._repr_html_() for entry in self)  # type: ignore[attr-defined]
        return joined(*entries, by="\n") or joined(self._nothing)


class Reasons(Answers[Explanation]):
    """Why a value has its sharding: an explanation for every axis."""

    _nothing = "not sharded; why_not names the reason"
    unreduced: tuple[Unreduced, ...] = ()  # why the value is unreduced, for every such axis

    def __repr__(self) -> str:
        if not self.unreduced:
            return super().__repr__()
        return "\n\n".join([*map(str, self.unreduced), *([super().__repr__()] if self else [])])

    def dot(self) -> str:
        """The derivations as a graph for Graphviz."""
        return dot(self)

    def mermaid(self) -> str:
        """The derivations as a Mermaid flowchart."""
        return mermaid(self)
