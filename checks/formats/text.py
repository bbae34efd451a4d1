"""A verdict as text for people."""

from __future__ import annotations

from collections.abc import Iterator

from ...explanations.answers.text import wrapped
from ...program.elements import bytes_text
from ...program.mlir.origins import at
from ..verdict import Changes, Problem, Verdict


def written(verdict: Verdict) -> str:
    """The problems with their reasons, and the changes."""
    lines = [verdict.program]
    if verdict.changes is not None:
        lines += _totals(verdict.changes)
    for problem in verdict.problems:
        lines += _lines(problem)
    errors, warnings = len(verdict.errors), len(verdict.problems) - len(verdict.errors)
    lines.append(f"{verdict.name}: {_counted(errors, 'error')}, {_counted(warnings, 'warning')}")
    return "\n".join(lines) + "\n"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _totals(changes: Changes) -> Iterator[str]:
    before, after = changes.before, changes.after
    yield f"since {changes.baseline}:"
    yield f"  collectives: {before.collectives:,} -> {after.collectives:,}"
    yield f"  bytes sent by each device: {before.sent:,} -> {after.sent:,}"
    yield f"  memory on a device: {bytes_text(before.memory)} -> {bytes_text(after.memory)}"


def _lines(problem: Problem) -> Iterator[str]:
    yield f"{problem.level}: {problem.check}: {problem.what}{at(problem.where, problem.stack)}"
    yield from wrapped("  ", problem.sentence)
    for reason in problem.because:
        yield from wrapped("      ", reason)
