"""A profile as tables of text."""

from __future__ import annotations

from collections.abc import Iterator

from ...datalog.profile import Profile, RuleProfile
from ...runs.table import part_text, short_table, time_text

_ROWS = 20  # rows of a table that is not full
_WIDEST = 80  # columns of a rule


def rule_text(rule: RuleProfile, widest: int = _WIDEST) -> str:
    """A rule in one line, of which the end may be left out."""
    text = " ".join(rule.text.split())
    return text if len(text) <= widest else f"{text[: widest - 4]} ..."


def profile_text(profile: Profile, *, full: bool = False) -> str:
    """The total time, the work of each rule, and the work of each round of recursive rules, in order."""
    most = None if full else _ROWS
    in_rules = sum(rule.seconds for rule in profile.rules)
    lines = [
        f"{time_text(profile.seconds)}, {part_text(in_rules, profile.seconds)} of it in {len(profile.rules)}"
        f" rules; {profile.tuples:,} new tuples"
    ]
    rows = [
        (
            rule.place,
            time_text(rule.seconds),
            part_text(rule.seconds, profile.seconds),
            f"{rule.tuples:,}",
            f"{len(rule.rounds):,}",
            rule_text(rule),
        )
        for rule in profile.rules
    ]
    lines += short_table(("place", "time", "of all", "tuples", "rounds", "rule"), rows, most)
    for stratum, rules in _recursive(profile):
        rounds = [
            (f"{number:,}", rule.place, time_text(took), f"{tuples:,}")
            for number, rule, took, tuples in _rounds(rules)
        ]
        lines += ["", f"Round by round, of the rules of stratum {stratum}:"]
        lines += short_table(("round", "place", "time", "tuples"), rounds, most)
    return "\n".join(lines)


def _recursive(profile: Profile) -> Iterator[tuple[int, list[RuleProfile]]]:
    """The strata with rules that were applied in several rounds."""
    strata: dict[int, list[RuleProfile]] = {}
    for rule in profile.rules:
        strata.setdefault(rule.stratum, []).append(rule)
    for stratum, rules in sorted(strata.items()):
        if any(len(rule.rounds) > 1 for rule in rules):
            yield stratum, rules


def _rounds(rules: list[RuleProfile]) -> list[tuple[int, RuleProfile, float, int]]:
    """The work of rules in each round, in the order of rounds."""
    rows = [(each.number, rule, each.seconds, each.tuples) for rule in rules for each in rule.rounds]
    return sorted(rows, key=lambda row: (row[0], row[1].place))
