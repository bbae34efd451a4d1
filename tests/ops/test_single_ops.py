"""Random single ops: our factors are Shardy's.

SHARDLOG_EXAMPLES is the number of modules of each family (40), SHARDLOG_SEED (0) decides which they are.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, note, seed, settings
from hypothesis import strategies as st

from .rules import attached, ours
from .single_ops import FAMILIES

EXAMPLES = int(os.environ.get("SHARDLOG_EXAMPLES", "40"))
SEED = int(os.environ.get("SHARDLOG_SEED", "0"))


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str) -> None:
    @seed(SEED)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        print_blob=False,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(FAMILIES[family], st.booleans())
    def equal(text: str, conservative: bool) -> None:
        note(text)
        assert ours(text, conservative=conservative) == attached(text, conservative=conservative)

    equal()
