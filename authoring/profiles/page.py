"""A profile as one HTML page."""

from __future__ import annotations

from pathlib import Path

from ...datalog.profile import Profile, RuleProfile
from ...pages import page_of
from ...runs.table import part_text, time_text

_TEMPLATE = Path(__file__).parent / "page.html.j2"
_BARS = 120  # of a rule: rounds beyond that are put together


def page(profile: Profile, title: str) -> str:
    """The page, which needs nothing but a browser."""
    functions = {"time": time_text, "part": part_text, "bars": _bars}
    return page_of(_TEMPLATE, profile=profile, title=title, **functions)


def _bars(rule: RuleProfile) -> list[tuple[float, float, str]]:
    """A bar for each round, or for several consecutive rounds if there are many: its height for the time
    and for the tuples, relative to the highest, and its label."""
    size = -(-len(rule.rounds) // _BARS)
    groups = [rule.rounds[i : i + size] for i in range(0, len(rule.rounds), size)]
    sums = [(sum(r.seconds for r in group), sum(r.tuples for r in group)) for group in groups]
    longest, most = (max((each[i] for each in sums), default=0) or 1 for i in (0, 1))
    bars = []
    for group, (seconds, tuples) in zip(groups, sums, strict=True):
        first, last = group[0].number, group[-1].number
        rounds = f"round {first}" if first == last else f"rounds {first} to {last}"
        bars.append((seconds / longest, tuples / most, f"{rounds}: {time_text(seconds)}, {tuples:,} tuples"))
    return bars
