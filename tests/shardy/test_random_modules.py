"""Random modules: our shardings are Shardy's."""

from __future__ import annotations

import warnings

import pytest
import shardlog
from hypothesis import given, note, reject
from hypothesis import strategies as st

from ..support.compare import differences
from ..support.drawing import drawing
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

REFUSED = (refused_unreduced, refused_single_device)


@drawing(20)
@given(modules(), modules(manual=True))
def test_modules_verify(text: str, manual: str) -> None:
    assert "func.func" in reprinted(text)
    assert "func.func" in reprinted(manual)


@drawing(40)
@given(modules(), st.sampled_from([*PROPAGATE][::-1]), st.booleans())
def test_random_module(text: str, strategy: str, closed: bool) -> None:
    check_like_shardy(text, strategy, closed)


@drawing(15)
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
