"""The answer of ``shardlog.explain``: a run that answers questions and shows itself."""

from __future__ import annotations

from html import escape

from ..runs.choice import ProgramChoice
from ..runs.questions import Questions
from ..runs.records.record import Run
from ..runs.result import Result
from .answers.text import must_move
from .questions.conflicts import conflicts_or_error


class Explained(Questions):
    """A run that answers questions.

    It shows as a summary, or as the answer to why ``value`` is sharded as it is. The summary counts the
    collectives of ``program``.
    """

    def __init__(self, run: Run, value: str | None = None, program: ProgramChoice | None = None) -> None:
        self._asked_about, self._choice = run, program or ProgramChoice()
        self._asked = None if value is None else self.why(value)

    @property
    def _run(self) -> Run:
        return self._asked_about

    @property
    def result(self) -> Result:
        """The run in memory; a saved one is run again."""
        return self._explainer.result

    def summary(self) -> str:
        """The meshes, the number of sharded tensors, and the tensors that must be resharded."""
        run = self._explainer.record
        lines = [f"mesh @{m.name}: {', '.join(f'{n}={s}' for n, s in m.axes)}" for m in run.meshes.meshes]
        tensors = {value.place: value for value in run.values()}
        sharded = sum(bool(v.manual) or any(run.axes(v.number)) for v in tensors.values())
        given = run.given_shardings()
        # A constraint may be its operand's annotation too.
        annotated = f"{len({(a.value, a.where) for a in given if a.by == 'user'}):,} annotations"
        specs = " and the specs of shard_maps" if any(a.spec for a in given) else ""
        lines.append(f"{sharded:,} of {len(tensors):,} tensors are sharded, by {annotated}{specs}")
        lines += [self._choice.line, self._moved()]
        lines += [f"no rule for {op['name']} at {op['location']}" for op in run.unknown_ops]
        return "\n".join([*lines, "ask: .why(value), .why_not(value, dim, axis), .conflicts()"])

    def _moved(self) -> str:
        """The tensors that must move, or why they are not known."""
        found, error = conflicts_or_error(self._run, self._choice)
        return f"what must move is not known: {error}" if error else must_move(found)

    def __repr__(self) -> str:
        return self.summary() if self._asked is None else repr(self._asked)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>" if self._asked is None else self._asked._repr_html_()
