"""A verdict as workflow commands of GitHub Actions, which it shows beside the lines of a pull request.

The commands: https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..verdict import Problem, Verdict

_IN_VALUES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTIES = {**_IN_VALUES, ":": "%3A", ",": "%2C"}


def written(verdict: Verdict) -> str:
    """A command for each problem."""
    return "".join(f"{_command(problem)}\n" for problem in verdict.problems)


def _command(problem: Problem) -> str:
    properties = ",".join(f"{name}={_escaped(value, _IN_PROPERTIES)}" for name, value in _properties(problem))
    return f"::{problem.level} {properties}::{_escaped(problem.message, _IN_VALUES)}"


def _properties(problem: Problem) -> Iterator[tuple[str, str]]:
    if problem.line is not None:
        file, line = problem.line
        yield from (("file", file), ("line", str(line)))
    yield "title", f"shardlog: {problem.check}"


def _escaped(text: str, table: Mapping[str, str]) -> str:
    return "".join(table.get(character, character) for character in text)
