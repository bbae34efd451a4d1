"""Random modules: our shardings are Shardy's.

Two environment variables: SHARDLOG_EXAMPLES, the number of modules (200; some thousands in a nightly run),
and SHARDLOG_SEED (0), which decides which modules they are.
"""

from __future__ import annotations

import os
import warnings

import pytest
import shardlog
from hypothesis import HealthCheck, given, note, reject, seed, settings
from hypothesis import strategies as st

from ..support.compare import differences
from ..support.generators.random_modules import modules
from ..support.oracle import (
    PROPAGATE,
    OracleError,
    forked,
    propagate,
    refused_single_device,
    refused_unreduced,
    reprinted,
)

pytestmark = pytest.mark.versions

EXAMPLES = int(os.environ.get("SHARDLOG_EXAMPLES", "200"))
SEED = int(os.environ.get("SHARDLOG_SEED", "0"))
REFUSED = (refused_unreduced, refused_single_device)

several = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@seed(SEED)
@several
@given(modules(), modules(manual=True))
def test_modules_verify(text: str, manual: str) -> None:
    assert "func.func" in reprinted(text)
    assert "func.func" in reprinted(manual)


@seed(SEED)
@several
@given(modules(), st.sampled_from([*PROPAGATE][::-1]), st.booleans())
def test_random_module(text: str, strategy: str, closed: bool) -> None:
    check_like_shardy(text, strategy, closed)


@seed(SEED)
@several
@given(modules(manual=True), st.sampled_from([*PROPAGATE][::-1]), st.booleans())
def test_random_manual_computations(text: str, strategy: str, closed: bool) -> None:
    check_like_shardy(text, strategy, closed)


def check_like_shardy(text: str, strategy: str, closed: bool) -> None:
    try:
        expected = forked(propagate, text, strategy=strategy, closed=closed)
    except OracleError:
        reject()  # Shardy crashes, or leaves priorities where there may be none
    note(f"strategy {strategy}, closed {closed}\n{reprinted(text)}\nexpected\n{expected}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Shardy warns too
        try:
            ours = shardlog.run(
                text, strategy=strategy, closed=closed, separate_groups=True, strict_shardy=True
            ).text()
        except shardlog.ShardlogError as error:
            place = error.where.removeprefix("<text>:")
            if any(place == forked(said, text, strategy=strategy, closed=closed) for said in REFUSED):
                return
            if "several functions cannot be kept apart" not in (error.hint or ""):
                raise
            reject()  # Shardy warns
    note(f"got\n{ours}")
    assert differences(ours, expected) == []
