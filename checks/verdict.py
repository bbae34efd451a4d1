"""The verdict of ``shardlog check``: the problems of a program, and the changes since a baseline."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..program.mlir.origins import at
from ..runs.choice import ProgramChoice
from ..session import Session
from .expect import Difference, check
from .findings import Finding
from .limits import changed_collectives, new_collective
from .lint import Lint, findings

if TYPE_CHECKING:
    from ..explanations.answers.diff import Diff
    from ..runs.collectives import Collective

_LINE = re.compile(r"(.+?):(\d+)(?::\d+)?")
Level = Literal["error", "warning"]


@dataclass(frozen=True)
class Problem:
    """A problem in a check: an error fails it, a warning does not.

    ``where`` is a place in the user's program, or in the file of expectations; ``stack`` is the name stack
    there.
    """

    check: str
    level: Level
    what: str
    where: str
    stack: str
    sentence: str
    because: tuple[str, ...]

    @property
    def line(self) -> tuple[str, int] | None:
        """The file and its line (from 1), as seen from the working folder; None if the place is no line."""
        match = _LINE.fullmatch(self.where)
        if match is None:
            return None
        path = Path(match[1])
        if path.is_absolute() and path.is_relative_to(Path.cwd()):
            path = path.relative_to(Path.cwd())
        return path.as_posix(), int(match[2])

    @property
    def placed(self) -> str:
        """The problem as lines of text, its place behind what it is about."""
        return "\n".join([f"{self.what}{at(self.where, self.stack)}: {self.sentence}", *self.because])

    @property
    def message(self) -> str:
        """The problem as lines of text, without its place."""
        return "\n".join([f"{self.what}: {self.sentence}", *self.because])


@dataclass(frozen=True)
class Totals:
    """The bytes that a device sends, its number of collectives, and the bytes of memory at the peak."""

    collectives: int
    sent: int
    memory: int


@dataclass(frozen=True)
class Changes:
    """How a run differs from a baseline: its shardings, and the collectives that only one of them has."""

    baseline: str
    before: Totals
    after: Totals
    new: tuple[Collective, ...]
    gone: tuple[Collective, ...]
    diff: Diff

    def problems(self) -> Iterator[Problem]:
        """New collectives, as errors if more is sent than before, and the points at which shardings part."""
        more = self.after.sent > self.before.sent
        for each in self.new:
            problem = _of_finding(new_collective(each, self.baseline))
            yield problem if more else replace(problem, level="warning")
        for parting in self.diff.partings:
            site, after = parting.site, parting.has == 2
            yield Problem(
                "changed-sharding",
                "warning",
                f"{site.value} : {site.type}",
                parting.where,
                parting.stack,
                f'dim {site.dim} is {"now" if after else "no longer"} sharded on "{parting.axis}"',
                (
                    f"{'now' if after else 'before'}: {parting.why}",
                    f"{'before' if after else 'now'}: {parting.why_not}",
                ),
            )

    def as_json(self) -> dict[str, Any]:
        """The changes as JSON has them."""
        return {
            "baseline": self.baseline,
            "before": asdict(self.before),
            "after": asdict(self.after),
            "new": [asdict(each) for each in self.new],
            "gone": [asdict(each) for each in self.gone],
            "diff": self.diff.as_json(),
        }


@dataclass(frozen=True)
class Verdict:
    """All problems of a program, errors first; ``changes`` are None without a baseline.

    ``checks`` names the checks that ran.
    """

    name: str
    program: str
    checks: tuple[str, ...]
    problems: tuple[Problem, ...]
    changes: Changes | None

    @cached_property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that fail the check."""
        return tuple(problem for problem in self.problems if problem.level == "error")

    def as_json(self) -> dict[str, Any]:
        """The verdict as JSON has it."""
        return {
            "program": self.program,
            "checks": list(self.checks),
            "problems": [asdict(p) | {"because": list(p.because)} for p in self.problems],
            "changes": self.changes and self.changes.as_json(),
        }


def verdict(
    session: Session,
    *,
    expected: Path | None = None,
    baseline: Session | None = None,
    lints: Sequence[Lint] = (),
    choice: ProgramChoice | None = None,
) -> Verdict:
    """The verdict on a run: by a file of expected shardings, by the run of a baseline, and by lints.
    Collectives are those of the program that ``choice`` means.

    Raises ShardlogError for a malformed file, and if the program cannot be partitioned.
    """
    meant = choice or ProgramChoice()
    checks, problems = list[str](), list[Problem]()
    if expected is not None:
        checks.append("expected")
        problems += map(_of_difference, check(session, expected))
    changes = None
    if baseline is not None:
        checks += ["new-collective", "changed-sharding"]
        changes = _changes(session, baseline, meant)
        problems += changes.problems()
    checks += [lint.name for lint in lints]
    problems += map(_of_finding, findings(session, lints, meant))
    problems.sort(key=lambda problem: problem.level != "error")
    return Verdict(
        session.record.name, meant.line, tuple(dict.fromkeys(checks)), tuple(dict.fromkeys(problems)), changes
    )


def _changes(session: Session, baseline: Session, choice: ProgramChoice) -> Changes:
    new, gone = changed_collectives(session, baseline, choice)
    before, after = (_totals(each, choice) for each in (baseline, session))
    return Changes(baseline.record.name, before, after, tuple(new), tuple(gone), baseline.diff(session))


def _totals(session: Session, choice: ProgramChoice) -> Totals:
    collectives = session.programs.asked(choice).collectives
    memory = session.cost(**choice.options).peak
    return Totals(len(collectives), sum(each.total for each in collectives), memory)


def _of_finding(finding: Finding) -> Problem:
    return Problem(
        finding.lint, "error", finding.what, finding.where, finding.stack, finding.sentence, finding.because
    )


def _of_difference(difference: Difference) -> Problem:
    if difference.found is None:
        return Problem(
            "expected", "error", difference.key, difference.where, "", difference.causes[0].sentence, ()
        )
    because = []
    for cause in difference.causes:
        what = f'dim {cause.dim} {"is not" if cause.missing else "is"} sharded on "{cause.axis}": '
        because.append(f"{what if cause.axis else ''}{cause.sentence}")
    at_line = _LINE.fullmatch(difference.place)
    sentence = f"expected {difference.expected}, is {difference.found}"
    where = difference.place if at_line else difference.where
    what = f"{difference.value} : {difference.type}"
    return Problem("expected", "error", what, where, difference.stack, sentence, tuple(because))
