"""Random modules with unreduced values: our shardings are Shardy's, and what it refuses we refuse, at the
same place.

SHARDLOG_EXAMPLES, the number of modules (60), and SHARDLOG_SEED (0) are as in test_random_modules.py.
"""

from __future__ import annotations

import os
import warnings

import shardlog
from hypothesis import HealthCheck, given, note, reject, seed, settings
from shardlog.program.shardy import installed

from ..support.compare import differences
from ..support.generators.random_unreduced import unreduced_modules
from ..support.oracle import OracleError, forked, propagate, refused_unreduced

EXAMPLES = int(os.environ.get("SHARDLOG_EXAMPLES", "60"))
SEED = int(os.environ.get("SHARDLOG_SEED", "0"))
OLD = installed() == "0.10"


@seed(SEED)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
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
