"""Random modules with unreduced values: our shardings are Shardy's, and what it refuses we refuse, at the
same place."""

from __future__ import annotations

import warnings

import shardlog
from hypothesis import given, note, reject
from shardlog.program.shardy import installed

from ..support.compare import differences
from ..support.drawing import drawing
from ..support.generators.random_unreduced import unreduced_modules
from ..support.oracle import OracleError, forked, propagate, refused_unreduced

OLD = installed() == "0.10"


@drawing(30)
@given(unreduced_modules(kinds=not OLD))
def test_random_module(text: str) -> None:
    try:
        expected, place = forked(propagate, text), forked(refused_unreduced, text)
    except OracleError:
        reject()  # it does not verify, or Shardy crashes
    note(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ours, refused = shardlog.run(text, separate_groups=True, strict_shardy=True).text(), ""
        except shardlog.ShardlogError as error:
            ours, refused = "", error.where.removeprefix("<text>:")
            note(str(error))
    note(f"expected\n{expected}")
    assert refused == place
    if not place:
        assert differences(ours, expected) == []
