"""Checking op rules: they must be well formed, and true.

Statically: sizes match the dimensions, a factor is used once in a tensor, kinds are known. Numerically, as in
tests of partitioners: small random operands are cut along a factor, the op is computed on each part, and the
results are put together as the kind of the factor says; they must equal the results for whole operands. A
local op may have other attributes than the whole one (the sizes in a slice are local sizes); the rule holds
if one does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import ShardlogError, closest
from ...rulebook.book import RuleBook, builtin_ops
from ...rulebook.invalid import RELATIONS, find_invalid
from ..case import EXAMPLES, Case, Reference, file_cases, line_cases
from .claims import claims, guesses, verify
from .execute import NotExecutableError

_JUDGED = ("factor", "kind", "maps", "blocked", "edge", "edge_owner", "edge_source", "edge_target")


@dataclass(frozen=True)
class RuleFinding:
    """Something that is wrong with the rule of an op, or (``wrong`` is False) could be better."""

    place: str
    name: str
    message: str
    wrong: bool
    factor: int | None = None

    def __str__(self) -> str:
        return f"{self.place}: {'error' if self.wrong else 'note'}: {self.name}: {self.message}"


@dataclass
class Report:
    """The findings of a check: ``computed`` counts factors that were verified by computing, ``skipped``
    has the reasons why others were not, with how many."""

    cases: int = 0
    computed: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    findings: list[RuleFinding] = field(default_factory=list)

    def skip(self, reason: str, factors: int = 1) -> None:
        """Counts factors that are not verified."""
        if factors:
            self.skipped[reason] = self.skipped.get(reason, 0) + factors

    @property
    def wrong(self) -> list[RuleFinding]:
        """The findings that are errors."""
        return [f for f in self.findings if f.wrong]

    def __str__(self) -> str:
        lines = [str(finding) for finding in self.findings]
        lines.append(f"{_count(self.cases, 'signature')} checked, {_count(self.computed, 'factor')} computed")
        lines += [f"  {_count(n, 'factor')} not computed: {why}" for why, n in sorted(self.skipped.items())]
        return "\n".join(lines)


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def check_rules(
    rules: Sequence[Path],
    examples: Sequence[Path] = (),
    references: Mapping[str, Reference] | None = None,
    *,
    include_from: Sequence[Path | str] = (),
    limits: str = "",
    shardy: str | None = None,
) -> Report:
    """Checks the rules in files, on the ops that they are about.

    Lines of einsum notation are checked on small shapes that fit them, other rules on the ops in the modules
    ``examples``; without ``rules``, those of shardlog on an example of each op. ``references`` compute ops,
    by name (``@target`` for a custom call), from NumPy arrays. ``include_from``, ``limits`` and
    ``shardy`` are those of ``RuleBook``. Raises ShardlogError and DatalogError for files that are no rules.
    """
    book = RuleBook(rules, include_from=include_from, limits=limits, shardy=shardy)
    cases = line_cases(book, references or {}, lenient=True)
    for path in (*examples, *(() if rules else (EXAMPLES,))):
        cases += file_cases(path, book, references or {}, lenient=True)
    names = {case.name for case in cases}
    for name in references or {}:
        if name not in names:
            where = f"--reference {name}"
            raise ShardlogError("no such op is checked", where=where, hint=closest(name, sorted(names)))
    return check(cases)


def check(cases: Sequence[Case]) -> Report:
    """Checks what the rules say about each case."""
    report = Report()
    for case in cases:
        if not case.answers["factor"] and not case.answers["maps"] and not case.invalid:
            continue
        report.cases += 1
        errors = [RuleFinding(case.place, case.name, message, True) for message in static_errors(case)]
        report.findings += errors
        if not errors and case.factors:
            _check_numbers(case, report)
    return report


def static_errors(case: Case) -> Iterator[str]:
    """The errors in what the rules say about a case, whatever the op computes: see
    ``rules/ops/invalid.dl``."""
    if case.invalid:
        yield from map(str, case.invalid)
        return
    named = ("slot", "dim", "region")
    facts = {name: case.facts[name] for name in named if name in case.facts}
    facts |= {name: rows for name, rows in case.answers.items() if name in _JUDGED}
    program, solver = builtin_ops()
    answers = solver.solve(facts, RELATIONS)
    if any(answers.values()):
        yield from (invalid.what for invalid in find_invalid(program, facts, {}, ""))


def _check_numbers(case: Case, report: Report) -> None:
    tried, skipped = claims(case)
    stated = sum(claim.stated for claim in tried)
    tried += guesses(case)
    for reason in skipped:
        report.skip(reason)
    try:
        verdicts = verify(case, tried)
    except (NotExecutableError, ValueError) as error:
        report.skip(str(error), stated)
        return
    more = [claim for claim, true in zip(tried, verdicts, strict=True) if true and not claim.stated]
    for claim, true in zip(tried, verdicts, strict=True):
        if not claim.stated:
            continue
        if true is None:
            report.skip("no local op verifies")
            continue
        report.computed += 1
        if not true:
            assert claim.factor is not None
            kind = case.kinds[claim.factor]
            message = f"{case.label(claim.factor)} is {kind}, but sharded along it the results differ"
            report.findings.append(RuleFinding(case.place, case.name, message, True, claim.factor))
    for claim in more:
        if claim.factor is not None:
            kind = case.kinds[claim.factor]
            message = f"{case.label(claim.factor)} is {kind}, but could be sharded {claim}"
        elif any(claim.within(other) for other in more):
            continue
        else:
            message = f"could be sharded {claim}: {claim.describe(case)}"
        report.findings.append(RuleFinding(case.place, case.name, message, False, claim.factor))
