"""``shardlog.explain``: a jitted function, lowered and propagated, as an object that answers questions."""

from __future__ import annotations

from functools import cached_property
from html import escape
from typing import Any, Generic, TypeVar

from ..api import Result, run
from ..errors import ShardlogError
from .conflicts import Conflict, conflicts
from .explanation import Explanation, WhyNot
from .record import Record, Run
from .text import conflicts_text, folded
from .views import dot, mermaid
from .visualize import Picture, picture_of
from .why import Explainer
from .why_not import Search

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

    def dot(self) -> str:
        """The derivations as a graph for Graphviz."""
        return dot(self)

    def mermaid(self) -> str:
        """The derivations as a Mermaid flowchart."""
        return mermaid(self)


class Conflicts(Answers[Conflict]):
    """The tensors that must move, most bytes first."""

    def __repr__(self) -> str:
        return conflicts_text(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


class Explained:
    """A run that answers questions. Its ``repr`` is a summary, or why ``value`` is sharded as it is."""

    def __init__(self, run: Run, value: str | None = None) -> None:
        self._explainer = Explainer(run)
        self._asked = None if value is None else self.why(value)

    def why(self, value: str, dim: int | None = None, axis: str | None = None) -> Reasons:
        """Why a value is sharded as it is, for all axes or those that ``dim`` and ``axis`` say.

        ``value`` is a JAX path of an argument or result (``params['wq']``), an SSA name, or ``model.py:42``.
        Raises ShardlogError for values, dimensions and axes that do not exist.
        """
        return Reasons(self._explainer.why(value, dim, axis))

    def why_not(self, value: str, dim: int, axis: str) -> Answers[WhyNot]:
        """Why dimension ``dim`` of a value is not sharded on an axis; errors as ``why`` and where it is."""
        search, found = Search(self._explainer, axis), []
        for tensor in self._explainer.values.find(value):
            self._explainer.check(tensor, dim, axis)
            found.append(search.explain(tensor, dim))
        return Answers(found)

    def conflicts(self) -> Conflicts:
        """The tensors that must move, most bytes first."""
        return Conflicts(self._conflicts)

    def visualize(self, value: str) -> Picture:
        """Which device holds which part of a value, the first one of that name."""
        return picture_of(self._explainer.record, self._explainer.values.find(value)[0])

    @property
    def result(self) -> Result:
        """The run."""
        return self._explainer.result

    @cached_property
    def _conflicts(self) -> list[Conflict]:
        return conflicts(self._explainer.record)

    def summary(self) -> str:
        """Meshes, how many tensors are sharded, and what must move."""
        run = self._explainer.record
        lines = [f"mesh @{m.name}: {', '.join(f'{n}={s}' for n, s in m.axes)}" for m in run.meshes.meshes]
        tensors = {value.place: value for value in run.values()}
        sharded = sum(bool(v.manual) or any(run.axes(v.number)) for v in tensors.values())
        given = run.given_shardings()
        annotated = f"{sum(a.by == 'user' for a in given):,} annotations"
        specs = " and the specs of shard_maps" if any(a.spec for a in given) else ""
        lines.append(f"{sharded:,} of {len(tensors):,} tensors are sharded, by {annotated}{specs}")
        lines.append(conflicts_text(self._conflicts).splitlines()[0])
        lines += [f"no rule for {op['name']} at {op['location']}" for op in run.unknown_ops]
        return "\n".join([*lines, "ask: .why(value), .why_not(value, dim, axis), .conflicts()"])

    def __repr__(self) -> str:
        return self.summary() if self._asked is None else repr(self._asked)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>" if self._asked is None else self._asked._repr_html_()


def explain(function: Any, *args: Any, value: str | None = None, **keywords: Any) -> Explained:
    """Lowers a function for its arguments and propagates shardings; returns what answers questions about it.

    ``function``, ``args`` and ``keywords`` are those of ``shardlog.run``, options among them. A ``Result`` or
    a saved run is explained as it is. ``value`` is what is asked about at once.
    """
    if isinstance(function, Result | Record):
        if args or keywords:
            given = f"arguments for a {type(function).__name__}"
            raise ShardlogError(given, where="explain", hint="it has been run already")
        return Explained(function, value)
    return Explained(run(function, *args, **keywords), value)
