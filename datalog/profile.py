"""What an evaluation took: time and tuples, rule by rule and round by round."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ..engine.evaluate.store import Noted
from ..engine.plan.plan import QueryPlan


@dataclass(frozen=True)
class RuleRound:
    """What a rule took in a round of its stratum, in seconds, and how many tuples it gave that were new.
    Rules that are not recursive are applied in round 0."""

    number: int
    seconds: float
    tuples: int


@dataclass(frozen=True)
class RuleProfile:
    """What a rule took in all, and in each of its rounds. ``stratum`` is the number of the relations that
    are computed together with the rule's; strata are computed in their order."""

    place: str
    text: str
    stratum: int
    seconds: float
    tuples: int
    rounds: tuple[RuleRound, ...]


@dataclass(frozen=True)
class Profile:
    """The rules that were applied, those that took longest first. ``seconds`` is what all of it took,
    wall-clock time: also to sort, to index and to choose."""

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
    found = []
    for (source, stratum), rounds in rules.items():
        written = plan.sources[source]
        took = sum(each.seconds for each in rounds.values())
        made = sum(each.tuples for each in rounds.values())
        place = f"{written.file}:{written.line}"
        found.append(RuleProfile(place, written.text, stratum, took, made, tuple(rounds.values())))
    found.sort(key=lambda rule: (-rule.seconds, rule.stratum, rule.place))
    return Profile(seconds, tuple(found))
