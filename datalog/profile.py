"""The time of an evaluation, and its tuples, by rule and by round."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ..engine.evaluate.store import Noted
from ..engine.plan.plan import QueryPlan


@dataclass(frozen=True)
class RuleRound:
    """The time of a rule in a round of its stratum, in seconds, and its number of new tuples. Rules that are
    not recursive run in round 0."""

    number: int
    seconds: float
    tuples: int


@dataclass(frozen=True)
class RuleProfile:
    """The total time of a rule, and the time of each round. ``stratum`` is the number of the group of
    relations that are computed together. Strata are computed in order."""

    place: str
    text: str
    stratum: int
    seconds: float
    tuples: int
    rounds: tuple[RuleRound, ...]


@dataclass(frozen=True)
class Profile:
    """The rules that ran, slowest first. ``seconds`` is the wall-clock time of everything, including sorting,
    indexing and choosing."""

    seconds: float
    rules: tuple[RuleProfile, ...]

    @property
    def tuples(self) -> int:
        """How many tuples rules gave that were new."""
        return sum(rule.tuples for rule in self.rules)

    def as_json(self) -> dict[str, Any]:
        """The profile as JSON has it."""
        return asdict(self)


def profile_of(noted: Iterable[Noted], plan: QueryPlan, seconds: float) -> Profile:
    """The profile that notes of an evaluation make. The variants of a rule count as one."""
    rules: dict[tuple[int, int], dict[int, RuleRound]] = {}
    for source, stratum, number, took, new in noted:
        rounds = rules.setdefault((source, stratum), {})
        before = rounds.get(number, RuleRound(number, 0.0, 0))
        rounds[number] = RuleRound(number, before.seconds + took, before.tuples + new)
    profiles = []
    for (source, stratum), rounds in rules.items():
        written = plan.sources[source]
        took = sum(each.seconds for each in rounds.values())
        tuples = sum(each.tuples for each in rounds.values())
        place = f"{written.file}:{written.line}"
        profiles.append(RuleProfile(place, written.text, stratum, took, tuples, tuple(rounds.values())))
    profiles.sort(key=lambda rule: (-rule.seconds, rule.stratum, rule.place))
    return Profile(seconds, tuple(profiles))
