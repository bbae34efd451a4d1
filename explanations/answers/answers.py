"""Answers as tuples of explanations that show themselves: as text, and as HTML in notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Generic, TypeVar

from ...runs.choice import ProgramChoice
from ..explanation import Explanation, WhyNot
from ..questions.conflicts import Conflict
from ..questions.unreduced import Unreduced, unreduced
from ..questions.why import Explainer
from ..questions.why_not import Search
from .graphs import dot, mermaid
from .text import conflicts_text, folded

T = TypeVar("T")


class Answers(tuple[T, ...], Generic[T]):
    """Explanations as a tuple that shows as text, and as HTML in notebooks."""

    _nothing = "nothing"

    def __repr__(self) -> str:
        sites = [entry.site for entry in self]  # type: ignore[attr-defined]
        return folded(sites, list(map(str, self))) or self._nothing

    def _repr_html_(self) -> str:
        found = (entry._repr_html_() for entry in self)  # type: ignore[attr-defined]
        return "\n".join(found) or escape(self._nothing)


class Reasons(Answers[Explanation]):
    """Why a value is sharded as it is: an explanation for every axis."""

    _nothing = "not sharded; why_not says what stopped an axis"
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


class Conflicts(Answers[Conflict]):
    """The tensors that must move in a program, most bytes first."""

    def __new__(cls, found: Iterable[Conflict], program: ProgramChoice) -> Conflicts:
        """The conflicts in a program."""
        made = super().__new__(cls, found)
        made.program = program
        return made

    program: ProgramChoice

    def __repr__(self) -> str:
        return conflicts_text(self, self.program)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


def reasons(explainer: Explainer, value: str, dim: int | None, axis: str | None) -> Reasons:
    """Why a value is sharded as it is; see ``Questions.why``."""
    found = Reasons(explainer.why(value, dim, axis))
    if dim is None:
        found.unreduced = tuple(unreduced(explainer, value, axis))
    return found


def obstacles(explainer: Explainer, value: str, dim: int, axis: str) -> Answers[WhyNot]:
    """Why a dimension of a value is not sharded on an axis; see ``Questions.why_not``."""
    search, found = Search(explainer, axis), []
    for tensor in explainer.asked(value, dim, axis):
        found.append(search.explain(tensor, dim))
    return Answers(found)
