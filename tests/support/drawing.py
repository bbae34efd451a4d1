"""Which cases tests try, by day and by night.

Of random cases ``make test`` draws a few, the same each time; ``make test-nightly`` more, others each day.
SHARDLOG_EXAMPLES is another number of cases, and SHARDLOG_SEED (0) decides which they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, seed, settings

SEED = int(os.environ.get("SHARDLOG_SEED", "0"))


def drawing(few: int, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Has a test draw so many cases; more in a profile with more than hypothesis' 100 examples."""
    many = int(os.environ.get("SHARDLOG_EXAMPLES", few * settings().max_examples // 100))
    chosen = settings(max_examples=max(many, 1), suppress_health_check=[*HealthCheck], **options)
    return lambda test: seed(SEED)(chosen(test))


def by_day(kept: Iterable[Any], cases: Iterable[Any]) -> list[Any]:
    """The cases of a test, of which ``make test`` runs the kept ones only: the others run the same code."""
    days, found = list(kept), list(cases)
    assert all(case in found for case in days)
    nightly = pytest.mark.nightly
    return [
        case if case in days else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=nightly)
        for case in found
    ]


def in_turn(place: int, cases: Iterable[Any], of: int = 2) -> list[Any]:
    """The cases of a test, of which ``make test`` runs one of so many: of tests that run much of the same
    code, each takes others."""
    found = list(cases)
    return by_day(found[place::of], found)
